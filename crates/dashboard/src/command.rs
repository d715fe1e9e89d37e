//! The command of `tenure` that does the same as a page or a button, to be copied.

use tenure_core::names::Namespace;
use tenure_core::shell::quoted;

/// A command, word by word, as a shell reads it.
#[derive(Clone, Debug)]
pub(crate) struct ShownCommand(String);

impl ShownCommand {
    /// `tenure` with these words, in this namespace.
    pub(crate) fn new(namespace: &Namespace, words: &[&str]) -> Self {
        let mut text = "tenure".to_owned();
        if *namespace != Namespace::main() {
            text.push_str(" --namespace ");
            text.push_str(&quoted(namespace.as_str()));
        }
        for word in words {
            text.push(' ');
            text.push_str(&quoted(word));
        }
        ShownCommand(text)
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reaches_the_command_whatever_a_shell_thinks_of_it() {
        let of = |namespace: &str, words: &[&str]| {
            let namespace = Namespace::parse(namespace).unwrap();
            ShownCommand::new(&namespace, words).text().to_owned()
        };
        assert_eq!(of("default", &["queue", "pause", "crawl"]), "tenure queue pause crawl");
        assert_eq!(of("a", &["limit", "site:*"]), "tenure --namespace a limit 'site:*'");
        assert_eq!(of("default", &["job", "it's; rm"]), r"tenure job 'it'\''s; rm'");
        assert_eq!(of("default", &["x", ""]), "tenure x ''");
    }
}
