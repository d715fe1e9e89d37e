//! A proxy before a server: it compares each answer, and the body of each accepted call, with `/openapi.json`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::description::Description;
use crate::wire::Answer;

/// The calls of all connections that have ended.
#[derive(Default)]
pub struct Calls {
    /// Method and path, as the document has them, of each call with a good answer.
    pub answered: BTreeSet<String>,
    pub refused: usize,
    pub faults: BTreeSet<String>,
}

/// The bytes of a connection. They are compared when it has ended, which a test may do at any time.
struct Recording {
    asked: Mutex<Vec<u8>>,
    answered: Mutex<Vec<u8>>,
    into: Arc<Mutex<Calls>>,
}

/// A proxy on a new port, before this server.
pub async fn proxy(server: SocketAddr, into: Arc<Mutex<Calls>>) -> (JoinHandle<()>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let at = listener.local_addr().expect("it is bound");
    let proxy = tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(carry(client, server, into.clone()));
        }
    });
    (proxy, at)
}

async fn carry(client: TcpStream, server: SocketAddr, into: Arc<Mutex<Calls>>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let recording = Recording { asked: Mutex::default(), answered: Mutex::default(), into };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(from_client, to_server, &recording.asked) => {}
        () = copy(from_server, to_client, &recording.answered) => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    record: &Mutex<Vec<u8>>,
) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        record.lock().unwrap_or_else(PoisonError::into_inner).extend(&bytes[..read]);
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let bytes = |of: &Mutex<Vec<u8>>| std::mem::take(&mut *of.lock().unwrap());
        let (asked, answered) = (bytes(&self.asked), bytes(&self.answered));
        let answers = messages(&answered).into_iter();
        // A call whose answer never came has none to compare.
        let calls = messages(&asked).into_iter().zip(answers);
        let mut into = self.into.lock().unwrap_or_else(PoisonError::into_inner);
        calls.for_each(|(call, answer)| into.add(&call, answer));
    }
}

impl Calls {
    fn add(&mut self, call: &Message, answer: Message) {
        let description = Description::of_this_build();
        let [method, path] = [0, 1].map(|n| call.first.split(' ').nth(n).unwrap());
        let status = answer.first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer: {}", answer.first));
        let answer = Answer { status, headers: answer.headers, body: answer.body };
        self.faults.extend(description.faults_of_answer(method, path, &answer));
        if status >= 300 {
            self.refused += 1;
            return;
        }
        if let Ok(body) = serde_json::from_slice(&call.body) {
            self.faults.extend(description.faults_of_body(method, path, &body));
        }
        let route = description.route(method, path).unwrap_or_default();
        self.answered.insert(format!("{} {route}", method.to_lowercase()));
    }
}

/// A request or an answer.
struct Message {
    first: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// The whole messages at the start of these bytes.
fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut all = Vec::new();
    while let Some((message, rest)) = message(bytes) {
        bytes = rest;
        // A client that asks for it is told to go on before its answer.
        if !message.first.contains(" 100 ") {
            all.push(message);
        }
    }
    all
}

fn message(bytes: &[u8]) -> Option<(Message, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, mut rest) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 4..]);
    let mut lines = head.split("\r\n");
    let first = lines.next()?.to_owned();
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<(String, String)> = lines.map_while(pair).collect();
    let header = |name| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let mut body = Vec::new();
    if header("transfer-encoding").is_some() {
        loop {
            let end = rest.windows(2).position(|two| two == b"\r\n")?;
            let size = std::str::from_utf8(&rest[..end]).ok()?;
            let size = usize::from_str_radix(size, 16).ok()?;
            let chunk = rest.get(end + 2..end + 2 + size)?;
            body.extend(chunk);
            rest = rest.get(end + 4 + size..)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = header("content-length") {
        let (of_it, after) = rest.split_at_checked(length.parse().ok()?)?;
        (body, rest) = (of_it.to_vec(), after);
    }
    Some((Message { first, headers, body }, rest))
}
