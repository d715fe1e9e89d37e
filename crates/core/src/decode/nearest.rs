//! What somebody may have meant: the nearest of some names.

/// The candidate that is fewest edits away from `name` (a letter changed, added, left out, or two
/// swapped), if it is near enough to be a slip: one edit, or one of each three letters.
///
/// Of two that are as near, the first. Meant for names of at most a few hundred bytes; longer ones
/// have no nearest, so that nobody can make this slow.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    const LONG: usize = 256;
    let letters: Vec<char> = name.chars().take(LONG + 1).collect();
    if letters.len() > LONG {
        return None;
    }
    let near = (letters.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other: Vec<char> = candidate.chars().take(LONG + 1).collect();
        if other.len().abs_diff(letters.len()) > near {
            continue;
        }
        let edits = distance(&letters, &other);
        // A one-letter name is one edit away from every other one.
        let all_new = edits >= letters.len().max(other.len());
        if edits <= near && !all_new && best.is_none_or(|(least, _)| edits < least) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edits between two texts; swapped neighbours are one.
fn distance(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut before_last: Vec<usize> = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; width];
        for (j, y) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before_last[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
