//! Servers and workers as processes: started, stopped, killed and cut off, on each kind of store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod chaos;
mod crash_loop;
mod demo;
mod ending;
mod full_disk;
mod gauge;
mod killed;
mod leap;
mod linear;
mod operating;
mod over_http;
mod owner;
mod redis;
mod serve;
mod unread_stderr;

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

/// A server of this store, at any port.
fn serving(store: &str) -> Command {
    let mut command = tenure(&["serve", "--listen", "127.0.0.1:0"]);
    // The address of a store may hold a password: it is not among the arguments.
    command.env("TENURE_STORE", store);
    command
}
