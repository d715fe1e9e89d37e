//! Profiles of clients: which server a command speaks to, in which namespace, and where its token is kept.
//!
//! A flag goes before a variable, and a variable before the profile. The token of a profile goes to the address of that profile
//! and nowhere else, whatever the command line names.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::ArgMatches;
use clap::parser::ValueSource;
use tenure_core::decode::nearest;
use tenure_core::names::Namespace;
use tenure_core::secret::Secret;

use crate::args::{Cli, Command, Opens};
use crate::exit::Failure;
use crate::output::{hint, tell};
use crate::settings::file::{
    FileEntry, FileTable, FileValue, SettingsFile, beside, only_known, only_own_command,
};
use crate::settings::token::TokenSource;
use crate::settings::trust::{self, ProfileTrust};

/// The variable that names the profile.
pub const VARIABLE: &str = "TENURE_PROFILE";
const KEYS: [&str; 7] =
    ["url", "token_file", "token_command", "namespace", "ca", "client_cert", "client_key"];

/// The profile of this process, once its command line is read.
static CHOSEN: OnceLock<Chosen> = OnceLock::new();

struct Chosen {
    name: String,
    /// Of the address that this command calls.
    token: Option<TokenSource>,
}

/// The name of the profile that is in use.
pub fn name() -> Option<&'static str> {
    CHOSEN.get().map(|chosen| chosen.name.as_str())
}

/// Whether the token of the profile comes from a command, which may ask a person.
pub fn asks_a_command() -> bool {
    let token = CHOSEN.get().and_then(|chosen| chosen.token.as_ref());
    matches!(token, Some(TokenSource::Command(_)))
}

/// The token of the profile, if this command calls its address.
///
/// # Errors
/// It cannot be read.
pub fn token() -> Result<Option<Secret>, Failure> {
    let Some(source) = CHOSEN.get().and_then(|chosen| chosen.token.as_ref()) else {
        return Ok(None);
    };
    if let Some(warning) = source.warning() {
        tell(&warning);
    }
    source.read().map(Some)
}

/// Lays the profile below the command line and the variables, for a command that opens a store.
///
/// # Errors
/// There is no such profile, or its file is wrong.
pub fn apply(cli: &mut Cli, read: &ArgMatches) -> Result<(), Failure> {
    let trusted = match cli.command.opens() {
        // It calls the other servers of its store; a profile is one of clients.
        Opens::ItsStore => ProfileTrust::default(),
        Opens::Store | Opens::Address => apply_found(cli, read)?,
        Opens::Nothing => return Ok(()),
    };
    trust::choose(&cli.global, trusted)
}

/// Does so, and returns the part of the profile that is for TLS.
fn apply_found(cli: &mut Cli, read: &ArgMatches) -> Result<ProfileTrust, Failure> {
    let nothing = ProfileTrust::default();
    let named = cli.global.profile.clone();
    if named.as_deref() == Some("") {
        return Ok(nothing);
    }
    let file = match path() {
        Some(path) => SettingsFile::read(&path)?.ok_or(path),
        None => Err(PathBuf::from("~/.config/tenure/config.toml")),
    };
    let file = match (file, named.as_deref()) {
        (Ok(file), _) => file,
        (Err(_), None) => return Ok(nothing),
        (Err(path), Some(name)) => {
            return Err(Failure::usage(format!(
                "there is no profile {name:?}: there is no file '{}'",
                path.display()
            ))
            .hint(format!(
                "write it there: [profiles.{name}] and, on the next line, url = \"https://HOST\""
            )));
        }
    };
    let Some((name, profile)) = Profile::of(&file, named.as_deref())? else { return Ok(nothing) };
    let origin_of =
        |id: &str| read.value_source(id).filter(|source| *source != ValueSource::DefaultValue);
    let own_address = match origin_of("url") {
        None => {
            if let Some(url) = &profile.url {
                cli.global.url.clone_from(url);
            }
            true
        }
        Some(source) => {
            // A user who names a profile means its server, and would not see that another one answers.
            if source == ValueSource::EnvVariable
                && origin_of("profile") == Some(ValueSource::CommandLine)
            {
                hint(&format!(
                    "TENURE_URL is set and goes before the address of the profile {name:?}"
                ));
            }
            profile.url.as_ref() == Some(&cli.global.url)
        }
    };
    if let (None, Some(namespace)) = (origin_of("namespace"), profile.namespace) {
        cli.global.namespace = namespace;
    }
    // It may name another address than all other commands take.
    let elsewhere = matches!(&cli.command, Command::Doctor(args) if args.address.is_some());
    let token = profile.token.filter(|_| own_address && !elsewhere);
    let _ = CHOSEN.set(Chosen { name, token });
    Ok(if own_address && !elsewhere { profile.trust } else { nothing })
}

/// The file of this user.
fn path() -> Option<PathBuf> {
    let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    // A relative one is to be ignored, as its specification says.
    let folder = xdg.filter(|path| path.is_absolute());
    let folder = folder.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    folder.map(|folder| folder.join("tenure/config.toml"))
}

/// The content of a profile.
#[derive(Debug, PartialEq, Eq)]
struct Profile {
    url: Option<String>,
    namespace: Option<Namespace>,
    token: Option<TokenSource>,
    trust: ProfileTrust,
}

impl Profile {
    /// The profile of this name, otherwise the default one; `None` if the file names none.
    fn of(file: &SettingsFile, name: Option<&str>) -> Result<Option<(String, Self)>, Failure> {
        only_known(&file.table, "the file", &["default_profile", "profiles"])?;
        let none = FileTable::new();
        let profiles = match file.table.get("profiles") {
            None => &none,
            Some(FileEntry { value: FileValue::Table(profiles), .. }) => profiles,
            Some(FileEntry { place, .. }) => {
                return Err(Failure::usage(format!("{place}: write a profile as [profiles.NAME]")));
            }
        };
        let default = file.table.get("default_profile").map(text).transpose()?;
        let Some(name) = name.or(default) else { return Ok(None) };
        let Some(entry) = profiles.get(name) else { return Err(no_profile(file, profiles, name)) };
        let FileValue::Table(table) = &entry.value else {
            return Err(Failure::usage(format!(
                "{}: write a profile as [profiles.{name}]",
                entry.place
            )));
        };
        Ok(Some((name.to_owned(), Profile::read(&file.path, name, table)?)))
    }

    fn read(file: &Path, name: &str, table: &FileTable) -> Result<Self, Failure> {
        if let Some(entry) = table.get("token") {
            return Err(Failure::usage(format!("{}: a token is not kept in this file", entry.place))
                .hint("name a file that has it: token_file = \"…\", or a command that prints it: token_command = \"pass show tenure\""));
        }
        only_known(table, &format!("[profiles.{name}]"), &KEYS)?;
        let get = |key: &str| table.get(key).map(text).transpose();
        let namespace = match (get("namespace")?, table.get("namespace")) {
            (Some(name), Some(entry)) => Some(Namespace::parse(name).map_err(|no| {
                Failure::usage(format!("{}: namespace: {}", entry.place, no.detail)).hint(no.hint)
            })?),
            _ => None,
        };
        if let Some(entry) = table.get("token_command") {
            only_own_command(entry)?;
        }
        let token = match (get("token_file")?, get("token_command")?) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage(format!(
                    "[profiles.{name}] names two tokens: token_file and token_command"
                ))
                .hint("name one of them"));
            }
            (Some(path), None) => Some(TokenSource::File(beside(file, path))),
            (None, command) => command.map(|command| TokenSource::Command(command.to_owned())),
        };
        let path = |key: &str| Ok::<_, Failure>(get(key)?.map(|path| beside(file, path)));
        let trust = ProfileTrust {
            ca: path("ca")?,
            certificate: path("client_cert")?,
            key: path("client_key")?,
        };
        Ok(Profile { url: get("url")?.map(str::to_owned), namespace, token, trust })
    }
}

fn text(entry: &FileEntry) -> Result<&str, Failure> {
    match &entry.value {
        FileValue::Plain(text) => Ok(text),
        _ => Err(Failure::usage(format!("{}: this is one text", entry.place))),
    }
}

fn no_profile(file: &SettingsFile, profiles: &FileTable, name: &str) -> Failure {
    let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
    let near = nearest(name, names.iter().copied()).map(|near| format!("did you mean {near:?}? "));
    let there = if names.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has: {}", names.join(", "))
    };
    Failure::usage(format!("there is no profile {name:?} in '{}'", file.path.display()))
        .hint(near.unwrap_or_default() + &there)
}
