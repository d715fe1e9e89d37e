//! A token that is kept outside of the settings: in a file of its own, or printed by a command such as `pass`.
//!
//! What was read goes into a [`Secret`] and nowhere else; no message shows a part of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tenure_core::secret::Secret;

use crate::exit::{DENIED, Failure};
use crate::settings::file::readable_by_others;

/// No token is longer.
const BYTES_MAX: u64 = 4096;

/// Where a token is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TokenSource {
    /// In this file.
    File(PathBuf),
    /// This command of the shell prints it.
    Command(String),
}

impl TokenSource {
    /// The token. A command may ask its user something on the terminal, and is waited for.
    ///
    /// # Errors
    /// It cannot be read, is empty, or is more than one line.
    pub fn read(&self) -> Result<Secret, Failure> {
        match self {
            TokenSource::File(path) => {
                let what = format!("the token in '{}'", path.display());
                let text = File::open(path).and_then(text_of);
                let text =
                    text.map_err(|why| Failure::file(format!("cannot read {what}"), &why))?;
                one_line(&text, &what)
            }
            TokenSource::Command(command) => {
                let ran = Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn();
                let failed = |why: &dyn std::fmt::Display| {
                    Failure::new(DENIED, format!("the token command failed: {why}"))
                        .hint("it must print the token on stdout and exit with 0")
                };
                let mut child = ran.map_err(|why| failed(&why))?;
                let said = child.stdout.take().map(text_of).unwrap_or(Ok(String::new()));
                let ended = child.wait().map_err(|why| failed(&why))?;
                if !ended.success() {
                    return Err(failed(&ended));
                }
                one_line(&said.map_err(|why| failed(&why))?, "what the token command prints")
            }
        }
    }

    /// What to say if others may read it.
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

/// The token without the line break at its end.
fn one_line(text: &str, what: &str) -> Result<Secret, Failure> {
    let token = text.trim();
    let why = match token {
        "" => "is empty",
        _ if text.len() as u64 > BYTES_MAX => "is longer than 4,096 bytes",
        _ if token.contains(char::is_control) => "is more than one line",
        _ => return Ok(Secret::new(token.to_owned())),
    };
    Err(Failure::usage(format!("{what} {why}")).hint("a token is one line of text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_one_line_of_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let of = |source: &TokenSource| source.read().map(|token| token.reveal().to_owned());
        for (text, is) in [
            ("geheim\n", Ok("geheim")),
            ("  geheim\r\n\n", Ok("geheim")),
            ("\n", Err("is empty")),
            ("a\nb", Err("is more than one line")),
            (&"x".repeat(5000), Err("is longer")),
        ] {
            std::fs::write(&path, text).unwrap();
            let file = TokenSource::File(path.clone());
            let command = TokenSource::Command(format!("cat '{}'", path.display()));
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
