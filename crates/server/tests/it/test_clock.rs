//! A server whose time a test moves, over HTTP: work that becomes due when it moves, and the answers of other servers.

use std::time::{Duration, Instant};

use crate::wire::{Server, until};
use serde_json::{Value, json};

fn post(server: &Server, path: &str, body: Value) -> Value {
    server.post(path, &body.to_string()).good()
}

/// Advances the clock; returns the server's time then.
fn advance(server: &Server, by: &str) -> String {
    let answer = post(server, "/v1/test/clock", json!({"advance": by}));
    assert_eq!(answer, server.get("/v1/test/clock").good());
    answer["now"].as_str().unwrap().to_owned()
}

/// The ids of the jobs that are leased now.
fn leased(server: &Server, call: Value) -> Vec<String> {
    let answer = post(server, "/v1/leases", call);
    let leases = answer["leases"].as_array().unwrap().iter();
    leases.map(|lease| lease["job"]["id"].as_str().unwrap().to_owned()).collect()
}

fn jobs(server: &Server, queue: &str) -> Vec<Value> {
    let answer = server.get(&format!("/v1/jobs?queue={queue}&max=1000")).good();
    answer["items"].as_array().unwrap().clone()
}

#[test]
fn time_stands_still_until_it_is_moved() {
    let server = Server::with_test_clock();
    let start = "2027-01-01T00:00:00.000000Z";
    assert_eq!(server.get("/v1/test/clock").good(), json!({"now": start}));
    let pushed = post(&server, "/v1/jobs", json!({"id": "a", "queue": "q"}));
    assert_eq!(pushed["created_at"], start);
    assert_eq!(advance(&server, "0s"), start);
    assert_eq!(advance(&server, "1d500ms"), "2027-01-02T00:00:00.500000Z");
    let ready = server.get("/readyz").good();
    assert!(ready["detail"].as_str().unwrap().contains("until a test moves it"), "{ready}");
}

#[test]
fn a_delayed_job_is_leased_by_the_call_after_the_move() {
    let server = Server::with_test_clock();
    post(&server, "/v1/jobs", json!({"id": "later", "queue": "q", "delay": "5m"}));
    assert_eq!(leased(&server, json!({"queues": ["q"]})), [""; 0]);
    advance(&server, "4m59s");
    assert_eq!(leased(&server, json!({"queues": ["q"]})), [""; 0]);
    advance(&server, "1s");
    assert_eq!(leased(&server, json!({"queues": ["q"]})), ["later"]);
}

#[test]
fn a_call_that_waits_is_answered_by_a_move() {
    let server = Server::with_test_clock();
    let mail = json!({"id": "mail", "queue": "q", "expires_at": "2027-01-01T01:00:00Z"});
    post(&server, "/v1/jobs", mail);
    let mut waiting = server.connect();
    waiting.ask("GET", "/v1/jobs/mail/result?wait=20s", "");
    let waits = || server.get("/v1/stats").good()["result_waiters"] == 1;
    until("the call waits", waits);
    advance(&server, "1h");
    assert_eq!(waiting.answer().good()["state"], "cancelled");
}

#[test]
fn a_call_waits_by_real_time_too() {
    let server = Server::with_test_clock();
    let began = Instant::now();
    assert_eq!(leased(&server, json!({"queues": ["q"], "wait": "300ms"})), [""; 0]);
    assert!(began.elapsed() >= Duration::from_millis(300));
    post(&server, "/v1/jobs", json!({"id": "a", "queue": "q"}));
    let unfinished = server.get("/v1/jobs/a/result?wait=100ms").good();
    assert_eq!(unfinished["state"], "ready");
}

#[test]
fn a_lease_ends_when_its_ttl_has_passed_on_the_clock() {
    let server = Server::with_test_clock();
    post(&server, "/v1/jobs", json!({"id": "a", "queue": "q"}));
    let lease = post(&server, "/v1/leases", json!({"queues": ["q"], "ttl": "30s"}));
    let lease = &lease["leases"][0]["lease"];
    advance(&server, "29s");
    let extended = post(&server, "/v1/leases/extend", json!({"leases": [{"lease": lease}]}));
    assert_eq!(extended["lost"], json!([]), "{extended}");
    // One move, however long, is time that passed, and not time in which the engine processed no calls.
    advance(&server, "10m");
    let job = server.get("/v1/jobs/a").good();
    assert_eq!((&job["lost"], &job["attempt"]), (&json!(1), &json!(0)), "{job}");
    assert_eq!(leased(&server, json!({"queues": ["q"]})), ["a"]);
    let settle = json!({"settle": [{"lease": lease, "outcome": "succeeded"}]});
    let settled = post(&server, "/v1/leases/settle", settle);
    assert_eq!(settled["settled"][0]["code"], "lease_lost", "{settled}");
}

#[test]
fn a_schedule_makes_a_job_at_each_moment_that_passes() {
    let server = Server::with_test_clock();
    let hourly = json!({"cron": "0 * * * *", "overlap": "allow", "job": {"queue": "hourly"}});
    server.put("/v1/schedules/hourly", &hourly.to_string()).good();
    assert_eq!(advance(&server, "3h30m"), "2027-01-01T03:30:00.000000Z");
    let made: Vec<Value> =
        jobs(&server, "hourly").iter().rev().map(|job| job["created_at"].clone()).collect();
    assert_eq!(
        made,
        [
            "2027-01-01T01:00:00.000000Z",
            "2027-01-01T02:00:00.000000Z",
            "2027-01-01T03:00:00.000000Z"
        ]
    );
}

#[test]
fn a_schedule_skips_the_moments_at_which_its_job_still_runs() {
    let server = Server::with_test_clock();
    let hourly = json!({"cron": "0 * * * *", "overlap": "skip", "job": {"queue": "hourly"}});
    server.put("/v1/schedules/hourly", &hourly.to_string()).good();
    advance(&server, "3h30m");
    assert_eq!(jobs(&server, "hourly").len(), 1);
    assert_eq!(server.get("/v1/queues/hourly").good()["skipped"], 2);
}

#[test]
fn what_a_move_cannot_be_is_refused_and_moves_nothing() {
    let server = Server::with_test_clock();
    let no = |body: &str, code: &str, pointer| {
        server.post("/v1/test/clock", body).refused(422, code, pointer);
    };
    no("", "invalid_field", Some(""));
    no("{}", "invalid_field", Some("/advance"));
    no(r#"{"advance":300}"#, "invalid_field", Some("/advance"));
    no(r#"{"advance":"-5m"}"#, "invalid_field", Some("/advance"));
    no(r#"{"advance":"3651d"}"#, "out_of_bounds", Some("/advance"));
    no(r#"{"advance":"5m","to":"x"}"#, "unknown_field", Some("/to"));
    server.get("/v1/test/clock?x=1").refused(422, "unknown_field", Some("/query/x"));
    server.call("PUT", "/v1/test/clock", "{}").refused(405, "method_not_allowed", None);
    assert_eq!(server.get("/v1/test/clock").good()["now"], "2027-01-01T00:00:00.000000Z");
    // Fences end in the year 2255.
    for _ in 0..22 {
        advance(&server, "3650d");
    }
    no(r#"{"advance":"3650d"}"#, "out_of_bounds", Some("/advance"));
}

#[test]
fn other_servers_have_no_such_clock_and_no_document_names_it() {
    for server in [Server::start(), Server::with_test_clock()] {
        assert!(!server.get("/openapi.json").text().contains("/v1/test"));
    }
    let server = Server::start();
    server.get("/v1/test/clock").refused(404, "route_not_found", None);
    server.post("/v1/test/clock", r#"{"advance":"5m"}"#).refused(404, "route_not_found", None);
    server.call("PUT", "/v1/test/clock", "{}").refused(404, "route_not_found", None);
}
