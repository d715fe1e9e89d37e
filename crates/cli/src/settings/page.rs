//! Every option of `serve` and `work` is a setting, also one that is added tomorrow.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};

use super::LAYERED;
use super::layers::{is_setting, key, variable};
use crate::args::Cli;

/// A command whose options are settings.
fn layered(name: &str) -> Command {
    Cli::command().find_subcommand(name).cloned().unwrap()
}

#[test]
fn every_option_of_serve_and_work_has_a_variable_and_a_key() {
    // What `work` sets for CMD must not be taken for a setting by a `tenure` that CMD runs.
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
            match is_setting(arg) {
                false => without.push(arg.get_id().as_str()),
                true => {
                    let (variable, key) = (variable(arg), key(arg));
                    assert_eq!(variable, format!("TENURE_{}", key.to_uppercase()));
                    assert!(seen.insert(variable.clone()), "{variable}");
                    assert!(!for_cmd.contains(&variable.as_str()), "{variable}");
                }
            }
        }
        let may = ["config", "print_config", "accept_loss"];
        assert!(without.iter().all(|id| may.contains(id)), "{without:?} of {name} has neither");
        assert!(seen.len() > 10, "{seen:?}");
    }
}
