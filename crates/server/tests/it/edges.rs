//! Unusual requests over HTTP: probes from other hosts, HEAD, encoded bodies, gauges, and a drain under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::wire::Server;
use serde_json::json;
use tenure_server::Config;

#[test]
fn probes_are_answered_under_any_host_and_under_none() {
    let server = Server::start();
    for path in ["/healthz", "/readyz"] {
        for head in [
            format!("GET {path} HTTP/1.1\r\nHost: tenure.internal:80\r\n\r\n"),
            format!("GET {path} HTTP/1.1\r\n\r\n"),
            format!("GET {path} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
            format!("GET {path} HTTP/1.0\r\n\r\n"),
            format!("GET http://10.0.0.7{path} HTTP/1.1\r\nHost: 10.0.0.7\r\n\r\n"),
            format!("HEAD {path} HTTP/1.0\r\n\r\n"),
            format!("GET {path}?at=1 HTTP/1.1\r\nTenure-Namespace: No such\r\n\r\n"),
        ] {
            let mut conn = server.connect();
            conn.send(head.as_bytes());
            assert_eq!(conn.head().0, 200, "{head}");
        }
    }
    // Other paths are refused.
    for path in ["/version", "/v1/stats", "/openapi.json", "/nothing"] {
        let mut conn = server.connect();
        conn.send(format!("GET {path} HTTP/1.1\r\nHost: tenure.internal\r\n\r\n").as_bytes());
        conn.answer().refused(403, "forbidden_origin", None);
    }
    // A probe from a page of another origin is refused, too.
    let mut conn = server.connect();
    conn.send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n");
    conn.answer().refused(403, "forbidden_origin", None);
    let ready = server.get("/readyz").good();
    assert!(ready["detail"].as_str().unwrap().contains(' '), "{ready}");
}

#[test]
fn head_answers_what_get_would_without_its_body() {
    let server = Server::start();
    server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    server.put("/v1/limits/l", r#"{"concurrency": 1}"#).good();
    for path in [
        "/healthz",
        "/readyz",
        "/version",
        "/openapi.json",
        "/v1/pools",
        "/v1/jobs",
        "/v1/jobs/a",
        "/v1/jobs/a/explain",
        "/v1/jobs/none",
        "/v1/limits/l",
        "/v1/queues?max=0",
        "/nothing",
    ] {
        let get = server.get(path);
        let mut conn = server.connect();
        conn.ask("HEAD", path, "");
        let (status, headers) = conn.head();
        assert_eq!(status, get.status, "{path}");
        let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        for name in ["content-type", "content-length", "cache-control"] {
            assert_eq!(header(name), get.header(name), "{path} {name}");
        }
        // The next answer begins where the head ended.
        assert_eq!(conn.call("GET", "/healthz", "").status, 200, "{path}");
    }
    // Calls that would wait or stream are answered at once.
    let began = Instant::now();
    for path in ["/v1/jobs/a/result?wait=60s", "/v1/events?wait=60s"] {
        let mut conn = server.connect();
        conn.ask("HEAD", path, "");
        assert_eq!(conn.head().0, 200, "{path}");
    }
    let mut conn = server.connect();
    conn.send(b"HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    let (status, headers) = conn.head();
    assert!(
        status == 200 && headers.contains(&("content-type".into(), "text/event-stream".into()))
    );
    assert!(began.elapsed() < Duration::from_secs(15));
    assert_eq!(conn.call("GET", "/healthz", "").status, 200);
    // A path without GET has no HEAD.
    let answer = server.call("PURGE", "/v1/jobs", "");
    assert_eq!(answer.header("allow"), Some("POST, GET, HEAD"));
    let mut conn = server.connect();
    conn.ask("HEAD", "/v1/leases/extend", "");
    assert_eq!(conn.head().0, 405);
}

#[test]
fn a_coded_body_is_refused_and_stores_nothing() {
    let server = Server::start();
    let before = server.state();
    for (header, status, code) in [
        ("Transfer-Encoding: gzip, chunked", 400, "bad_request"),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 400, "bad_request"),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip", 415, "unsupported_media_type"),
    ] {
        let mut conn = server.connect();
        conn.send(
            format!(
                "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 {header}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            )
            .as_bytes(),
        );
        conn.answer().refused(status, code, None);
    }
    assert_eq!(server.state(), before);
    let chunked = "Transfer-Encoding: Chunked\r\nContent-Encoding: identity";
    let mut conn = server.connect();
    conn.send(
        format!(
            "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             {chunked}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(conn.answer().status, 201);
}

#[test]
fn a_gauge_of_a_link_local_address_is_refused() {
    let server = Server::start();
    let gauge = json!({"url": "http://169.254.169.254/latest", "count": ["/n"]});
    let body = json!({"concurrency": 1, "gauge": gauge}).to_string();
    server.put("/v1/limits/l", &body).refused(422, "invalid_field", Some("/gauge/url"));
    server.put("/v1/limits/l", r#"{"concurrency": 1}"#).good();
    let body = json!({"gauge": {"scrapyd": "http://[fe80::1]:6800"}}).to_string();
    let no = server.call("PATCH", "/v1/limits/l", &body);
    no.refused(422, "invalid_field", Some("/gauge/scrapyd"));
}

#[test]
fn names_of_steps_in_a_path_are_refused_wherever_they_are_taken() {
    let server = Server::start();
    for (path, body, pointer) in [
        ("/v1/jobs", r#"{"queue": "."}"#, "/queue"),
        ("/v1/jobs", r#"{"needs": [{"limit": ".."}]}"#, "/needs/0/limit"),
        ("/v1/jobs", r#"{"needs": [{"pool": "."}]}"#, "/needs/0/pool"),
        ("/v1/leases", r#"{"queues": [".."]}"#, "/queues/0"),
    ] {
        server.post(path, body).refused(422, "invalid_field", Some(pointer));
    }
    for path in ["/v1/queues/.", "/v1/queues/%2e%2E", "/v1/limits/..", "/v1/pools/%2E"] {
        server.get(path).refused(422, "invalid_field", Some("/path/name"));
        server.put(path, r#"{}"#).refused(422, "invalid_field", Some("/path/name"));
    }
}

#[test]
fn an_id_twice_in_a_set_of_lines_changes_nothing() {
    let server = Server::start();
    server.put("/v1/pools/p/resources", r#"[{"id": "a", "tags": ["old"]}]"#).good();
    let before = server.get("/v1/pools/p/resources").good();
    let lines: String = (0..5_000).map(|n| format!("{{\"id\": \"r{n}\"}}\n")).collect();
    let body = format!("{lines}\n{{\"id\": \"r7\"}}\n");
    let mut conn = server.connect();
    let headers = "Host: localhost\r\nContent-Type: application/x-ndjson\r\n";
    let no = conn.ask_with("PUT", "/v1/pools/p/resources", headers, body.as_bytes());
    let no = no.refused(422, "invalid_field", Some("/id"));
    assert_eq!(no["line"], 5_002, "{no}");
    assert!(no["detail"].as_str().unwrap().contains("line 8 and line 5002"), "{no}");
    let no = server.put("/v1/pools/p/resources", r#"[{"id": "b"}, {"id": "b"}]"#);
    let no = no.refused(422, "invalid_field", Some("/1/id"));
    assert_eq!(no["index"], 1, "{no}");
    assert_eq!(server.get("/v1/pools/p/resources").good(), before);
}

#[test]
fn a_drain_ends_under_load_when_what_runs_is_answered() {
    let config = Config { drain_max: Duration::from_secs(60), ..Config::default() };
    let mut server = Server::with(None, config);
    let (answered, closed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let over = AtomicBool::new(false);
    let at = server.at;
    let took = std::thread::scope(|scope| {
        for n in 0..50 {
            let (answered, closed, over) = (&answered, &closed, &over);
            scope.spawn(move || {
                // Like a client: it keeps its connection, and opens another when that is closed.
                let mut conn = crate::wire::Conn::to(at).ok();
                for job in 0.. {
                    if over.load(Ordering::Acquire) {
                        return;
                    }
                    let Some(there) = &mut conn else {
                        std::thread::yield_now();
                        conn = crate::wire::Conn::to(at).ok();
                        continue;
                    };
                    let body = format!("{{\"id\": \"{n}-{job}\", \"queue\": \"q\"}}");
                    let Some(answer) = there.try_call("POST", "/v1/jobs", &body) else {
                        conn = None;
                        continue;
                    };
                    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
                    answered.fetch_add(1, Ordering::AcqRel);
                    if answer.header("connection") == Some("close") {
                        closed.fetch_add(1, Ordering::AcqRel);
                        conn = None;
                    }
                }
            });
        }
        crate::wire::until("all of them push", || answered.load(Ordering::Acquire) > 500);
        let began = Instant::now();
        server.drain();
        let report = server.ended();
        let took = began.elapsed();
        over.store(true, Ordering::Release);
        assert_eq!(report.cut, 0);
        took
    });
    assert!(closed.load(Ordering::Acquire) > 0, "answers told their connections to close");
    assert!(took < Duration::from_secs(15), "{took:?} of 60 s");
}
