//! A server on loopback that records its requests, and answers as a test decides. It knows nothing
//! of Tenure, only as much HTTP/1.1 as a client with `Content-Length` bodies needs.
// Each test program uses its own part; and a test may panic on a surprise.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{Remote, Secret, StoreUrl};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A request, as it was received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// The number of its connection, from 0.
    pub connection: usize,
}

/// The server's reaction to it.
pub enum Then {
    /// Status, further header lines (each with its line end), body.
    Answer(u16, &'static str, String),
    /// The connection is closed without an answer.
    Close,
    /// No answer, for as long as the client waits; [`Event::Gone`] reports when it goes away.
    Silence,
}

pub fn ok(body: &str) -> Then {
    Then::Answer(200, "", body.to_owned())
}

/// The events at the server, in order.
#[derive(Debug)]
pub enum Event {
    Request(Seen),
    /// The client closed its end of this connection.
    Gone(usize),
}

type Script = Arc<Mutex<dyn FnMut(&Seen) -> Then + Send>>;

pub struct Scripted {
    pub port: u16,
    accepts: tokio::task::AbortHandle,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Scripted {
    pub async fn start(script: impl FnMut(&Seen) -> Then + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, events) = mpsc::unbounded_channel();
        let script: Script = Arc::new(Mutex::new(script));
        let accepting = tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(serve(stream, connection, script.clone(), tell.clone()));
            }
        });
        Scripted { port, accepts: accepting.abort_handle(), events }
    }

    pub fn remote(&self) -> Remote {
        remote(self.port, None)
    }

    /// Accepts no more connections; those that were made go on.
    pub fn stop(&self) {
        self.accepts.abort();
    }

    /// The next event; panics after ten seconds.
    pub async fn next(&mut self) -> Event {
        timeout(Duration::from_secs(10), self.events.recv()).await.unwrap().unwrap()
    }

    pub async fn request(&mut self) -> Seen {
        loop {
            if let Event::Request(seen) = self.next().await {
                return seen;
            }
        }
    }
}

pub fn remote(port: u16, token: Option<&str>) -> Remote {
    let url = format!("http://127.0.0.1:{port}").parse();
    let Ok(StoreUrl::Server(url)) = url else { panic!("not a server") };
    Remote::open(&url, token.map(Secret::new).as_ref()).unwrap()
}

async fn serve(
    stream: TcpStream,
    connection: usize,
    script: Script,
    tell: mpsc::UnboundedSender<Event>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let Some(seen) = read(&mut stream, connection).await else {
            let _ = tell.send(Event::Gone(connection));
            return;
        };
        let then = (script.lock().unwrap())(&seen);
        let _ = tell.send(Event::Request(seen));
        match then {
            Then::Answer(status, headers, body) => {
                let text = format!(
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Then::Close => return,
            Then::Silence => {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                let _ = tell.send(Event::Gone(connection));
                return;
            }
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>, connection: usize) -> Option<Seen> {
    let mut first = String::new();
    if stream.read_line(&mut first).await.ok()? == 0 {
        return None;
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let line = first.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    Some(Seen { line, headers, body: String::from_utf8(body).unwrap(), connection })
}
