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

use serde_json::Value;
use tenure_testkit::tenure::{Server, done, told};

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

/// The exit code, stdout and stderr of a command there.
fn run(url: &str, arguments: &[&str]) -> (i32, String, String) {
    told(&mut client(url, arguments))
}

/// The one document of a command there, which must end well.
#[track_caller]
fn answer(url: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&done(&mut client(url, &[&["--json"], arguments].concat()))).unwrap()
}

/// The headers of a form that a page of the server itself sends.
const OWN_FORM: &str =
    "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded";

/// The answer to the form of the login.
fn log_in(server: &Server, token: &str) -> String {
    server.exchange(&format!("POST /login WITH {OWN_FORM}"), &format!("token={token}&to=/"))
}

/// The cookie of a session.
fn logged_in(server: &Server, token: &str) -> String {
    let answer = log_in(server, token);
    let cookie = answer.split("set-cookie: ").nth(1).unwrap_or_else(|| panic!("{answer}"));
    cookie.split(';').next().unwrap().to_owned()
}

/// A server of this store, at any port.
fn serving(store: &str) -> Command {
    let mut command = tenure(&["serve", "--listen", "127.0.0.1:0"]);
    // The address of a store may hold a password: it is not among the arguments.
    command.env("TENURE_STORE", store);
    command
}
