//! Charts over time, drawn as SVG by the server: they are there without JavaScript and cost no library
//! (docs/decisions/087-pages-behind-a-seam.md). The scale stands beside them as text.

use maud::{Markup, html};

use super::bars::short;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;

/// The next number that is round enough for a scale: 1, 2 or 5 with zeros, above or at `most`.
fn round_above(most: f64) -> f64 {
    let most = most.max(1.0);
    let ten = 10f64.powf(most.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|by| by * ten).find(|top| *top >= most).unwrap_or(most)
}

struct Scale {
    top: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        Scale { top: round_above(values.fold(0.0, f64::max)) }
    }
    fn height(&self, value: f64) -> f64 {
        value / self.top * HEIGHT
    }
}

/// What stands around a chart: its name for readers that read aloud, its scales.
fn plot(name: &str, drawn: Markup, scale: [String; 3], ends: [&str; 2]) -> Markup {
    html! {
        div class="plot" {
            svg class="chart" viewBox="0 0 600 100" preserveAspectRatio="none" role="img" aria-label=(name) {
                line class="grid-line" x1="0" x2="600" y1="0" y2="0" {}
                line class="grid-line" x1="0" x2="600" y1="50" y2="50" {}
                line class="base" x1="0" x2="600" y1="100" y2="100" {}
                (drawn)
            }
            div class="y" aria-hidden="true" { @for text in scale { span { (text) } } }
            div class="x" aria-hidden="true" { @for text in ends { span { (text) } } }
        }
    }
}

/// A bar for each step of time, whose second value stands below, so that both together are the height; and a line over
/// them of what came, by which a backlog is seen to grow.
pub(crate) fn bars_of_two(
    name: &str,
    values: &[(u64, u64)],
    came: &[u64],
    steps: usize,
    ends: [&str; 2],
    shown: impl Fn(f64) -> String,
) -> Markup {
    let ended = values.iter().map(|(one, two)| (one + two) as f64);
    let scale = Scale::of(ended.chain(came.iter().map(|n| *n as f64)));
    let step = WIDTH / steps.max(1) as f64;
    let skipped = steps.saturating_sub(values.len());
    let bar = |class: &str, at: usize, from: f64, height: f64| {
        let x = (skipped + at) as f64 * step + step * 0.1;
        html! {
            @if height > 0.0 {
                rect class=(class) x=(short(x)) width=(short(step * 0.8))
                    y=(short(HEIGHT - from - height)) height=(short(height)) {}
            }
        }
    };
    let points: Vec<String> = came
        .iter()
        .enumerate()
        .map(|(at, n)| {
            let x = ((skipped + at) as f64 + 0.5) * step;
            format!("{},{}", short(x), short(HEIGHT - scale.height(*n as f64)))
        })
        .collect();
    let drawn = html! {
        @for (at, (one, two)) in values.iter().enumerate() {
            (bar("bad", at, 0.0, scale.height(*two as f64)))
            (bar("good", at, scale.height(*two as f64), scale.height(*one as f64)))
        }
        polyline class="trace came" points=(points.join(" ")) {}
    };
    plot(name, drawn, [shown(scale.top), shown(scale.top / 2.0), shown(0.0)], ends)
}

/// What two lines have at one step of time.
pub(crate) type PairOfValues = (Option<f64>, Option<f64>);

/// Two lines over time; where a value is absent a line has a gap.
pub(crate) fn lines_of_two(
    name: &str,
    values: &[PairOfValues],
    steps: usize,
    ends: [&str; 2],
    shown: impl Fn(f64) -> String,
) -> Markup {
    let all = values.iter().flat_map(|(one, two)| [*one, *two]).flatten();
    let scale = Scale::of(all);
    let step = WIDTH / steps.max(1) as f64;
    let skipped = steps.saturating_sub(values.len());
    let place = |at: usize, value: f64| {
        let x = ((skipped + at) as f64 + 0.5) * step;
        format!("{},{}", short(x), short(HEIGHT - scale.height(value)))
    };
    let line = |class: &str, pick: fn(&PairOfValues) -> Option<f64>| {
        let mut runs: Vec<Vec<String>> = vec![Vec::new()];
        for (at, pair) in values.iter().enumerate() {
            match (pick(pair), runs.last_mut()) {
                (Some(value), Some(run)) => run.push(place(at, value)),
                _ => runs.push(Vec::new()),
            }
        }
        // A point without neighbours is a short dash.
        let text = |run: &Vec<String>| match run.as_slice() {
            [one] => format!("{one} {one}"),
            many => many.join(" "),
        };
        html! {
            @for run in runs.iter().filter(|run| !run.is_empty()) {
                polyline class=(class) points=(text(run)) {}
            }
        }
    };
    let drawn = html! { (line("trace second", |pair| pair.1)) (line("trace", |pair| pair.0)) };
    plot(name, drawn, [shown(scale.top), shown(scale.top / 2.0), shown(0.0)], ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_ends_at_a_round_number() {
        for (most, top) in [(0.0, 1.0), (1.0, 1.0), (3.0, 5.0), (51.0, 100.0), (1_999.0, 2_000.0)] {
            assert_eq!(round_above(most), top, "{most}");
        }
    }

    #[test]
    fn a_line_has_a_gap_where_nothing_is_known() {
        let values = [(Some(1.0), None), (None, None), (Some(2.0), Some(3.0)), (Some(2.0), None)];
        let text = lines_of_two("", &values, 4, ["", ""], |n| n.to_string()).into_string();
        assert_eq!(text.matches("\"trace\"").count(), 2, "{text}");
        assert_eq!(text.matches("second").count(), 1, "{text}");
        let none = lines_of_two("", &[], 60, ["", ""], |n| n.to_string()).into_string();
        assert!(!none.contains("polyline") && !none.contains("NaN"));
    }
}
