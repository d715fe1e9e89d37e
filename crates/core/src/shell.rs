//! Words in commands that people paste: how a shell must be given them. It runs nothing.

/// A word as a shell reads it: as it is, or in quotes.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+#".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('#') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_change_it() {
        for (word, said) in
            [("a-b", "a-b"), ("", "''"), ("a b", "'a b'"), ("$x", "'$x'"), ("#a", "'#a'")]
        {
            assert_eq!(quoted(word), said);
        }
    }
}
