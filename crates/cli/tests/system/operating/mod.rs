//! Settings of the operator of a server and of the user of a client, and the log of a server.

mod encrypted;
mod logs;
#[cfg(target_os = "linux")]
mod package;
mod profiles;
mod sealed;
mod secrets;
mod settings;
#[cfg(target_os = "linux")]
mod supervised;
mod tokens;
mod trail;
mod trail_offline;
mod upgrade;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_testkit::tenure::{Server, told};

/// Longest wait for anything, also on a machine with much to do.
const SOON: Duration = Duration::from_secs(60);

/// A command that finds nothing of this machine: no variable, no file of a user.
fn tenure(home: &Path, arguments: &[&str]) -> Command {
    let mut command = crate::tenure(arguments);
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// A server at any port, with these options.
fn serving(home: &Path, options: &[&str]) -> Command {
    tenure(home, &[&["serve", "--listen", "127.0.0.1:0"], options].concat())
}

/// A server in memory or on a folder, and its log.
fn start(mut command: Command) -> Server {
    Server::start(command.stdout(Stdio::null()), SOON)
}
