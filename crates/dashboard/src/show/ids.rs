//! Ids in lists: long ones are shortened in the middle by the style alone. The page has the whole id, to be found,
//! copied and read aloud.

use maud::{Markup, html};

use crate::language::sentences;
use crate::visit::Visit;

sentences! { IdWords;
    copy: "Copy", "复制";
}

/// Ids of up to this many characters are shown whole.
const SHOWN_WHOLE: usize = 22;
/// Of a longer id, this many of the first and of the last characters are shown.
const BEGIN: usize = 12;
const END: usize = 8;

/// The beginning, the middle and the end of an id; the middle is empty if the id is short.
pub(crate) fn in_parts(id: &str) -> (&str, &str, &str) {
    let at = |n: usize| id.char_indices().nth(n).map(|(at, _)| at);
    let count = id.chars().count();
    match (at(BEGIN), at(count.saturating_sub(END))) {
        (Some(from), Some(to)) if count > SHOWN_WHOLE => (&id[..from], &id[from..to], &id[to..]),
        _ => (id, "", ""),
    }
}

/// An id, without a link.
pub(crate) fn id(id: &str) -> Markup {
    let (begin, middle, end) = in_parts(id);
    html! {
        span class="id" title=(id) {
            (begin) @if !middle.is_empty() { span class="mid" { (middle) } (end) }
        }
    }
}

/// An id that links to `href`, and a button that copies it, which needs JavaScript.
pub(crate) fn id_link(visit: &Visit, href: &str, text: &str) -> Markup {
    let copy = IdWords(visit.tongue).copy();
    html! {
        a class="mono" href=(href) { (id(text)) }
        button type="button" class="copy" data-copy=(text) title=(copy) aria-label=(copy) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_id_keeps_its_begin_and_its_end() {
        assert_eq!(in_parts("nightly:2026-12-01"), ("nightly:2026-12-01", "", ""));
        let long = "job_1a21d675e19b4f6c8e0d5a7b3c2f1e09";
        assert_eq!(in_parts(long), ("job_1a21d675", "e19b4f6c8e0d5a7b", "3c2f1e09"));
        let wide = "作业".repeat(20);
        let (begin, middle, end) = in_parts(&wide);
        assert_eq!((begin.chars().count(), end.chars().count()), (BEGIN, END));
        assert_eq!(format!("{begin}{middle}{end}"), wide);
    }
}
