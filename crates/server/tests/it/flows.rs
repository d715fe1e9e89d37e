//! Jobs that wait for others, and flows, over HTTP: answers, refusals with their pointers, and calls that wait for the
//! end of a flow.

use std::time::{Duration, Instant};

use crate::wire::{Answer, Server, until};
use serde_json::{Value, json};
use tenure_server::Config;

/// A parent that waits for a worker, a child, a member of a flow, and a job that waits for that flow.
fn furnished() -> Server {
    let server = Server::start();
    let jobs = json!([
        {"id": "parent", "queue": "q", "unique": {"key": "k"}},
        {"id": "child", "queue": "r", "after": ["parent"], "flow": "f"},
        {"id": "mail", "queue": "mail", "after": [{"flow": "f"}], "on_parent_failure": "run"},
    ]);
    server.post("/v1/jobs", &jobs.to_string()).good();
    server
}

fn flow(server: &Server, name: &str) -> Value {
    server.get(&format!("/v1/flows/{name}")).good()
}

fn state(server: &Server, id: &str) -> String {
    server.get(&format!("/v1/jobs/{id}")).good()["state"].as_str().unwrap().to_owned()
}

/// Leases the next job of a queue and ends it.
fn run(server: &Server, queue: &str, outcome: Value) -> Value {
    let leased = server.post("/v1/leases", &json!({"queues": [queue]}).to_string()).good();
    let mut item = outcome;
    item["lease"] = leased["leases"][0]["lease"].clone();
    server.post("/v1/leases/settle", &json!({"settle": [item]}).to_string()).good()["settled"][0]
        .clone()
}

#[test]
fn a_job_shows_its_flow_and_its_parents() {
    let server = furnished();
    let child = server.get("/v1/jobs/child").good();
    let said = |job: &Value| {
        json!([
            job["state"],
            job["flow"],
            job["after"],
            job["parents"],
            job["waiting_on"],
            job["on_parent_failure"]
        ])
    };
    assert_eq!(said(&child), json!(["dependent", "f", ["parent"], 1, 1, "cancel"]));
    let mail = server.get("/v1/jobs/mail").good();
    assert_eq!(said(&mail), json!(["dependent", null, [{"flow": "f"}], 1, 1, "run"]));
    let parent = server.get("/v1/jobs/parent").good();
    assert_eq!(said(&parent), json!(["ready", null, [], 0, 0, "cancel"]));
    let listed = server.get("/v1/jobs?flow=f").good();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["items"][0]["id"], "child");
    let f = flow(&server, "f");
    assert_eq!(
        (&f["flow"], &f["state"], &f["cancelling"]),
        (&json!("f"), &json!("open"), &json!(false))
    );
    let counts = json!({"unfinished": 1, "succeeded": 0, "failed": 0, "cancelled": 0});
    assert_eq!((&f["counts"], &f["finished_at"]), (&counts, &Value::Null));
    assert_eq!(server.get("/v1/flows").good()["items"], json!([f]));
    assert_eq!(server.get("/v1/flows").good()["next"], Value::Null);
}

#[test]
fn parents_and_children_are_listed_with_their_ends() {
    let server = furnished();
    let parents = |query: &str| server.get(&format!("/v1/jobs/child/parents{query}")).good();
    let waits = json!({"id": "parent", "state": "ready", "error": null, "finished_at": null});
    assert_eq!(parents("")["items"], json!([waits]));
    let child = json!({"id": "child", "state": "dependent", "on_parent_failure": "cancel"});
    assert_eq!(server.get("/v1/jobs/key:k/children").good()["items"], json!([child]));
    run(&server, "q", json!({"outcome": "succeeded", "result": {"n": 1}}));
    let one = parents("")["items"][0].clone();
    assert_eq!((&one["state"], one.get("result")), (&json!("succeeded"), None));
    assert_eq!(parents("?full=true")["items"][0]["result"], json!({"n": 1}));
    assert_eq!(state(&server, "child"), "ready");
    run(&server, "r", json!({"outcome": "failed", "error": "x", "final": true}));
    let mail = server.get("/v1/jobs/mail/parents").good();
    let counts = json!({"unfinished": 0, "succeeded": 0, "failed": 1, "cancelled": 0});
    assert_eq!(mail["items"], json!([{"flow": "f", "counts": counts}]));
    assert_eq!(state(&server, "mail"), "ready", "it runs after any end");
    let gone = json!({"id": "g", "after": [{"job": "never", "gone": "done"}]});
    assert_eq!(server.post("/v1/jobs", &gone.to_string()).good()["state"], "ready");
    assert_eq!(server.get("/v1/jobs/g/parents").good()["items"][0]["state"], "gone");
}

#[test]
fn a_failure_cancels_and_its_retry_says_how_many() {
    let server = furnished();
    server.post("/v1/jobs", r#"{"id": "other", "after": ["parent"]}"#).good();
    run(&server, "q", json!({"outcome": "failed", "error": "x", "final": true}));
    for id in ["child", "other"] {
        let job = server.get(&format!("/v1/jobs/{id}")).good();
        assert_eq!((&job["state"], &job["error"]), (&json!("cancelled"), &json!("parent_failed")));
    }
    // A child of a failed parent exists, cancelled.
    let late = server.post("/v1/jobs", r#"{"id": "late", "after": ["parent"]}"#);
    assert_eq!((late.status, &late.json()["state"]), (201, &json!("cancelled")));
    let no = server.post("/v1/jobs/child/retry", "").refused(409, "wrong_state", None);
    assert_eq!(no["job"], "parent");
    let retried = server.post("/v1/jobs/parent/retry", "").good();
    assert_eq!((&retried["state"], &retried["cancelled_children"]), (&json!("ready"), &json!(2)));
    assert_eq!(server.get("/v1/jobs/parent").good().get("cancelled_children"), None);
}

#[test]
fn what_cannot_wait_is_refused_with_its_place() {
    let server = furnished();
    let state = || json!([server.state(), server.get("/v1/flows").good()]);
    let before = state();
    let settle = |push: Value| {
        let item = json!({"lease": "l", "outcome": "succeeded", "push": push});
        json!({"settle": [item]}).to_string()
    };
    let post = "POST /v1/jobs";
    let (field, unknown, bounds) = ("invalid_field", "unknown_field", "out_of_bounds");
    let rows: &[(&str, String, u16, &str, Option<&str>)] = &[
        (post, r#"{"after": ["nope"]}"#.into(), 422, "unknown_parent", Some("/after/0")),
        (
            post,
            r#"[{}, {"after": ["parent", "nope"]}]"#.into(),
            422,
            "unknown_parent",
            Some("/1/after/1"),
        ),
        (post, r#"{"after": ["key:nope"]}"#.into(), 422, "unknown_parent", Some("/after/0")),
        (post, r#"{"after": [{"flow": "nope"}]}"#.into(), 422, "unknown_parent", Some("/after/0")),
        (post, r#"{"after": [{"ref": "r"}]}"#.into(), 422, "unknown_parent", Some("/after/0")),
        (post, r#"[{"ref": "r"}, {"ref": "r"}]"#.into(), 422, field, Some("/1/ref")),
        (post, r#"{"id": "x", "after": ["x"]}"#.into(), 422, "cycle", Some("/after")),
        (
            post,
            r#"[{}, {"id": "x", "after": ["y"]}, {"id": "y", "after": ["x"]}]"#.into(),
            422,
            "cycle",
            Some("/1/after"),
        ),
        (post, r#"{"flow": "f", "after": [{"flow": "f"}]}"#.into(), 422, "cycle", Some("/after")),
        (post, r#"{"flow": "g", "after": [{"flow": "f"}]}"#.into(), 422, "cycle", Some("/flow")),
        (post, r#"{"flow": "g", "after": ["mail"]}"#.into(), 422, "cycle", Some("/flow")),
        (
            post,
            r#"{"after": [{"job": "a", "flow": "f"}]}"#.into(),
            422,
            "conflicting_fields",
            Some("/after/0/flow"),
        ),
        (
            post,
            r#"{"after": ["parent"], "unique": {"key": "u", "on_conflict": "replace"}}"#.into(),
            422,
            "conflicting_fields",
            Some("/after"),
        ),
        (post, r#"{"on_parent_failure": "stop"}"#.into(), 422, field, Some("/on_parent_failure")),
        (
            "POST /v1/leases/settle",
            settle(json!([{"after": 7}])),
            422,
            field,
            Some("/settle/0/push/0/after"),
        ),
        ("PATCH /v1/jobs/child", r#"{"after": []}"#.into(), 422, unknown, Some("/after")),
        ("PATCH /v1/jobs/child", r#"{"flow": "g"}"#.into(), 422, unknown, Some("/flow")),
        ("DELETE /v1/jobs/parent", String::new(), 409, "in_use", None),
        ("POST /v1/jobs/child/run-now", String::new(), 409, "wrong_state", None),
        ("GET /v1/jobs/nope/parents", String::new(), 404, "job_not_found", None),
        ("GET /v1/jobs/nope/children", String::new(), 404, "job_not_found", None),
        ("GET /v1/jobs/child/parents?full=1", String::new(), 422, field, Some("/query/full")),
        ("GET /v1/jobs/child/parents?cursor=x", String::new(), 422, field, Some("/query/cursor")),
        ("GET /v1/jobs/child/children?cursor=x", String::new(), 422, field, Some("/query/cursor")),
        ("GET /v1/jobs/child/children?full=true", String::new(), 422, unknown, Some("/query/full")),
        ("GET /v1/flows/nope", String::new(), 404, "flow_not_found", None),
        ("GET /v1/flows/nope?wait=5s", String::new(), 404, "flow_not_found", None),
        ("GET /v1/flows/f?wait=61s", String::new(), 422, bounds, Some("/query/wait")),
        ("GET /v1/flows/f?wait=5", String::new(), 422, field, Some("/query/wait")),
        ("GET /v1/flows/a%0A", String::new(), 422, field, Some("/path/flow")),
        ("GET /v1/flows?wait=5s", String::new(), 422, unknown, Some("/query/wait")),
        ("GET /v1/flows?max=0", String::new(), 422, bounds, Some("/query/max")),
        ("POST /v1/flows/nope/cancel", String::new(), 404, "flow_not_found", None),
        ("POST /v1/flows/f/cancel", r#"{"state": "ready"}"#.into(), 422, unknown, Some("/state")),
        ("DELETE /v1/flows/f", String::new(), 405, "method_not_allowed", None),
        ("GET /v1/jobs?flow=", String::new(), 422, field, Some("/query/flow")),
        ("POST /v1/jobs/cancel", r#"{"flow": 7}"#.into(), 422, field, Some("/flow")),
    ];
    for (line, body, status, code, pointer) in rows {
        let (method, path) = line.split_once(' ').unwrap();
        let answer = server.call(method, path, body);
        assert_eq!(answer.json()["code"], *code, "{line} {body}: {}", answer.text());
        answer.refused(*status, code, *pointer);
        assert_eq!(state(), before, "{line} {body}");
    }
    let no = server.call("DELETE", "/v1/jobs/parent", "").json();
    assert_eq!(no["job"], "child", "it names a job that waits");
}

fn lines(server: &Server, body: &[&str]) -> Answer {
    let headers = "Host: localhost\r\nContent-Type: application/x-ndjson\r\n";
    server.connect().ask_with("POST", "/v1/jobs", headers, body.join("\n").as_bytes())
}

#[test]
fn a_line_waits_for_earlier_lines_and_for_no_later_one() {
    let server = Server::start();
    let answer = lines(
        &server,
        &[
            r#"{"id": "early", "after": ["a"]}"#,
            r#"{"id": "a", "flow": "f"}"#,
            r#"{"id": "b", "after": ["a"]}"#,
            r#"{"ref": "r"}"#,
            r#"{"id": "u", "unique": {"key": "k"}}"#,
            r#"{"id": "c", "after": ["key:k", "u"]}"#,
            r#"{"id": "again", "unique": {"key": "k"}}"#,
            r#"{"id": "d", "after": ["again"]}"#,
            r#"{"id": "m", "after": [{"flow": "g"}]}"#,
            r#"{"id": "e", "flow": "g"}"#,
            r#"{"id": "n", "after": [{"flow": "g"}]}"#,
            r#"{"id": "self", "after": ["self"]}"#,
        ],
    );
    let said: Vec<String> = answer
        .lines()
        .iter()
        .map(|line| {
            let word = line["code"].as_str().or(line["id"].as_str()).unwrap();
            let place = line["pointer"].as_str().map_or(String::new(), |at| format!(" {at}"));
            format!("{} {word}{place}", line["line"])
        })
        .collect();
    let want = [
        "1 unknown_parent /after/0",
        "2 a",
        "3 b",
        "4 invalid_field /ref",
        "5 u",
        "6 c",
        "7 u",
        "8 unknown_parent /after/0",
        "9 unknown_parent /after/0",
        "10 e",
        "11 n",
        "12 cycle /after",
    ];
    assert_eq!(said, want);
    assert_eq!(state(&server, "c"), "dependent");
    assert_eq!(server.get("/v1/jobs/c").good()["parents"], 1, "two names of one job");
}

#[test]
fn a_flow_that_is_cancelled_is_answered_at_once_and_ends() {
    let server = furnished();
    let cancelled = server.post("/v1/flows/f/cancel", "").good();
    assert_eq!(cancelled["flow"], "f");
    until("it is finished", || flow(&server, "f")["state"] == "finished");
    assert_eq!(flow(&server, "f")["counts"]["cancelled"], 1);
    until("the mail goes", || state(&server, "mail") == "ready");
    let again = server.post("/v1/flows/f/cancel", "{}").good();
    assert_eq!((&again["state"], &again["cancelling"]), (&json!("finished"), &json!(false)));
}

#[test]
fn a_wait_for_a_flow_ends_with_the_flow_or_at_its_timeout() {
    let server = furnished();
    let begun = Instant::now();
    assert_eq!(server.get("/v1/flows/f?wait=50ms").good()["state"], "open");
    assert!(begun.elapsed() >= Duration::from_millis(50));
    let mut waits = server.connect();
    waits.ask("GET", "/v1/flows/f?wait=60s", "");
    run(&server, "q", json!({"outcome": "succeeded"}));
    run(&server, "r", json!({"outcome": "succeeded"}));
    let ended = waits.answer().good();
    assert_eq!((&ended["state"], &ended["counts"]["succeeded"]), (&json!("finished"), &json!(1)));
    assert_eq!(server.get("/v1/flows/f?wait=60s").good()["state"], "finished", "at once");
}

#[test]
fn a_draining_server_answers_waits_for_a_flow() {
    let config = Config { quiet: Duration::from_millis(300), ..Config::default() };
    let mut server = Server::with(None, config);
    server.post("/v1/jobs", r#"{"id": "a", "flow": "f"}"#).good();
    let mut waits = server.connect();
    waits.ask("GET", "/v1/flows/f?wait=60s", "");
    // Its call is read before the drain's: only the server sees that it waits.
    until("it waits", || waiters(&server) == 1);
    server.drain();
    let answer = waits.answer();
    assert_eq!(answer.good()["state"], "open");
    assert_eq!(server.ended().cut, 0);
}

#[test]
fn a_client_that_leaves_while_waiting_for_a_flow_is_forgotten() {
    let server = furnished();
    let mut waits = server.connect();
    waits.ask("GET", "/v1/flows/f?wait=60s", "");
    until("it waits", || waiters(&server) == 1);
    drop(waits);
    until("it is forgotten", || waiters(&server) == 0);
}

/// Calls that wait for the end of a job or a flow.
fn waiters(server: &Server) -> u64 {
    server.get("/v1/stats").good()["result_waiters"].as_u64().unwrap()
}
