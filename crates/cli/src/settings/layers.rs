//! The layers of a command's settings: flag, then variable, then file, then default.
//!
//! clap has the flags, the defaults and the reader of each value. The values of variables and files are laid below the
//! flags as another default of the same option, so that every layer is read and bounded in one place. A variable or key
//! that cannot be used together with the command line is left out, as a default is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use crate::exit::Failure;
use crate::settings::file::{
    FilePlace, FileTable, FileValue, SettingsFile, beside, only_known, only_own_command,
};

/// The commands whose options are settings, each with the table of its name.
pub const LAYERED: [&str; 2] = ["serve", "work"];
/// Options that say where settings are, or what to do with them: neither has a key. A person accepts a loss for one
/// start only.
const NO_SETTINGS: [&str; 3] = ["config", "print_config", "accept_loss"];
/// Begins the name of every variable.
pub const PREFIX: &str = "TENURE_";

/// Where the value of a setting comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An option of the command line.
    Flag,
    /// A variable, with its name.
    Variable(String),
    /// A file, with the line.
    File(String),
    /// No layer sets it.
    Default,
}

impl Origin {
    /// The lower rank takes precedence.
    pub fn rank(&self) -> u8 {
        match self {
            Origin::Flag => 0,
            Origin::Variable(_) => 1,
            Origin::File(_) => 2,
            Origin::Default => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag => f.write_str("command line"),
            Origin::Variable(place) | Origin::File(place) => f.write_str(place),
            Origin::Default => f.write_str("default"),
        }
    }
}

impl From<&FilePlace> for Origin {
    fn from(place: &FilePlace) -> Self {
        Origin::File(place.to_string())
    }
}

/// One setting of a command that was started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayeredSetting {
    /// Its key in a file.
    pub key: String,
    /// Its values, as the command line takes them; `None` if it is not set and has no default.
    pub values: Option<Vec<String>>,
    /// It is true or false.
    pub is_switch: bool,
    /// It takes several values.
    pub is_list: bool,
    /// The layer that set it.
    pub origin: Origin,
}

/// Whether an option of `serve` or `work` is a setting: it has a variable and a key.
pub fn is_setting(arg: &Arg) -> bool {
    let named = arg.get_long().is_some() && !arg.is_global_set();
    named && !NO_SETTINGS.contains(&arg.get_id().as_str())
}

/// The key of an option in a file.
pub fn key(arg: &Arg) -> String {
    arg.get_long().unwrap_or_default().replace('-', "_")
}

/// The variable of an option.
pub fn variable(arg: &Arg) -> String {
    format!("{PREFIX}{}", key(arg).to_uppercase())
}

fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some()
}

/// The values below the flags of one command, by the ids of its options.
#[derive(Default)]
pub struct Layers {
    laid: BTreeMap<String, (Vec<String>, Origin)>,
}

impl Layers {
    /// The layers of a command, whose command line `said` this. `file` has its keys in the table of its name.
    ///
    /// # Errors
    /// A key of the file is not one of the command's, or its value has the wrong form.
    pub fn of(
        command: &Command,
        matches: &ArgMatches,
        file: Option<&SettingsFile>,
        variables: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Failure> {
        let (name, nothing) = (command.get_name(), FileTable::new());
        let table = match file {
            Some(file) => {
                below_its_table(file, command)?;
                table_of(file, name)?.unwrap_or(&nothing)
            }
            None => &nothing,
        };
        let settings: Vec<&Arg> = command.get_arguments().filter(|arg| is_setting(arg)).collect();
        let keys: Vec<String> = settings.iter().map(|arg| key(arg)).collect();
        refuse_token(table, name)?;
        let known: Vec<&str> = keys.iter().map(String::as_str).collect();
        only_known(table, &format!("[{name}]"), &known)?;
        let mut laid = BTreeMap::new();
        for arg in settings {
            if says(matches, arg) || excluded(command, arg, matches) {
                continue;
            }
            let found = match variables(&variable(arg)).filter(|value| !value.is_empty()) {
                Some(value) => Some((of_variable(arg, value)?, Origin::Variable(variable(arg)))),
                None => match table.get(&key(arg)) {
                    Some(entry) => {
                        let values = of_file(arg, file, &entry.value);
                        let values = values.map_err(|why| {
                            Failure::usage(format!("{}: {} {why}", entry.place, key(arg)))
                        })?;
                        Some((values, Origin::from(&entry.place)))
                    }
                    None => None,
                },
            };
            if let Some(found) = found {
                laid.insert(arg.get_id().to_string(), found);
            }
        }
        Ok(Layers { laid })
    }

    /// The command with the values of the layers below its flags.
    pub fn below(&self, command: Command) -> Command {
        let groups: Vec<String> = command
            .get_groups()
            .filter(|group| group.get_args().any(|id| self.laid.contains_key(id.as_str())))
            .map(|group| group.get_id().to_string())
            .collect();
        // The group requires one of its options, and a layer sets it.
        let command = groups.iter().fold(command, |command, group| {
            command.mut_group(group, |group| group.required(false))
        });
        command.mut_args(|arg| match self.laid.get(arg.get_id().as_str()) {
            // It may carry a password, and help prints defaults.
            Some((values, _)) => {
                let hides = arg.get_action().takes_values();
                arg.default_values(values.clone()).hide_default_value(hides)
            }
            None => arg,
        })
    }

    /// An error of clap, reported with the variable or the line that has the value.
    pub fn refused(&self, command: &Command, why: &clap::Error) -> Option<Failure> {
        let Some(ContextValue::String(shown)) = why.get(ContextKind::InvalidArg) else {
            return None;
        };
        let long = shown.split([' ', '=', '[']).next()?.strip_prefix("--")?;
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(long))?;
        let (_, origin) = self.laid.get(arg.get_id().as_str())?;
        let sentence = match (std::error::Error::source(why), why.get(ContextKind::ValidValue)) {
            (Some(source), _) => source.to_string(),
            (None, Some(ContextValue::Strings(may))) => format!("it is one of {}", may.join(", ")),
            _ => "it is not understood".to_owned(),
        };
        let what = match origin {
            Origin::Variable(name) => name.clone(),
            other => format!("{other}: {}", key(arg)),
        };
        Some(Failure::usage(format!("{what}: {sentence}")))
    }

    /// All settings of a command, with their values as they were read.
    pub fn settings(&self, command: &Command, read: &ArgMatches) -> Vec<LayeredSetting> {
        let settings = command.get_arguments().filter(|arg| is_setting(arg));
        let one = |arg: &Arg| {
            let id = arg.get_id().as_str();
            let values = read.get_raw(id).map(|values| {
                values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>()
            });
            let laid = self.laid.get(id).map(|(_, origin)| origin.clone());
            let origin =
                if says(read, arg) { Origin::Flag } else { laid.unwrap_or(Origin::Default) };
            let (is_switch, is_list) = (is_switch(arg), is_list(arg));
            LayeredSetting { key: key(arg), values, is_switch, is_list, origin }
        };
        settings.map(one).collect()
    }
}

/// Refuses a command in a file that everybody may write, and a token in a file that administrators of servers read and
/// copy into repositories.
fn refuse_token(table: &FileTable, name: &str) -> Result<(), Failure> {
    if let Some(entry) = table.get("token_command") {
        only_own_command(entry)?;
    }
    match table.get("token") {
        Some(entry) if name == "serve" => {
            Err(Failure::usage(format!("{}: a token is not kept in this file", entry.place))
                .hint("name a file that has it: token_file = \"…\", or a command that prints it: token_command = \"…\""))
        }
        _ => Ok(()),
    }
}

/// Refuses a setting of this command that stands above all tables, and names its table.
fn below_its_table(file: &SettingsFile, command: &Command) -> Result<(), Failure> {
    let name = command.get_name();
    let settings: Vec<String> =
        command.get_arguments().filter(|arg| is_setting(arg)).map(key).collect();
    match file.table.iter().find(|(key, _)| settings.contains(key)) {
        Some((key, entry)) => {
            Err(Failure::usage(format!("{}: {key:?} must be in a table", entry.place))
                .hint(format!("put it below a line [{name}]")))
        }
        None => Ok(()),
    }
}

/// The table of a command; every other table must be that of another one.
fn table_of<'f>(file: &'f SettingsFile, name: &str) -> Result<Option<&'f FileTable>, Failure> {
    only_known(&file.table, "the file", &LAYERED)?;
    let Some(entry) = file.table.get(name) else { return Ok(None) };
    match &entry.value {
        FileValue::Table(table) => Ok(Some(table)),
        _ => Err(Failure::usage(format!("{}: {name} must be a table", entry.place))
            .hint(format!("write [{name}], and its keys on lines below it"))),
    }
}

/// Whether the command line itself has the option.
fn says(matches: &ArgMatches, arg: &Arg) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// Whether the command line has an option that conflicts with this one.
fn excluded(command: &Command, arg: &Arg, matches: &ArgMatches) -> bool {
    let refuses = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|found| found.get_id() == other.get_id())
    };
    let alternatives = |one: &Arg, other: &Arg| {
        command.get_groups().any(|group| {
            let has = |arg: &Arg| group.get_args().any(|id| id == arg.get_id());
            !group.clone().is_multiple() && has(one) && has(other)
        })
    };
    command.get_arguments().filter(|other| says(matches, other)).any(|other| {
        other.get_id() != arg.get_id()
            && (refuses(arg, other) || refuses(other, arg) || alternatives(arg, other))
    })
}

fn of_variable(arg: &Arg, value: OsString) -> Result<Vec<String>, Failure> {
    let name = variable(arg);
    let text = value.into_string().map_err(|_| Failure::usage(format!("{name} is not UTF-8")))?;
    if is_switch(arg) {
        let is = switch(&text).map_err(|why| Failure::usage(format!("{name} {why}")))?;
        return Ok(vec![is]);
    }
    if !is_list(arg) {
        return Ok(vec![text]);
    }
    let parts = text.split(arg.get_value_delimiter().unwrap_or(','));
    Ok(parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
}

fn of_file(
    arg: &Arg,
    file: Option<&SettingsFile>,
    value: &FileValue,
) -> Result<Vec<String>, String> {
    let is_path = matches!(
        arg.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
    );
    let path = |text: &String| match file {
        // `-` is a stream of the process.
        Some(file) if is_path && text != "-" => {
            beside(&file.path, text).to_string_lossy().into_owned()
        }
        _ => text.clone(),
    };
    match value {
        FileValue::Plain(text) if is_switch(arg) => Ok(vec![switch(text)?]),
        FileValue::Plain(text) => Ok(vec![path(text)]),
        FileValue::List(all) if is_list(arg) => Ok(all.iter().map(path).collect()),
        FileValue::List(_) => Err("has one value, not a list".to_owned()),
        FileValue::Table(_) | FileValue::Tables(_) => Err("has one value, not a table".to_owned()),
    }
}

/// A value for a switch.
fn switch(text: &str) -> Result<String, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok("true".to_owned()),
        "false" | "0" | "no" | "off" => Ok("false".to_owned()),
        _ => Err("is true or false".to_owned()),
    }
}
