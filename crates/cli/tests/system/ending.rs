//! A `tenure work` or `tenure lock` that ends takes nothing with it: everything that it was granted
//! in its last moment is given back, on every store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tenure_testkit::long;
use tenure_testkit::tenure::{Process, Server, until};

use crate::{client, serving};

/// How often each ending is tried on each store.
fn rounds() -> usize {
    if long() { 25 } else { 8 }
}

/// Longer than this nothing here takes.
const SOON: Duration = Duration::from_secs(60);

/// The exit code of a command, and its answer if that is JSON.
fn run(url: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = client(url, arguments).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

fn start(store: &str) -> Server {
    Server::start(&mut serving(store), SOON)
}

fn leases(server: &Server) -> usize {
    server.look("/v1/leases").1["items"].as_array().unwrap().len()
}

fn succeeded(server: &Server) -> u64 {
    server.look("/v1/stats").1["jobs"]["succeeded"].as_u64().unwrap_or(0)
}

/// `work` with a command that is not there, on a store that nobody serves or that `server` serves.
fn a_missing_cmd(url: &str) {
    for round in 0..rounds() {
        // With one job, a call for another waits beside it, and gets the job when it is given back.
        for id in 0..=round % 3 {
            run(url, &["push", "q", "1", "--id", &format!("{round}-{id}")]);
        }
        let (code, _) = run(url, &["work", "q", "-c", "2", "--", "no-such-command-at-all"]);
        assert_eq!(code, Some(127));
        let (_, leases) = run(url, &["--json", "leases"]);
        assert_eq!(leases["items"], json!([]), "round {round}: held by nobody");
    }
}

/// SIGTERM comes while jobs do; `server` has the same store as `url`, for pushes.
fn sigterm_while_jobs_come(server: &Server, url: &str, second: bool) {
    for round in 0..rounds() {
        let over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        server.ask("POST /v1/jobs", &json!({"queue": "q"}));
                    }
                });
            }
            let before = succeeded(server);
            let mut work = client(url, &["work", "q", "-c", "4", "--", "true"]);
            let mut worker = Process::start(&mut work, SOON);
            until(SOON, "a job that ran", || succeeded(server) > before);
            worker.signal(Signal::SIGTERM);
            if second {
                worker.signal(Signal::SIGINT);
            }
            worker.end();
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(leases(server), 0, "round {round}: held by nobody");
        server.ask("POST /v1/jobs/cancel", &json!({"queue": "q"}));
    }
}

#[test]
fn work_without_its_cmd_leaves_no_job_running_on_a_server() {
    a_missing_cmd(&start("memory:").url());
}

#[test]
fn work_without_its_cmd_leaves_no_job_running_on_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    a_missing_cmd(&format!("file:{}", folder.path().join("store").display()));
}

#[test]
fn work_that_is_told_to_end_leaves_no_job_running_on_a_server() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["memory:".to_owned(), format!("file:{}", folder.path().display())] {
        let server = start(&store);
        sigterm_while_jobs_come(&server, &server.url(), false);
        sigterm_while_jobs_come(&server, &server.url(), true);
    }
}
