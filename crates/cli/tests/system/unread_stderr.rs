//! Nobody reads the output of a server or a worker, as behind a terminal that was stopped by Ctrl-S: both go on, and
//! end when they are asked to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tenure_testkit::tenure::until;

use crate::tenure;

const DEADLINE: Duration = Duration::from_secs(30);
/// More than a pipe and the queue before it take: 64 KiB and 1 MiB.
const CALLS: usize = 8_000;

/// A process whose stderr is a pipe that is read to its first line alone. Killed when it is dropped.
struct Unread {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Unread {
    fn start(args: &[&str], url: Option<&str>) -> Self {
        let mut command = tenure(args);
        command.envs(url.map(|url| ("TENURE_URL", url))).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Unread { child, stderr }
    }

    /// Reads up to the address that a server says it listens on.
    fn address(&mut self) -> String {
        for line in self.stderr.by_ref().lines() {
            if let Some(at) = line.unwrap().strip_prefix("listening on http://") {
                return at.to_owned();
            }
        }
        panic!("no server");
    }

    fn told_to_end(&mut self) -> ExitStatus {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        until(DEADLINE, "the end after SIGTERM", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls on one connection; each is answered.
struct Calls(BufReader<TcpStream>);

impl Calls {
    fn to(at: &str) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Calls(BufReader::new(stream))
    }

    fn call(&mut self, method: &str, path: &str, body: &str) -> String {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.0.get_mut().write_all(head.as_bytes()).unwrap();
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "no answer");
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = said.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }
}

#[test]
fn a_server_whose_log_nobody_reads_answers_and_ends() {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--log-level", "debug"];
    let mut server = Unread::start(&serve, None);
    let mut calls = Calls::to(&server.address());
    for n in 0..CALLS {
        // Each has a line of the log.
        let answer = calls.call("GET", &format!("/v1/jobs/{n}{}", "x".repeat(200)), "");
        assert!(answer.contains("job_not_found"), "{answer}");
    }
    assert_eq!(server.told_to_end().code(), Some(0));
    // It wrote what it could, and how many lines it could not.
    let mut rest = Vec::new();
    server.stderr.read_to_end(&mut rest).unwrap();
    assert!(rest.len() >= 32 << 10, "{}", rest.len());
}

#[test]
fn a_worker_whose_lines_nobody_reads_works_and_ends() {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--log-level", "error"];
    let mut server = Unread::start(&serve, None);
    let at = server.address();
    let mut calls = Calls::to(&at);
    for n in 0..40 {
        calls.call("POST", "/v1/jobs", &format!(r#"{{"id": "j{n}", "queue": "q"}}"#));
    }
    // Each writes 64 KiB to stderr, which is forwarded.
    let work =
        ["work", "q", "-c", "4", "--", "sh", "-c", "head -c 65536 /dev/zero | tr '\\0' x >&2"];
    let mut worker = Unread::start(&work, Some(&format!("http://{at}")));
    until(2 * DEADLINE, "all jobs to succeed", || {
        let stats: serde_json::Value =
            serde_json::from_str(&calls.call("GET", "/v1/stats", "")).unwrap();
        stats["jobs"]["succeeded"] == 40
    });
    let ended = worker.told_to_end();
    assert!(ended.code().is_some(), "{ended}");
}
