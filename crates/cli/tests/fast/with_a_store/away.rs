//! The command line while its server is away: killed, and started again at its address.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tenure_testkit::tenure::until;

use crate::with_a_store::folder::Folder;
use crate::with_a_store::server::Server;
use crate::with_a_store::signal;

/// The longest that a test waits for an event.
const LONG: Duration = Duration::from_secs(30);

/// A command whose lines on stderr are read as they come.
struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    fn start(folder: &Folder, at: &str, arguments: &[&str]) -> Running {
        let mut command = folder.command(arguments);
        command.env("TENURE_URL", format!("http://{at}"));
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Running { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that has this in it.
    fn says(&mut self, part: &str, within: Duration) -> String {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("\"{part}\" was not told within {within:?}: {:#?}", self.seen);
            };
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Its exit code, its stdout, and its lines on stderr.
    fn ends(self) -> (Option<i32>, String, Vec<String>) {
        let mut seen = self.seen;
        let output = self.child.wait_with_output().unwrap();
        seen.extend(self.lines.iter());
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), seen)
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

/// An address at which nothing listens yet.
fn free() -> String {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("127.0.0.1:{port}")
}

#[test]
fn work_reports_an_absent_server_and_resumes_when_it_is_back() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0");
    let out = folder.0.path().join("out");
    let script = format!("cat >> {}; sleep 0.05", out.display());
    let at = server.at();
    let jobs = |server: &Server, ids: std::ops::Range<u32>| {
        for id in ids {
            server.done(&folder, &["push", "q", "1", "--id", &format!("j{id}")]);
        }
    };
    jobs(&server, 0..5);
    let arguments = ["work", "q", "--concurrency", "2", "--", "sh", "-c", &script];
    let mut work = Running::start(&folder, &at, &arguments);
    work.says("j0", LONG);
    // While a job runs, or an outcome is on its way, or a call waits.
    server.kill();
    let line = work.says("cannot reach", Duration::from_secs(2));
    assert_eq!(
        line,
        format!(
            "tenure: cannot reach http://{at}: Connection refused; trying again until it answers"
        )
    );
    let server = Server::start(&folder, &at);
    work.says(&format!("reached http://{at} again after"), LONG);
    jobs(&server, 5..8);
    let state = |id: u32| server.get(&format!("/v1/jobs/j{id}"))["state"].clone();
    until(LONG, "all jobs to succeed", || (0..8).all(|id| state(id) == "succeeded"));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "1".repeat(8), "nothing ran twice");
    signal(&work.child, "-TERM");
    let (code, _, lines) = work.ends();
    assert_eq!(code, Some(0), "{lines:#?}");
    server.kill();
}

#[test]
fn work_waits_for_a_server_that_is_started_after_it() {
    let folder = Folder::new();
    let at = free();
    let mut work = Running::start(&folder, &at, &["work", "q", "--max-jobs", "1", "--", "cat"]);
    work.says(&format!("cannot reach http://{at}"), Duration::from_secs(2));
    let server = Server::start(&folder, &at);
    work.says("again after", LONG);
    server.done(&folder, &["push", "q", "7", "--id", "j1"]);
    let (code, out, lines) = work.ends();
    assert_eq!((code, out.as_str()), (Some(0), "7"), "{lines:#?}");
    server.kill();
}

#[test]
fn work_exits_after_the_longest_absence_once_its_job_finished() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0");
    let at = server.at();
    server.done(&folder, &["push", "q", "7", "--id", "j1"]);
    let arguments =
        ["work", "q", "-c", "2", "--exit-when-away", "300ms", "--", "sh", "-c", "sleep 2; cat"];
    let mut work = Running::start(&folder, &at, &arguments);
    work.says("started", LONG);
    let begun = Instant::now();
    server.kill();
    std::thread::sleep(Duration::from_millis(1_000));
    assert!(work.is_alive(), "the job still runs");
    // Its outcome is accepted all the same, if the server is back by then.
    let server = Server::start(&folder, &at);
    let (code, out, lines) = work.ends();
    assert_eq!((code, out.as_str()), (Some(69), "7"), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.contains("did not answer for 300ms (--exit-when-away)")),
        "{lines:#?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(server.get("/v1/jobs/j1")["state"], "succeeded");
    server.kill();
}

#[test]
fn waits_for_results_survive_a_restart_of_a_killed_server() {
    let folder = Folder::new();
    let mut server = Server::start(&folder, "127.0.0.1:0");
    let at = server.at();
    for (n, arguments) in [
        ["result", "JOB", "--wait", "60s"],
        ["push", "q", "--id=JOB", "--wait=60s"],
        ["push", "q", "--id=JOB", "--wait"],
        ["flow", "wait", "FLOW", "60s"],
    ]
    .iter()
    .enumerate()
    {
        let (job, flow) = (format!("j{n}"), format!("f{n}"));
        server.done(&folder, &["push", "q", "7", "--id", &job, "--flow", &flow]);
        let arguments = arguments.map(|word| word.replace("JOB", &job).replace("FLOW", &flow));
        let arguments = &arguments.each_ref().map(String::as_str)[..];
        let mut waiting = Running::start(&folder, &at, arguments);
        // Its call waits at the server: no answer has come yet.
        until(LONG, "a waiting call", || {
            assert!(waiting.is_alive(), "{arguments:?}");
            server.get("/v1/stats")["result_waiters"] == 1
        });
        server.kill();
        waiting.says(&format!("cannot reach http://{at}"), Duration::from_secs(2));
        assert!(waiting.is_alive(), "{arguments:?}");
        server = Server::start(&folder, &at);
        waiting.says(&format!("reached http://{at} again after"), LONG);
        let work = ["work", "q", "--until-empty", "--", "sh", "-c", "cat > $TENURE_RESULT_FILE"];
        server.done(&folder, &work);
        let (code, out, lines) = waiting.ends();
        assert_eq!(code, Some(0), "{arguments:?}: {lines:#?}");
        assert!(out.contains('7') || arguments[0] == "flow", "{arguments:?}: {out}");
    }
    server.kill();
}

#[test]
fn a_wait_for_a_server_that_never_comes_ends_with_its_deadline() {
    let folder = Folder::new();
    let begun = Instant::now();
    let waiting = Running::start(&folder, &free(), &["result", "j1", "--wait", "1s"]);
    let (code, _, lines) = waiting.ends();
    assert_eq!(code, Some(69), "{lines:#?}");
    assert!((1..6).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    // Without a wait nothing is waited for.
    let begun = Instant::now();
    let (code, _, _) = Running::start(&folder, &free(), &["result", "j1"]).ends();
    assert_eq!(code, Some(69));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
