//! Events name the caller of a change, by the name of the token that it has shown.

use std::sync::Arc;

use serde_json::{Value, json};
use tenure_engine::{Embedded, Location, Options};
use tenure_server::{Config, Tokens};
use tenure_testkit::TempDir;

use crate::scopes::{ROOT, call, listed, token, tokens};
use crate::wire::Server;

fn known() -> Tokens {
    tokens(vec![listed("ann", |of| {
        of.scopes = ["view", "push", "operate", "admin"].map(str::to_owned).to_vec();
    })])
}

fn as_ann(server: &Server, method: &str, path: &str, body: &Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = call(server, &token("ann"), method, path, &body);
    assert!(answer.status < 300, "{method} {path}: {}", answer.text());
}

/// All events as an answer shows them, each by its type and, if it names a caller, that name.
fn events(read: &Value) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |event: &Value| (text(&event["type"]), event.get("by").map(text));
    read["items"].as_array().unwrap().iter().map(one).collect()
}

fn by(kind: &str, name: &str) -> (String, Option<String>) {
    (kind.to_owned(), (!name.is_empty()).then(|| name.to_owned()))
}

/// Changes by two tokens, and what their events say.
fn changes_name_their_caller(server: &Server) {
    let limit = json!({"concurrency": 1});
    as_ann(server, "PUT", "/v1/limits/site", &limit);
    as_ann(server, "PUT", "/v1/limits/site", &limit);
    call(server, ROOT, "PATCH", "/v1/limits/site", r#"{"concurrency": 2}"#).good();
    as_ann(
        server,
        "POST",
        "/v1/jobs",
        &json!([{"id": "a", "queue": "q"}, {"id": "b", "queue": "q"}]),
    );
    as_ann(server, "POST", "/v1/jobs/a/cancel", &Value::Null);
    as_ann(server, "POST", "/v1/jobs/delete", &json!({"queue": "q"}));
    let schedule = json!({"every": "1h", "job": {"queue": "other"}});
    as_ann(server, "PUT", "/v1/schedules/s", &schedule);
    // The second call is a repeat of the first, as a client makes it that lost the answer.
    for _ in 0..2 {
        as_ann(server, "POST", "/v1/schedules/s/run-now", &json!({"id": "now"}));
    }
    as_ann(server, "DELETE", "/v1/limits/site", &Value::Null);
    let answer = call(server, ROOT, "GET", "/v1/events?since=first", "");
    let text = answer.text();
    for secret in [ROOT, &token("ann")] {
        assert!(!text.contains(secret), "{text}");
    }
    let expected = [
        by("limit.changed", "ann"),
        // A token with all rights has no name of its own.
        by("limit.changed", ""),
        by("job.pushed", ""),
        by("job.pushed", ""),
        by("job.cancelled", "ann"),
        by("job.deleted", "ann"),
        by("job.deleted", "ann"),
        by("schedule.changed", "ann"),
        by("job.pushed", "ann"),
        by("limit.deleted", "ann"),
    ];
    assert_eq!(events(&answer.good()), expected);
}

#[test]
fn a_change_by_a_token_names_it_in_its_event() {
    let folder = TempDir::new();
    let engine = Embedded::open(Options::new(Location::Folder(folder.join("store"))));
    changes_name_their_caller(&Server::on(Arc::new(engine.unwrap()), known()));
}

#[test]
fn a_forwarded_change_names_the_token_that_the_first_server_knows() {
    changes_name_their_caller(&Server::two(known(), known(), Config::default()));
}

#[test]
fn an_event_of_an_open_server_names_nobody() {
    let two = || Server::two(Tokens::default(), Tokens::default(), Config::default());
    for server in [Server::start(), two()] {
        server.put("/v1/limits/site", r#"{"concurrency": 1}"#).good();
        server.post("/v1/queues/q/pause", "").good();
        let read = server.get("/v1/events?since=first").good();
        assert_eq!(events(&read), [by("limit.changed", ""), by("queue.paused", "")]);
    }
}
