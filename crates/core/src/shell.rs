//! Quotes words in commands that people paste into a shell. It runs nothing.

/// A word for a shell: as it is, or in quotes.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+#".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('#') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A command about one thing: `tenure`, these words, the name, and the rest (an option with its value, or another
/// word). A name that begins with `-` comes behind `--`: otherwise it is read as an option, and `--url=…` sends the
/// token elsewhere.
pub fn command(words: &str, name: &str, follows: &str) -> String {
    let shown = quoted(name);
    let parts = match (name.starts_with('-'), follows.starts_with('-')) {
        (false, _) => ["tenure", words, &shown, follows, ""],
        (true, true) => ["tenure", words, follows, "--", &shown],
        (true, false) => ["tenure", words, "--", &shown, follows],
    };
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_read_as_an_option() {
        for (words, name, follows, shown) in [
            ("job", "a", "", "tenure job a"),
            ("job", "--url=x", "", "tenure job -- --url=x"),
            ("queue set", "a b", "--max-waiting N", "tenure queue set 'a b' --max-waiting N"),
            ("queue set", "-a", "--max-waiting N", "tenure queue set --max-waiting N -- -a"),
            ("pool add", "-a", "ID", "tenure pool add -- -a ID"),
        ] {
            assert_eq!(command(words, name, follows), shown);
        }
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_change_it() {
        for (word, said) in
            [("a-b", "a-b"), ("", "''"), ("a b", "'a b'"), ("$x", "'$x'"), ("#a", "'#a'")]
        {
            assert_eq!(quoted(word), said);
        }
    }
}
