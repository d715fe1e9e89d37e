//! Starts a measured program, waits for it and reads its figures. Kills it when it takes too long.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::Failed;
use crate::server::Server;
use crate::systems::Front;

/// The way to call a program: the part before its role, its port and its options.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable and its first arguments.
    pub command: Vec<OsString>,
    /// The folder in which it is started.
    pub folder: PathBuf,
    /// Options of every call.
    pub options: Vec<String>,
    /// The server that the program connects to, if that is not Redis, and its executable.
    pub front: Option<(Front, PathBuf)>,
}

/// A running program; killed if it outlives its time.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
    label: String,
    until: Instant,
}

impl Program {
    /// Starts the program in a role.
    pub fn start(
        &self,
        role: &str,
        server: &Server,
        options: &[String],
        within: Duration,
    ) -> Result<Running, Failed> {
        let (first, rest) = self.command.split_first().ok_or("no command")?;
        let mut command = Command::new(first);
        command.args(rest).arg(role).arg(server.port.to_string()).args(options).args(&self.options);
        command.current_dir(&self.folder).env("PEERS_STORE", server.store()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("{}: {why}", first.display()))?;
        let (send, lines) = channel();
        let stdout = child.stdout.take().ok_or("no output")?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let (send, errors) = channel();
        let mut stderr = child.stderr.take().ok_or("no errors")?;
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            let _ = send.send(String::from_utf8_lossy(&text).into_owned());
        });
        Ok(Running { child, lines, errors, label: role.to_owned(), until: Instant::now() + within })
    }

    /// Runs the program in a role to its end.
    pub fn run(
        &self,
        role: &str,
        server: &Server,
        options: &[String],
        within: Duration,
    ) -> Result<Figures, Failed> {
        self.start(role, server, options, within)?.figures()
    }
}

impl Running {
    /// Waits until the program reports that it can be given work.
    pub fn ready(&mut self) -> Result<(), Failed> {
        while let Some(line) = self.line()? {
            if line == "ready" {
                return Ok(());
            }
        }
        Err(self.died())
    }

    /// Waits for its end and reads its figures.
    pub fn figures(mut self) -> Result<Figures, Failed> {
        let mut last = None;
        while let Some(line) = self.line()? {
            if line.starts_with('{') {
                last = Some(line);
            }
        }
        if !self.child.wait()?.success() {
            return Err(self.died());
        }
        match last {
            Some(line) => Ok(Figures(serde_json::from_str(&line)?)),
            None => Err(self.died()),
        }
    }

    /// The next line of output; `None` at its end.
    fn line(&mut self) -> Result<Option<String>, Failed> {
        let left = self.until.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(format!("{}: took too long", self.label).into()),
        }
    }

    fn died(&mut self) -> Failed {
        let _ = self.child.kill();
        let text = self.errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        let end: Vec<&str> =
            text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        format!("{}: ended without figures: {}", self.label, end.join(" / ")).into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The figures that a program printed.
pub struct Figures(Map<String, Value>);

impl Figures {
    /// A figure that may be missing.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }
    /// A figure that must be there.
    pub fn need(&self, name: &str) -> Result<f64, Failed> {
        self.get(name).ok_or_else(|| format!("no figure {name}").into())
    }
    /// Whether the program gave up before all jobs were handled.
    pub fn gave_up(&self) -> bool {
        self.0.get("gave_up").is_some()
    }
}
