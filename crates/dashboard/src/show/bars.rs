//! Bars and squares, drawn as SVG: their sizes are attributes, since the policy of the pages allows no style in them.
//! The numbers stand as text beside each picture, so the picture itself is hidden from screen readers.

use maud::{Markup, html};

/// One part of a bar: its class, and its size in the unit of the whole bar.
pub(crate) type BarPart = (&'static str, u64);

/// A bar of these parts. `whole`: the size of all of it; if it is less than its parts, they fill it.
pub(crate) fn bar(parts: &[BarPart], whole: u64, is_full: bool) -> Markup {
    let sum: u64 = parts.iter().map(|(_, size)| size).sum();
    let whole = whole.max(sum).max(1) as f64;
    let mut from = 0.0;
    let rects = parts.iter().filter(|(_, size)| *size > 0).map(|(class, size)| {
        // Even the smallest part must be visible.
        let width = (*size as f64 / whole * 100.0).max(0.8);
        let rect = (*class, from, width);
        from += width;
        rect
    });
    let rects: Vec<_> = rects.collect();
    html! {
        svg class={ "bar" @if is_full { " full" } } viewBox="0 0 100 8" preserveAspectRatio="none"
            aria-hidden="true" focusable="false" {
            @for (class, from, width) in rects {
                rect class=(class) x=(short(from)) width=(short(width)) height="8" {}
            }
        }
    }
}

/// A number with two decimals, for SVG.
pub(super) fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// As many squares as there are units, if those can be counted at a glance, otherwise a bar.
pub(crate) fn squares(parts: &[BarPart], whole: u64, is_full: bool) -> Markup {
    const MOST: u64 = 40;
    let sum: u64 = parts.iter().map(|(_, size)| size).sum();
    let whole = whole.max(sum);
    if whole > MOST {
        return bar(parts, whole, is_full);
    }
    let taken = parts.iter().flat_map(|(class, size)| (0..*size).map(move |_| *class));
    let all: Vec<&str> = taken.chain(std::iter::repeat("")).take(whole as usize).collect();
    row_of_squares(&all)
}

/// The first twenty places of a line, with the one at `place` (1 is the next).
pub(crate) fn place_in_line(place: u64, length: Option<u64>) -> Markup {
    const SHOWN: u64 = 20;
    // If the place is beyond them, the last square is ours.
    let mine = place.min(SHOWN);
    let shown = length.unwrap_or(place).clamp(mine, SHOWN);
    let all: Vec<&str> = (1..=shown)
        .map(|at| match at {
            at if at < mine => "ahead",
            at if at == mine => "me",
            _ => "",
        })
        .collect();
    row_of_squares(&all)
}

fn row_of_squares(classes: &[&str]) -> Markup {
    let width = classes.len() * 18;
    html! {
        svg class="permits" viewBox={ "0 0 " (width) " 14" } width=(width) height="14"
            aria-hidden="true" focusable="false" {
            @for (at, class) in classes.iter().enumerate() {
                rect class=(class) x={ (at * 18) ".5" } y="0.5" width="13" height="13" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_is_there_however_little() {
        let text = bar(&[("use", 1), ("rest", 0), ("outside", 3)], 100_000, false).into_string();
        assert_eq!(text.matches("<rect").count(), 2, "{text}");
        assert!(text.contains(r#"class="use" x="0" width="0.8""#), "{text}");
        assert!(!bar(&[], 0, false).into_string().contains("NaN"));
        let over = bar(&[("use", 8)], 4, true).into_string();
        assert!(over.contains(r#"width="100""#), "{over}");
    }

    #[test]
    fn a_place_beyond_the_shown_ones_is_the_last_square() {
        for (place, length, squares, ahead) in [
            (1, Some(1), 1, 0),
            (3, Some(4_120), 20, 2),
            (3_000, Some(4_120), 20, 19),
            (2, None, 2, 1),
        ] {
            let text = place_in_line(place, length).into_string();
            assert_eq!(text.matches("<rect").count(), squares, "{place}");
            assert_eq!(text.matches("ahead").count(), ahead, "{place}");
            assert_eq!(text.matches("\"me\"").count(), 1, "{place}");
        }
    }
}
