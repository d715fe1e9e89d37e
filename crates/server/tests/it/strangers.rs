//! Bounds for callers that have shown no token, or whose token was removed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::wire::http2::Http2;
use crate::wire::{Conn, Server, until};
use tenure_core::secret::Secret;
use tenure_server::Config;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";

fn shown(token: &str) -> String {
    format!(
        "Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    )
}

/// From now on the server accepts the other token alone.
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
fn a_wait_ends_with_the_removal_of_its_token_and_gets_nothing() {
    let server = Server::with(Some(TOKEN), Config::default());
    let lease = r#"{"queues": ["q"], "wait": "30s", "worker": "ann"}"#;
    let mut waits = begin(&server, "POST", "/v1/leases", &shown(TOKEN), lease);
    let mut result = begin(&server, "GET", "/v1/events?since=first&wait=30s", &shown(TOKEN), "");
    let other = |method: &str, path: &str, body: &str| {
        server.connect().ask_with(method, path, &shown(OTHER), body.as_bytes())
    };
    // The queue counts the worker whose lease call waits.
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
    // No byte of an answer may be sent: each request stays under way.
    let stranger = Http2::clear(server.at, 0);
    let asked: Vec<_> = (0..64).map(|_| stranger.ask("GET", "/v1/jobs", &[], "")).collect();
    // Kept: a dropped answer is no longer under way.
    let held: Vec<_> = asked.into_iter().filter_map(|sent| stranger.try_head(sent)).collect();
    assert!(held.len() <= 17, "{} answered", held.len());
    // A caller with a token has as many as before, on a connection of its own.
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
    // Sixteen are accepted however small the budget is.
    let mut silent: Vec<Conn> = (0..24).map(|_| server.connect()).collect();
    for _ in 0..8 {
        let answer = server.connect().ask_with("GET", "/healthz", &shown(TOKEN), b"");
        assert_eq!(answer.status, 200);
    }
    until("the first of them are closed", || silent.iter_mut().take(8).all(Conn::was_closed));
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const IS_ANSWER: u8 = 1;

fn frame(kind: u8, flags: u8, stream: u8, carries: &[u8]) -> Vec<u8> {
    let length = u8::try_from(carries.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], carries].concat()
}

/// A connection of HTTP/2, frame by frame.
struct Frames(TcpStream);

impl Frames {
    fn begin(server: &Server) -> Frames {
        let mut stream = TcpStream::connect(server.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).unwrap();
        Frames(stream)
    }

    /// Sends these bytes, and reads types and flags of frames until these are wanted or the
    /// connection ends.
    fn send(&mut self, bytes: &[u8], wanted: impl Fn(&[(u8, u8)]) -> bool) -> Vec<(u8, u8)> {
        let (mut writes, bytes) = (self.0.try_clone().unwrap(), bytes.to_vec());
        // The server may close the connection meanwhile.
        let writing = std::thread::spawn(move || drop(writes.write_all(&bytes)));
        let mut found = Vec::new();
        let mut head = [0; 9];
        while !wanted(&found) && self.0.read_exact(&mut head).is_ok() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            if self.0.read_exact(&mut vec![0; length]).is_err() {
                break;
            }
            found.push((head[3], head[4]));
        }
        writing.join().unwrap();
        found
    }
}

#[test]
fn a_flood_of_control_frames_is_answered_with_goaway() {
    let server = Server::with(Some(TOKEN), Config::default());
    let (ping, reset, window) = (frame(PING, 0, 0, &[7; 8]), frame(3, 0, 1, &[0; 4]), [0, 0, 0, 1]);
    // A request of a stranger, so that there is a stream to reset.
    let ask = frame(1, 5, 1, &[0x82, 0x84, 0x86, 0x41, 1, b'h']);
    for (what, flood) in [
        ("PING", ping.repeat(5_000)),
        ("SETTINGS", frame(SETTINGS, 0, 0, &[]).repeat(5_000)),
        ("PRIORITY", frame(2, 0, 1, &[0, 0, 0, 0, 9]).repeat(5_000)),
        ("WINDOW_UPDATE", frame(8, 0, 0, &window).repeat(5_000)),
        ("RST_STREAM", [ask, reset.repeat(5_000)].concat()),
    ] {
        let found = Frames::begin(&server).send(&flood, |_| false);
        let answers = found.iter().filter(|frame| frame.1 == IS_ANSWER && frame.0 != 1).count();
        assert!(answers < 4_000, "{what}: {answers} answered");
        assert!(found.iter().any(|frame| frame.0 == GOAWAY), "{what}: {found:?}");
    }
}

#[test]
fn a_caller_may_ask_often_whether_the_server_is_there() {
    let server = Server::with(Some(TOKEN), Config::default());
    let header = |index: &[u8], value: &str| {
        [index, &[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat()
    };
    // GET, http, and literals: the path, the authority and the token.
    let shows = format!("Bearer {TOKEN}");
    let head = [
        &[0x82, 0x86][..],
        &header(&[4], "/v1/stats"),
        &header(&[1], "localhost"),
        &header(&[0x0f, 8], &shows),
    ];
    let mut caller = Frames::begin(&server);
    let asked = caller.send(&frame(1, 5, 1, &head.concat()), |found| {
        // The end of its answer.
        found.iter().any(|(kind, flags)| *kind == 0 && flags & 1 == 1)
    });
    assert!(asked.iter().any(|frame| frame.0 == 1), "{asked:?}");
    let pongs =
        |found: &[(u8, u8)]| found.iter().filter(|frame| **frame == (PING, IS_ANSWER)).count();
    let found =
        caller.send(&frame(PING, 0, 0, &[7; 8]).repeat(1_000), |found| pongs(found) == 1_000);
    assert_eq!(pongs(&found), 1_000);
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
fn a_silent_connection_is_closed_before_one_that_was_used() {
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
