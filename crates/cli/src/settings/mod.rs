//! Sources of settings: the command line, variables, files, defaults; and the profiles of clients.
//!
//! `serve` and `work` have a variable and a key for each of their options; see [`layers`]. All other commands have the
//! profile of the user who runs them; see [`profile`]. Nothing here knows what a setting does.

pub mod file;
pub mod layers;
#[cfg(test)]
mod page;
pub mod profile;
mod shown;
pub mod token;
pub mod trust;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use tenure_core::secret::Secret;

use self::file::{SettingsFile, readable_by_others};
use self::layers::{LayeredSetting, Layers, Origin, PREFIX};
pub use self::shown::has_password;
use self::token::TokenSource;
use crate::args::{Cli, Command};
use crate::exit::Failure;

/// The commands whose options are settings, each with the table of its name.
const LAYERED: [&str; 2] = ["serve", "work"];
/// The file that `serve` reads if it exists and no other file is named. Never a file of the current folder: everybody
/// who can write there would choose the store, and the command that prints the token.
const SERVERS_FILE: &str = "/etc/tenure/tenure.toml";

/// The settings of a command, and where each comes from.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// All, in the order of the help.
    pub all: Vec<LayeredSetting>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

impl Settings {
    /// The layer that set a setting.
    fn origin(&self, key: &str) -> Origin {
        let found = self.all.iter().find(|setting| setting.key == key);
        found.map_or(Origin::Default, |setting| setting.origin.clone())
    }

    /// The token of a server, by where it is kept, and the layer that set it: `TENURE_TOKEN` itself is a variable as
    /// any other.
    ///
    /// # Errors
    /// Two are named, and neither takes precedence.
    pub fn token(
        &self,
        file: Option<&Path>,
        command: Option<&str>,
    ) -> Result<Option<(Origin, ServerToken)>, Failure> {
        let own = crate::store::own_token()?;
        let variable = Origin::Variable(format!("{PREFIX}TOKEN"));
        let file = file.map(|path| TokenSource::File(path.to_owned()));
        let command = command.map(|command| TokenSource::Command(command.to_owned()));
        nearest([
            own.map(|token| (variable, ServerToken::Here(token))),
            file.map(|source| (self.origin("token_file"), ServerToken::Kept(source))),
            command.map(|source| (self.origin("token_command"), ServerToken::Kept(source))),
        ])
    }

    /// The token that reads the metrics alone, by where it is kept, and the layer that set it. `guards`: the server has
    /// a token of its own, or the metrics have a port of theirs; otherwise no reader would be asked for it.
    ///
    /// # Errors
    /// It is named twice, or everybody may read the metrics without it.
    pub fn metrics_token(
        &self,
        file: Option<&Path>,
        guards: bool,
    ) -> Result<Option<(Origin, ServerToken)>, Failure> {
        let variable = format!("{PREFIX}METRICS_TOKEN");
        let here = crate::store::token_in(&variable)?;
        let here = here.map(|token| (Origin::Variable(variable), ServerToken::Here(token)));
        let file = file.map(|path| {
            let source = TokenSource::File(path.to_owned());
            (self.origin("metrics_token_file"), ServerToken::Kept(source))
        });
        let Some((origin, token)) = nearest([here, file])? else { return Ok(None) };
        if !guards {
            return Err(Failure::usage(format!(
                "the {origin} names a token for the metrics alone, and the server has no token: everybody can read them"
            ))
            .hint("give the server a token too (TENURE_TOKEN, --token-file), or the metrics a port of their own \
                   (--metrics-listen), or leave this one out"));
        }
        Ok(Some((origin, token)))
    }

    /// A warning about settings that can be used, but should be changed.
    pub fn warning(&self) -> Option<String> {
        let named = self.all.iter().find(|setting| setting.key == "store")?;
        let password = named.values.iter().flatten().any(|address| has_password(address));
        let in_file = password && matches!(named.origin, Origin::File(_));
        let file = self.file.as_deref().filter(|_| in_file)?;
        readable_by_others(file, "the password of the store")
    }

    /// All of it as a file with the same settings, without secrets.
    pub fn as_toml(&self, token: Option<&Origin>) -> String {
        shown::as_toml(&self.all, token)
    }
}

/// Of several tokens for one thing, the one that takes precedence.
fn nearest<const N: usize>(
    named: [Option<(Origin, ServerToken)>; N],
) -> Result<Option<(Origin, ServerToken)>, Failure> {
    let mut found: Vec<_> = named.into_iter().flatten().collect();
    found.sort_by_key(|(origin, _)| origin.rank());
    if let [(one, _), (other, _), ..] = &found[..]
        && one.rank() == other.rank()
    {
        return Err(Failure::usage(format!("two tokens are named: by {one} and by {other}"))
            .hint("name one of them"));
    }
    Ok(found.into_iter().next())
}

/// The token of a server.
pub enum ServerToken {
    /// The value of a variable.
    Here(Secret),
    /// It is still to be read.
    Kept(TokenSource),
}

impl ServerToken {
    /// The tokens themselves; a warning in the log names other users that may read them.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read(&self) -> Result<Vec<Secret>, Failure> {
        match self {
            ServerToken::Here(token) => Ok(vec![token.clone()]),
            ServerToken::Kept(source) => {
                if let Some(warning) = source.warning() {
                    tracing::warn!("{warning}");
                }
                source.read_all()
            }
        }
    }

    /// The file that holds them, if one does.
    pub fn file(&self) -> Option<&Path> {
        match self {
            ServerToken::Kept(TokenSource::File(path)) => Some(path),
            _ => None,
        }
    }
}

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
    // Only to see which file is named, and which options the command line itself has; its errors are reported below.
    let matches = command.clone().ignore_errors(true).try_get_matches_from(&words).ok();
    let matches = matches.as_ref().and_then(ArgMatches::subcommand);
    let Some((name, matches)) = matches.filter(|(name, _)| LAYERED.contains(name)) else {
        let read = command.try_get_matches_from(&words).map_err(|_| Unread::Line)?;
        let mut cli = Cli::from_arg_matches(&read).map_err(|_| Unread::Line)?;
        profile::apply(&mut cli, &read)?;
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
