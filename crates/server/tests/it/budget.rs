//! The memory of strangers and of callers that do not read is bounded: other callers do not miss
//! it.

use std::time::Duration;

use tenure_core::bounds::{BODY_BYTES_MAX, PAGE_BYTES_MAX};
use tenure_core::job::NewJob;
use tenure_core::names::QueueName;
use tenure_core::secret::Json;
use tenure_server::Config;

use crate::wire::{Conn, Server, until};

/// Jobs with payloads of this many bytes.
fn filled(server: &Server, queue: &str, jobs: usize, bytes: usize) {
    let payload = "x".repeat(bytes);
    for _ in 0..jobs {
        let body = format!(r#"{{"queue": "{queue}", "payload": "{payload}"}}"#);
        assert_eq!(server.post("/v1/jobs", &body).status, 201);
    }
}

const LIST: &str = "/v1/jobs?full=true&max=1000";

/// As many callers as the budget has room for, each with an unread answer of more than 7 MB.
fn unread(server: &Server) -> Vec<Conn> {
    filled(server, "big", 40, 250_000);
    let mut unread = Vec::new();
    loop {
        let mut conn = server.connect();
        conn.ask("GET", LIST, "");
        match conn.head().0 {
            200 => unread.push(conn),
            status => {
                assert_eq!(status, 503);
                assert!((1..10).contains(&unread.len()), "{}", unread.len());
                return unread;
            }
        }
    }
}

#[test]
fn a_call_that_takes_no_body_refuses_a_long_one_at_its_head() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let server = Server::with(Some(TOKEN), Config::default());
    for (method, path, headers) in [
        ("GET", "/healthz", ""),
        ("GET", "/readyz", ""),
        ("GET", "/v1/stats", "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"),
        ("DELETE", "/v1/jobs/x", "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"),
    ] {
        // Not one byte of the body is sent: a server that waited for it would wait for ever.
        let mut conn = server.connect();
        let length = BODY_BYTES_MAX - 1;
        conn.send(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            )
            .as_bytes(),
        );
        conn.answer().refused(413, "too_large", None);
        assert!(conn.is_closed(), "{path}");
        // Nor is a body of unknown length read.
        let mut conn = server.connect();
        conn.send(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\
                 Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            .as_bytes(),
        );
        conn.send(format!("{:x}\r\n{}\r\n", 4_000, " ".repeat(4_000)).as_bytes());
        conn.answer().refused(413, "too_large", None);
    }
    // `{}` is no body: some clients send it with every call.
    assert_eq!(server.call("GET", "/healthz", "{}").status, 200);
}

#[test]
fn a_stranger_is_answered_before_a_body_is_read() {
    let server = Server::with(Some("0123456789abcdef0123456789abcdef"), Config::default());
    for (headers, status, code) in [
        ("Host: localhost\r\n", 401, "unauthorized"),
        ("Host: localhost\r\nOrigin: http://else.where\r\n", 403, "forbidden_origin"),
        ("Host: localhost\r\nExpect: 100-continue\r\n", 401, "unauthorized"),
    ] {
        let mut conn = server.connect();
        conn.send(
            format!(
                "POST /v1/jobs HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
                 Content-Length: 1000\r\n\r\n"
            )
            .as_bytes(),
        );
        conn.answer().refused(status, code, None);
    }
}

#[test]
fn what_is_not_http_is_answered_with_a_problem() {
    let server = Server::start();
    for head in [
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        "\u{1}\r\n\r\n",
    ] {
        let mut conn = server.connect();
        conn.send(head.as_bytes());
        conn.answer().refused(400, "bad_request", None);
        assert!(conn.is_closed());
    }
}

#[test]
fn a_head_is_bounded() {
    let server = Server::start();
    let mut conn = server.connect();
    let long = "x".repeat(Config::default().head_bytes_max);
    conn.try_send(format!("GET /healthz HTTP/1.1\r\nX: {long}\r\nY: {long}").as_bytes());
    conn.answer().refused(431, "head_too_large", None);
}

#[test]
fn unread_answers_block_only_large_calls() {
    let config = Config { in_flight_bytes_max: 32 << 20, ..Config::default() };
    let server = Server::with(None, config);
    server.post("/v1/jobs", r#"{"queue": "small"}"#).good();
    let lease = server.post("/v1/leases", r#"{"queues": ["small"], "ttl": "1m"}"#).good();
    let lease = lease["leases"][0]["lease"].as_str().unwrap().to_owned();
    let unread = unread(&server);
    let no = server.get(LIST);
    no.refused(503, "overloaded", None);
    assert_eq!(no.header("connection"), Some("close"));
    // Heartbeats, settles and small calls go on.
    let body = format!(r#"{{"leases": ["{lease}"]}}"#);
    assert_eq!(server.post("/v1/leases/extend", &body).good()["lost"], serde_json::json!([]));
    let body = format!(r#"{{"settle": [{{"lease": "{lease}", "outcome": "succeeded"}}]}}"#);
    assert_eq!(server.post("/v1/leases/settle", &body).good()["settled"][0]["ok"], true);
    assert_eq!(server.get("/healthz").status, 200);
    // A body that does not fit is refused at its head.
    let mut conn = server.connect();
    conn.send(
        format!(
            "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {BODY_BYTES_MAX}\r\n\r\n"
        )
        .as_bytes(),
    );
    conn.answer().refused(503, "overloaded", None);
    // Their part of the budget returns when they go.
    drop(unread);
    until("the budget is given back", || server.get(LIST).status == 200);
}

#[test]
fn a_connection_that_never_reads_is_closed() {
    let config = Config {
        in_flight_bytes_max: 32 << 20,
        write_pause_max: Duration::from_secs(2),
        ..Config::default()
    };
    let server = Server::with(None, config);
    let _unread = unread(&server);
    until("they were let go", || server.get(LIST).status == 200);
}

#[test]
fn a_grant_that_does_not_fit_is_undone() {
    let config = Config { in_flight_bytes_max: 32 << 20, ..Config::default() };
    let server = Server::with(None, config);
    let mut waits = server.connect();
    waits.ask("POST", "/v1/leases", r#"{"queues": ["late"], "max": 20, "wait": "20s"}"#);
    let _unread = unread(&server);
    // Not over HTTP, where these would find no room either.
    let payload = Json::from("x".repeat(250_000).as_str());
    let late =
        || NewJob { payload: payload.clone(), ..NewJob::new(QueueName::parse("late").unwrap()) };
    server.push((0..20).map(|_| late()).collect());
    waits.answer().refused(503, "overloaded", None);
    until("it is undone", || server.live_leases() == 0);
}

#[test]
fn a_page_of_a_list_is_cut_by_its_bytes() {
    let server = Server::start();
    filled(&server, "big", 70, 250_000);
    let (mut seen, mut pages, mut next) = (0, 0, String::new());
    loop {
        let answer = server.get(&format!("/v1/jobs?full=true&max=1000{next}"));
        assert!(answer.body.len() < PAGE_BYTES_MAX, "{}", answer.body.len());
        let page = answer.good();
        seen += page["items"].as_array().unwrap().len();
        pages += 1;
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!((seen, pages), (70, 3));
}
