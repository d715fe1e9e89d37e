//! A `tenure work` or `tenure lock` that ends takes nothing with it: everything that it was granted
//! in its last moment is given back, on every store.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How often each ending is tried on each store.
const ROUNDS: usize = 25;
/// Longer than this nothing here takes.
const SOON: Duration = Duration::from_secs(60);

fn tenure(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for name in ["TENURE_STORE", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    command.args(arguments).env("TENURE_URL", url).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The exit code of a command, and its answer if that is JSON.
fn run(url: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = tenure(url, arguments).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < SOON, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A server, killed when it is dropped.
struct Server {
    child: Child,
    at: String,
}

impl Server {
    fn start(store: &str) -> Self {
        let mut child = tenure("http://127.0.0.1:1", &["serve", "--listen", "127.0.0.1:0"])
            .env("TENURE_STORE", store)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        words.read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("listening on http://").expect(&line).to_owned();
        // It must not be stopped by words that nobody reads.
        std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
        Server { child, at }
    }

    fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let body = body.to_string();
        let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json";
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap_or(Value::Null)
    }

    fn leases(&self) -> usize {
        self.ask("GET", "/v1/leases", &json!({}))["items"].as_array().unwrap().len()
    }

    fn succeeded(&self) -> u64 {
        self.ask("GET", "/v1/stats", &json!({}))["jobs"]["succeeded"].as_u64().unwrap_or(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `work` with a command that is not there, on a store that nobody serves or that `server` serves.
fn a_missing_cmd(url: &str) {
    for round in 0..ROUNDS {
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
    for round in 0..ROUNDS {
        let over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        server.ask("POST", "/v1/jobs", &json!({"queue": "q"}));
                    }
                });
            }
            let before = server.succeeded();
            let mut child = tenure(url, &["work", "q", "-c", "4", "--", "true"]).spawn().unwrap();
            until("a job that ran", || server.succeeded() > before);
            signal(&child, Signal::SIGTERM);
            if second {
                signal(&child, Signal::SIGINT);
            }
            until("its end", || child.try_wait().unwrap().is_some());
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(server.leases(), 0, "round {round}: held by nobody");
        server.ask("POST", "/v1/jobs/cancel", &json!({"queue": "q"}));
    }
}

#[test]
fn work_without_its_cmd_leaves_no_job_running_on_a_server() {
    a_missing_cmd(&Server::start("memory:").url());
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
        let server = Server::start(&store);
        sigterm_while_jobs_come(&server, &server.url(), false);
        sigterm_while_jobs_come(&server, &server.url(), true);
    }
}
