//! Tokens that are kept outside of the settings: in a variable, in a file of their own, or printed by a command such as
//! `pass`. The latter two have one a line; empty lines and those that begin with `#` are no tokens. A server takes each of
//! them, a client shows the first.
//!
//! A token that was read goes into a [`Secret`] and nowhere else; no message shows a part of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tenure_core::secret::Secret;
use tenure_server::TOKENS_MAX;

use crate::exit::{DENIED, Failure};
use crate::settings::file::readable_by_others;

/// Longest file of tokens, in bytes.
const BYTES_MAX: u64 = 16 * 1024;

/// Where a token is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TokenSource {
    /// This file holds it.
    File(PathBuf),
    /// This command of the shell prints it.
    Command(String),
}

impl TokenSource {
    /// The first token, which a client shows.
    ///
    /// # Errors
    /// As [`TokenSource::read_all`].
    pub fn read(&self) -> Result<Secret, Failure> {
        self.read_all().map(|mut all| all.swap_remove(0))
    }

    /// All tokens, one at least. A command may ask its user something on the terminal, and is waited for.
    ///
    /// # Errors
    /// They cannot be read, there are none, or there are too many.
    pub fn read_all(&self) -> Result<Vec<Secret>, Failure> {
        match self {
            TokenSource::File(path) => {
                let what = format!("the token in '{}'", path.display());
                let text = File::open(path).and_then(text_of);
                let text =
                    text.map_err(|why| Failure::file(format!("cannot read {what}"), &why))?;
                tokens(&text, &what)
            }
            TokenSource::Command(command) => {
                let ran = Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn();
                let failed = |why: &dyn std::fmt::Display| {
                    Failure::new(DENIED, format!("the token command failed: {why}"))
                        .hint("it must print the token on stdout and exit with 0")
                };
                let mut child = ran.map_err(|why| failed(&why))?;
                let output = child.stdout.take().map(text_of).unwrap_or(Ok(String::new()));
                let ended = child.wait().map_err(|why| failed(&why))?;
                if !ended.success() {
                    return Err(failed(&ended));
                }
                tokens(&output.map_err(|why| failed(&why))?, "what the token command prints")
            }
        }
    }

    /// A warning if others may read it.
    pub fn warning(&self) -> Option<String> {
        match self {
            TokenSource::File(path) => readable_by_others(path, "the token"),
            TokenSource::Command(_) => None,
        }
    }
}

fn text_of(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// The tokens of a text, a line each.
fn tokens(text: &str, what: &str) -> Result<Vec<Secret>, Failure> {
    let lines = text.lines().map(str::trim);
    let found: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let why = match found.len() {
        _ if text.len() as u64 > BYTES_MAX => "is longer than 16 KiB".to_owned(),
        0 => "is empty".to_owned(),
        n if n > TOKENS_MAX => format!("has {n} lines, and {TOKENS_MAX} tokens are the most"),
        _ if found.iter().any(|token| token.contains(char::is_control)) => {
            "has a control character in it".to_owned()
        }
        _ => return Ok(found.into_iter().map(Secret::new).collect()),
    };
    Err(Failure::usage(format!("{what} {why}")).hint("write a token on a line of its own"))
}

/// The token of the variable; an empty one counts as unset.
pub fn own_token() -> Result<Option<Secret>, Failure> {
    token_in("TENURE_TOKEN")
}

/// The token of this variable; an empty one counts as unset.
pub fn token_in(variable: &str) -> Result<Option<Secret>, Failure> {
    match std::env::var(variable) {
        Ok(token) if token.is_empty() => Ok(None),
        Ok(token) => Ok(Some(Secret::new(token))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("{variable} is not UTF-8"))
                .hint("set it to a token that is plain text"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_shows_the_first_token_and_a_server_takes_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let of = |source: &TokenSource| source.read().map(|token| token.reveal().to_owned());
        for (text, is) in [
            ("geheim\n", Ok("geheim")),
            ("  geheim\r\n\n", Ok("geheim")),
            ("\n", Err("is empty")),
            ("# since May\n\na\nb\n", Ok("a")),
            ("# nothing\n", Err("is empty")),
            ("a\tb", Err("has a control character")),
            (&"geheim\n".repeat(9), Err("has 9 lines, and 8 tokens are the most")),
            (&"x".repeat(17_000), Err("is longer")),
        ] {
            std::fs::write(&path, text).unwrap();
            let file = TokenSource::File(path.clone());
            let command = TokenSource::Command(format!("cat '{}'", path.display()));
            let all = file.read_all().map_or(0, |all| all.len());
            assert_eq!(all, if text.contains("May") { 2 } else { usize::from(is.is_ok()) });
            for source in [file, command] {
                match (of(&source), is) {
                    (Ok(token), Ok(is)) => assert_eq!(token, is),
                    (Err(no), Err(why)) => {
                        let said = format!("{no:?}");
                        assert!(said.contains(why) && !said.contains("geheim"), "{said}");
                    }
                    (found, _) => panic!("{text:?}: {found:?}"),
                }
            }
        }
    }

    #[test]
    fn a_command_that_fails_gives_no_token() {
        let no = TokenSource::Command("echo geheim; exit 3".to_owned()).read().unwrap_err();
        assert_eq!(no.code, DENIED);
        assert!(!format!("{no:?}").contains("geheim"));
        let gone = TokenSource::File("/nowhere/token".into()).read().unwrap_err();
        assert_eq!(
            gone.sentence.unwrap(),
            "cannot read the token in '/nowhere/token': no such file or directory"
        );
    }
}
