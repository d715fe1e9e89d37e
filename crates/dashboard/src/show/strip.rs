//! A strip of time from now on, with a mark for each moment. It shows hours or days in the reader's own time, since it
//! begins now.

use maud::{Markup, html};
use tenure_core::time::{Moment, Span};

use super::bars::short;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 20.0;

/// A strip from `now` over `length`, with a line at each of `parts` equal parts. `name`: for screen readers, and for a
/// pointer that rests on it.
pub(crate) fn strip(name: &str, now: Moment, length: Span, parts: u32, at: &[Moment]) -> Markup {
    let place = |moment: Moment| moment.since(now).us() as f64 / length.us().max(1) as f64 * WIDTH;
    // One path for all of them: a list has a strip in each row.
    let marks: String = at
        .iter()
        .filter(|moment| moment.since(now) <= length)
        .map(|moment| format!("M{} 3v14", short(place(*moment).clamp(1.0, WIDTH - 1.0))))
        .collect();
    html! {
        svg class="strip" viewBox="0 0 600 20" preserveAspectRatio="none" role="img" aria-label=(name) {
            title { (name) }
            @for part in 0..=parts {
                @let x = f64::from(part) * WIDTH / f64::from(parts.max(1));
                line class="grid-line" x1=(short(x)) x2=(short(x)) y1="0" y2=(short(HEIGHT)) {}
            }
            path d=(marks) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_stand_where_they_are_in_time() {
        let now = Moment::from_us(1_800_000_000_000_000);
        let hour = |n: u64| now.plus(Span::from_s(n * 3_600));
        let text =
            strip("x", now, Span::from_s(24 * 3_600), 4, &[hour(0), hour(6), hour(24), hour(25)]);
        let text = text.into_string();
        // Later moments have no mark.
        assert!(text.contains("d=\"M1 3v14M150 3v14M599 3v14\""), "{text}");
        assert_eq!(text.matches("<line").count(), 5);
    }
}
