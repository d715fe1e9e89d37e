//! The command `tenure` as a process of a test's own: with none of the test's variables, its output collected, and
//! ended with the test.
//!
//! It never waits without a deadline, and knows no route of the API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// How long a server may take to end: it drains for 25 s, and waits for its store.
const ENDS_WITHIN: Duration = Duration::from_secs(100);
/// The pause between two looks at another process.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The program with these arguments, as [`alone`].
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    alone(command.args(arguments));
    command
}

/// Keeps the variables of the test's own process from a command that is `tenure`, or runs it. Its stdin is empty, and
/// its output goes into pipes.
pub fn alone(command: &mut Command) -> &mut Command {
    for name in ["URL", "STORE", "NAMESPACE", "TOKEN", "HTTP_SECRET"] {
        command.env_remove(format!("TENURE_{name}"));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// Runs a command to its end: the exit code, stdout and stderr.
pub fn told(command: &mut Command) -> (i32, String, String) {
    read(command.output().unwrap())
}

/// Runs a command that must end well: its stdout.
#[track_caller]
pub fn done(command: &mut Command) -> String {
    let (code, out, err) = told(command);
    assert_eq!(code, 0, "{command:?}: {out}{err}");
    out
}

/// Runs a command that must end with this exit code, and say this on stderr.
#[track_caller]
pub fn fails(code: i32, command: &mut Command, part: &str) {
    let (ended, out, err) = told(command);
    assert_eq!(ended, code, "{command:?}: {out}{err}");
    assert!(err.contains(part), "{command:?}: {err}");
}

/// The exit code, stdout and stderr of a command that ended.
pub fn read(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Waits until it is so; panics after `within`, with the name of what was awaited.
#[track_caller]
pub fn until(within: Duration, what: &str, mut so: impl FnMut() -> bool) {
    once(within, what, || if so() { Ok(()) } else { Err("it is not so".to_owned()) });
}

/// Waits until `look` finds something, and answers it; panics after `within`, with the name of what was awaited and the
/// last finding.
#[track_caller]
pub fn once<T>(within: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(begun.elapsed() < within, "waited in vain for {what}: {seen}"),
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Makes one call on a connection of its own: `call` is its method and path, and its own headers behind ` WITH `, if it
/// has any. Answers with the status line, the head and the body. An error if nobody listens at `at`, or is silent for
/// `within`.
pub fn exchange(at: &str, within: Duration, call: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(within))?;
    let (call, header) = match call.split_once(" WITH ") {
        Some((call, header)) => (call, format!("{header}\r\n")),
        None => (call, String::new()),
    };
    // A page is only for those who send no JSON.
    let is_json = !call.starts_with("GET ") && !header.contains("Content-Type: ");
    let media = if is_json { "Content-Type: application/json\r\n" } else { "" };
    let length = body.len();
    let head = format!(
        "{call} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}{media}\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Makes one call as [`exchange`] does: the status, and the body if that is JSON. [`Value::Null`] as `body` is none.
pub fn asked(at: &str, within: Duration, call: &str, body: &Value) -> io::Result<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let text = exchange(at, within, call, &body)?;
    let broken = || io::Error::other(format!("no whole answer: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(broken)?, serde_json::from_str(body).unwrap_or_default()))
}

/// A process, and what it has written so far. Killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    within: Duration,
    /// Whole lines of stdout and stderr, where these are pipes. Each thread that reads a pipe has a copy of the pointer.
    said: Arc<Mutex<String>>,
}

impl Process {
    /// Starts it. No wait for it is longer than `within`.
    pub fn start(command: &mut Command, within: Duration) -> Self {
        Process::try_start(command, within).unwrap()
    }

    fn try_start(command: &mut Command, within: Duration) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let said = Arc::<Mutex<String>>::default();
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as _),
            child.stderr.take().map(|pipe| Box::new(pipe) as _),
        ];
        for pipe in pipes.into_iter().flatten() {
            let into = said.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line) + "\n";
                    into.lock().unwrap().push_str(&line);
                }
            });
        }
        Ok(Process { child, within, said })
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal; it does not wait for what this does.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// All lines so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Whether its pipes are closed, so that it says nothing more.
    fn is_silent(&self) -> bool {
        Arc::strong_count(&self.said) == 1
    }

    /// The first line with this part, once it is there.
    #[track_caller]
    pub fn line(&self, part: &str) -> String {
        self.nth_line(part, 1)
    }

    /// The line with this part that comes as the `n`-th, from 1, once it is there.
    #[track_caller]
    pub fn nth_line(&self, part: &str, n: usize) -> String {
        let found = self.find_line(part, n);
        found.unwrap_or_else(|log| panic!("no {n} lines have {part:?}: {log}"))
    }

    /// An error is the log without such a line.
    fn find_line(&self, part: &str, n: usize) -> Result<String, String> {
        let begun = Instant::now();
        loop {
            let is_last = self.is_silent() || begun.elapsed() > self.within;
            let said = self.said();
            match said.lines().filter(|line| line.contains(part)).nth(n - 1) {
                Some(line) => return Ok(line.to_owned()),
                None if is_last => return Err(said),
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Sends SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end; processes that it started may still write.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        until(self.within, "the end of a process", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap()
    }

    /// Waits for its end, and that of its pipes: the exit code, which is `None` after a signal, and all its lines.
    #[track_caller]
    pub fn ended(mut self) -> (Option<i32>, String) {
        self.within = self.within.max(ENDS_WITHIN);
        let status = self.end();
        until(self.within, "the end of its output", || self.is_silent());
        (status.code(), self.said())
    }

    /// The same, after it was asked to end as an operator does.
    #[track_caller]
    pub fn stop(self) -> (Option<i32>, String) {
        self.signal(Signal::SIGTERM);
        self.ended()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process that listens for calls over HTTP.
#[derive(Debug)]
pub struct Server {
    process: Process,
    /// Its host and port.
    pub at: String,
}

impl Server {
    /// Starts it, and waits until it says where it listens. No wait for it is longer than `within`.
    #[track_caller]
    pub fn start(command: &mut Command, within: Duration) -> Self {
        Server::try_start(command, within).unwrap_or_else(|why| panic!("no server: {why}"))
    }

    /// The same; an error is what it said instead.
    pub fn try_start(command: &mut Command, within: Duration) -> Result<Self, String> {
        let process = Process::try_start(command, within).map_err(|why| why.to_string())?;
        // Lines about a store that servers share may come before.
        let line = process.find_line("listening on http", 1)?;
        Ok(Server { at: address(&line), process })
    }

    /// Waits until it, or the one that takes its place, says for the `n`-th time where it listens.
    #[track_caller]
    pub fn listens_again(&mut self, n: usize) {
        self.at = address(&self.nth_line("listening on http", n));
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// One call, as [`exchange`] makes it.
    #[track_caller]
    pub fn exchange(&self, call: &str, body: &str) -> String {
        exchange(&self.at, self.within, call, body).unwrap()
    }

    /// The answer to a GET: status line, head and body.
    #[track_caller]
    pub fn get(&self, path: &str) -> String {
        self.exchange(&format!("GET {path}"), "")
    }

    /// The status of an answer, and its body if that is JSON; see [`asked`].
    #[track_caller]
    pub fn ask(&self, call: &str, body: &Value) -> (u16, Value) {
        asked(&self.at, self.within, call, body).unwrap()
    }

    /// The same for a GET.
    #[track_caller]
    pub fn look(&self, path: &str) -> (u16, Value) {
        self.ask(&format!("GET {path}"), &Value::Null)
    }

    /// See [`Process::ended`].
    #[track_caller]
    pub fn ended(self) -> (Option<i32>, String) {
        self.process.ended()
    }

    /// See [`Process::stop`].
    #[track_caller]
    pub fn stop(self) -> (Option<i32>, String) {
        self.process.stop()
    }
}

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// The host and the port in the line that tells them, which is text or JSON: they end where no address can go on.
fn address(line: &str) -> String {
    let at = line.split_once("listening on http").map_or(line, |(_, at)| at);
    let at = at.trim_start_matches('s').trim_start_matches("://");
    at.split(['"', ' ']).next().unwrap_or_default().to_owned()
}
