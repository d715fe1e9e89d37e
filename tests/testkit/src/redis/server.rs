//! One redis-server of a test's own: started, killed, started again on its kept data.
//!
//! It sends only the commands that a test requests, except AUTH.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Child;

use super::process::{self, LOG};
use super::wire::{Reply, Wire};
use super::{STEP_MAX, until};
use crate::TempDir;

/// The folder in which a server keeps its data.
const KEPT: &str = "appendonlydir";

/// How a server keeps its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aof {
    /// Not at all: a kill takes everything.
    Off,
    /// Synced once a second: `appendfsync everysec`.
    Everysec,
    /// Synced before each answer: `appendfsync always`.
    Always,
}

/// A running redis-server; it ends when this is dropped, also by a test that panics.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    words: Vec<String>,
    ready: &'static str,
    /// Its environment variables beside ours, at each start.
    envs: Vec<(&'static str, OsString)>,
    dir: TempDir,
}

impl RedisServer {
    /// Starts a server and waits until it accepts connections. `more` are further arguments, such as `["--maxmemory",
    /// "10mb"]`; with `--requirepass` in it, [`ask`](Self::ask) gives that password. Panics if the machine has no
    /// Redis, with a message that says what to install.
    pub fn start(aof: Aof, more: &[&str]) -> Self {
        Self::start_in(&[], aof, more)
    }

    /// The same with these environment variables.
    pub fn start_in(envs: &[(&'static str, OsString)], aof: Aof, more: &[&str]) -> Self {
        let (append, fsync) = match aof {
            Aof::Off => ("no", "everysec"),
            Aof::Everysec => ("yes", "everysec"),
            Aof::Always => ("yes", "always"),
        };
        let keep = ["--save", "", "--appendonly", append, "--appendfsync", fsync];
        Self::start_ready(envs, "Ready to accept connections", |_, _| {
            keep.iter().chain(more).map(|&word| word.to_owned()).collect()
        })
    }

    /// Starts a server with the arguments that `words` makes from its folder and port; it accepts connections once it
    /// logs `ready`.
    pub(super) fn start_ready(
        envs: &[(&'static str, OsString)],
        ready: &'static str,
        words: impl Fn(&TempDir, u16) -> Vec<String>,
    ) -> Self {
        // Another process may take a port between our check and the server's.
        let mut why = String::new();
        for _ in 0..10 {
            let (dir, port) = (TempDir::new(), process::free_port());
            let mut all = words(&dir, port);
            all.extend(["--port", &port.to_string(), "--bind", "127.0.0.1"].map(str::to_owned));
            let child = process::spawn(dir.path(), &all, envs);
            let mut server =
                RedisServer { child, port, words: all, ready, envs: envs.to_vec(), dir };
            if server.takes_connections(0) {
                return server;
            }
            why = server.log();
        }
        panic!("no redis-server could be started; the last one said:\n{why}");
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, without a password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with SIGKILL, as a crash would. Once it has ended this does nothing.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on its port, from its kept data; kills it first if it runs.
    pub fn restart(&mut self) {
        self.kill();
        let begin = std::time::Instant::now();
        while begin.elapsed() < STEP_MAX {
            let said = self.log().len();
            self.child = process::spawn(self.dir.path(), &self.words, &self.envs);
            if self.takes_connections(said) {
                return;
            }
        }
        panic!("the redis-server did not start again; it said:\n{}", self.log());
    }

    /// A copy of its data until now, for [`restart_from`](Self::restart_from). It must not rewrite its files meanwhile:
    /// see `auto-aof-rewrite-percentage`.
    pub fn kept(&self) -> TempDir {
        let copy = TempDir::new();
        copied(&self.dir.join(KEPT), copy.path()).expect("what a redis-server keeps can be copied");
        copy
    }

    /// Kills it, and starts it again from an earlier copy. Later writes are gone, as when a replica that lagged is
    /// promoted.
    pub fn restart_from(&mut self, kept: &TempDir) {
        self.kill();
        copied(kept.path(), &self.dir.join(KEPT))
            .expect("what a redis-server kept can be put back");
        self.restart();
    }

    /// The text of its log, over all its starts.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.dir.join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// One command, in plain words, and its raw answer: `ask(&["PING"])` is `"+PONG\r\n"`.
    pub fn ask(&self, words: &[&str]) -> io::Result<String> {
        let mut wire = self.connect()?;
        wire.ask(words)?;
        Ok(String::from_utf8_lossy(&wire.raw).into_owned())
    }

    /// One command, in plain words, and its answer; a refusal of the server is an error.
    pub fn call(&self, words: &[&str]) -> io::Result<Reply> {
        match self.connect()?.ask(words)? {
            Reply::Refused(why) => Err(io::Error::other(why)),
            reply => Ok(reply),
        }
    }

    /// One command that has to work; panics with the error.
    pub fn must(&self, words: &[&str]) -> Reply {
        let port = self.port;
        self.call(words).unwrap_or_else(|why| panic!("port {port}: {}: {why}", words.join(" ")))
    }

    /// The value of one line of INFO; empty if the line is missing.
    pub fn info(&self, name: &str) -> String {
        let text = self.must(&["INFO", "everything"]).text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().to_owned()
    }

    fn connect(&self) -> io::Result<Wire> {
        let mut wire = Wire::to(self.port)?;
        let at = self.words.iter().position(|word| word == "--requirepass");
        if let Some(password) = at.and_then(|at| self.words.get(at + 1)) {
            wire.ask(&["AUTH", password])?;
        }
        Ok(wire)
    }

    /// Waits until its log says so after byte `said`; `false` if it ended before. A PING would not do: another
    /// process's server may answer it, on the port that ours did not get.
    fn takes_connections(&mut self, said: usize) -> bool {
        until("a redis-server to start", || {
            let log = self.log();
            if log.get(said..).is_some_and(|log| log.contains(self.ready)) {
                return Ok(true);
            }
            match self.child.try_wait() {
                Ok(None) => Err(log),
                _ => Ok(false),
            }
        })
    }
}

/// Copies the files of a folder to another one.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    for file in std::fs::read_dir(from)? {
        let file = file?;
        std::fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
