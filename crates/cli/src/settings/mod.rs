//! Sources of settings: the command line, variables, files, defaults; and the profiles of clients.
//!
//! `serve` and `work` have a variable and a key for each of their options; see [`layers`]. All other commands have the
//! profile of the user who runs them; see [`profile`]. Nothing here knows what a setting does.

pub mod effective;
pub mod file;
pub mod layers;
#[cfg(test)]
mod page;
pub mod profile;
pub mod seal_file;
pub mod shown;
pub mod token;
pub mod tokens_file;
pub mod trust;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use tenure_core::names::Namespace;

use self::effective::Settings;
use self::file::SettingsFile;
use self::layers::{LAYERED, Layers};
use crate::args::{Cli, Command};
use crate::exit::Failure;

/// The file that `serve` reads if it exists and no other file is named. Never a file of the current folder: everybody
/// who can write there would choose the store, and the command that prints the token.
const SERVERS_FILE: &str = "/etc/tenure/tenure.toml";

/// Why there is no command line to run.
pub enum Unread {
    /// The line itself is wrong, or asks for help.
    Line,
    /// A variable or a file has a wrong value.
    Settings(Failure),
}

impl From<Failure> for Unread {
    fn from(failure: Failure) -> Self {
        Unread::Settings(failure)
    }
}

/// The command line with all layers below it.
///
/// # Errors
/// It cannot be read.
pub fn command_line() -> Result<Cli, Unread> {
    of_words(std::env::args_os().collect())
}

/// The same for a line that nobody typed.
///
/// # Errors
/// It cannot be read.
pub fn of_words(words: Vec<OsString>) -> Result<Cli, Unread> {
    of(words, |name| std::env::var_os(name))
}

fn of(words: Vec<OsString>, variables: impl Fn(&str) -> Option<OsString>) -> Result<Cli, Unread> {
    let command = Cli::command();
    // Only to see which file is named, and which options the command line itself has; its errors are reported below. All
    // other commands are read once: that is half of the work of a short one.
    let may_be_layered = words.iter().any(|word| LAYERED.iter().any(|name| word == name));
    let matches = may_be_layered
        .then(|| command.clone().ignore_errors(true).try_get_matches_from(&words).ok())
        .flatten();
    let matches = matches.as_ref().and_then(ArgMatches::subcommand);
    let Some((name, matches)) = matches.filter(|(name, _)| LAYERED.contains(name)) else {
        let read = command.try_get_matches_from(&words).map_err(|_| Unread::Line)?;
        let mut cli = Cli::from_arg_matches(&read).map_err(|_| Unread::Line)?;
        profile::apply(&mut cli, &read)?;
        let is_default = read.value_source("namespace") == Some(ValueSource::DefaultValue);
        if let Command::Trail(args) = &mut cli.command {
            // Most of a trail concerns no namespace, so that the default one is no filter.
            let namespace = cli.global.namespace.clone();
            args.namespace = (!is_default || namespace != Namespace::main()).then_some(namespace);
        }
        return Ok(cli);
    };
    let bare = command.find_subcommand(name).cloned().unwrap_or_default();
    let file = settings_file(name, matches)?;
    let layers = Layers::of(&bare, matches, file.as_ref(), variables)?;
    let command = command.mut_subcommand(name, |command| layers.below(command));
    let read = match command.try_get_matches_from(&words) {
        Ok(read) => read,
        Err(why) => return Err(layers.refused(&bare, &why).map_or(Unread::Line, Unread::from)),
    };
    let mut cli = Cli::from_arg_matches(&read).map_err(|_| Unread::Line)?;
    profile::apply(&mut cli, &read)?;
    if let (Command::Serve(args), Some((_, read))) = (&mut cli.command, read.subcommand()) {
        let file = file.map(|file| file.path.to_path_buf());
        args.settings = Settings { all: layers.settings(&bare, read), file };
    }
    Ok(cli)
}

/// The file that is named by `--config` or its variable; for a server also the one of the machine.
fn settings_file(name: &str, matches: &ArgMatches) -> Result<Option<SettingsFile>, Failure> {
    let named = matches.get_one::<PathBuf>("config").filter(|path| !path.as_os_str().is_empty());
    let Some(path) = named else {
        return match name {
            "serve" => SettingsFile::read(Path::new(SERVERS_FILE)),
            _ => Ok(None),
        };
    };
    let by = match matches.value_source("config") {
        Some(ValueSource::EnvVariable) => "TENURE_CONFIG",
        _ => "--config",
    };
    let read = SettingsFile::read(path)?;
    let gone = || Failure::usage(format!("{by}: there is no file '{}'", path.display()));
    read.ok_or_else(gone).map(Some)
}
