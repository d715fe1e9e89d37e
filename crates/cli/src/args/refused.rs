//! Errors about a command line that cannot be read, and how to write it right.
//!
//! clap finds the error. This module adds what clap cannot know: an example, and the place of a missing `--`; tips that
//! are not near are removed. A line is repeated without its `--url`, which may carry a password.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error, Parser};
use tenure_core::decode::nearest;
use tenure_core::shell::quoted;

use super::{Cli, help, tips};
use crate::exit::{Failure, USAGE};
use crate::output::{colour, printable};

/// Commands that run a command, which stands behind `--`.
const RUNNERS: [&str; 3] = ["lock", "lease", "work"];

/// Prints help, or the error about this process's own line; returns the exit code.
pub fn tell() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut command = help::told();
    let Err(error) = command.try_get_matches_from_mut(&words) else {
        // It was refused a moment ago.
        return ExitCode::from(Failure::bug("this line is refused and taken").tell());
    };
    let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
    if error.kind() == ErrorKind::MissingSubcommand {
        let mut named_command = named(&command, &words).clone();
        let help = named_command.render_help();
        if colour::is_wanted(&std::io::stderr()) {
            eprint!("{}", help.ansi());
        } else {
            eprint!("{help}");
        }
        return ExitCode::from(code);
    }
    // An unread message must stop nothing.
    let error = bettered(error, &mut command, &words);
    if words.iter().all(|word| word.to_str().is_some_and(is_plain)) {
        let _ = error.print();
    } else {
        // The error repeats words of the line: they are escaped.
        eprint!("{}", printable(&error.render().to_string()));
    }
    ExitCode::from(code)
}

/// Whether a terminal shows the word as it is.
fn is_plain(word: &str) -> bool {
    printable(word) == word
}

fn bettered(mut error: Error, command: &mut Command, words: &[OsString]) -> Error {
    if let Some(line) = with_dashes(command, words) {
        return named_mut(command, words)
            .error(error.kind(), format!("the command to run goes after --; write\n\n  {line}"));
    }
    keep_near(&mut error, command, words);
    // An unknown option is a typing error: a tip on how to pass it as a value is no help.
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(said)) => Some(tips::where_to_look(said).to_owned()),
            _ => None,
        },
        ErrorKind::MissingRequiredArgument => example(named(command, words)),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// clap calls names similar that nobody would confuse: those that are not one slip away are removed.
fn keep_near(error: &mut Error, command: &Command, words: &[OsString]) {
    let text_of = |error: &Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.trim_start_matches('-').to_owned(),
        _ => String::new(),
    };
    let subcommand = text_of(error, ContextKind::InvalidSubcommand);
    if error.remove(ContextKind::SuggestedSubcommand).is_some() || !subcommand.is_empty() {
        let names = named(command, words).get_subcommands().map(Command::get_name);
        if let Some(near) = nearest(&subcommand, names) {
            let near = ContextValue::String(near.to_owned());
            error.insert(ContextKind::SuggestedSubcommand, near);
        }
    }
    for (refused, offered) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let (word, offer) = (text_of(error, refused), text_of(error, offered));
        if nearest(&word, [offer.as_str()]).is_none() {
            error.remove(offered);
        }
    }
}

/// The first example in the help of a command.
fn example(command: &Command) -> Option<String> {
    let text = command.get_after_help()?.to_string();
    let line = text.lines().find(|line| line.starts_with("  tenure "))?;
    // A description may follow the example, behind several spaces.
    let line = line.trim().split("   ").next().unwrap_or_default();
    Some(format!("for example: {line}"))
}

/// The command that a line names, as far as it can be recognized.
fn named<'c>(command: &'c Command, words: &[OsString]) -> &'c Command {
    path(command, words)
        .iter()
        .fold(command, |above, name| above.find_subcommand(name).unwrap_or(above))
}

fn named_mut<'c>(command: &'c mut Command, words: &[OsString]) -> &'c mut Command {
    let path = path(command, words);
    let mut at = command;
    for name in &path {
        if at.find_subcommand(name).is_none() {
            break;
        }
        let Some(below) = at.find_subcommand_mut(name) else { unreachable!("it was there") };
        at = below;
    }
    at
}

/// The names of the commands that stand at the start of a line.
fn path(command: &Command, words: &[OsString]) -> Vec<String> {
    let (mut at, mut path) = (command, Vec::new());
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if let Some(below) = at.find_subcommand(word) {
            path.push(below.get_name().to_owned());
            at = below;
        } else if is_option_with_value(word) {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            break;
        }
    }
    path
}

fn is_option_with_value(word: &OsStr) -> bool {
    word == "--url" || word == "--namespace"
}

/// The line with the `--` that it lacks, if that makes it right.
fn with_dashes(command: &Command, words: &[OsString]) -> Option<String> {
    let runner = named(command, words).get_name().to_owned();
    if !RUNNERS.contains(&runner.as_str()) || words.iter().any(|word| word == "--") {
        return None;
    }
    let from = words.iter().position(|word| *word == *runner)? + 1;
    let with = |at: usize| [&words[..at], &["--".into()], &words[at..]].concat();
    let is_word = |at: &usize| !words[*at].as_encoded_bytes().starts_with(b"-");
    let mut places = (from..words.len()).filter(is_word);
    let at = places.find(|at| Cli::try_parse_from(with(*at)).is_ok())?;
    let mut line = vec!["tenure".to_owned(), runner];
    let mut rest = with(at).into_iter().skip(from);
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        match text.as_ref() {
            "--url" => drop(rest.next()),
            text if text.starts_with("--url=") => {}
            text => line.push(quoted(text)),
        }
        if word == "--" {
            line.extend(rest.by_ref().map(|word| quoted(&word.to_string_lossy())));
        }
    }
    Some(line.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_place_of_the_dashes_is_found() {
        let command = help::told();
        for (line, right) in [
            ("tenure lock x echo hi", Some("tenure lock x -- echo hi")),
            ("tenure lock x -n 3 --wait 5s ls -la", Some("tenure lock x -n 3 --wait 5s -- ls -la")),
            (
                "tenure lease --need limit:a echo a'b",
                Some("tenure lease --need limit:a -- echo 'a'\\''b'"),
            ),
            ("tenure work mail ./send-mail", Some("tenure work mail -- ./send-mail")),
            ("tenure work mail -c 4 cat", Some("tenure work mail -c 4 -- cat")),
            ("tenure --url http://me:geheim@h lock x true", Some("tenure lock x -- true")),
            ("tenure lock x --url http://me:geheim@h true", Some("tenure lock x -- true")),
            ("tenure lock x", None),
            ("tenure work mail", None),
            ("tenure lock x --nope true", None),
            ("tenure push q x y", None),
        ] {
            assert_eq!(with_dashes(&command, &words(line)).as_deref(), right, "{line}");
        }
    }
}
