//! The log of a server: its first lines, the lines that an operator needs, and one form throughout.

use serde_json::Value;
use tempfile::TempDir;
use tenure_testkit::tenure::done;

use crate::operating::{Server, serving, start, tenure, told};

fn server(home: &TempDir, more: &[&str]) -> Server {
    start(serving(home.path(), more))
}

#[test]
fn a_server_logs_its_store_and_limits_at_its_start() {
    let home = tempfile::tempdir().unwrap();
    let store = format!("file:{}/store", home.path().display());
    let more =
        ["--store", &store, "--log-format", "text", "--retain-bytes", "512MiB", "--patience", "7s"];
    let server = server(&home, &more);
    let line = server.line("tenure serves");
    for part in [
        "INFO tenure serves version=\"0.1.0\"",
        &format!("store={store:?}"),
        &format!("address={}", server.at),
        "token=\"none\"",
        "durability=\"always\"",
        "retain_bytes=\"512MiB\"",
        "events_bytes=\"16MiB\"",
        "drain_timeout=25s",
        "patience=\"7s\"",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(server.line("the store is read").contains("jobs=0 took_ms="));
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    for part in
        ["ending on a signal signal=\"SIGTERM\"", "draining", "granted=0", "stopped answered="]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn elsewhere_than_on_a_terminal_each_line_is_json() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home, &["--store", "memory:"]);
    server.line("tenure serves");
    assert!(server.exchange("GET /healthz", "").starts_with("HTTP/1.1 200 "));
    let (_, log) = server.stop();
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.len() > 3, "{log}");
    for (line, text) in lines.iter().zip(log.lines()) {
        assert!(text.starts_with("{\"timestamp\":"), "{text}");
        let field = |name: &str| line[name].as_str().unwrap_or_default();
        assert!(
            field("timestamp").ends_with('Z') && field("target").starts_with("tenure"),
            "{line}"
        );
        assert!(
            ["INFO", "WARN"].contains(&field("level")) && !field("message").is_empty(),
            "{line}"
        );
    }
    assert_eq!(lines[1]["version"], "0.1.0");
    // A server that cannot start says that in the same form.
    let (code, _, stderr_text) = told(&mut tenure(home.path(), &["serve", "--store", "ftp://x"]));
    let last: Value =
        serde_json::from_str(stderr_text.lines().last().unwrap()).expect(&stderr_text);
    assert_eq!(
        (code, &last["level"], &last["exit_code"]),
        (2, &"ERROR".into(), &2.into()),
        "{stderr_text}"
    );
}

#[test]
fn a_level_says_which_lines_there_are() {
    let home = tempfile::tempdir().unwrap();
    let quiet =
        server(&home, &["--store", "memory:", "--log-level", "error", "--log-format", "text"]);
    assert!(quiet.exchange("GET /healthz", "").starts_with("HTTP/1.1 200 "));
    let (_, log) = quiet.stop();
    assert_eq!(log.lines().count(), 1, "only where it listens: {log}");
    let loud = server(
        &home,
        &["--store", "memory:", "--log-level", "warn,tenure_server=debug", "--log-format", "text"],
    );
    let job = r#"{"queue":"mail","id":"first"}"#;
    loud.exchange("POST /v1/jobs", job);
    loud.exchange("POST /v1/jobs?x=1", job);
    loud.exchange("GET /v1/jobs/first", "");
    let line = loud.line("/v1/jobs/first");
    for part in [
        "DEBUG request",
        "method=\"GET\"",
        "route=\"/v1/jobs/{id}\"",
        "status=200",
        "took_us=",
        "bytes_out=",
        "peer=127.0.0.1",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let refused = loud.line("status=422");
    assert!(
        refused.contains(&format!("bytes_in={}", job.len())) && !refused.contains("x=1"),
        "{refused}"
    );
    let (_, log) = loud.stop();
    assert!(!log.contains("tenure serves"), "{log}");
}

#[test]
fn refused_tokens_are_counted_by_their_address() {
    let home = tempfile::tempdir().unwrap();
    let mut command = serving(home.path(), &["--store", "memory:", "--log-format", "text"]);
    command.env("TENURE_TOKEN", "right");
    let server = start(command);
    for _ in 0..20 {
        assert!(
            server
                .exchange("GET /v1/stats WITH Authorization: Bearer wrong-geheim", "")
                .starts_with("HTTP/1.1 401 ")
        );
    }
    let line = server.line("calls were refused");
    assert!(line.contains("WARN") && line.contains("peer=\"127.0.0.1\" times=1"), "{line}");
    let (_, log) = server.stop();
    assert_eq!(log.matches("calls were refused").count(), 1, "{log}");
    assert!(!log.contains("geheim"), "{log}");
    assert!(log.contains("token=\"from TENURE_TOKEN\""), "{log}");
}

#[test]
fn lost_leases_and_jobs_that_kill_their_workers_are_logged() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home, &["--store", "memory:", "--log-format", "text"]);
    server.exchange("POST /v1/jobs", r#"{"queue":"mail","id":"evil","retry":{"max_lost":1}}"#);
    server.exchange("POST /v1/jobs", r#"{"queue":"mail","id":"unlucky"}"#);
    let granted = server.exchange(
        "POST /v1/leases",
        r#"{"queues":["mail"],"max":2,"ttl":"1s","worker":"w","request_id":"r"}"#,
    );
    let body: Value =
        serde_json::from_str(granted.split_once("\r\n\r\n").unwrap().1).expect(&granted);
    let lease = body["leases"][0]["lease"].as_str().expect(&granted).to_owned();
    let poison = server.line("each of their workers was lost");
    assert!(poison.contains("WARN") && poison.contains("queue=\"mail\" job=\"evil\""), "{poison}");
    let lost = server.line("leases were lost");
    assert!(
        lost.contains("times=1 namespace=\"default\" queue=\"mail\" job=\"unlucky\""),
        "{lost}"
    );
    server.exchange("POST /v1/leases/extend", &format!(r#"{{"leases":["{lease}"]}}"#));
    assert!(server.line("leases that were over").contains("times=1"));
}

#[test]
fn a_gauge_that_fails_is_told_and_its_address_is_not() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home, &["--store", "memory:", "--log-format", "text"]);
    let url = server.url();
    let run = |arguments: &[&str]| done(tenure(home.path(), arguments).env("TENURE_URL", &url));
    let gauge =
        ["--gauge", "http://127.0.0.1:1/geheim", "--gauge-count", "/n", "--gauge-every", "1s"];
    run(&[&["limit", "set", "site", "--concurrency", "2"], &gauge[..]].concat());
    // A gauge is read while a job waits for its limit and a worker asks.
    run(&["push", "q", "--need", "limit:site"]);
    server.exchange(
        "POST /v1/leases",
        r#"{"queues":["q"],"max":1,"ttl":"30s","worker":"w","request_id":"g"}"#,
    );
    let line = server.line("a gauge cannot be read");
    assert!(
        line.contains("namespace=\"default\" limit=\"site\" why=\"could not connect"),
        "{line}"
    );
    let (_, log) = server.stop();
    assert!(!log.contains("geheim"), "{log}");
}
