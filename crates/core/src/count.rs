//! Numbers and durations in sentences for people: "1 job is", "2 jobs are", "3m12s". It has no words of its own, and no
//! program reads its output.

use crate::time::Span;

/// `n` with the matching word: `counted(1, "job", "jobs")` is `1 job`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", of(n, one, many))
}

/// The matching word for `n`: the first for 1, the second for all others, 0 too.
pub fn of<'a>(n: u64, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

/// `n` with a comma between groups of three digits: `47,112`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration in at most two units, with the rest cut off: `3m12s`, `2h0m`.
pub fn rough(span: Span) -> String {
    let s = span.us() / 1_000_000;
    match s {
        0 => "0s".to_owned(),
        1..60 => format!("{s}s"),
        60..3_600 => format!("{}m{}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h{}m", s / 3_600, s % 3_600 / 60),
        _ => format!("{}d{}h", s / 86_400, s % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (n, text) in [(0, "0"), (310, "310"), (1_000, "1,000"), (47_112, "47,112")] {
            assert_eq!(grouped(n), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn one_is_one_and_all_else_is_many() {
        for (n, text) in [(0, "0 jobs are"), (1, "1 job is"), (2, "2 jobs are")] {
            assert_eq!(format!("{} {}", counted(n, "job", "jobs"), of(n, "is", "are")), text);
        }
        assert_eq!(counted(u64::MAX, "a", "b"), format!("{} b", u64::MAX));
    }
}
