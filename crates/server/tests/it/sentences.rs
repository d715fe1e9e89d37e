//! Sentences for people are right for one thing and for many.

use crate::wire::Server;
use serde_json::{Value, json};

/// Pushes this many jobs to `queue`, each with these needs: `j0`, `j1`…
fn push(server: &Server, queue: &str, needs: &Value, n: usize) {
    let jobs: Vec<Value> =
        (0..n).map(|n| json!({"id": format!("j{n}"), "queue": queue, "needs": needs})).collect();
    server.post("/v1/jobs", &json!(jobs).to_string()).good();
}

fn lease(server: &Server, ask: Value) -> Value {
    server.post("/v1/leases", &ask.to_string()).good()
}

fn explain(server: &Server, job: &str) -> Value {
    server.get(&format!("/v1/jobs/{job}/explain")).good()
}

/// The details of the reasons of this kind.
fn why(server: &Server, job: &str, kind: &str) -> String {
    let explained = explain(server, job);
    let reasons = explained["reasons"].as_array().unwrap();
    let found = reasons.iter().find(|reason| reason["kind"] == kind);
    found.unwrap_or_else(|| panic!("{explained}"))["detail"].as_str().unwrap().to_owned()
}

fn refused(server: &Server, method: &str, path: &str, body: &str) -> String {
    server.call(method, path, body).json()["detail"].as_str().unwrap().to_owned()
}

/// Makes a sentence about one thing or about two.
type Says = fn(&Server, usize) -> String;

#[test]
fn what_is_counted_fits_its_number() {
    let table: [(&str, &str, &str, Says); 9] = [
        (
            "a queue with jobs",
            "queue \"q\" has 1 unfinished job",
            "queue \"q\" has 2 unfinished jobs",
            |server, n| {
                push(server, "q", &json!([]), n);
                refused(server, "DELETE", "/v1/queues/q", "")
            },
        ),
        (
            "a pool that is held",
            "1 resource of pool \"p\" is held",
            "2 resources of pool \"p\" are held",
            |server, n| {
                server.put("/v1/pools/p/resources", r#"[{"id": "a"}, {"id": "b"}]"#).good();
                lease(server, json!({"needs": [{"pool": "p", "count": n}]}));
                refused(server, "DELETE", "/v1/pools/p", "")
            },
        ),
        (
            "a set that retires most",
            "it would retire 1 of 1 resource",
            "it would retire 2 of 2 resources",
            |server, n| {
                let set: Vec<Value> = (0..n).map(|n| json!({"id": n.to_string()})).collect();
                server.put("/v1/pools/p/resources", &json!(set).to_string()).good();
                refused(server, "PUT", "/v1/pools/p/resources", r#"[{"id": "new"}]"#)
            },
        ),
        (
            "jobs that go first",
            "1 job of queue \"q\" goes first",
            "2 jobs of queue \"q\" go first",
            |server, n| {
                push(server, "q", &json!([]), n + 1);
                why(server, &format!("j{n}"), "behind")
            },
        ),
        (
            "workers that are busy",
            "the one worker that asks for queue \"q\" is busy: let it run more at once, or start \
             another",
            "all 2 workers that ask for queue \"q\" are busy: let them run more at once, or start \
             more",
            |server, n| {
                push(server, "q", &json!([]), n + 1);
                for worker in 0..n {
                    lease(server, json!({"queues": ["q"], "worker": format!("w{worker}")}));
                }
                why(server, &format!("j{n}"), "workers_full")
            },
        ),
        (
            "permits in use",
            "1 of 1 permit of \"l\" is in use",
            "2 of 2 permits of \"l\" are in use",
            |server, n| {
                let cap = json!({"concurrency": n});
                assert_eq!(server.put("/v1/limits/l", &cap.to_string()).status, 201);
                lease(server, json!({"needs": [{"limit": "l", "weight": n}]}));
                push(server, "q", &json!([{"limit": "l"}]), 1);
                lease(server, json!({"queues": ["q"]}));
                why(server, "j0", "limit")
            },
        ),
        (
            "permits that are taken outside",
            "1 permit of \"l\" is taken by work outside",
            "2 permits of \"l\" are taken by work outside",
            |server, n| {
                let cap = json!({"concurrency": n});
                assert_eq!(server.put("/v1/limits/l", &cap.to_string()).status, 201);
                let seen = json!({"external": n});
                server.post("/v1/limits/l/observe", &seen.to_string()).good();
                push(server, "q", &json!([{"limit": "l"}]), 1);
                lease(server, json!({"queues": ["q"]}));
                why(server, "j0", "external")
            },
        ),
        (
            "a weight beside what is in use",
            "1 of 2 permits of \"l\" is in use, and it needs 2",
            "2 of 3 permits of \"l\" are in use, and it needs 2",
            |server, n| {
                let cap = json!({"concurrency": n + 1});
                assert_eq!(server.put("/v1/limits/l", &cap.to_string()).status, 201);
                lease(server, json!({"needs": [{"limit": "l", "weight": n}]}));
                push(server, "q", &json!([{"limit": "l", "weight": 2}]), 1);
                lease(server, json!({"queues": ["q"]}));
                why(server, "j0", "limit")
            },
        ),
        (
            "reasons beside the first",
            "queue \"q\" is paused until it is resumed (and 1 more reason)",
            "queue \"q\" is paused until it is resumed (and 2 more reasons)",
            |server, n| {
                push(server, "q", &json!([]), n);
                server.post("/v1/queues/q/pause", "").good();
                let explained = explain(server, &format!("j{}", n - 1));
                explained["summary"].as_str().unwrap().to_owned()
            },
        ),
    ];
    for (what, one, two, says) in table {
        for (n, text) in [(1, one), (2, two)] {
            assert_eq!(says(&Server::start(), n), text, "{what}");
        }
    }
}

#[test]
fn a_summary_is_a_sentence_that_does_not_repeat_the_state() {
    let server = Server::start();
    push(&server, "q", &json!([]), 3);
    let leased = lease(&server, json!({"queues": ["q"], "worker": "w"}));
    let granted_at = leased["leases"][0]["granted_at"].as_str().unwrap();
    server.post("/v1/jobs/j1/cancel", "").good();
    let gone = json!({"id": "later", "delay": "1h", "queue": "q"});
    let run_at = server.post("/v1/jobs", &gone.to_string()).good()["run_at"].clone();
    for (job, state, summary) in [
        ("j0", "running", format!("\"w\" holds it since {granted_at}")),
        ("j1", "cancelled", "it is finished, and waits for nothing".to_owned()),
        ("later", "scheduled", format!("it may run at {}", run_at.as_str().unwrap())),
    ] {
        let explained = explain(&server, job);
        assert_eq!((&explained["state"], &explained["summary"]), (&json!(state), &json!(summary)));
    }
    // A worker that asks and holds nothing would take it.
    lease(&server, json!({"queues": ["r"], "worker": "v"}));
    server.post("/v1/jobs", r#"{"id": "next", "queue": "r"}"#).good();
    assert_eq!(explain(&server, "next")["summary"], "the next worker that asks gets it");
}
