//! Events over HTTP: pages, and streams of server-sent events.

use crate::wire::{Conn, Server, until};
use serde_json::{Value, json};

fn push(server: &Server, id: &str) {
    server.post("/v1/jobs", &json!({"id": id, "queue": "q"}).to_string()).good();
}

/// The position after the last event.
fn now(server: &Server) -> String {
    let read = server.get("/v1/events").good();
    assert_eq!((&read["items"], &read["gap"]), (&json!([]), &Value::Null));
    read["next"].as_str().unwrap().to_owned()
}

/// One block of a stream: its fields, by name.
#[derive(Debug, Default, PartialEq)]
struct Block {
    id: Option<String>,
    event: Option<String>,
    retry: Option<String>,
    data: Value,
}

/// A stream, read block by block.
struct Stream {
    conn: Conn,
    text: String,
}

impl Stream {
    fn open(server: &Server, path: &str, headers: &str) -> Stream {
        let mut conn = server.connect();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{headers}\r\n"
        );
        conn.send(head.as_bytes());
        let (status, headers) = conn.head();
        assert_eq!(status, 200, "{headers:?}");
        let kind = headers.iter().find(|(name, _)| name == "content-type").unwrap();
        assert_eq!(kind.1, "text/event-stream");
        Stream { conn, text: String::new() }
    }

    /// The next block; `None` when the stream has ended.
    fn next(&mut self) -> Option<Block> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let read = read(block);
                self.text = rest.to_owned();
                return Some(read);
            }
            self.text += std::str::from_utf8(&self.conn.chunk()?).unwrap();
        }
    }
}

fn read(block: &str) -> Block {
    let mut read = Block::default();
    for line in block.lines() {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        let value = value.to_owned();
        match name {
            "id" => read.id = Some(value),
            "event" => read.event = Some(value),
            "retry" => read.retry = Some(value),
            "data" => read.data = serde_json::from_str(&value).unwrap(),
            // A comment says that the stream is alive.
            ":" => {}
            other => panic!("{other:?} is no field of a server-sent event"),
        }
    }
    read
}

#[test]
fn a_page_is_read_from_a_place_and_goes_on_at_next() {
    let server = Server::start();
    let mark = now(&server);
    push(&server, "a");
    push(&server, "b");
    let page = server.get(&format!("/v1/events?since={mark}&max=1")).good();
    let event = &page["items"][0];
    let kinds: Vec<&String> = event.as_object().unwrap().keys().collect();
    assert_eq!(kinds, ["at", "flow", "id", "job", "queue", "schedule", "type"]);
    assert_eq!((&event["type"], &event["job"]), (&json!("job.pushed"), &json!("a")));
    assert_eq!((&event["flow"], &page["next"]), (&Value::Null, &event["id"]));
    let next = page["next"].as_str().unwrap();
    let rest = server.get(&format!("/v1/events?since={next}")).good();
    assert_eq!(
        (&rest["items"][0]["job"], rest["items"].as_array().unwrap().len()),
        (&json!("b"), 1)
    );
    // A filter that matches nothing still advances the reader.
    let none = server.get(&format!("/v1/events?since={mark}&type=flow.*")).good();
    assert_eq!((&none["items"], &none["next"]), (&json!([]), &rest["next"]));
    let gap = server.get("/v1/events?since=1-7").good();
    assert_eq!((&gap["gap"]["after"], &gap["gap"]["why"]), (&json!("1-7"), &json!("restarted")));
}

#[test]
fn a_stream_begins_with_its_place_and_goes_on_with_what_happens() {
    let server = Server::start();
    let mark = now(&server);
    let mut stream = Stream::open(&server, "/v1/events?type=job.pushed", "");
    let start = stream.next().unwrap();
    assert_eq!((start.event.as_deref(), start.retry.as_deref()), (Some("start"), Some("1000")));
    assert_eq!(start.data, json!({"next": mark}));
    for id in ["a", "b"] {
        push(&server, id);
        let block = stream.next().unwrap();
        assert_eq!((block.event.as_deref(), &block.data["job"]), (Some("job.pushed"), &json!(id)));
        assert_eq!(block.id.as_deref(), block.data["id"].as_str());
    }
}

#[test]
fn a_browser_that_comes_back_goes_on_after_its_last_event() {
    let server = Server::start();
    let mark = now(&server);
    for id in ["a", "b", "c"] {
        push(&server, id);
    }
    let all = server.get(&format!("/v1/events?since={mark}")).good();
    let last = all["items"][0]["id"].as_str().unwrap();
    // The header takes precedence over the query.
    let header = format!("Last-Event-ID: {last}\r\n");
    let mut stream = Stream::open(&server, "/v1/events?since=first", &header);
    assert_eq!(stream.next().unwrap().data, json!({"next": last}));
    assert_eq!(stream.next().unwrap().data, all["items"][1]);
    assert_eq!(stream.next().unwrap().data, all["items"][2]);
    let mut stream = Stream::open(&server, "/v1/events", "Last-Event-ID: 1-7\r\n");
    assert_eq!(stream.next().unwrap().event.as_deref(), Some("start"));
    let gap = stream.next().unwrap();
    assert_eq!((gap.event.as_deref(), &gap.data["why"]), (Some("gap"), &json!("restarted")));
    assert_eq!(stream.next().unwrap().data, all["items"][0]);
    let mut conn = server.connect();
    let headers = "Host: localhost\r\nAccept: text/event-stream\r\nLast-Event-ID: x\r\n";
    let refused = conn.ask_with("GET", "/v1/events", headers, b"");
    refused.refused(422, "invalid_field", Some("/header/last-event-id"));
}

#[test]
fn streams_end_when_the_server_drains() {
    let mut server = Server::start();
    push(&server, "a");
    let mut stream = Stream::open(&server, "/v1/events?since=first", "");
    assert!(stream.next().unwrap().event.is_some());
    assert_eq!(stream.next().unwrap().data["job"], "a");
    server.drain();
    assert_eq!(stream.next(), None);
}

#[test]
fn a_reader_that_takes_nothing_is_not_waited_for() {
    let server = Server::start();
    let mut conn = server.connect_narrow();
    let head = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    conn.send(head.as_bytes());
    conn.head();
    // Far more than a narrow connection holds.
    for n in 0..40 {
        let jobs: Vec<Value> =
            (0..100).map(|m| json!({"id": format!("j{n}-{m}"), "queue": "q"})).collect();
        server.post("/v1/jobs", &Value::from(jobs).to_string()).good();
    }
    let stats = server.get("/v1/stats").good();
    assert_eq!(stats["jobs"]["ready"], 4_000);
    drop(conn);
    until("others are answered", || {
        server.get("/v1/events?since=first&max=1").good()["items"] != json!([])
    });
}
