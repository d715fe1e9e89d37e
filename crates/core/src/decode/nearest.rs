//! Suggestions for a mistyped name: the nearest of some names.

/// The candidate that is fewest edits away from `name` (a letter changed, added, left out, or two
/// swapped), if it is near enough to be a slip: one edit, or one for each three letters.
///
/// Of two that are equally near, the first. Meant for names of at most a few hundred bytes; longer
/// ones have no nearest name, so that no caller can make this slow.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    const LONG: usize = 256;
    let length = |text: &str| text.chars().take(LONG + 1).count();
    let letters = length(name);
    if letters > LONG {
        return None;
    }
    let near = (letters / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = length(candidate);
        if other > LONG || other.abs_diff(letters) > near {
            continue;
        }
        // Swapped neighbours are one edit, and no part of the text is edited twice.
        let edits = strsim::osa_distance(name, candidate);
        // A one-letter name is one edit away from every other one.
        let all_new = edits >= letters.max(other);
        if edits <= near && !all_new && best.is_none_or(|(least, _)| edits < least) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_has_a_nearest_name() {
        const NAMES: [&str; 6] = ["priority", "payload", "queue", "run_at", "id", "é"];
        for (name, near) in [
            ("prioritty", Some("priority")),
            ("prority", Some("priority")),
            ("piroirty", Some("priority")),
            ("Queue", Some("queue")),
            ("qeueu", None),
            ("quue", Some("queue")),
            ("runat", Some("run_at")),
            ("ids", Some("id")),
            ("di", Some("id")),
            ("x", None),
            ("", None),
            ("colour", None),
            ("priority", Some("priority")),
        ] {
            assert_eq!(nearest(name, NAMES), near, "{name}");
        }
        assert_eq!(nearest(&"a".repeat(100_000), ["a".repeat(100_000).as_str()]), None);
        assert_eq!(nearest("abcd", ["abce", "abcf"]), Some("abce"));
        assert_eq!(nearest("abcd", []), None);
    }
}
