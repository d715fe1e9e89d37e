//! Calls to a server that does not lead the store: it forwards them to the leader.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::wire::http2::Http2;
use crate::wire::{Conn, PATIENCE, Server, until};
use serde_json::{Value, json};
use tenure::{ServerUrl, StoreUrl};
use tenure_core::secret::Secret;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::{Engine, LeaderAddress};
use tenure_server::{
    AskedSnapshot, AsksServers, Config, LeaderReport, Leadership, PeerGroup, ServerSays,
    ServingLeader, WritesSnapshots, WrittenSnapshot,
};
use tenure_testkit::TempDir;
use tenure_testkit::certificates::Authority;
use tenure_tls::{ServerFiles, ServerTls, Trust};
use tokio::sync::watch;

const SECRET: &str = "of-the-servers";
const TOKEN: &str = "s3cret-s3cret-s3cret-s3cret-s3cret";

fn url(text: &str) -> ServerUrl {
    match text.parse() {
        Ok(StoreUrl::Server(url)) => url,
        other => panic!("{other:?} is no server"),
    }
}

fn peer_group(server: u128, secret: &str) -> PeerGroup {
    PeerGroup { server, store: 7, secret: Secret::new(secret), trust: Trust::default() }
}

/// Notifies a server of the leader.
#[derive(Clone)]
struct Tells(watch::Sender<LeaderReport>);

impl Tells {
    fn new(serves: ServingLeader) -> (Self, watch::Receiver<LeaderReport>) {
        let (tells, standing) = watch::channel(LeaderReport { serves, served_at: None });
        (Tells(tells), standing)
    }
    fn now(&self, serves: ServingLeader) {
        self.0.send_modify(|standing| standing.serves = serves);
    }
    fn there(&self, at: SocketAddr, epoch: u64) {
        self.now(ServingLeader::Remote(LeaderAddress { url: url(&format!("http://{at}")), epoch }));
    }
    fn nobody(&self) {
        self.now(ServingLeader::None("its owner is gone".to_owned()));
    }
}

fn memory() -> Arc<Embedded> {
    Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap())
}

/// One server of a store.
struct Node {
    server: Server,
    tells: Tells,
}

impl Node {
    fn new(number: u128, engine: &Arc<Embedded>, serves: ServingLeader, config: Config) -> Self {
        Node::with(peer_group(number, SECRET), engine, serves, config, None)
    }
    fn with(
        peer_group: PeerGroup,
        engine: &Arc<Embedded>,
        serves: ServingLeader,
        config: Config,
        token: Option<&str>,
    ) -> Self {
        let (tells, standing) = Tells::new(serves);
        let leadership = Leadership::shared("redis", peer_group, standing);
        let server = Server::of_several(leadership, engine.clone(), token, config, None);
        Node { server, tells }
    }
}

fn here(engine: &Arc<Embedded>, epoch: u64) -> ServingLeader {
    let engine: Arc<dyn Engine> = engine.clone();
    ServingLeader::Local { engine, epoch }
}

fn there(owner: &Node, epoch: u64) -> ServingLeader {
    let url = url(&format!("http://{}", owner.server.at));
    ServingLeader::Remote(LeaderAddress { url, epoch })
}

/// A server that leads a store in memory, and one that forwards calls to it.
fn two(config: Config) -> (Node, Node) {
    let engine = memory();
    let owner = Node::new(1, &engine, here(&engine, 1), config);
    let other = Node::new(2, &engine, there(&owner, 1), config);
    (owner, other)
}

/// The reply of a scripted server to one call.
type Script = Box<dyn FnOnce(&mut TcpStream, String) + Send>;

/// A server that follows a script: each call gets the next entry, on a connection of its own.
fn scripted(scripts: Vec<Script>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for script in scripts {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut text = String::new();
            let mut piece = [0; 65_536];
            // A head, and a body of the length in the head.
            loop {
                let count = stream.read(&mut piece).unwrap_or(0);
                text += std::str::from_utf8(&piece[..count]).unwrap();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    if count == 0 {
                        break;
                    }
                    continue;
                };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if count == 0 || body.len() >= length.map_or(0, |n| n.parse().unwrap()) {
                    break;
                }
            }
            script(&mut stream, text);
        }
    });
    at
}

fn answers(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    let media = "application/problem+json";
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

#[test]
fn a_forwarded_call_is_answered_as_by_the_leader_and_names_it() {
    let (owner, other) = two(Config::default());
    let at = |answer: &crate::wire::Answer| answer.header("tenure-owner").map(str::to_owned);
    let pushed = other.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#);
    assert_eq!(pushed.status, 201, "{}", pushed.text());
    assert_eq!(at(&pushed), Some(format!("http://{}", owner.server.at)));
    assert_eq!(at(&owner.server.get("/v1/jobs/a")), None);
    for (method, path, body) in [
        ("GET", "/v1/jobs/a", ""),
        ("GET", "/v1/jobs?max=7&full=true", ""),
        ("GET", "/v1/jobs?max=0", ""),
        ("GET", "/v1/jobs?nonsense=1", ""),
        ("GET", "/v1/jobs/none", ""),
        ("GET", "/v1/limits/none", ""),
        ("POST", "/v1/jobs", "{"),
        ("POST", "/v1/jobs", r#"{"id":"x","queu":"q"}"#),
        ("POST", "/v1/jobs", r#"[{"id":"x"},{"id":7}]"#),
        ("DELETE", "/v1/jobs/none", ""),
        ("POST", "/v1/leases/extend", r#"{"leases":["none"]}"#),
        ("POST", "/v1/jobs/a/cancel", ""),
    ] {
        let (own, passed) =
            (owner.server.call(method, path, body), other.server.call(method, path, body));
        assert_eq!((own.status, own.text()), (passed.status, passed.text()), "{method} {path}");
        let media = |answer: &crate::wire::Answer| answer.header("content-type").map(str::to_owned);
        assert_eq!(media(&own), media(&passed));
    }
    // Calls about the server itself are not forwarded.
    for path in ["/healthz", "/version", "/openapi.json", "/readyz", "/nothing"] {
        assert_eq!(at(&other.server.get(path)), None, "{path}");
    }
    let ready = other.server.get("/readyz").good();
    assert_eq!(ready["status"], "ok");
    assert!(ready["detail"].as_str().unwrap().contains(&owner.server.at.to_string()), "{ready}");
    assert_eq!(other.server.call("DELETE", "/v1/jobs/a", "").status, 204);
    let mut head = other.server.connect();
    head.ask("HEAD", "/v1/stats", "");
    let (status, headers) = head.head();
    assert_eq!(status, 200, "{headers:?}");
    // The connection goes on: no body came.
    assert_eq!(head.call("GET", "/v1/stats", "").status, 200);
}

#[test]
fn the_first_server_checks_the_token_and_the_leader_the_secret() {
    let engine = memory();
    let config = Config { pass_on_max: Duration::from_millis(50), ..Config::default() };
    let owner =
        Node::with(peer_group(1, SECRET), &engine, here(&engine, 1), config, Some("of-the-owner"));
    let with =
        |secret| Node::with(peer_group(2, secret), &engine, there(&owner, 1), config, Some(TOKEN));
    let (other, stranger) = (with(SECRET), with("another"));
    let shown = |token: &str| format!("Host: any.example\r\nAuthorization: Bearer {token}\r\n");
    let get = |server: &Server, headers: &str| {
        server.connect().ask_with("GET", "/v1/stats", headers, b"")
    };
    assert_eq!(get(&other.server, &shown(TOKEN)).status, 200);
    get(&other.server, &shown("of-the-owner")).refused(401, "unauthorized", None);
    get(&other.server, "Host: any.example\r\n").refused(401, "unauthorized", None);
    // Servers with another secret are refused, and their callers see whose fault that is.
    let problem = get(&stranger.server, &shown(TOKEN)).refused(503, "store_unavailable", None);
    assert!(problem["detail"].as_str().unwrap().contains("secret"), "{problem}");
    // A mark alone is worth nothing, whatever token stands beside it.
    for token in ["of-the-owner", "another", ""] {
        let marked = format!("{}Tenure-From-Server: 02\r\n", shown(token));
        get(&owner.server, &marked).refused(401, "unauthorized", None);
    }
    let alone = Server::with(None, config);
    let marked = "Host: localhost\r\nTenure-From-Server: 02\r\n";
    get(&alone, marked).refused(401, "unauthorized", None);
}

/// An emptied Redis has another secret, which the servers learn one after another.
#[test]
fn servers_go_on_while_the_secret_of_their_store_changes() {
    let engine = memory();
    let config = Config { pass_on_max: Duration::from_millis(50), ..Config::default() };
    let knows = |server, secret| watch::Sender::new(Some(Arc::new(peer_group(server, secret))));
    let of_the_owner = knows(1, SECRET);
    let (_owner_tells, standing) = Tells::new(here(&engine, 1));
    let leadership = Leadership::joining("redis", of_the_owner.subscribe(), standing);
    let owner = Server::of_several(leadership, engine.clone(), None, config, None);
    let to = url(&format!("http://{}", owner.at));
    let of_the_other = knows(2, SECRET);
    let (_tells, standing) = Tells::new(ServingLeader::Remote(LeaderAddress { url: to, epoch: 1 }));
    let leadership = Leadership::joining("redis", of_the_other.subscribe(), standing);
    let other = Server::of_several(leadership, memory(), None, config, None);
    assert_eq!(other.get("/v1/stats").status, 200);
    // The leader learns it first, and still accepts the former one.
    of_the_owner.send_replace(Some(Arc::new(peer_group(1, "of an emptied Redis"))));
    owner.get("/healthz").good();
    assert_eq!(other.get("/v1/stats").status, 200);
    // The other one follows.
    of_the_other.send_replace(Some(Arc::new(peer_group(2, "of an emptied Redis"))));
    assert_eq!(other.get("/v1/stats").status, 200);
    assert_eq!(other.get("/readyz").status, 200);
    // A server that never learns it is refused, and tells the load balancer.
    of_the_other.send_replace(Some(Arc::new(peer_group(2, "of nobody"))));
    other.get("/v1/stats").refused(503, "store_unavailable", None);
    let ready = other.get("/readyz");
    assert_eq!(ready.status, 503, "{}", ready.text());
    assert!(ready.text().contains("does not take the secret of this server"), "{}", ready.text());
    of_the_other.send_replace(Some(Arc::new(peer_group(2, "of an emptied Redis"))));
    assert_eq!(other.get("/v1/stats").status, 200);
    assert_eq!(other.get("/readyz").status, 200);
}

#[test]
fn a_connection_header_changes_nothing_that_tenure_reads() {
    let (leader, other) = two(Config::default());
    let named = "Host: localhost\r\nTenure-Namespace: elsewhere\r\n";
    let listed = "Connection: Tenure-Namespace, Content-Type\r\nContent-Type: application/json\r\n";
    let headers = format!("{listed}{named}");
    let body = br#"{"id": "a", "queue": "q"}"#;
    assert_eq!(other.server.connect().ask_with("POST", "/v1/jobs", &headers, body).status, 201);
    assert_eq!(leader.server.get("/v1/jobs/a").status, 404);
    let found = leader.server.connect().ask_with("GET", "/v1/jobs/a", named, b"");
    assert_eq!(found.status, 200, "{}", found.text());
}

#[test]
fn a_head_of_many_headers_is_answered_alike_by_every_server() {
    let (leader, other) = two(Config::default());
    let named =
        "Host: localhost\r\nTenure-Namespace: elsewhere\r\nContent-Type: application/json\r\n";
    let body = br#"{"id": "a", "queue": "q"}"#;
    leader.server.connect().ask_with("POST", "/v1/jobs", named, body);
    for extra in [70, 90, 96, 120] {
        let many: String = (0..extra).map(|number| format!("X-{number}: 1\r\n")).collect();
        let headers = format!("{many}{named}");
        let at = |server: &Server| server.connect().ask_with("GET", "/v1/jobs/a", &headers, b"");
        let (led, forwarded) = (at(&leader.server), at(&other.server));
        assert_eq!(led.status, if extra == 120 { 431 } else { 200 }, "{extra}");
        assert_eq!(forwarded.status, led.status, "{extra}: {}", forwarded.text());
    }
}

#[test]
fn strangers_are_told_no_address_of_another_server() {
    let engine = memory();
    let leader = Node::new(1, &engine, here(&engine, 77), Config::default());
    let there = there(&leader, 77);
    let config = Config::default();
    let other = Node::with(peer_group(2, SECRET), &engine, there, config, Some(TOKEN));
    let address = leader.server.at.to_string();
    let told = other.server.get("/readyz");
    assert_eq!(told.status, 200);
    assert!(!told.text().contains(&address), "{}", told.text());
    assert!(told.text().contains("passes calls on"), "{}", told.text());
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let known = other.server.connect().ask_with("GET", "/readyz", &token, b"");
    assert!(known.text().contains(&address), "{}", known.text());
    other.tells.nobody();
    let told = other.server.get("/readyz");
    assert_eq!(told.status, 503);
    assert!(!told.text().contains("its owner is gone"), "{}", told.text());
    let known = other.server.connect().ask_with("GET", "/readyz", &token, b"");
    assert!(known.text().contains("its owner is gone"), "{}", known.text());
}

#[test]
fn a_call_has_one_hop() {
    let config = Config { pass_on_max: Duration::from_millis(200), ..Config::default() };
    let (owner, other) = two(config);
    // Each takes the other for the leader.
    owner.tells.there(other.server.at, 2);
    other.tells.there(owner.server.at, 2);
    let problem = other.server.get("/v1/stats").refused(503, "store_unavailable", None);
    assert!(
        problem["detail"].as_str().unwrap().contains(&owner.server.at.to_string()),
        "{problem}"
    );
    let marked =
        format!("Host: localhost\r\nTenure-From-Server: 09\r\nAuthorization: Bearer {SECRET}\r\n");
    let mut conn = other.server.connect();
    conn.ask_with("GET", "/v1/stats", &marked, b"").refused(503, "not_owner", None);
    other.tells.nobody();
    conn.ask_with("GET", "/v1/stats", &marked, b"").refused(503, "not_owner", None);
}

#[test]
fn lines_are_answered_as_they_come_and_keep_their_numbers() {
    let (owner, other) = two(Config::default());
    let mut conn = other.server.connect();
    conn.send(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    conn.send(&chunk("{\"id\":\"a\",\"queue\":\"q\"}\n\n{\"queue\":"));
    assert_eq!(conn.head().0, 200);
    // The first answer is here before the last job was sent.
    let mut text = String::from_utf8(conn.chunk().unwrap()).unwrap();
    let line = |text: &str| -> Value { serde_json::from_str(text.trim()).unwrap() };
    assert_eq!(line(&text)["id"], "a");
    conn.send(&chunk("\"q\"}\nnonsense\n{\"id\":\"b\"}"));
    conn.send(b"0\r\n\r\n");
    text.clear();
    while let Some(more) = conn.chunk() {
        text += std::str::from_utf8(&more).unwrap();
    }
    let lines: Vec<Value> = text.lines().map(line).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0]["id"].as_str().unwrap().starts_with("job_"), "{text}");
    let numbers: Vec<_> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!((numbers, &lines[1]["code"]), (vec![3, 4, 5], &json!("bad_json")));
    assert_eq!(owner.server.get("/v1/stats").good()["jobs"]["ready"], 3);
    // A set with an item on each line.
    let set: String = (0..2_000).map(|n| format!("{{\"id\":\"r{n}\"}}\n")).collect();
    let headers = "Host: localhost\r\nContent-Type: application/x-ndjson\r\n";
    let synced =
        other.server.connect().ask_with("PUT", "/v1/pools/p/resources", headers, set.as_bytes());
    assert_eq!(synced.good()["added"], 2_000);
}

#[test]
fn a_forwarded_wait_is_answered_unless_its_client_has_left() {
    let (owner, other) = two(Config::default());
    let ask = json!({"queues": ["q"], "wait": "60s", "worker": "w"}).to_string();
    let mut waits = other.server.connect();
    waits.ask("POST", "/v1/leases", &ask);
    let waiting = || owner.server.get("/v1/workers").text().contains("\"w\"");
    until("it waits at the owner", waiting);
    owner.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    assert_eq!(waits.answer().good()["leases"][0]["job"]["id"], "a");
    let mut missed = 0;
    for n in 0..10 {
        let (id, queue) = (format!("j{n}"), format!("q{n}"));
        let mut waits = other.server.connect();
        let ask = json!({"queues": [queue], "wait": "60s", "worker": "w"}).to_string();
        waits.ask("POST", "/v1/leases", &ask);
        until("it waits", || owner.server.get("/v1/workers").text().contains(&queue));
        drop(waits);
        other.server.post("/v1/jobs", &json!({"id": id, "queue": queue}).to_string()).good();
        let ask = json!({"queues": [queue], "wait": "10s"}).to_string();
        let leased = other.server.post("/v1/leases", &ask).good();
        let job = other.server.get(&format!("/v1/jobs/{id}")).good();
        assert_eq!((&job["attempt"], &job["lost"]), (&json!(1), &json!(0)));
        if leased["leases"][0]["job"]["id"] != id {
            // The grant was between the two servers when the client left: the job comes back after the ttl.
            assert_eq!(job["state"], "running", "{leased}");
            missed += 1;
        }
    }
    assert!(missed <= 3, "{missed} of 10 jobs were granted to clients that had left");
}

#[test]
fn the_leader_undoes_a_forwarded_grant_that_is_not_received() {
    const LARGE: u64 = 34;
    let config = Config { write_pause_max: Duration::from_millis(300), ..Config::default() };
    let (owner, other) = two(config);
    let payload = "x".repeat(200_000);
    for n in 0..LARGE {
        let job = json!({"id": format!("j{n}"), "queue": "q", "payload": payload});
        other.server.post("/v1/jobs", &job.to_string()).good();
    }
    let ready = || owner.server.get("/v1/stats").good()["jobs"]["ready"].as_u64().unwrap_or(0);
    let ask = json!({"queues": ["q"], "max": LARGE, "ttl": "1h"}).to_string();
    // The caller reads nothing, or goes away.
    for leaves in [false, true] {
        let mut caller = other.server.connect_narrow();
        caller.ask("POST", "/v1/leases", &ask);
        until("they are granted", || ready() == 0);
        if leaves {
            drop(caller);
        }
        until("they are undone", || ready() == LARGE);
    }
    let job = owner.server.get("/v1/jobs/j0").good();
    assert_eq!((&job["attempt"], &job["lost"], &job["errors"]), (&json!(0), &json!(0), &json!([])));
    let leased = other.server.post("/v1/leases", &ask).good();
    assert_eq!(leased["leases"].as_array().unwrap().len() as u64, LARGE);
}

#[test]
fn events_are_streamed_until_either_side_ends() {
    let (owner, mut other) = two(Config { quiet: Duration::from_millis(100), ..Config::default() });
    let open = |server: &Server| {
        let mut conn = server.connect();
        conn.send(
            b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
        );
        assert_eq!(conn.head().0, 200);
        conn
    };
    let until_says = |conn: &mut Conn, what: &str| {
        let mut seen = String::new();
        while !seen.contains(what) {
            seen += std::str::from_utf8(&conn.chunk().expect("the stream goes on")).unwrap();
        }
    };
    let ends = |mut conn: Conn| while conn.chunk().is_some() {};
    let mut first = open(&other.server);
    until_says(&mut first, "event: start");
    owner.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    until_says(&mut first, "event: job.pushed");
    // Another server leads the store: the caller comes back with its position.
    other.tells.there(owner.server.at, 2);
    ends(first);
    let mut second = open(&other.server);
    until_says(&mut second, "event: start");
    other.server.drain();
    ends(second);
    assert_eq!(other.server.ended().cut, 0);
}

#[test]
fn a_draining_server_does_not_wait_for_forwarded_waits() {
    let (owner, mut other) = two(Config { quiet: Duration::from_millis(100), ..Config::default() });
    owner.server.post("/v1/jobs", r#"{"id": "a", "queue": "none"}"#).good();
    let mut lease = other.server.connect();
    lease.ask("POST", "/v1/leases", r#"{"queues": ["q"], "wait": "60s", "worker": "w"}"#);
    let mut result = other.server.connect();
    result.ask("GET", "/v1/jobs/a/result?wait=60s", "");
    until("it waits", || owner.server.get("/v1/workers").text().contains("\"w\""));
    other.server.drain();
    assert_eq!(lease.answer().good()["leases"], json!([]));
    assert_eq!(result.answer().good()["state"], "ready");
    assert_eq!(other.server.ended().cut, 0);
    // The leader has noticed that nobody waits there.
    owner.server.post("/v1/jobs", r#"{"id": "b", "queue": "q"}"#).good();
    let leased = owner.server.post("/v1/leases", r#"{"queues": ["q"], "wait": "10s"}"#).good();
    assert_eq!(leased["leases"][0]["job"]["id"], "b");
}

fn takes_nobody(server: &Server) -> bool {
    TcpStream::connect(server.at).is_err()
}

#[test]
fn a_draining_follower_stops_listening_and_refuses_lease_calls() {
    let (leader, mut other) = two(Config { quiet: Duration::from_secs(1), ..Config::default() });
    leader.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    let mut open = [other.server.connect(), other.server.connect()];
    for conn in &mut open {
        conn.call("GET", "/v1/stats", "").good();
    }
    other.server.drain();
    until("its listener is closed", || takes_nobody(&other.server));
    let lease = r#"{"queues": ["q"], "worker": "w"}"#;
    open[0].call("POST", "/v1/leases", lease).refused(503, "draining", None);
    open[1].call("POST", "/v1/jobs", r#"{"id": "b", "queue": "q"}"#).good();
    assert_eq!(other.server.ended().cut, 0);
    assert_eq!(leader.server.live_leases(), 0);
}

#[test]
fn a_draining_leader_closes_its_listener_once_it_handed_over() {
    let mut leader = two(Config { quiet: Duration::from_secs(1), ..Config::default() }).0;
    let (engine, config) = (memory(), Config::default());
    let next = Node::new(3, &engine, here(&engine, 2), config);
    next.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    let lease = r#"{"queues": ["q"], "worker": "w"}"#;
    let mut open = [leader.server.connect(), leader.server.connect()];
    for conn in &mut open {
        conn.call("GET", "/v1/stats", "").good();
    }
    leader.server.drain();
    until("it drains", || leader.server.get("/readyz").status == 503);
    open[0].call("POST", "/v1/leases", lease).refused(503, "draining", None);
    leader.tells.there(next.server.at, 2);
    until("its listener is closed", || takes_nobody(&leader.server));
    open[1].call("POST", "/v1/leases", lease).refused(503, "draining", None);
    assert_eq!(leader.server.ended().cut, 0);
    assert_eq!(next.server.live_leases(), 0);
}

/// The only server of a store: no other one takes the store that it gives up.
#[test]
fn a_call_does_not_hold_up_the_end_of_the_last_server() {
    let mut leader = two(Config { quiet: Duration::from_millis(200), ..Config::default() }).0;
    let mut open = leader.server.connect();
    open.call("GET", "/v1/stats", "").good();
    leader.server.drain();
    until("it drains", || leader.server.get("/readyz").status == 503);
    leader.tells.nobody();
    let began = Instant::now();
    open.call("POST", "/v1/jobs", r#"{"queue": "q"}"#).refused(503, "store_unavailable", None);
    assert_eq!(leader.server.ended().cut, 0);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn steady_heartbeats_do_not_hold_up_the_end_of_a_follower() {
    let (leader, mut other) = two(Config { quiet: Duration::from_secs(1), ..Config::default() });
    leader.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    let leased = leader.server.post("/v1/leases", r#"{"queues": ["q"]}"#).good();
    let lease = leased["leases"][0]["lease"].as_str().unwrap().to_owned();
    let extend = json!({"leases": [lease]}).to_string();
    let client = Http2::clear(other.server.at, 65_535);
    assert_eq!(client.call("POST", "/v1/leases/extend", &extend).status, 200);
    let began = Instant::now();
    other.server.drain();
    let mut beats = 0;
    while !client.is_closed() && began.elapsed() < Duration::from_secs(8) {
        let sent = client.ask("POST", "/v1/leases/extend", &[], &extend);
        beats += usize::from(client.try_head(sent).is_some());
    }
    other.server.ended();
    assert!(beats > 0);
    assert!(began.elapsed() < Duration::from_secs(6), "{beats} beats, {:?}", began.elapsed());
}

#[test]
fn a_call_that_is_away_goes_to_the_next_owner_with_the_same_ids() {
    let (owner, other) = two(Config::default());
    // It takes the push, says nothing, and is then reported as fenced.
    let (taken, was_taken) = std::sync::mpsc::channel();
    let silent = scripted(vec![Box::new(move |stream, text| {
        taken.send(text).unwrap();
        let _ = stream.read(&mut [0]);
    })]);
    other.tells.there(silent, 2);
    let mut push = other.server.connect();
    push.ask("POST", "/v1/jobs", r#"{"queue":"q"}"#);
    let first = was_taken.recv_timeout(PATIENCE).unwrap();
    other.tells.there(owner.server.at, 3);
    let pushed = push.answer();
    assert_eq!(pushed.header("tenure-owner"), Some(format!("http://{}", owner.server.at).as_str()));
    let id = pushed.good()["id"].as_str().unwrap().to_owned();
    assert!(first.contains(&format!("\"id\":\"{id}\"")), "{first}");
    assert!(first.contains("tenure-from-server: 00000000000000000000000000000002\r\n"), "{first}");
}

#[test]
fn a_lease_call_goes_on_waiting_at_the_next_owner_or_here() {
    let (engine, config) = (memory(), Config::default());
    let old = memory();
    let owner = Node::new(1, &old, here(&old, 1), config);
    let next = Node::new(3, &engine, here(&engine, 2), config);
    let other = Node::new(2, &engine, there(&owner, 1), config);
    let waits = |queue: &str| {
        let mut waits = other.server.connect();
        let ask = json!({"queues": [queue], "wait": "60s", "worker": queue}).to_string();
        waits.ask("POST", "/v1/leases", &ask);
        waits
    };
    let mut first = waits("q1");
    until("it waits", || owner.server.get("/v1/workers").text().contains("q1"));
    other.tells.there(next.server.at, 2);
    until("it waits at the next", || next.server.get("/v1/workers").text().contains("q1"));
    next.server.post("/v1/jobs", r#"{"id": "a", "queue": "q1"}"#).good();
    assert_eq!(first.answer().good()["leases"][0]["job"]["id"], "a");
    // This server becomes the leader itself.
    let mut second = waits("q2");
    until("it waits", || next.server.get("/v1/workers").text().contains("q2"));
    other.tells.now(here(&old, 3));
    let own = || other.server.get("/v1/workers").text().contains("q2");
    until("it waits here", own);
    other.server.post("/v1/jobs", r#"{"id": "b", "queue": "q2"}"#).good();
    let answer = second.answer();
    assert_eq!(answer.header("tenure-owner"), None);
    assert_eq!(answer.good()["leases"][0]["job"]["id"], "b");
}

#[test]
fn a_lease_call_goes_on_waiting_when_its_owner_hands_over() {
    let config = Config { quiet: Duration::from_millis(100), ..Config::default() };
    let (old, engine) = (memory(), memory());
    let mut owner = Node::new(1, &old, here(&old, 1), config);
    let next = Node::new(3, &engine, here(&engine, 2), config);
    let other = Node::new(2, &engine, there(&owner, 1), config);
    let mut waits = other.server.connect();
    waits.ask("POST", "/v1/leases", r#"{"queues": ["q"], "wait": "60s", "worker": "w"}"#);
    until("it waits", || owner.server.get("/v1/workers").text().contains("\"w\""));
    owner.server.drain();
    old.drain();
    other.tells.there(next.server.at, 2);
    until("it waits at the next", || next.server.get("/v1/workers").text().contains("\"w\""));
    next.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    assert_eq!(waits.answer().good()["leases"][0]["job"]["id"], "a");
}

#[test]
fn a_call_waits_no_longer_in_all_than_it_asked_for() {
    let (owner, other) = two(Config::default());
    let (told, was_told) = std::sync::mpsc::channel();
    let deposed = scripted(vec![Box::new(move |_, text| told.send(text).unwrap())]);
    let (took, was_taken) = std::sync::mpsc::channel();
    let next = scripted(vec![Box::new(move |_, text| took.send(text).unwrap())]);
    other.tells.there(deposed, 2);
    let mut waits = other.server.connect();
    let ask = r#"{"queues": ["q"], "wait": "60s", "worker": "w"}"#;
    waits.ask("POST", "/v1/leases", ask);
    let first = was_told.recv_timeout(PATIENCE).unwrap();
    assert!(!first.contains("tenure-waited"), "{first}");
    // The server tries again a moment later, and says how long its caller has waited by then.
    let sent = Instant::now();
    until("the caller has waited", || sent.elapsed() > Duration::from_millis(20));
    other.tells.there(next, 3);
    let second = was_taken.recv_timeout(PATIENCE).unwrap();
    let waited = second.split_once("tenure-waited: ").unwrap().1.split_once('\r').unwrap().0;
    assert!((1..60_000).contains(&waited.parse::<u64>().unwrap()), "{second}");
    // A server counts that wait where another server reports it.
    let mark = format!(
        "content-type: application/json\r\nauthorization: Bearer {SECRET}\r\n\
         tenure-from-server: 00000000000000000000000000000002\r\ntenure-waited: 60000\r\n"
    );
    let leased = owner.server.connect().ask_with("POST", "/v1/leases", &mark, ask.as_bytes());
    assert_eq!(leased.good()["leases"], json!([]));
}

#[test]
fn what_an_owner_did_not_do_is_asked_of_the_next() {
    let (owner, other) = two(Config::default());
    let not_owner = json!({"code": "not_owner"}).to_string();
    let draining = json!({"code": "draining"}).to_string();
    for problem in [not_owner, draining] {
        let (told, was_told) = std::sync::mpsc::channel();
        let deposed = scripted(vec![Box::new(move |stream, _| {
            answers(stream, "503 No", &problem);
            told.send(()).unwrap();
        })]);
        other.tells.there(deposed, 2);
        let mut push = other.server.connect();
        push.ask("POST", "/v1/jobs/retry", r#"{"queue":"q"}"#);
        was_told.recv_timeout(PATIENCE).unwrap();
        other.tells.there(owner.server.at, 3);
        assert_eq!(push.answer().good()["done"], 0);
    }
    // A deletion that an earlier attempt may have done counts as done.
    owner.server.post("/v1/jobs", r#"{"id": "a", "queue": "q"}"#).good();
    let (took, was_taken) = std::sync::mpsc::channel();
    let dies = scripted(vec![Box::new(move |_, _| took.send(()).unwrap())]);
    other.tells.there(dies, 4);
    let mut delete = other.server.connect();
    delete.ask("DELETE", "/v1/jobs/a", "");
    was_taken.recv_timeout(PATIENCE).unwrap();
    assert_eq!(owner.server.call("DELETE", "/v1/jobs/a", "").status, 204);
    other.tells.there(owner.server.at, 5);
    assert_eq!(delete.answer().status, 204);
    other.server.call("DELETE", "/v1/jobs/a", "").refused(404, "job_not_found", None);
}

#[test]
fn an_unrepeatable_call_with_an_unknown_outcome_is_not_resent() {
    let (owner, other) = two(Config::default());
    let dies = scripted(vec![Box::new(|_, _| {})]);
    other.tells.there(dies, 2);
    let retry = other.server.post("/v1/jobs/retry", r#"{"queue":"q"}"#);
    retry.refused(503, "outcome_unknown", None);
    // Lines that have left cannot be sent again either.
    let dies = scripted(vec![Box::new(|_, _| {})]);
    other.tells.there(dies, 3);
    let headers = "Host: localhost\r\nContent-Type: application/x-ndjson\r\n";
    let mut conn = other.server.connect();
    conn.ask_with("POST", "/v1/jobs", headers, b"{}\n").refused(503, "outcome_unknown", None);
    // An unreachable server has taken none of them.
    let nowhere = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    other.tells.there(nowhere, 4);
    let mut conn = other.server.connect();
    let body = "{\"id\":\"a\"}\n";
    let head = format!("POST /v1/jobs HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    conn.send(head.as_bytes());
    conn.send(body.as_bytes());
    other.tells.there(owner.server.at, 5);
    assert_eq!(conn.answer().lines()[0]["id"], "a");
}

#[test]
fn lines_sent_without_a_leader_are_read_by_the_next_leader() {
    let nowhere = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let gone = LeaderAddress { url: url(&format!("http://{nowhere}")), epoch: 1 };
    for before in [ServingLeader::None("nobody is there".to_owned()), ServingLeader::Remote(gone)] {
        taken_up_by_who_serves_first(before);
    }
}

fn taken_up_by_who_serves_first(before: ServingLeader) {
    let engine = memory();
    let server = Node::new(1, &engine, before, Config::default());
    let headers = "Content-Type: application/x-ndjson\r\n";
    let body = "{\"id\":\"a\",\"queue\":\"q\"}\n";
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut conn = server.server.connect();
    conn.send(head.as_bytes());
    conn.send(body.as_bytes());
    let sent = Instant::now();
    until("the call waits", || sent.elapsed() > Duration::from_millis(50));
    server.tells.now(here(&engine, 2));
    assert_eq!(conn.answer().lines()[0]["id"], "a");
}

#[test]
fn a_set_in_lines_that_was_read_here_is_not_sent_without_them() {
    let (owner, other) = two(Config::default());
    let set = |server: &Server, path: &str, ids: &[&str]| {
        let lines: String = ids.iter().map(|id| format!("{{\"id\":\"{id}\"}}\n")).collect();
        let headers = "Host: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n";
        server.connect().ask_with("PUT", path, headers, lines.as_bytes())
    };
    let path = "/v1/pools/p/resources?force=true";
    for _ in 0..20 {
        assert_eq!(set(&owner.server, path, &["a", "b"]).status, 200);
        // The server believes that it serves, but its engine has ended.
        let ended = memory();
        ended.close();
        other.tells.now(here(&ended, 1));
        let (there, tells) = (owner.server.at, other.tells.clone());
        let moves = std::thread::spawn(move || tells.there(there, 2));
        let answer = set(&other.server, path, &["c"]);
        moves.join().unwrap();
        let listed = owner.server.get("/v1/pools/p/resources").good();
        let ids: Vec<&str> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap())
            .collect();
        match answer.status {
            200 => assert_eq!(ids, ["c"]),
            status => assert_eq!((status, ids), (503, vec!["a", "b"])),
        }
    }
}

#[test]
fn an_unreachable_leader_is_named_and_a_new_one_is_called() {
    let config = Config { pass_on_max: Duration::from_millis(300), ..Config::default() };
    let (owner, other) = two(config);
    let nowhere = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    other.tells.there(nowhere, 2);
    let began = Instant::now();
    let problem = other.server.get("/v1/stats").refused(503, "store_unavailable", None);
    assert!(began.elapsed() >= config.pass_on_max);
    assert!(
        problem["detail"].as_str().unwrap().contains(&format!("http://{nowhere}")),
        "{problem}"
    );
    other.tells.nobody();
    let problem = other.server.get("/v1/stats").refused(503, "store_unavailable", None);
    assert!(problem["detail"].as_str().unwrap().contains("its owner is gone"), "{problem}");
    assert_eq!(other.server.get("/readyz").status, 503);
    let config = Config::default();
    let patient =
        Node::new(4, &memory(), ServingLeader::None("its owner is gone".to_owned()), config);
    let mut waits = patient.server.connect();
    waits.ask("GET", "/v1/stats", "");
    patient.tells.there(owner.server.at, 3);
    assert_eq!(waits.answer().status, 200);
}

#[test]
fn an_owner_that_dies_in_the_middle_of_an_answer_is_seen_to() {
    let (_owner, other) = two(Config::default());
    for head in ["content-length: 100\r\n", "transfer-encoding: chunked\r\n"] {
        // If it died before the beginning was forwarded, the caller might get nothing at all.
        let (arrived, has_arrived) = std::sync::mpsc::channel();
        let dies = scripted(vec![Box::new(move |stream, _| {
            let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n5\r\nhello\r\n");
            stream.write_all(text.as_bytes()).unwrap();
            has_arrived.recv_timeout(PATIENCE).unwrap();
        })]);
        other.tells.there(dies, 2);
        let mut caller = TcpStream::connect(other.server.at).unwrap();
        caller.set_read_timeout(Some(PATIENCE)).unwrap();
        caller.write_all(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let (mut caller, mut text) = (BufReader::new(caller), String::new());
        while !text.ends_with("hello\r\n") && caller.read_line(&mut text).unwrap() > 0 {}
        arrived.send(()).unwrap();
        let _ = caller.read_to_string(&mut text);
        assert!(text.contains("hello"), "{text}");
        assert!(
            !text.contains("\r\n0\r\n"),
            "the caller must see that something is missing: {text}"
        );
    }
}

#[test]
fn calls_are_passed_on_over_tls() {
    let folder = TempDir::new();
    let authority = Authority::named("of this test");
    let files = authority.signs(&["127.0.0.1"]).write(folder.path(), "server");
    let ca = authority.write(folder.path(), "ca");
    let files = ServerFiles { certificate: files.certificate, key: files.key, client_ca: None };
    let (engine, config) =
        (memory(), Config { pass_on_max: Duration::from_millis(50), ..Config::default() });
    let (_tells, standing) = Tells::new(here(&engine, 1));
    let leadership = Leadership::shared("redis", peer_group(1, SECRET), standing);
    let tls = ServerTls::read(files).unwrap();
    let owner = Server::of_several(leadership, engine.clone(), None, config, Some(tls));
    let to = ServingLeader::Remote(LeaderAddress {
        url: url(&format!("https://{}", owner.at)),
        epoch: 1,
    });
    let trust = Trust { ca: Some(ca), identity: None };
    let trusting = PeerGroup { trust, ..peer_group(2, SECRET) };
    let other = Node::with(trusting, &engine, to.clone(), config, None);
    assert_eq!(other.server.post("/v1/jobs", "{}").status, 201);
    let doubting = Node::new(3, &engine, to, config);
    let problem = doubting.server.get("/v1/stats").refused(503, "store_unavailable", None);
    assert!(problem["detail"].as_str().unwrap().contains("https://"), "{problem}");
}

#[test]
fn a_server_says_to_others_whether_it_serves() {
    let (owner, other) = two(Config::default());
    owner.tells.0.send_modify(|standing| standing.served_at = Some(41));
    let runtime = crate::wire::http2::runtime();
    let ask = |secret: &str, at: SocketAddr, server: u128| {
        let asks = AsksServers::new(peer_group(9, secret));
        runtime.block_on(asks.ask(&url(&format!("http://{at}")), server, Duration::from_secs(5)))
    };
    let says = |serves, served_at| ServerSays::Says { serves, served_at };
    assert_eq!(ask(SECRET, owner.server.at, 1), says(true, Some(41)));
    assert_eq!(ask(SECRET, other.server.at, 2), says(false, None));
    // Another process of the store, and no process at all.
    assert_eq!(ask(SECRET, owner.server.at, 2), ServerSays::Refused);
    // Servers whose secrets differ for now: each of them is alive.
    assert_eq!(ask("another", owner.server.at, 1), ServerSays::Silent);
    assert_eq!(ask(SECRET, Server::start().at, 1), ServerSays::Silent);
    let nowhere = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    assert_eq!(ask(SECRET, nowhere, 1), ServerSays::Refused);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let asks = AsksServers::new(peer_group(9, SECRET));
    let to = url(&format!("http://{}", silent.local_addr().unwrap()));
    let word = runtime.block_on(asks.ask(&to, 1, Duration::from_millis(50)));
    assert_eq!(word, ServerSays::Silent);
    // A server that has just started does not know its store yet, but is not gone.
    let (tells, standing) =
        Tells::new(ServingLeader::None("this server has just started".to_owned()));
    let (known, engine) = (watch::Sender::new(None), memory());
    let leadership = Leadership::joining("redis", known.subscribe(), standing);
    let starts = Server::of_several(leadership, engine.clone(), None, Config::default(), None);
    let to = url(&format!("http://{}", starts.at));
    let word = runtime.block_on(asks.ask(&to, 3, Duration::from_millis(300)));
    assert_eq!(word, ServerSays::Silent);
    // It learns the store some ms later, and the question waits for that.
    let begun = Instant::now();
    let word = runtime.spawn(asks.ask(&to, 3, Duration::from_secs(5)));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!word.is_finished(), "it is not silent yet");
    tells.now(here(&engine, 1));
    known.send_replace(Some(Arc::new(peer_group(3, SECRET))));
    assert_eq!(runtime.block_on(word).unwrap(), says(true, None));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(ask(SECRET, starts.at, 3), says(true, None));
    // For anybody else these paths lead nowhere.
    owner.server.get("/v1/server").refused(404, "route_not_found", None);
    owner.server.post("/v1/server/undo", "[]").refused(404, "route_not_found", None);
}

/// Writes every snapshot that ends at an even entry. For one at an odd entry it waits until nobody waits for it.
#[derive(Default)]
struct WritesEven {
    given_up: AtomicUsize,
}

impl WritesSnapshots for WritesEven {
    fn write(
        &self,
        asked: &AskedSnapshot,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<WrittenSnapshot> {
        let number = asked.reached;
        if number.is_multiple_of(2) {
            return Some(written(number));
        }
        while goes_on() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.given_up.fetch_add(1, Ordering::SeqCst);
        None
    }
}

/// Numbers that a JSON reader would change if it took all for floats.
fn written(number: u64) -> WrittenSnapshot {
    WrittenSnapshot { number, checksum: u64::MAX - 1, pieces: 3, bytes: 1 << 60, sum: u64::MAX }
}

#[test]
fn a_server_writes_a_snapshot_for_another_while_that_one_waits() {
    let engine = memory();
    let (tells, standing) = Tells::new(here(&engine, 1));
    let writes = Arc::new(WritesEven::default());
    let leadership =
        Leadership::shared("redis", peer_group(1, SECRET), standing).writing(writes.clone());
    let config = Config::default();
    let server = Server::of_several(leadership, engine.clone(), None, config, None);
    let asked = |reached| AskedSnapshot {
        store: u128::MAX,
        owner: u128::MAX - 1,
        epoch: 1 << 50,
        run: "a-run".to_owned(),
        count: 2,
        reached,
    };
    let runtime = crate::wire::http2::runtime();
    let ask = |secret: &str, at: SocketAddr, reached: u64| {
        let asks = AsksServers::new(peer_group(9, secret));
        let to = url(&format!("http://{at}"));
        runtime.block_on(async move {
            let answer = asks.write_snapshot(&to, &asked(reached));
            tokio::time::timeout(Duration::from_millis(500), answer).await.ok()
        })
    };
    assert_eq!(ask(SECRET, server.at, 4), Some(Some(written(4))));
    assert_eq!(ask(SECRET, server.at, 5), None, "it writes on until the call is ended");
    until("it is told that nobody waits", || writes.given_up.load(Ordering::SeqCst) == 1);
    // Another secret, a server that keeps no rows, no server at all.
    let (owner, _other) = two(config);
    assert_eq!(ask("another", server.at, 4), Some(None));
    assert_eq!(ask(SECRET, owner.server.at, 4), Some(None));
    let nowhere = { TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    assert_eq!(ask(SECRET, nowhere, 4), Some(None));
    server.post("/v1/server/snapshot", "{}").refused(404, "route_not_found", None);
    drop(tells);
}

#[test]
fn lines_that_come_too_slowly_are_refused_after_those_that_came() {
    let config = Config { body_pause_max: Duration::from_millis(200), ..Config::default() };
    let server = Server::forwarding_server(None, config);
    let head = |line: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n{{\"id\":\"a\"}}\n{{\"id\":\"b\"}}\n{{"
        )
    };
    let mut conn = server.connect();
    conn.send(head("POST /v1/jobs").as_bytes());
    let lines = conn.answer().lines();
    let stored = |line: &Value| line["duplicate"] == false;
    assert!(lines.len() == 3 && stored(&lines[0]) && stored(&lines[1]), "{lines:?}");
    assert_eq!((&lines[2]["code"], &lines[2]["line"]), (&json!("request_timeout"), &json!(3)));
    // A part of a whole set changes nothing.
    let mut conn = server.connect();
    conn.send(head("PUT /v1/pools/p/resources").as_bytes());
    conn.answer().refused(408, "request_timeout", None);
    server.get("/v1/pools/p").refused(404, "pool_not_found", None);
}

#[test]
fn unread_forwarded_answers_use_up_the_budget_of_a_follower() {
    // The leader has room for all of them; this server has room for six.
    let engine = memory();
    let owner = Node::new(1, &engine, here(&engine, 1), Config::default());
    let config = Config { in_flight_bytes_max: 4 << 20, ..Config::default() };
    let other = Node::new(2, &engine, there(&owner, 1), config);
    let payload = "x".repeat(200_000);
    for _ in 0..40 {
        let job = json!({"queue": "big", "payload": payload});
        owner.server.post("/v1/jobs", &job.to_string()).good();
    }
    let mut unread = Vec::new();
    let no = loop {
        let mut conn = other.server.connect_narrow();
        conn.ask("GET", "/v1/jobs?full=true", "");
        let (status, headers) = conn.head();
        if status != 200 {
            break (status, headers);
        }
        unread.push(conn);
        assert!(unread.len() < 10, "nobody is refused");
    };
    assert_eq!((no.0, unread.len()), (503, 6), "{no:?}");
    // Small calls go on.
    assert_eq!(other.server.get("/v1/stats").status, 200);
    drop(unread);
    until("it is given back", || other.server.get("/v1/jobs?full=true").status == 200);
}

/// By hand: `cargo test -p tenure-server --test it forward -- --ignored --nocapture`.
#[test]
#[ignore = "measures, and says nothing about right or wrong"]
fn what_passing_on_adds() {
    const CALLS: usize = 4_000;
    let (owner, other) = two(Config::default());
    let p50 = |server: &Server, method: &str, path: &str, body: &str| {
        let mut conn = server.connect();
        let mut took: Vec<Duration> = (0..CALLS)
            .map(|_| {
                let began = Instant::now();
                assert!(conn.call(method, path, body).status < 300);
                began.elapsed()
            })
            .collect();
        took.sort_unstable();
        took[CALLS / 2].as_secs_f64() * 1_000.0
    };
    for (method, path, body) in [
        ("GET", "/v1/limits/lock:a", ""),
        ("POST", "/v1/jobs", r#"{"queue":"q"}"#),
        ("POST", "/v1/leases", r#"{"queues":["none"]}"#),
    ] {
        // In turns, so that a machine that is busy for a while slows both.
        for _ in 0..3 {
            let (own, passed) =
                (p50(&owner.server, method, path, body), p50(&other.server, method, path, body));
            println!(
                "{method} {path}: {own:.3} ms, passed on {passed:.3} ms, adds {:.3}",
                passed - own
            );
        }
    }
}
