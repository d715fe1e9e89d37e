//! Charts over time, drawn as SVG by the server: they work without JavaScript and without a library
//! (docs/decisions/087-pages-behind-a-seam.md). The scale stands beside them as text.

use maud::{Markup, html};

use super::bars::short;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;

/// The next round count at or above `most` whose half is a count too (except for 1).
fn round_above(most: f64) -> f64 {
    let most = most.max(1.0);
    let ten = 10f64.powf(most.log10().floor());
    [1.0, 2.0, 4.0, 6.0, 10.0]
        .into_iter()
        .map(|by| by * ten)
        .find(|top| *top >= most)
        .unwrap_or(most)
}

struct Scale {
    top: f64,
}

impl Scale {
    fn of_counts(values: impl Iterator<Item = f64>) -> Self {
        Scale { top: round_above(values.fold(0.0, f64::max)) }
    }
    /// The scale ends at the longest time, so that it names no time that nothing took.
    fn of_times(values: impl Iterator<Item = f64>) -> Self {
        Scale { top: values.fold(0.0, f64::max) }
    }
    fn height(&self, value: f64) -> f64 {
        if self.top > 0.0 { value / self.top * HEIGHT } else { 0.0 }
    }
    /// Top, middle and bottom. No two of them read the same.
    fn labels(&self, shown: impl Fn(f64) -> String) -> [String; 3] {
        let [mut top, mut middle, bottom] = [self.top, self.top / 2.0, 0.0].map(shown);
        if middle == top || middle == bottom {
            middle.clear();
        }
        if top == bottom {
            top.clear();
        }
        [top, middle, bottom]
    }
}

/// The frame of a chart: its name for screen readers, its scales.
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

/// A bar for each step of time, with the second value below the first, so that both together are the height; and a line
/// over them for the arrivals, which shows a growing backlog.
pub(crate) fn bars_of_two(
    name: &str,
    values: &[(u64, u64)],
    came: &[u64],
    steps: usize,
    ends: [&str; 2],
    shown: impl Fn(f64) -> String,
) -> Markup {
    let ended = values.iter().map(|(one, two)| (one + two) as f64);
    let scale = Scale::of_counts(ended.chain(came.iter().map(|n| *n as f64)));
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
    plot(name, drawn, scale.labels(shown), ends)
}

/// The values of two lines at one step of time.
pub(crate) type PairOfValues = (Option<f64>, Option<f64>);

/// Two lines over time, of times in microseconds; where a value is absent a line has a gap.
pub(crate) fn lines_of_two(
    name: &str,
    values: &[PairOfValues],
    steps: usize,
    ends: [&str; 2],
    shown: impl Fn(f64) -> String,
) -> Markup {
    let all = values.iter().flat_map(|(one, two)| [*one, *two]).flatten();
    let scale = Scale::of_times(all);
    let step = WIDTH / steps.max(1) as f64;
    let skipped = steps.saturating_sub(values.len());
    let place = |at: usize, value: f64| {
        (((skipped + at) as f64 + 0.5) * step, HEIGHT - scale.height(value))
    };
    let line = |class: &str, pick: fn(&PairOfValues) -> Option<f64>| {
        let mut runs: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
        for (at, pair) in values.iter().enumerate() {
            match (pick(pair), runs.last_mut()) {
                (Some(value), Some(run)) => run.push(place(at, value)),
                _ => runs.push(Vec::new()),
            }
        }
        let point = |(x, y): &(f64, f64)| format!("{},{}", short(*x), short(*y));
        // A point without neighbours is a dash as wide as a bar: anything less is invisible.
        let text = |run: &Vec<(f64, f64)>| match run.as_slice() {
            [(x, y)] => [-0.4, 0.4].map(|by| point(&(x + by * step, *y))).join(" "),
            many => many.iter().map(point).collect::<Vec<_>>().join(" "),
        };
        html! {
            @for run in runs.iter().filter(|run| !run.is_empty()) {
                polyline class=(class) points=(text(run)) {}
            }
        }
    };
    let drawn = html! { (line("trace second", |pair| pair.1)) (line("trace", |pair| pair.0)) };
    plot(name, drawn, scale.labels(shown), ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_ends_at_a_round_number() {
        for (most, top) in
            [(0.0, 1.0), (1.0, 1.0), (3.0, 4.0), (5.0, 6.0), (51.0, 60.0), (1_999.0, 2_000.0)]
        {
            assert_eq!(round_above(most), top, "{most}");
        }
    }

    #[test]
    fn no_two_labels_of_a_scale_read_the_same() {
        let counts = |most| Scale::of_counts([most].into_iter()).labels(|n| (n as u64).to_string());
        assert_eq!(counts(1.0), ["1", "", "0"]);
        assert_eq!(counts(5.0), ["6", "3", "0"]);
        let age = |us: f64| crate::show::for_people(tenure_core::time::Span::from_us(us as u64));
        let times = |most| Scale::of_times([most].into_iter()).labels(age);
        assert_eq!(times(1_000.0), ["1ms", "", "0s"]);
        assert_eq!(times(144e6), ["2m24s", "1m12s", "0s"], "no longer time than there was");
        assert_eq!(times(0.0), ["", "", "0s"]);
    }

    #[test]
    fn a_line_has_a_gap_where_nothing_is_known() {
        let values = [(Some(1.0), None), (None, None), (Some(2.0), Some(3.0)), (Some(2.0), None)];
        let text = lines_of_two("", &values, 4, ["", ""], |n| n.to_string()).into_string();
        assert_eq!(text.matches("\"trace\"").count(), 2, "{text}");
        assert_eq!(text.matches("second").count(), 1, "{text}");
        // A point without neighbours is as wide as a bar, so that it is visible.
        assert!(text.contains("points=\"15,66.67 135,66.67\""), "{text}");
        let none = lines_of_two("", &[], 60, ["", ""], |n| n.to_string()).into_string();
        assert!(!none.contains("polyline") && !none.contains("NaN"));
    }
}
