//! Tokens that are changed while a server serves.

use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sys::signal::Signal;
use tenure_testkit::tenure::{done, fails, until};

use crate::log_in;
use crate::operating::{SOON, Server, serving, start, tenure, told};

/// The status with which a call is answered that shows a token.
fn status(server: &Server, token: &str) -> String {
    let answer = server.exchange(&format!("GET /v1/stats WITH Authorization: Bearer {token}"), "");
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn tokens_are_changed_under_load_and_no_call_fails() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens");
    fs::write(&path, "old-token\n").unwrap();
    let options = ["--store", "memory:", "--token-file", path.to_str().unwrap()];
    let server = start(serving(home.path(), &options));
    let tells = |part: &str| {
        server.line(part);
    };
    let token = Mutex::new("old-token");
    let (calls, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // It is held over the call: a token is not changed in the middle of one.
                    let shown = token.lock().unwrap();
                    assert_eq!(status(&server, &shown), "200");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let some_calls = || {
            let enough = calls.load(Ordering::Relaxed) + 20;
            until(SOON, "calls", || calls.load(Ordering::Relaxed) >= enough);
        };
        let stop = Stop(&over);
        some_calls();
        fs::write(&path, "# since today\nnew-token\n\nold-token\n").unwrap();
        tells("\"count\":2");
        some_calls();
        *token.lock().unwrap() = "new-token";
        some_calls();
        fs::write(&path, "new-token\n").unwrap();
        tells("\"count\":1");
        some_calls();
        // A file that cannot be used changes nothing, and a signal has it read at once.
        fs::write(&path, "\n").unwrap();
        server.signal(Signal::SIGHUP);
        tells("the previous ones stay");
        some_calls();
        drop(stop);
    });
    assert_eq!(
        (status(&server, "new-token").as_str(), status(&server, "old-token").as_str()),
        ("200", "401")
    );
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    assert!(!log.contains("new-token") && !log.contains("old-token"), "{log}");
}

/// Ends the callers, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_wrong_token_at_the_login_is_in_the_log() {
    let home = tempfile::tempdir().unwrap();
    let mut command = serving(home.path(), &["--store", "memory:"]);
    command.env("TENURE_TOKEN", "right-token");
    let server = start(command);
    let login = |token: &str| log_in(&server, token);
    assert!(login("right-token").starts_with("HTTP/1.1 303 "));
    assert!(!server.said().contains("a wrong one"));
    for _ in 0..3 {
        assert!(login("geheim").starts_with("HTTP/1.1 401 "));
    }
    let line = server.line("they showed no token or a wrong one");
    assert!(line.contains("127.0.0.1"), "{line}");
    assert_eq!(server.said().matches("a wrong one").count(), 1, "one line a minute");
    assert!(!server.said().contains("geheim"));
}

/// A command at this server, with this token.
fn with(server: &Server, token: &str, mut command: Command) -> Command {
    command.env("TENURE_URL", server.url()).env("TENURE_TOKEN", token);
    command
}

/// The answer of `tenure`: its exit code, and stdout or stderr.
fn run(server: &Server, token: &str, arguments: &[&str]) -> (i32, String) {
    let home = tempfile::tempdir().unwrap();
    let (code, out, err) = told(&mut with(server, token, tenure(home.path(), arguments)));
    (code, if code == 0 { out } else { err })
}

/// A new token, and its block for the file.
fn new(name: &str, more: &[&str]) -> (String, String) {
    let home = tempfile::tempdir().unwrap();
    let output = tenure(home.path(), &[&["token", "new", name], more].concat()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (token, block) = text.split_once("\n\n").unwrap_or_else(|| panic!("{output:?}"));
    assert!(token.starts_with(&format!("tnr_{name}_")) && token.len() > 48, "{token}");
    assert!(!block.contains(token), "the file holds no token");
    (token.to_owned(), format!("{block}\n"))
}

#[test]
fn a_token_of_a_file_may_do_what_its_block_says_until_it_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.toml");
    let (pusher, of_pusher) = new("pusher", &["--scopes", "push", "--queues", "mail*"]);
    let (viewer, of_viewer) = new("viewer", &["--scope", "view", "--namespaces", "default,web-*"]);
    fs::write(&path, format!("{of_pusher}{of_viewer}")).unwrap();
    let file = path.to_str().unwrap();
    assert!(told(&mut tenure(home.path(), &["token", "check", file])).1.contains("pusher  push"));
    let server = start(serving(home.path(), &["--store", "memory:", "--tokens", file]));
    assert_eq!(run(&server, &pusher, &["push", "mail", "1", "--id", "j"]).0, 0);
    let (code, why) = run(&server, &pusher, &["push", "other", "1"]);
    assert_eq!(code, 77, "{why}");
    assert!(why.contains("may not use the queue \"other\"; it may use \"mail*\""), "{why}");
    assert!(why.contains("tenure error forbidden"), "{why}");
    let (code, why) = run(&server, &viewer, &["cancel", "j"]);
    assert_eq!(code, 77, "{why}");
    assert!(why.contains("lacks the scope \"operate\" for cancel_job; it has view"), "{why}");
    let (code, job) = run(&server, &viewer, &["--json", "job", "j"]);
    assert_eq!(code, 0, "{job}");
    assert!(job.contains("\"payload\":\"•••\""), "{job}");
    let (code, me) = run(&server, &viewer, &["token", "who"]);
    assert!(code == 0 && me.contains("viewer") && me.contains("default, web-*"), "{me}");
    let (code, why) = run(&server, "tnr_viewer_geheim", &["token", "who"]);
    assert!(code == 77 && !why.contains("geheim"), "{code} {why}");
    // A fault in the file changes nothing, and the log has no value of it.
    fs::write(&path, format!("{of_pusher}{of_viewer}scopes = 'geheim'\n")).unwrap();
    server.signal(Signal::SIGHUP);
    server.line("the previous ones stay");
    assert_eq!(status(&server, &viewer), "200");
    fs::write(&path, of_pusher).unwrap();
    server.line("only the new tokens are valid now");
    assert_eq!(
        (status(&server, &viewer).as_str(), status(&server, &pusher).as_str()),
        ("401", "403")
    );
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    for secret in ["geheim", &pusher, &viewer] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn a_token_with_few_calls_costs_time_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.toml");
    let scopes = ["--scopes", "read,work,push,admin", "--calls", "2/1s"];
    let (slow, of_slow) = new("slow", &scopes);
    let (spent, of_spent) = new("spent", &["--scopes", "view", "--calls", "1/1h"]);
    fs::write(&path, format!("{of_slow}{of_spent}")).unwrap();
    let file = path.to_str().unwrap();
    let server = start(serving(home.path(), &["--store", "memory:", "--tokens", file]));
    let as_slow = |arguments: &[&str]| with(&server, &slow, tenure(home.path(), arguments));
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        done(&mut as_slow(&["push", "mail", "1", "--id", id]));
    }
    let ran = home.path().join("ran");
    let script = format!("echo $TENURE_JOB_ID >> {}", ran.display());
    let work = ["work", "mail", "-c", "1", "--until-empty", "--", "sh", "-c", &script];
    let (code, _, err) = told(&mut as_slow(&work));
    assert_eq!(code, 0, "{err}");
    let text = fs::read_to_string(&ran).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), ids, "{err}");
    assert_eq!(err.matches("may make 2/1s calls").count(), 1, "{err}");
    for arguments in [
        &["lock", "x", "--", "true"][..],
        &["token", "who"],
        &["result", "a", "--wait", "10s"],
        &["jobs"],
        &["queue", "set", "full", "--max-waiting", "1"],
        &["push", "full", "1"],
    ] {
        done(&mut as_slow(arguments));
    }
    // A full queue is not about the caller.
    fails(1, &mut as_slow(&["push", "full", "2"]), "takes 1 waiting jobs");
    // Nobody waits for an hour.
    assert_eq!(status(&server, &spent), "200");
    let begun = std::time::Instant::now();
    let stats = tenure(home.path(), &["--json", "stats"]);
    let (code, out, err) = told(&mut with(&server, &spent, stats));
    assert_eq!(code, 1, "{out}{err}");
    let no: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&no["code"], &no["caller"]), (&"line_full".into(), &"spent".into()), "{no}");
    assert!(begun.elapsed() < SOON / 2);
    assert_eq!(server.stop().0, Some(0));
}
