//! The wall clock of a server leaps ahead, and that of its clients does not: by the log of the commands themselves,
//! no two of them hold one lock at once. (The first does not listen to SIGTERM: so it works as long as it may.)
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use tenure_core::time::Span;
use tenure_testkit::ShiftedClock;
use tenure_testkit::tenure::{Process, Server, until};

use crate::{client, serving};

/// No wait of this test is longer.
const PROMPT: Duration = Duration::from_secs(60);
const TTL: &str = "2s";
/// Shorter than a leap that makes an engine deaf by itself, and nearly all of the ttl.
const LEAP: Span = Span::from_ms(1_950);

/// A command that holds the lock while `script` runs; `$LOG` is the log of all of them.
fn lock(server: &Server, log: &Path, script: &str) -> Process {
    let arguments = ["lock", "deploy", "--ttl", TTL, "--", "sh", "-c", script];
    Process::start(client(&server.url(), &arguments).env("LOG", log), PROMPT)
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
    let mut command = serving(&format!("file:{}", dir.join("store").display()));
    let server = Server::start(command.envs(clock.envs()), PROMPT);
    let log = dir.join("log");
    let works = "trap '' TERM; n=0; while [ $n -lt 200 ]; do echo \"a $(date +%s%N)\" >> $LOG; sleep 0.02; n=$((n+1)); done";
    let mut first = lock(&server, &log, works);
    until(PROMPT, "the first to work", || !lines(&log, "a").is_empty());
    let mut second = lock(&server, &log, "echo \"b $(date +%s%N)\" >> $LOG");
    until(PROMPT, "the second to wait", || {
        server.get("/v1/limits/lock:deploy").contains("\"waiting\":1")
    });
    for _ in 0..4 {
        let before = lines(&log, "a").len();
        clock.leap(LEAP);
        // Long enough for a tick, a heartbeat and a grant.
        until(PROMPT, "the first to go on or to end", || {
            lines(&log, "a").len() > before + 25 || first.status().is_some()
        });
    }
    let ended = first.end();
    assert!(second.end().success());
    let (a, b) = (lines(&log, "a"), lines(&log, "b"));
    let (last, next) = (*a.last().unwrap(), b[0]);
    let overlap = last.saturating_sub(next) / 1_000_000;
    assert!(last < next, "both held the lock for {overlap} ms");
    assert_eq!(ended.code(), Some(0), "the first lost its lock after {} lines", a.len());
    let ready = server.get("/readyz");
    assert!(ready.contains("leapt ahead by"), "it is not said: {ready}");
}
