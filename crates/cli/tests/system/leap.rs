//! The wall clock of a server leaps ahead, and that of its clients does not: by the log of the commands themselves,
//! no two of them hold one lock at once. (The first does not listen to SIGTERM: so it works as long as it may.)
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tenure_core::time::Span;
use tenure_testkit::ShiftedClock;

/// No wait of this test is longer.
const PROMPT: Duration = Duration::from_secs(60);
const TTL: &str = "2s";
/// Shorter than a leap that makes an engine deaf by itself, and nearly all of the ttl.
const LEAP: Span = Span::from_ms(1_950);

fn tenure(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(args).stdin(Stdio::null());
    for name in ["TENURE_URL", "TENURE_TOKEN", "TENURE_STORE", "TENURE_NAMESPACE"] {
        command.env_remove(name);
    }
    command
}

/// A server of this test; it ends with it.
struct Server {
    child: Child,
    at: String,
    _stderr: BufReader<std::process::ChildStderr>,
}

impl Server {
    fn start(folder: &Path, clock: &ShiftedClock) -> Self {
        let store = format!("file:{}", folder.display());
        let mut command = tenure(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
        let mut child = command.envs(clock.envs()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("listening on http://").expect(&line).to_owned();
        Server { child, at, _stderr: stderr }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let ask = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// A command that holds the lock while `script` runs; `$LOG` is the log of all of them.
    fn lock(&self, log: &Path, script: &str) -> Child {
        let url = format!("http://{}", self.at);
        let args = ["--url", &url, "lock", "deploy", "--ttl", TTL, "--", "sh", "-c", script];
        tenure(&args).env("LOG", log).spawn().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < PROMPT, "this never was so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// When each line of a command was written, in ns.
fn lines(log: &Path, of: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.strip_prefix(of)?.trim().parse().ok());
    lines.collect()
}

#[test]
fn no_two_commands_hold_one_lock_when_the_server_s_clock_leaps() {
    let (dir, clock) = (tenure_testkit::TempDir::new(), ShiftedClock::new());
    let server = Server::start(&dir.join("store"), &clock);
    let log = dir.join("log");
    let works = "trap '' TERM; n=0; while [ $n -lt 200 ]; do echo \"a $(date +%s%N)\" >> $LOG; sleep 0.02; n=$((n+1)); done";
    let mut first = server.lock(&log, works);
    eventually("the first works", || !lines(&log, "a").is_empty());
    let mut second = server.lock(&log, "echo \"b $(date +%s%N)\" >> $LOG");
    eventually("the second waits", || {
        server.get("/v1/limits/lock:deploy").contains("\"waiting\":1")
    });
    for _ in 0..4 {
        let before = lines(&log, "a").len();
        clock.leap(LEAP);
        // Long enough for a tick, a heartbeat and a grant.
        eventually("the first goes on, or has ended", || {
            lines(&log, "a").len() > before + 25 || first.try_wait().unwrap().is_some()
        });
    }
    let ended = first.wait().unwrap();
    assert!(second.wait().unwrap().success());
    let (a, b) = (lines(&log, "a"), lines(&log, "b"));
    let (last, next) = (*a.last().unwrap(), b[0]);
    let overlap = last.saturating_sub(next) / 1_000_000;
    assert!(last < next, "both held the lock for {overlap} ms");
    assert_eq!(ended.code(), Some(0), "the first lost its lock after {} lines", a.len());
    let ready = server.get("/readyz");
    assert!(ready.contains("leapt ahead by"), "it is not said: {ready}");
}
