//! The command of `tenure` that does the same as a page or a button, to be copied.

use tenure_core::names::Namespace;
use tenure_core::shell::quoted;

/// Options of the commands on pages. Each takes one value. Any other word that begins with `-` is a name.
const OPTIONS: [&str; 25] = [
    "--burst",
    "--caller",
    "--concurrency",
    "--cooldown",
    "--data",
    "--delay",
    "--error",
    "--finished-after",
    "--finished-before",
    "--flow",
    "--for",
    "--job",
    "--kind",
    "--label",
    "--limit",
    "--max-waiting",
    "--op",
    "--pool",
    "--queue",
    "--rate",
    "--schedule",
    "--state",
    "--tag",
    "--type",
    "--worker",
];

/// A command, quoted for a shell.
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
        let (mut options, mut names) = (String::new(), String::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if OPTIONS.contains(word) {
                let value = words.next().copied().unwrap_or_default();
                let between = if value.starts_with('-') { '=' } else { ' ' };
                options.push_str(&format!(" {word}{between}{}", quoted(value)));
            } else if word.starts_with('-') || !names.is_empty() {
                names.push(' ');
                names.push_str(&quoted(word));
            } else {
                text.push(' ');
                text.push_str(&quoted(word));
            }
        }
        text.push_str(&options);
        if !names.is_empty() {
            // Otherwise the command line would read `--url=…` as an option, and send the token elsewhere.
            text.push_str(" --");
            text.push_str(&names);
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

    #[test]
    fn a_name_or_a_value_is_never_read_as_an_option() {
        let namespace = Namespace::main();
        for (words, shown) in [
            (&["schedule", "--url=http://x"][..], "tenure schedule -- --url=http://x"),
            (&["queue", "pause", "-q", "--for", "30m"], "tenure queue pause --for 30m -- -q"),
            (&["pool", "ban", "p", "-i"], "tenure pool ban p -- -i"),
            (&["pool", "ban", "-p", "i"], "tenure pool ban -- -p i"),
            (&["failures", "--queue", "--url=x"], "tenure failures --queue=--url=x"),
            (&["jobs", "--url", "http://x"], "tenure jobs -- --url http://x"),
        ] {
            assert_eq!(ShownCommand::new(&namespace, words).text(), shown);
        }
    }
}
