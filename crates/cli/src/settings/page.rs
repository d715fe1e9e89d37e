//! Every option of `serve` and `work` is a setting, also one that is added tomorrow, and stands on the page of settings.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use clap::{Command, CommandFactory};

use super::layers::{LAYERED, is_setting, key, variable};
use crate::args::Cli;

/// A command whose options are settings.
fn layered(name: &str) -> Command {
    Cli::command().find_subcommand(name).cloned().unwrap()
}

#[test]
fn every_option_of_serve_and_work_has_a_variable_and_a_key() {
    // Variables that `work` sets for CMD must not be taken for settings by a `tenure` that CMD runs.
    let for_cmd = [
        "TENURE_LEASE",
        "TENURE_FENCE",
        "TENURE_JOB_ID",
        "TENURE_QUEUE",
        "TENURE_KIND",
        "TENURE_ATTEMPT",
    ];
    for name in LAYERED {
        let command = layered(name);
        let (mut seen, mut without) = (BTreeSet::new(), Vec::new());
        for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
            if is_setting(arg) {
                let (variable, key) = (variable(arg), key(arg));
                assert_eq!(variable, format!("TENURE_{}", key.to_uppercase()));
                assert!(seen.insert(variable.clone()), "{variable}");
                assert!(!for_cmd.contains(&variable.as_str()), "{variable}");
            } else {
                without.push(arg.get_id().as_str());
            }
        }
        let may = ["config", "print_config", "accept_loss"];
        assert!(without.iter().all(|id| may.contains(id)), "{without:?} of {name} has neither");
        assert!(seen.len() > 10, "{seen:?}");
    }
}

/// The rows of a command's table.
fn table(name: &str) -> String {
    let command = layered(name);
    let mut text =
        "| option | variable | key | default | meaning |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for arg in command.get_arguments().filter(|arg| is_setting(arg) && !arg.is_hide_set()) {
        let defaults = arg.get_default_values().iter();
        let default = defaults.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(", ");
        let default = match default.as_str() {
            "" | "false" => String::new(),
            text => format!("`{text}`"),
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let long = arg.get_long().unwrap_or_default();
        let _ = writeln!(
            text,
            "| `--{long}` | `{}` | `{}` | {default} | {} |",
            variable(arg),
            key(arg),
            help.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }
    text
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/server.md");

const HEAD: &str = "# Settings of a server and of `tenure work`

This page is generated from the options. Each option can be set on the command line, by its variable, or by its key under
`[serve]` or `[work]` in a settings file. [The guide](../guides/settings.md) explains their precedence and the token of a
server. `tenure serve --print-config` prints the effective settings of a machine.
";

#[test]
fn the_page_of_settings_is_up_to_date() {
    let mut page = HEAD.to_owned();
    for name in LAYERED {
        let _ = write!(page, "\n## tenure {name}\n\n{}", table(name));
    }
    if std::env::var("TENURE_WRITE_DOCS").is_ok_and(|value| value == "1") {
        fs::write(PAGE, &page).unwrap();
    }
    let kept = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        kept == page,
        "docs/reference/server.md differs from the options; write it again: \
         TENURE_WRITE_DOCS=1 cargo test -p tenure-cli --bin tenure page_of_settings"
    );
}
