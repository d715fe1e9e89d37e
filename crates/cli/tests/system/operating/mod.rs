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

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longest wait for anything, also on a machine with much to do.
const SOON: Duration = Duration::from_secs(60);

/// A command that finds nothing of this machine: no variable, no file of a user.
fn tenure(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit code, stdout, stderr.
fn told(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A server in memory or on a folder, and its output.
struct Server {
    child: Child,
    at: String,
    said: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let (stderr, into) = (child.stderr.take().unwrap(), said.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                into.lock().unwrap().push(line.unwrap());
            }
        });
        let mut server = Server { child, at: String::new(), said };
        let line = server.line("listening on http");
        let (_, at) = line.split_once("://").unwrap();
        server.at = at.split('"').next().unwrap().to_owned();
        server
    }

    /// The first line that has this, once it is there.
    fn line(&self, part: &str) -> String {
        let until = Instant::now() + SOON;
        loop {
            if let Some(line) = self.said.lock().unwrap().iter().find(|line| line.contains(part)) {
                return line.clone();
            }
            assert!(Instant::now() < until, "no line has {part:?}: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn log(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }

    /// Status line, head and body of an answer.
    fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let length = body.len();
        let ask =
            format!("{head} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        // A header that the caller adds stands in its head, behind the version.
        let ask = match head.split_once(" WITH ") {
            Some((head, more)) => format!(
                "{head} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}\r\n"
            ),
            None => ask,
        };
        let ask = format!("{ask}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(ask.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Ends it as an operator does; its exit code.
    fn stop(mut self) -> (i32, String) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        let code = self.child.wait().unwrap().code().unwrap();
        // The reader ends with the pipe.
        let until = Instant::now() + SOON;
        while Arc::strong_count(&self.said) > 1 {
            assert!(Instant::now() < until, "stderr is never closed");
            std::thread::sleep(Duration::from_millis(5));
        }
        (code, self.log())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
