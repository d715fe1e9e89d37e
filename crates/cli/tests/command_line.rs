//! The built command, without a server: what it says of itself, what it refuses by itself, and what
//! it says when nobody is there. Nothing here needs a network beyond a port that nobody listens on.

// A test that cannot even start the command is to fail loudly.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    format!("http://127.0.0.1:{port}")
}

fn tenure(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(arguments);
    for name in ["TENURE_URL", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    command.env("TENURE_URL", nobody()).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    tenure(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn wrong_usage_is_2_and_says_what_is_right() {
    for (arguments, part) in [
        (&[][..], "Usage"),
        (&["pusch"], "push"),
        (&["push"], "<QUEUE>"),
        (&["push", "q", "{"], "PAYLOAD is not JSON"),
        (&["push", "q", "text"], "a string needs its quotes"),
        (&["push", "q", "@/no/such/file"], "cannot read '/no/such/file'"),
        (&["push", "a/b", "1"], "contains '/'"),
        (&["push", "q", "1", "--delay", "5"], "500ms"),
        (&["push", "q", "1", "--at", "2026-12-01"], "2026-12-01T09:55:00Z"),
        (&["push", "q", "1", "--at", "2026-12-01T09:55:00Z", "--delay", "5s"], "cannot be used"),
        (&["push", "q", "1", "--priority", "101"], "-100..=100"),
        (&["push", "q", "1", "--need", "limit:"], "--need"),
        (&["push", "q", "1", "--until", "start"], "--unique"),
        (&["push", "q", "1", "--lines", "-"], "cannot be used"),
        (&["push", "q", "--lines", "-", "--kind", "k"], "--payloads"),
        (&["push", "--lines", "-", "--payloads"], "QUEUE"),
        (&["push", "--lines", "/no/such/file"], "cannot read"),
        (&["cancel"], "name ids, or a filter"),
        (&["retry"], "name ids, or a filter"),
        (&["cancel", "id", "--queue", "q"], "cannot be used"),
        (&["jobs", "--state", "done"], "succeeded"),
        (&["reschedule", "id"], "--at"),
        (&["limit", "set", "site:*", "--rate", "10"], "10/1s"),
        (&["limit", "set", "a*"], "limit"),
        (&["limit", "pause", "a"], "<--for <D>|--until <T>>"),
        (&["pool", "sync", "p", "/no/such/file.csv"], "cannot read"),
        (&["work", "q"], "CMD"),
        (&["work", "q", "--ttl", "500ms", "--", "true"], "1s to 1h"),
        (&["lock", "x", "--wait", "1s", "--no-wait", "--", "true"], "cannot be used"),
        (&["lock", "*", "--", "true"], "not '*'"),
        (&["lock", "x"], "CMD"),
        (&["lease", "--", "true"], "--need"),
        (&["--url", "ftp://host", "stats"], "\"ftp\" is unknown"),
        (&["--namespace", "A", "stats"], "namespace"),
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn without_a_server_every_command_is_69_and_says_what_to_do() {
    for arguments in [
        &["push", "q", "1"][..],
        &["jobs"],
        &["job", "key:a"],
        &["explain", "a"],
        &["cancel", "a"],
        &["cancel", "--queue", "q"],
        &["retry", "a", "b"],
        &["run-now", "a"],
        &["reschedule", "a", "--delay", "5s"],
        &["queue"],
        &["queue", "set", "q", "--needs", "limit:a", "--shares", "a=2", "--timeout", "none"],
        &["limit", "set", "a", "--burst", "2"],
        &["limit", "observe", "a", "3", "--for", "60s"],
        &["pool", "p"],
        &["pool", "ban", "p", "a", "b", "--reason", "captcha"],
        &["leases"],
        &["leases", "force", "x"],
        &["workers"],
        &["stats"],
        &["--json", "audit"],
        &["audit", "--deep"],
        &["lock", "x", "--", "true"],
        &["lock", "x", "-n", "3", "--", "true"],
        &["lease", "--need", "limit:a", "--", "true"],
        &["work", "q", "--until-empty", "--", "true"],
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 69, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("tenure: "), "{}", stderr(&output));
        assert!(stderr(&output).contains("\nhint: "), "{}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_name_that_is_also_a_verb_can_be_shown() {
    // That it asks the server says that it was not taken for `set` without a name.
    assert_eq!(code(&run(&["queue", "--", "set"])), 69);
    assert_eq!(code(&run(&["queue", "set"])), 2);
}

#[test]
fn lines_that_are_bad_are_told_with_their_numbers_before_anything_is_sent() {
    let mut child = tenure(&["push", "q", "--lines", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\n\n{\"x\":1}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 1);
    let said = stderr(&output);
    assert!(said.contains("tenure: line 1: ") && said.contains("tenure: line 3: "), "{said}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |at: usize| (answer[at]["line"].as_u64(), answer[at]["code"].as_str());
    assert_eq!(of(0), (Some(1), Some("bad_json")));
    assert_eq!(of(1), (Some(3), Some("unknown_field")));
}

#[test]
fn version_and_completions_need_no_server() {
    let output = run(&["version"]);
    assert_eq!((code(&output), output.stderr.len()), (0, 0));
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("tenure "));
    let version: serde_json::Value =
        serde_json::from_slice(&run(&["--json", "version"]).stdout).unwrap();
    assert_eq!(version["contract"], 1);
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert!(code(&output) == 0 && !output.stdout.is_empty(), "{shell}");
    }
}

#[test]
fn every_command_has_help_and_the_token_is_no_option() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.contains("Exit codes") && help.contains("TENURE_TOKEN"));
    assert!(!help.contains("--token"));
    for command in ["push", "work", "queue", "limit", "pool", "lock", "lease", "cancel", "jobs"] {
        let output = run(&[command, "--help"]);
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Example"), "{command}: {help}");
    }
}

#[test]
fn who_stops_reading_has_what_it_wanted() {
    let mut child = tenure(&["completions", "bash"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_address_with_a_password_is_never_shown() {
    let output = tenure(&["stats"]).env("TENURE_URL", "http://me:geheim@host").output().unwrap();
    assert_eq!(code(&output), 2);
    let help = tenure(&["--help"]).env("TENURE_URL", "redis://:geheim@host").output().unwrap();
    let said = stderr(&output) + &String::from_utf8(help.stdout).unwrap();
    assert!(!said.contains("geheim"), "{said}");
}
