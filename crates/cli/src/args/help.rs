//! The help, as people read it: a dozen commands in groups, or all of them with `tenure help --all`; the help of one
//! command, without the options that all have.
//!
//! clap writes the parts; this module decides their order.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Args, Command, CommandFactory};

use crate::args::{Cli, Global, HelpArgs, tips};
use crate::exit::Failure;

/// Commands under one heading.
struct CommandGroup {
    heading: &'static str,
    /// In the short help.
    common: &'static [&'static str],
    /// In `tenure help --all` only, after those.
    rest: &'static [&'static str],
}

const GROUPS: [CommandGroup; 5] = [
    CommandGroup { heading: "Run", common: &["serve", "work", "lock", "demo"], rest: &["lease"] },
    CommandGroup {
        heading: "Jobs",
        common: &["push", "jobs", "explain", "schedule"],
        rest: &[
            "job",
            "result",
            "cancel",
            "retry",
            "delete",
            "reschedule",
            "run-now",
            "failures",
            "parents",
            "children",
            "flow",
        ],
    },
    CommandGroup { heading: "Limits and pools", common: &["limit", "pool"], rest: &["queue"] },
    CommandGroup {
        heading: "Look",
        common: &["status", "doctor"],
        rest: &["top", "stats", "events", "leases", "workers", "audit", "trail", "error"],
    },
    CommandGroup {
        heading: "Store and tools",
        common: &[],
        rest: &["token", "backup", "restore", "copy", "store", "completions", "version", "help"],
    },
];

/// Options that stand in the help of these commands though all commands take them: here they mean something.
const SHOWN: [(&str, &str); 2] = [("serve", "accept_loss"), ("audit", "accept_loss")];

const FIRST_LOOK: &str = "  tenure serve
  tenure push mail '{\"to\":\"ann@example.com\"}'
  tenure work mail -- ./send-mail";

const EXIT_CODES: &str = "  0      done
  1      the answer is no: not found, refused, too late, a check failed
  2      wrong usage
  69     no server, or no store
  70     a bug
  74     the disk
  75     the lease was lost
  77     not permitted
  125    CMD could not be started
  126    CMD cannot be run
  127    CMD was not found
  128+n  ended by signal n
  lock and lease exit with the exit code of CMD.";

const ENVIRONMENT: &str = "  TENURE_URL          the server or store, as --url
  TENURE_NAMESPACE    the namespace, as --namespace
  TENURE_PROFILE      a profile with address, token and namespace, as --profile
  TENURE_TOKEN        the server's token; other users could see an option
  TENURE_CA           the authority of an https:// server's certificate, as --ca
  TENURE_…            each option of `tenure serve` and `tenure work`
  TENURE_HTTP_SECRET  signs the requests of `tenure work --http`
  NO_COLOR            no colours";

const FOOT: &str = "Options of every command, such as --url and --json: tenure help --all";

/// The command line with its help as people read it. It costs a millisecond, so it is built only when it is needed.
pub fn told() -> Command {
    let mut command = Cli::command();
    command.build();
    let command = each(command);
    let short = short(&command);
    command.override_help(short)
}

/// Hides the options of every command, and lets errors show the usage that the help shows.
fn each(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let is_shown = |id: &str| SHOWN.contains(&(name.as_str(), id)) || id == "help";
    let mut command = command.mut_args(|arg| {
        let hidden = arg.is_global_set() && !is_shown(arg.get_id().as_str());
        if hidden { arg.hide(true) } else { arg }
    });
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    let end = command.get_after_help().map(|text| flowing(&text.to_string()) + "\n\n");
    let end = end.unwrap_or_default();
    command.override_usage(usage).after_help(format!("{end}{FOOT}")).mut_subcommands(each)
}

/// A text whose paragraphs are lines of their own, which clap wraps at the width of the terminal. Indented lines are
/// examples and tables, and stay as they are.
fn flowing(text: &str) -> String {
    let mut flowing = String::new();
    let mut is_prose = false;
    for line in text.lines() {
        let goes_on = is_prose && !line.is_empty() && !line.starts_with(' ');
        match (flowing.is_empty(), goes_on) {
            (true, _) => {}
            (false, true) => flowing.push(' '),
            (false, false) => flowing.push('\n'),
        }
        flowing.push_str(line);
        is_prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
    }
    flowing
}

/// Prints help, or the error about a command that does not exist.
pub fn print(args: &HelpArgs) -> Result<(), Failure> {
    let mut root = told();
    let mut command = &mut root;
    for word in &args.command {
        if command.find_subcommand(word).is_none() {
            return Err(unknown(command, word));
        }
        command = match command.find_subcommand_mut(word) {
            Some(command) => command,
            None => return Err(Failure::bug("a command was there and is not")),
        };
    }
    if args.all && args.command.is_empty() {
        let all = all(command);
        return printed(&mut command.clone().override_help(all));
    }
    printed(command)?;
    match command.get_after_long_help() {
        Some(all) if args.all => crate::output::Output { json: false }.text(&format!("\n{all}\n")),
        _ => Ok(()),
    }
}

fn printed(command: &mut Command) -> Result<(), Failure> {
    command.print_help().map_err(|error| Failure::stdout(&error))
}

fn unknown(command: &Command, word: &str) -> Failure {
    let names = command.get_subcommands().map(Command::get_name);
    let near = tenure_core::decode::nearest(word, names);
    let near = near.map(|near| format!("did you mean '{near}'? ")).unwrap_or_default();
    Failure::usage(format!("there is no command '{word}'"))
        .hint(format!("{near}{}", tips::where_to_look(word)))
}

/// A heading and a text below it.
fn section(text: &mut String, command: &Command, heading: &str, body: &str) {
    let header = command.get_styles().get_header();
    // Writing to a String cannot fail.
    let _ = write!(text, "\n\n{header}{heading}:{header:#}\n{body}");
}

fn opening(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let (usage, literal) = (command.get_styles().get_usage(), command.get_styles().get_literal());
    format!("{about}\n\n{usage}Usage:{usage:#} {literal}tenure{literal:#} <COMMAND>")
}

/// The commands of these names, a line each; one that is hidden has none.
fn list<'n>(command: &Command, names: impl Iterator<Item = &'n str>) -> String {
    let literal = command.get_styles().get_literal();
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or(0);
    let line = |name: &str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        format!("  {literal}{name}{literal:#}{:1$}  {about}", "", width - name.len())
    };
    let is_hidden = |name: &&str| command.find_subcommand(name).is_some_and(Command::is_hide_set);
    names.filter(|name| !is_hidden(name)).map(line).collect::<Vec<_>>().join("\n")
}

fn short(command: &Command) -> StyledStr {
    let mut text = opening(command);
    for group in GROUPS.iter().filter(|group| !group.common.is_empty()) {
        section(&mut text, command, group.heading, &list(command, group.common.iter().copied()));
    }
    section(&mut text, command, "First steps, each line in its own terminal", FIRST_LOOK);
    text.push_str("\n\nAll commands, options, exit codes: tenure help --all\n");
    text.push_str("One command: tenure help COMMAND\n");
    StyledStr::from(text)
}

fn all(command: &Command) -> StyledStr {
    let mut text = opening(command);
    for group in &GROUPS {
        let names = group.common.iter().chain(group.rest).copied();
        section(&mut text, command, group.heading, &list(command, names));
    }
    let global = Global::augment_args(Command::new("tenure").max_term_width(100));
    let global = global.disable_help_flag(true).help_template("{options}").render_help();
    let options = global.ansi().to_string();
    section(&mut text, command, "Options of every command", options.trim_end());
    section(&mut text, command, "Exit codes", EXIT_CODES);
    section(&mut text, command, "Environment", ENVIRONMENT);
    StyledStr::from(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_flow_and_examples_stay() {
        assert_eq!(
            flowing("a b\nc\n  d\n  e\nf\n\ng\nExamples:\n  h\n"),
            "a b c\n  d\n  e\nf\n\ng Examples:\n  h"
        );
    }

    #[test]
    fn each_command_stands_in_one_group() {
        let mut named: Vec<_> = GROUPS
            .iter()
            .flat_map(|group| group.common.iter().chain(group.rest))
            .copied()
            .collect();
        let command = Cli::command();
        let mut all: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
        named.sort_unstable();
        all.sort_unstable();
        assert_eq!(named, all);
        let common: usize = GROUPS.iter().map(|group| group.common.len()).sum();
        assert_eq!(common, 12);
    }
}
