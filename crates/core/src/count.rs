//! Numbers in sentences for people: "1 job is", "2 jobs are". It knows no words of its own, and no
//! program reads what it makes.

/// `n` with the word that fits it: `counted(1, "job", "jobs")` is `1 job`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", of(n, one, many))
}

/// The word that fits `n`: the first for 1, the second for all else, 0 too.
pub fn of<'a>(n: u64, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_all_else_is_many() {
        for (n, text) in [(0, "0 jobs are"), (1, "1 job is"), (2, "2 jobs are")] {
            assert_eq!(format!("{} {}", counted(n, "job", "jobs"), of(n, "is", "are")), text);
        }
        assert_eq!(counted(u64::MAX, "a", "b"), format!("{} b", u64::MAX));
    }
}
