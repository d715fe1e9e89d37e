//! `tenure serve` on a disk that is full, and in a folder that may not grow: pushes are refused, all
//! else goes on, and what is deleted makes room.
//!
//! The full disk is a small file system in memory, in a mount namespace of the server's own, so nothing of
//! the machine is touched. That needs `unshare` and the right to use it: root, or user namespaces.

use std::fs::{self, File};
use std::io::Write;
use std::ops::{Deref, RangeInclusive};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tenure_testkit::tenure::{Server, alone, until};
use tenure_testkit::wants;

use crate::tenure;

/// The largest payload that is taken is 256 KiB.
const PAYLOAD: usize = 250_000;
const DEADLINE: Duration = Duration::from_secs(30);

/// A server that listens. Killed when it is dropped.
struct Filled {
    server: Server,
    /// Of two servers one after the other the first, while it runs; `server` is the shell above it.
    first: Option<Pid>,
}

impl Deref for Filled {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// `tenure serve` in a file system of this many MiB at this path, run by the end of a script whose arguments it is.
fn on_small_disk(mib: u32, at: &Path, run: &str) -> Command {
    let mut command = Command::new("unshare");
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    command.arg(if root { "-m" } else { "-rm" });
    let script = format!("mount -t tmpfs -o size=$1m none \"$2\" && shift 2 && {run}");
    command.args(["sh", "-c", &script, "sh"]).arg(mib.to_string()).arg(at);
    command.arg(env!("CARGO_BIN_EXE_tenure")).args(["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--store").arg(format!("file:{}", at.join("data").display()));
    command
}

impl Filled {
    fn start(mut command: Command) -> Self {
        let started = Server::try_start(alone(&mut command).stdout(Stdio::null()), 4 * DEADLINE);
        let why = "without `unshare`, or root or user namespaces, leave it out: ./test --without small-disk";
        let server = started.unwrap_or_else(|said| panic!("no server: {said}\n{why}"));
        Filled { server, first: None }
    }

    /// In a folder that takes this many bytes.
    fn with_at_most(bytes: &str, folder: &Path) -> Self {
        let store = format!("file:{}", folder.display());
        let more = ["--max-bytes", bytes, "--store", &store];
        Filled::start(tenure(&[&["serve", "--listen", "127.0.0.1:0"], &more[..]].concat()))
    }

    /// In a file system of this many MiB, at this path of its own.
    fn on_small_disk(mib: u32, at: &Path) -> Self {
        Filled::start(on_small_disk(mib, at, "exec \"$@\""))
    }

    /// The same, and once the server is killed it is started again in the same file system.
    fn on_small_disk_twice(mib: u32, at: &Path) -> Self {
        let mut server = Filled::start(on_small_disk(mib, at, "\"$@\"; exec \"$@\""));
        let shell = server.id();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        server.first = Some(Pid::from_raw(children.trim().parse().unwrap()));
        server
    }

    /// Kills the server by -9, and waits until it is started again.
    fn kill_and_wait_for_the_next(&mut self) {
        let first = self.first.take().expect("a server that is started twice");
        kill(first, Signal::SIGKILL).unwrap();
        self.server.listens_again(2);
    }

    /// Makes one call; returns status and body.
    fn call(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let text = self.exchange(&format!("{method} {path}"), body);
        let status = text.get(9..12).and_then(|status| status.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
        (status.unwrap_or_else(|| panic!("the server is gone: {text:?}")), body)
    }

    fn push(&self, id: &str) -> (u16, String) {
        let payload = "x".repeat(PAYLOAD);
        self.call("POST", "/v1/jobs", &format!("{{\"id\":\"{id}\",\"payload\":\"{payload}\"}}"))
    }

    /// Pushes until it is refused; how many were stored.
    fn fill(&self) -> u32 {
        for n in 0u32.. {
            let (status, body) = self.push(&format!("j{n}"));
            if status != 201 {
                assert_eq!(status, 503, "{body}");
                assert!(body.contains("store_full"), "{body}");
                return n;
            }
        }
        unreachable!("a disk that is never full")
    }

    /// Takes the room that is there once what was stored is counted by its real size: until then it counts by an
    /// estimate, which is larger.
    fn fill_what_is_left(&self) {
        let until = Instant::now() + DEADLINE;
        let mut refused = 0;
        while refused < 8 {
            let job = |payload: &str| format!(r#"{{"payload":"{payload}"}}"#);
            let taken = self.fill_by("POST", |_| "/v1/jobs".to_owned(), job);
            refused = if taken == 0 { refused + 1 } else { 0 };
            assert!(Instant::now() < until, "a full folder takes more and more");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Calls with each of these paths and a payload of the usual size until one is refused for want of room; returns
    /// how many were accepted.
    fn fill_by(
        &self,
        method: &str,
        path: impl Fn(u32) -> String,
        body: impl Fn(&str) -> String,
    ) -> u32 {
        let payload = "y".repeat(PAYLOAD);
        for n in 0..200u32 {
            let (status, answer) = self.call(method, &path(n), &body(&payload));
            if !(200..300).contains(&status) {
                assert!(
                    status == 503 && answer.contains("store_full"),
                    "{method} {n}: {status} {answer}"
                );
                return n;
            }
        }
        panic!("{method} {} is never refused", path(0))
    }

    /// Deletes the jobs of these numbers.
    fn delete(&self, numbers: RangeInclusive<u32>) {
        for n in numbers {
            let (status, body) = self.call("DELETE", &format!("/v1/jobs/j{n}"), "");
            assert_eq!(status, 204, "DELETE {n} of a full disk: {body}");
        }
    }

    /// Until there is room again for a push; the space of what was deleted is given back soon.
    fn push_once_there_is_room(&self, id: &str) {
        until(DEADLINE, "room", || {
            let (status, body) = self.push(id);
            assert!(status == 201 || body.contains("store_full"), "{status} {body}");
            status == 201
        });
    }

    /// Runs one job, which must work however full the disk is.
    fn run_one(&self) {
        let ask = "{\"queues\":[\"default\"]}";
        let (status, said) = self.call("POST", "/v1/leases", ask);
        assert_eq!(status, 200, "{said}");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let settle = serde_json::json!({
            "settle": [{"lease": said["leases"][0]["lease"], "outcome": "succeeded", "result": 1}]
        });
        let (status, said) = self.call("POST", "/v1/leases/settle", &settle.to_string());
        assert!(status == 200 && said.contains("\"ok\":true"), "{status} {said}");
    }

    fn end(mut self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.server.end().code(), Some(0), "{}", self.said());
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        self.server.kill();
        let _ = self.first.map(|first| kill(first, Signal::SIGKILL));
    }
}

fn left_out() -> bool {
    !cfg!(target_os = "linux") || !wants("small-disk")
}

/// The bytes of all files in a folder.
fn size(folder: &Path) -> u64 {
    let size = |path: PathBuf| fs::metadata(path).map_or(0, |meta| meta.len());
    fs::read_dir(folder).unwrap().map(|entry| size(entry.unwrap().path())).sum()
}

/// Another program's file, which takes all that is left.
fn take_the_rest(path: &Path) {
    let mut file = File::create(path).unwrap();
    for size in [1 << 20, 4_096, 512] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

#[test]
fn a_full_disk_is_emptied_by_calls() {
    if left_out() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = Filled::on_small_disk(24, dir.path());
    let stored = server.fill();
    assert!(stored >= 40, "{stored}");
    let (status, body) = server.call("GET", "/readyz", "");
    assert!(status == 200 && body.contains("store_full"), "{status} {body}");
    // The file system as the server sees it.
    let seen = PathBuf::from(format!("/proc/{}/root{}", server.id(), dir.path().display()));
    take_the_rest(&seen.join("ballast"));
    server.fill_what_is_left();
    server.run_one();
    server.delete(1..=30);
    // The ballast is still there: what was deleted made the room.
    server.push_once_there_is_room("again");
    fs::remove_file(seen.join("ballast")).unwrap();
    let reserve = || fs::metadata(seen.join("data/reserve")).map_or(0, |meta| meta.len());
    until(DEADLINE, "a reserve again, with room again", || reserve() > 0);
    let (_, audit) = server.call("GET", "/v1/audit", "");
    assert!(audit.contains("\"ok\":true"), "{audit}");
    server.end();
}

/// Each way to make a store larger, one after the other, in a store that is full; small ones, and calls that make
/// nothing larger, go on.
#[test]
fn a_full_folder_takes_neither_schedules_nor_larger_patches() {
    const MAX: u64 = 24 << 20;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let server = Filled::with_at_most("24MiB", &folder);
    for n in 0..150 {
        let (status, answer) =
            server.call("POST", "/v1/jobs", &format!(r#"{{"id":"small{n}","payload":1}}"#));
        assert_eq!(status, 201, "{answer}");
    }
    let small = r#"{"every":"1d","job":{"queue":"q","payload":1}}"#;
    assert_eq!(server.call("PUT", "/v1/schedules/kept", small).0, 201);
    assert!(server.fill() >= 20);
    server.fill_what_is_left();
    let taken = server.fill_by(
        "PUT",
        |n| format!("/v1/schedules/s{n}"),
        |payload| format!(r#"{{"every":"1d","job":{{"queue":"q","payload":"{payload}"}}}}"#),
    );
    assert!(taken <= 1, "{taken} schedules were taken by a full folder");
    let taken = server.fill_by(
        "PATCH",
        |n| format!("/v1/jobs/small{n}"),
        |payload| format!(r#"{{"payload":"{payload}"}}"#),
    );
    assert!(taken <= 1, "{taken} jobs were made larger in a full folder");
    let bytes = size(&folder);
    assert!(bytes <= MAX, "{bytes}");
    // Calls that make nothing larger go on.
    for (method, path, body) in [
        ("PATCH", "/v1/jobs/j0", r#"{"payload":2,"priority":5}"#),
        ("PATCH", "/v1/jobs/small149", r#"{"payload":3}"#),
        ("PUT", "/v1/schedules/kept", small),
        ("PATCH", "/v1/schedules/kept", r#"{"overlap":"queue"}"#),
        ("POST", "/v1/queues/default/pause", "{}"),
        ("POST", "/v1/queues/default/resume", "{}"),
    ] {
        let (status, answer) = server.call(method, path, body);
        assert_eq!(status, 200, "{method} {path}: {answer}");
    }
    server.run_one();
    server.end();
}

#[test]
fn a_server_that_starts_on_a_full_disk_is_emptied_by_calls() {
    if left_out() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut server = Filled::on_small_disk_twice(24, dir.path());
    let stored = server.fill();
    assert!(stored >= 40, "{stored}");
    let seen = PathBuf::from(format!("/proc/{}/root{}", server.id(), dir.path().display()));
    take_the_rest(&seen.join("ballast"));
    server.kill_and_wait_for_the_next();
    server.run_one();
    server.delete(1..=stored - 1);
    server.push_once_there_is_room("again");
    server.end();
}

#[test]
fn a_folder_with_a_size_limit_refuses_pushes_at_the_limit() {
    const MAX: u64 = 16 << 20;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let server = Filled::with_at_most("16MiB", &folder);
    let stored = server.fill();
    assert!(stored >= 20, "{stored}");
    let bytes = size(&folder);
    assert!(bytes <= MAX, "{bytes}");
    server.run_one();
    server.delete(1..=10);
    server.push_once_there_is_room("again");
    server.end();
}
