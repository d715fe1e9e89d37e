//! Callers that go away, and servers that do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::wire::http2::{self, Http2};
use crate::wire::{Server, until};
use serde_json::json;
use tenure_server::Config;
use tenure_testkit::TempDir;
use tenure_testkit::certificates::Authority;
use tenure_tls::{HostName, ServerFiles, ServerTls, Tls};

fn job(server: &Server, id: &str) -> serde_json::Value {
    server.get(&format!("/v1/jobs/{id}")).good()
}

#[test]
fn a_job_waiter_that_leaves_gets_no_lease() {
    let server = Server::start();
    for n in 0..20 {
        let id = format!("j{n}");
        let queue = format!("q{n}");
        let mut waits = server.connect();
        let ask = json!({"queues": [queue], "wait": "60s", "worker": "w"}).to_string();
        waits.ask("POST", "/v1/leases", &ask);
        until("it waits", || server.get("/v1/workers").text().contains(&queue));
        drop(waits);
        server.post("/v1/jobs", &json!({"id": id, "queue": queue}).to_string()).good();
        // A caller that asks now gets it, within far less than a ttl.
        let ask = json!({"queues": [queue], "wait": "10s"}).to_string();
        let leased = server.post("/v1/leases", &ask).good();
        assert_eq!(leased["leases"][0]["job"]["id"], id, "{leased}");
        let job = job(&server, &id);
        assert_eq!((&job["attempt"], &job["lost"]), (&json!(1), &json!(0)));
    }
}

#[test]
fn a_waiting_call_is_answered_when_there_is_something() {
    let server = Server::start();
    let mut waits = server.connect();
    waits.ask("POST", "/v1/leases", r#"{"queues": ["q"], "wait": "60s", "worker": "w"}"#);
    until("it waits", || server.get("/v1/workers").text().contains("\"w\""));
    server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    assert_eq!(waits.answer().good()["leases"][0]["job"]["id"], "a");
}

#[test]
fn a_client_that_leaves_after_a_settle_loses_only_its_wait() {
    let server = Server::start();
    server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    let leased = server.post("/v1/leases", r#"{"queues": ["q"]}"#).good();
    let settle = json!([{"lease": leased["leases"][0]["lease"], "outcome": "succeeded"}]);
    let call = json!({"queues": ["q"], "wait": "60s", "worker": "w", "request_id": "r"});
    let mut waits = server.connect();
    let body = json!({"settle": settle, "lease": call}).to_string();
    waits.ask("POST", "/v1/leases/settle", &body);
    until("it waits", || server.get("/v1/workers").text().contains("\"w\""));
    assert_eq!(job(&server, "a")["state"], "succeeded");
    drop(waits);
    server.post("/v1/jobs", r#"{"id": "b", "queue": "q"}"#).good();
    let leased = server.post("/v1/leases", r#"{"queues": ["q"], "wait": "10s"}"#).good();
    assert_eq!(leased["leases"][0]["job"]["id"], "b", "{leased}");
    let job = job(&server, "b");
    assert_eq!((&job["attempt"], &job["lost"]), (&json!(1), &json!(0)));
}

#[test]
fn a_grant_after_a_settle_is_undone_and_the_settle_stands() {
    let server = large();
    server.post("/v1/jobs", r#"{"id": "a", "queue": "other"}"#).good();
    let leased = server.post("/v1/leases", r#"{"queues": ["other"]}"#).good();
    let settle = json!([{"lease": leased["leases"][0]["lease"], "outcome": "succeeded"}]);
    let call = json!({"queues": ["q"], "max": LARGE, "ttl": "1h", "request_id": "r"});
    let body = json!({"settle": settle, "lease": call}).to_string();
    let mut caller = server.connect_narrow();
    caller.ask("POST", "/v1/leases/settle", &body);
    until("they are granted", || is_ready(&server, 0));
    until("they are undone", || is_ready(&server, LARGE));
    drop(caller);
    assert_eq!(job(&server, "a")["state"], "succeeded");
    let again = server.post("/v1/leases/settle", &body).good();
    assert_eq!(again["settled"][0]["ok"], true);
    assert_eq!(again["leases"].as_array().unwrap().len() as u64, LARGE);
}

/// Jobs whose grant is one answer, larger than the buffers between a normal and a narrow socket.
const LARGE: u64 = 34;

/// A server that soon drops a caller that does not read, with [`LARGE`] jobs in `q`.
fn large() -> Server {
    let config = Config {
        write_pause_max: Duration::from_millis(300),
        quiet: Duration::from_millis(300),
        ..Config::default()
    };
    let server = Server::with(None, config);
    let payload = "x".repeat(200_000);
    for n in 0..LARGE {
        let job = json!({"id": format!("j{n}"), "queue": "q", "payload": payload});
        server.post("/v1/jobs", &job.to_string()).good();
    }
    server
}

fn of_state(server: &Server, state: &str) -> u64 {
    server.get("/v1/stats").good()["jobs"][state].as_u64().unwrap_or(0)
}

fn is_ready(server: &Server, n: u64) -> bool {
    of_state(server, "ready") == n
}

#[test]
fn a_grant_whose_answer_cannot_be_written_is_undone() {
    let server = large();
    let ask = json!({"queues": ["q"], "max": LARGE, "ttl": "1h", "request_id": "r"}).to_string();
    // They read nothing: some stay, some go away in the middle. All use one request id.
    for stays in [true, false, true, false] {
        let mut caller = server.connect_narrow();
        caller.ask("POST", "/v1/leases", &ask);
        until("they are granted", || is_ready(&server, 0));
        if stays {
            until("they are undone", || is_ready(&server, LARGE));
        }
        drop(caller);
        until("they are undone", || of_state(&server, "running") == 0);
        // A second `released` in a row would wait a second, so nothing was counted.
        assert_eq!((of_state(&server, "ready"), of_state(&server, "scheduled")), (LARGE, 0));
    }
    for n in [0, LARGE - 1] {
        let job = job(&server, &format!("j{n}"));
        assert_eq!((&job["attempt"], &job["lost"]), (&json!(0), &json!(0)), "it counts nowhere");
        assert_eq!(job["errors"], json!([]));
    }
    assert_eq!(server.get("/v1/leases").good()["items"], json!([]));
    // A caller that reads gets all of it at once, also under the id of the callers that did not.
    let leased = server.post("/v1/leases", &ask).good();
    let leases = leased["leases"].as_array().unwrap();
    assert_eq!(leases.len() as u64, LARGE);
    assert_eq!((&leases[0]["job"]["id"], &leases[0]["job"]["attempt"]), (&json!("j0"), &json!(1)));
}

#[test]
fn a_grant_that_a_repeat_of_the_call_read_is_not_undone() {
    let mut server = large();
    let ask = json!({"queues": ["q"], "max": LARGE, "ttl": "1h", "request_id": "r"}).to_string();
    let mut stuck = server.connect_narrow();
    stuck.ask("POST", "/v1/leases", &ask);
    until("they are granted", || is_ready(&server, 0));
    let leased = server.post("/v1/leases", &ask).good();
    drop(stuck);
    server.drain();
    server.ended();
    // Every connection is over now, so their grants are undone.
    let leases = leased["leases"].as_array().unwrap();
    assert_eq!(leases.len() as u64, LARGE);
    assert_eq!(server.live_leases(), LARGE);
}

#[test]
fn a_grant_that_was_read_stays() {
    let server = Server::start();
    server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    let mut conn = server.connect();
    let leased = conn.call("POST", "/v1/leases", r#"{"queues": ["q"]}"#).good();
    drop(conn);
    let lease = leased["leases"][0]["lease"].as_str().unwrap();
    // Gives the server time to see that the connection is over.
    until("it was seen", || server.get("/healthz").status == 200);
    let extended = server.post("/v1/leases/extend", &json!({"leases": [lease]}).to_string()).good();
    assert_eq!(extended["lost"], json!([]));
}

#[test]
fn a_draining_server_answers_its_job_waiters_and_ends() {
    let config = Config { quiet: Duration::from_millis(300), ..Config::default() };
    let mut server = Server::with(None, config);
    let mut idle = server.connect();
    assert_eq!(idle.call("GET", "/healthz", "").status, 200);
    let mut waits = server.connect();
    waits.ask("POST", "/v1/leases", r#"{"queues": ["q"], "wait": "60s", "worker": "w"}"#);
    until("it waits", || server.get("/v1/workers").text().contains("\"w\""));
    server.drain();
    let answer = waits.answer();
    assert_eq!(answer.good()["leases"], json!([]));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(waits.is_closed());
    // All other calls are answered as before.
    let asked = server.post("/v1/leases", r#"{"queues": ["q"]}"#);
    asked.refused(503, "draining", None);
    assert_eq!(server.post("/v1/jobs", r#"{"queue": "q"}"#).status, 201);
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["draining"]), (503, &json!(true)));
    assert_eq!(server.get("/healthz").status, 200);
    let report = server.ended();
    assert_eq!(report.cut, 0);
    assert!(report.answered >= 7);
    assert!(idle.is_closed());
    assert!(TcpStream::connect(server.at).is_err());
}

#[test]
fn a_client_that_polls_does_not_keep_a_draining_server_alive() {
    let config = Config {
        quiet: Duration::from_millis(200),
        drain_max: Duration::from_secs(600),
        ..Config::default()
    };
    let mut server = Server::with(None, config);
    let at = server.at;
    let looks = std::thread::spawn(move || {
        // Until nobody listens any more.
        while let Ok(mut stream) = TcpStream::connect(at) {
            let _ = stream.write_all(b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    server.drain();
    assert_eq!(server.ended().cut, 0);
    looks.join().unwrap();
}

#[test]
fn a_drain_does_not_wait_for_ever() {
    let config = Config {
        quiet: Duration::from_millis(200),
        drain_max: Duration::from_millis(500),
        ..Config::default()
    };
    let mut server = Server::with(None, config);
    // A request that never ends.
    let mut slow = server.connect();
    slow.send(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    server.drain();
    assert_eq!(server.ended().cut, 1);
    assert!(slow.is_closed());
}

#[test]
fn a_client_that_closes_its_side_counts_as_gone() {
    let server = Server::start();
    let mut stream = TcpStream::connect(server.at).unwrap();
    let body = r#"{"queues": ["q"], "wait": "60s", "worker": "w"}"#;
    let head = format!(
        "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    until("it waits", || server.get("/v1/workers").text().contains("\"w\""));
    stream.shutdown(Shutdown::Write).unwrap();
    stream.set_read_timeout(Some(crate::wire::PATIENCE)).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}

/// Bytes of an answer that may come before any of it is read.
const WINDOW: u32 = 64 * 1024;

#[test]
fn a_reset_http2_wait_gets_nothing_and_its_connection_stays() {
    let server = Server::start();
    let caller = Http2::clear(server.at, WINDOW);
    for n in 0..20 {
        let (id, queue) = (format!("j{n}"), format!("q{n}"));
        let ask = json!({"queues": [queue], "wait": "60s", "worker": "w"}).to_string();
        let waits = caller.ask("POST", "/v1/leases", &[], &ask);
        until("it waits", || caller.call("GET", "/v1/workers", "").text().contains(&queue));
        drop(waits);
        let job = json!({"id": id, "queue": queue}).to_string();
        caller.call("POST", "/v1/jobs", &job).good();
        let ask = json!({"queues": [queue], "wait": "10s"}).to_string();
        let leased = caller.call("POST", "/v1/leases", &ask).good();
        assert_eq!(leased["leases"][0]["job"]["id"], id, "{leased}");
        let job = caller.call("GET", &format!("/v1/jobs/{id}"), "").good();
        assert_eq!((&job["attempt"], &job["lost"]), (&json!(1), &json!(0)));
    }
}

#[test]
fn an_unread_http2_grant_is_undone_and_a_read_one_stays() {
    let server = large();
    let ask = json!({"queues": ["q"], "max": LARGE, "ttl": "1h", "request_id": "r"}).to_string();
    // They read nothing: some stay, some reset the call alone, or close the whole connection.
    for ends in ["stays", "resets", "leaves", "resets"] {
        let caller = Http2::clear(server.at, WINDOW);
        let head = caller.head(caller.ask("POST", "/v1/leases", &[], &ask));
        until("they are granted", || is_ready(&server, 0));
        match ends {
            "resets" => {
                drop(head);
                until("they are undone", || is_ready(&server, LARGE));
                assert_eq!(caller.call("GET", "/healthz", "").status, 200, "the connection stands");
            }
            "leaves" => drop((head, caller)),
            _ => {
                until("they are undone", || is_ready(&server, LARGE));
                until("the connection is closed", || caller.is_closed());
            }
        }
        until("they are undone", || of_state(&server, "running") == 0);
        assert_eq!((of_state(&server, "ready"), of_state(&server, "scheduled")), (LARGE, 0));
    }
    let job = job(&server, "j0");
    assert_eq!((&job["attempt"], &job["lost"], &job["errors"]), (&json!(0), &json!(0), &json!([])));
    // A caller that reads, even slowly, gets all of it, and keeps it when the connection is gone.
    let caller = Http2::clear(server.at, WINDOW);
    let leased = caller.call("POST", "/v1/leases", &ask).good();
    drop(caller);
    assert_eq!(leased["leases"].as_array().unwrap().len() as u64, LARGE);
    until("it was seen", || server.get("/healthz").status == 200);
    assert_eq!(server.live_leases(), LARGE);
}

#[test]
fn a_draining_server_answers_http2_waits_and_ends_streams() {
    let config = Config { quiet: Duration::from_millis(300), ..Config::default() };
    let mut server = Server::with(None, config);
    let caller = Http2::clear(server.at, WINDOW);
    let stream = [("accept", "text/event-stream")];
    let mut events = caller.head(caller.ask("GET", "/v1/events?wait=60s", &stream, ""));
    assert!(caller.piece(&mut events).unwrap().starts_with(b"retry: "));
    caller.call("POST", "/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    let mut seen = String::new();
    while !seen.contains("event: job.pushed") {
        let piece = caller.piece(&mut events).expect("the stream goes on");
        seen.push_str(std::str::from_utf8(&piece).unwrap());
    }
    let wait = r#"{"queues": ["other"], "wait": "60s", "worker": "w"}"#;
    let waits = caller.ask("POST", "/v1/leases", &[], wait);
    until("it waits", || caller.call("GET", "/v1/workers", "").text().contains("\"w\""));
    server.drain();
    assert_eq!(caller.answer(caller.head(waits)).good()["leases"], json!([]));
    while caller.piece(&mut events).is_some() {}
    drop(events);
    assert_eq!(server.ended().cut, 0);
    until("the connection is closed", || caller.is_closed());
}

#[test]
fn the_bounds_hold_over_http2() {
    let config = Config { idle_max: Duration::from_millis(300), ..Config::default() };
    let server = Server::with(None, config);
    let caller = Http2::clear(server.at, WINDOW);
    let head = caller.call("HEAD", "/openapi.json", "");
    let whole = caller.call("GET", "/openapi.json", "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(whole.body.len().to_string().as_str()));
    let long = format!("[\"{}\"]", "x".repeat(8 << 20));
    caller.call("POST", "/v1/jobs", &long).refused(413, "too_large", None);
    let push = r#"{"queue": "q"}"#;
    let evil = [("origin", "http://evil.example")];
    caller.call_with("POST", "/v1/jobs", &evil, push).refused(403, "forbidden_origin", None);
    let host = [("host", "evil.example")];
    caller.call_with("POST", "/v1/jobs", &host, push).refused(403, "forbidden_origin", None);
    let own = format!("http://{}", server.at);
    assert_eq!(caller.call_with("POST", "/v1/jobs", &[("origin", &own)], push).status, 201);
    let head = "x".repeat(64 * 1024);
    let sent = caller.ask("GET", "/healthz", &[("x-long", &head)], "");
    assert_eq!(caller.head(sent).status(), 431);
    assert_eq!(caller.call("GET", "/healthz", "").status, 200);
    until("an idle connection is closed", || caller.is_closed());
}

/// A certificate for 127.0.0.1, and its authority.
fn certificates(folder: &std::path::Path) -> (ServerFiles, std::path::PathBuf) {
    let authority = Authority::named("of this test");
    let files = authority.signs(&["127.0.0.1"]).write(folder, "server");
    let ca = authority.write(folder, "ca");
    let files = ServerFiles { certificate: files.certificate, key: files.key, client_ca: None };
    (files, ca)
}

#[test]
fn tls_negotiates_http2_and_a_bad_handshake_holds_no_connection() {
    let folder = TempDir::new();
    let (files, ca) = certificates(folder.path());
    let config =
        Config { head_max: Duration::from_millis(300), connections_max: 1, ..Config::default() };
    let server = Server::with_tls(ServerTls::read(files).unwrap(), config);
    for protocols in [&[b"h2".as_slice(), b"http/1.1"][..], &[b"http/1.1"], &[]] {
        let tls = Tls::new(Some(&ca), protocols).unwrap();
        let runtime = http2::runtime();
        let stream = runtime.block_on(async {
            let tcp = tokio::net::TcpStream::connect(server.at).await.unwrap();
            tls.connect(HostName::parse("127.0.0.1").unwrap(), tcp).await.unwrap()
        });
        let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        assert_eq!(chosen.as_deref(), protocols.first().copied());
        if chosen.as_deref() == Some(b"h2") {
            let caller = Http2::over(runtime, stream, server.at, "https", WINDOW);
            assert_eq!(caller.call("GET", "/v1/stats", "").good()["leases"], 0);
        }
    }
    // The only place is taken by a silent caller, by half of a handshake, or by other bytes.
    let mut silent = server.connect();
    until("it is let go", || silent.is_closed());
    let mut half = server.connect();
    half.send(&[0x16, 3, 1, 2]);
    until("it is let go", || half.is_closed());
    let clear = server.get("/healthz");
    let problem = clear.refused(400, "bad_request", None);
    assert!(problem["hint"].as_str().unwrap().contains("https://"), "{problem}");
    let mut noise = server.connect();
    noise.send(&[0x16, 3, 1, 0, 5, 9, 9, 9, 9, 9]);
    until("it is let go", || noise.is_closed());
}
