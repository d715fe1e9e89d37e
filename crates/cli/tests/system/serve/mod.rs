//! `tenure serve` as its users start and stop it.

mod metrics;
mod namespaces;
mod otlp;
mod pictures;
mod prometheus;
mod searched;
mod shared;
mod shared_operating;
mod shared_trail;

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Output};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tenure_testkit::tenure::{Server, exchange, read};

/// No wait for a server is longer.
const SOON: Duration = Duration::from_secs(120);

fn tenure(args: &[&str], token: Option<&str>) -> Command {
    let mut command = crate::tenure(args);
    command.envs(token.map(|token| ("TENURE_TOKEN", token)));
    command
}

fn start(store: &str, token: Option<&str>) -> Server {
    start_with(store, &[], token)
}

fn start_with(store: &str, more: &[&str], token: Option<&str>) -> Server {
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", store];
    Server::start(&mut tenure(&[&args[..], more].concat(), token), SOON)
}

fn end(args: &[&str], token: Option<&str>) -> (Option<i32>, String) {
    ended(tenure(args, token))
}

fn ended(mut command: Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_server_says_where_it_listens_and_ends_well_on_a_signal() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let server = start("memory:", None);
        assert!(server.get("/readyz").starts_with("HTTP/1.1 200 "));
        server.signal(signal);
        let (code, log) = server.ended();
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("draining") && log.contains("stopped"), "{log}");
    }
}

#[test]
fn push_with_wait_returns_the_result_of_the_job() {
    let server = start("memory:", None);
    let url = server.url();
    let pushed = |id: &str| {
        tenure(&["--url", &url, "push", "q", "7", "--id", id, "--wait"], None).spawn().unwrap()
    };
    let (good, bad) = (pushed("good"), pushed("bad"));
    let script = "sleep 0.3; cat > $TENURE_RESULT_FILE; test $TENURE_JOB_ID = good || exit 65";
    let mut worker =
        tenure(&["--url", &url, "work", "q", "-c", "2", "--", "sh", "-c", script], None)
            .spawn()
            .unwrap();
    let (code, out, err) = read(good.wait_with_output().unwrap());
    assert_eq!((code, out.as_str()), (0, "7\n"), "{err}");
    let (code, out, err) = read(bad.wait_with_output().unwrap());
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("job 'bad' failed"), "{err}");
    kill(Pid::from_raw(worker.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    worker.wait().unwrap();
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = start("memory:", None);
    // A request that never ends keeps the drain from being done.
    let mut slow = TcpStream::connect(&server.at).unwrap();
    slow.write_all(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
        .unwrap();
    server.signal(Signal::SIGTERM);
    server.line("draining");
    assert_eq!(server.stop().0, Some(143));
}

#[test]
fn a_restart_keeps_the_store_and_a_folder_has_one_server() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("file:{}", dir.path().join("data").display());
    let server = start(&store, None);
    let url = server.url();
    let pushed = end(&["--url", &url, "push", "q", "--id", "a"], None);
    assert_eq!(pushed.0, Some(0), "{}", pushed.1);
    let (code, log) = end(&["serve", "--listen", "127.0.0.1:0", "--store", &store], None);
    assert_eq!(code, Some(69));
    assert!(log.contains("data"), "it names the folder: {log}");
    assert_eq!(server.stop().0, Some(0));
    let server = start(&store, None);
    assert!(server.get("/v1/jobs/a").starts_with("HTTP/1.1 200 "));
    let (code, _) = end(&["serve", "--listen", &server.at, "--store", "memory:"], None);
    assert_eq!(code, Some(69), "the address is taken");
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn only_a_good_token_opens_it_to_others_and_is_never_said() {
    for token in [None, Some("too-short-a-secret")] {
        let (code, log) = end(&["serve", "--listen", "0.0.0.0:0", "--store", "memory:"], token);
        assert_eq!(code, Some(2));
        assert!(log.contains("TENURE_TOKEN") && !log.contains("too-short-a-secret"), "{log}");
    }
    let server = start("memory:", Some("a-secret"));
    assert!(server.get("/v1/jobs").starts_with("HTTP/1.1 401 "));
    assert!(server.get("/healthz").starts_with("HTTP/1.1 200 "));
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    assert!(!log.contains("a-secret"), "{log}");
}

#[test]
fn loopback_beside_a_redis_elsewhere_is_wrong_usage() {
    let serve = ["serve", "--store", "redis://192.0.2.1", "--listen", "127.0.0.1:0"];
    for more in [&[][..], &["--advertise", "localhost:7171"][..]] {
        let (code, log) = end(&[&serve[..], more].concat(), None);
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("--advertise HOST:PORT") && log.contains("--listen"), "{log}");
    }
}

#[test]
fn what_cannot_be_served_is_wrong_usage() {
    for args in [
        ["serve", "--store", "redis://"],
        ["serve", "--store", "http://localhost"],
        ["serve", "--store", "./data"],
        ["serve", "--listen", "nowhere"],
        ["serve", "--durability", "sometimes"],
        ["serve", "--retain-bytes", "1.5GiB"],
        ["serve", "--patience", "10"],
    ] {
        assert_eq!(end(&args, None).0, Some(2), "{args:?}");
    }
}

#[test]
fn a_clock_that_a_test_moves_is_for_a_store_in_memory_alone() {
    let dir = tempfile::tempdir().unwrap();
    let folder = format!("file:{}", dir.path().join("data").display());
    for store in [&folder, "redis://127.0.0.1:1", "http://localhost"] {
        let (code, log) = end(&["serve", "--store", store, "--test-clock"], None);
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("--store memory: --test-clock"), "{log}");
    }
    assert!(!dir.path().join("data").exists());
    let (code, _) = end(&["serve", "--store", "memory:", "--test-clock=tomorrow"], None);
    assert_eq!(code, Some(2));
    let clock = "--test-clock=2027-01-01T00:00:00Z";
    let server = start_with("memory:", &[clock], None);
    let output = server.get("/v1/test/clock");
    assert!(output.contains(r#"{"now":"2027-01-01T00:00:00.000000Z"}"#), "{output}");
    assert_eq!(server.stop().0, Some(0));
    let other = start("memory:", None);
    assert!(other.get("/v1/test/clock").starts_with("HTTP/1.1 404 "));
    assert_eq!(other.stop().0, Some(0));
}

#[test]
fn a_server_whose_folder_is_moved_ends_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, away) = (dir.path().join("data"), dir.path().join("away"));
    let server = start(&format!("file:{}", folder.display()), None);
    let url = server.url();
    assert_eq!(end(&["--url", &url, "push", "q", "--id", "a"], None).0, Some(0));
    std::fs::rename(&folder, &away).unwrap();
    // The server ends by itself; nobody calls it.
    let (code, log) = server.ended();
    assert_eq!(code, Some(74), "{log}");
    assert!(log.contains("tenure.db") && log.contains("moved"), "{log}");
    let server = start(&format!("file:{}", away.display()), None);
    assert!(server.get("/v1/jobs/a").starts_with("HTTP/1.1 200 "));
}

#[test]
fn without_its_lock_file_a_folder_still_has_one_server() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let store = format!("file:{}", folder.display());
    let server = start(&store, None);
    std::fs::remove_file(folder.join("lock")).unwrap();
    let (code, log) = end(&["serve", "--listen", "127.0.0.1:0", "--store", &store], None);
    assert_eq!(code, Some(69), "{log}");
    assert!(log.contains("another process"), "{log}");
    assert!(server.get("/readyz").starts_with("HTTP/1.1 200 "), "the first one goes on");
    assert_eq!(server.stop().0, Some(0));
}

/// Asks with a token; the status, and the body.
fn ask(server: &Server, call: &str, token: &str, body: &str) -> (String, String) {
    ask_at(&server.at, call, token, body)
}

fn ask_at(at: &str, call: &str, token: &str, body: &str) -> (String, String) {
    let call = format!("{call} WITH Authorization: Bearer {token}");
    let text = exchange(at, SOON, &call, body).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}
