//! The command line as its users type it, its pages, and the rules about the project as a whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod backup;
mod command_line;
mod copy;
mod doctor;
mod house;
mod snapshots;
mod with_a_store;

use std::process::Command;

/// The built command; it finds no store and no server by itself.
fn tenure(arguments: &[&str]) -> Command {
    tenure_testkit::tenure::command(env!("CARGO_BIN_EXE_tenure"), arguments)
}

/// The same for the store or the server at this address.
fn client(url: &str, arguments: &[&str]) -> Command {
    let mut command = tenure(arguments);
    command.env("TENURE_URL", url);
    command
}
