//! What callers may hold who have shown no token, or whose token was removed.
#![allow(clippy::unwrap_used)]

mod wire;

use std::time::Duration;

use tenure_core::secret::Secret;
use tenure_server::Config;
use wire::http2::Http2;
use wire::{Conn, Server, until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";

fn shown(token: &str) -> String {
    format!(
        "Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    )
}

/// The server takes the other token alone from now on.
fn remove(server: &Server) {
    server.tokens.replace(vec![Secret::new(OTHER)]);
}

/// Sends a call and does not wait for its answer.
fn begin(server: &Server, method: &str, path: &str, headers: &str, body: &str) -> Conn {
    let mut conn = server.connect();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    conn.send(head.as_bytes());
    conn
}

#[test]
fn a_wait_ends_with_the_token_that_began_it_and_is_granted_nothing() {
    let server = Server::with(Some(TOKEN), Config::default());
    let lease = r#"{"queues": ["q"], "wait": "30s", "worker": "ann"}"#;
    let mut waits = begin(&server, "POST", "/v1/leases", &shown(TOKEN), lease);
    let mut result = begin(&server, "GET", "/v1/events?since=first&wait=30s", &shown(TOKEN), "");
    let other = |method: &str, path: &str, body: &str| {
        server.connect().ask_with(method, path, &shown(OTHER), body.as_bytes())
    };
    // Both wait: who asks for the queue is known.
    let asks = |token: &str| {
        let workers = server.connect().ask_with("GET", "/v1/queues/q", &shown(token), b"");
        workers.status == 200 && workers.json()["workers"] == 1
    };
    until("the lease call waits", || asks(TOKEN));
    remove(&server);
    waits.answer().refused(401, "unauthorized", None);
    result.answer().refused(401, "unauthorized", None);
    assert_eq!(other("POST", "/v1/jobs", r#"{"queue": "q"}"#).status, 201);
    assert_eq!(server.live_leases(), 0, "a job that comes later goes to nobody who lost his token");
}

#[test]
fn a_stream_of_events_ends_with_the_token_that_began_it() {
    let server = Server::with(Some(TOKEN), Config::default());
    let headers = format!("{}Accept: text/event-stream\r\n", shown(TOKEN));
    let mut stream = begin(&server, "GET", "/v1/events", &headers, "");
    assert_eq!(stream.head().0, 200);
    assert!(stream.chunk().is_some(), "it begins");
    remove(&server);
    while stream.chunk().is_some() {}
}

#[test]
fn a_token_that_stays_keeps_its_waits() {
    let server = Server::with(Some(TOKEN), Config::default());
    let lease = r#"{"queues": ["q"], "wait": "30s", "worker": "ann"}"#;
    let mut waits = begin(&server, "POST", "/v1/leases", &shown(TOKEN), lease);
    server.tokens.replace(vec![Secret::new(OTHER), Secret::new(TOKEN)]);
    let pushed = server.connect().ask_with("POST", "/v1/jobs", &shown(OTHER), br#"{"queue": "q"}"#);
    assert_eq!(pushed.status, 201);
    assert_eq!(waits.answer().good()["leases"].as_array().unwrap().len(), 1);
}

#[test]
fn a_stranger_has_few_requests_of_one_connection_under_way() {
    let server = Server::with(Some(TOKEN), Config::default());
    // Nothing of an answer may be sent: each stays under way.
    let stranger = Http2::clear(server.at, 0);
    let asked: Vec<_> = (0..64).map(|_| stranger.ask("GET", "/v1/jobs", &[], "")).collect();
    // Kept: an answer that is let go of is under way no longer.
    let held: Vec<_> = asked.into_iter().filter_map(|sent| stranger.try_head(sent)).collect();
    assert!(held.len() <= 17, "{} answered", held.len());
    // Who shows a token has as many as before, on a connection of its own.
    let bearer = format!("Bearer {TOKEN}");
    let caller = Http2::clear(server.at, 0);
    let headers = [("authorization", bearer.as_str())];
    let asked: Vec<_> = (0..64).map(|_| caller.ask("GET", "/v1/jobs", &headers, "")).collect();
    let held: Vec<_> = asked.into_iter().filter_map(|sent| caller.try_head(sent)).collect();
    assert_eq!(held.len(), 64, "also if all come at once on a new connection");
}

#[test]
fn a_caller_is_served_where_strangers_take_all_that_they_may() {
    let config =
        Config { in_flight_bytes_max: 64 * 1024, connections_max: 100, ..Config::default() };
    let server = Server::with(Some(TOKEN), config);
    let _silent: Vec<Conn> = (0..8).map(|_| server.connect()).collect();
    for _ in 0..8 {
        let answer = server.connect().ask_with("GET", "/healthz", &shown(TOKEN), b"");
        assert_eq!(answer.status, 200);
    }
}

#[test]
fn a_connection_that_says_nothing_makes_room_for_one_that_does() {
    let config = Config { connections_max: 4, ..Config::default() };
    let server = Server::with(Some(TOKEN), config);
    let mut silent: Vec<Conn> = (0..4).map(|_| server.connect()).collect();
    for _ in 0..8 {
        let answer = server.connect().ask_with("GET", "/v1/stats", &shown(TOKEN), b"");
        assert_eq!(answer.status, 200);
    }
    assert!(silent.iter_mut().any(Conn::was_closed));
}

#[test]
fn a_connection_that_asks_nothing_is_closed_sooner_than_one_that_asked() {
    let (head_max, idle_max) = (Duration::from_millis(200), Duration::from_secs(60));
    let server = Server::with(None, Config { head_max, idle_max, ..Config::default() });
    let mut asked = server.connect();
    assert_eq!(asked.call("GET", "/v1/stats", "").status, 200);
    let mut silent = server.connect();
    until("the silent one is closed", || silent.was_closed());
    assert_eq!(asked.call("GET", "/v1/stats", "").status, 200);
}

#[test]
fn strangers_of_one_address_are_bounded_and_callers_are_not() {
    let config = Config { strangers_per_address_max: 3, ..Config::default() };
    let server = Server::with(Some(TOKEN), config);
    let mut callers: Vec<Conn> = (0..6)
        .map(|_| {
            let mut conn = server.connect();
            assert_eq!(conn.ask_with("GET", "/v1/stats", &shown(TOKEN), b"").status, 200);
            conn
        })
        .collect();
    let mut strangers: Vec<Conn> = (0..6).map(|_| server.connect()).collect();
    until("three are closed", || {
        strangers.iter_mut().map(Conn::was_closed).filter(|closed| *closed).count() == 3
    });
    for caller in &mut callers {
        assert_eq!(caller.ask_with("GET", "/v1/stats", &shown(TOKEN), b"").status, 200);
    }
}
