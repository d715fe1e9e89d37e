//! Keeps HTTP/1.1 connections, and sends one request on one of them: the answer is read whole for the remote engine, or
//! streamed for a server that forwards calls.
//!
//! It knows no operation. It must distinguish "never sent" from "sent, no answer", since a call of the second kind may
//! have happened; and a caller that goes away must close its connection, since the server learns it by that.
//!
//! It has a pool of its own, because connections must stay with the runtime that drives them: the keeper's heartbeats
//! must not use a connection whose driver sits on a runtime that user code blocks. The pool of the HTTP library shares
//! them between all.

use std::collections::HashMap;
use std::error::Error;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HeaderMap, HeaderName, RETRY_AFTER};
use hyper::http::response::Parts;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tenure_core::requests::Effect;
use tenure_tls::{HostName, Tls, advice, refusal};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Id};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::url::ServerUrl;

/// The header by which a server that forwarded a call names the leader of its store.
pub const OWNER: HeaderName = HeaderName::from_static("tenure-owner");

/// A connection attempt that takes longer has failed.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// An older idle connection is not reused: a proxy or firewall between may have dropped it.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Idle connections kept per runtime.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// Why a request got no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// It never left: nothing happened.
    NotSent(String),
    /// It left, and no whole answer came back: it may have happened.
    Lost {
        /// The error of the connection.
        why: String,
        /// It was a kept connection, which the server may have closed long before: a new one shows whether it is there.
        stale: bool,
    },
}

/// Why the head of an answer did not arrive.
#[derive(Debug)]
pub enum NotBegun<B> {
    /// It never left: nothing happened. The request is returned, unless a part of it was written to a connection.
    NotSent {
        /// The error of the connection.
        why: String,
        /// The address refuses connections: no process listens there.
        refused: bool,
        /// The request, for another attempt.
        request: Option<Box<Request<B>>>,
    },
    /// It left: it may have happened.
    Lost {
        /// The error of the connection.
        why: String,
        /// It was a kept connection, which the server may have closed long before.
        stale: bool,
    },
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Heard {
    /// The HTTP status code.
    pub status: u16,
    /// The header `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
    /// `Tenure-Owner`: the leader of the store, if the answering server forwarded the call to it.
    pub owner: Option<String>,
    /// The body. May hold secrets: never shown.
    pub body: Bytes,
}

/// A connection and the task that drives it; dropping it closes the connection at once.
struct Conn<B> {
    sender: SendRequest<B>,
    /// Ends with the server's reason if it rejects this client.
    driver: JoinHandle<Option<String>>,
    idle_since: Instant,
}

impl<B> Drop for Conn<B> {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl<B> Conn<B> {
    /// Why the server closed a new connection at once, if it gave a reason.
    async fn refusal(&mut self) -> Option<String> {
        timeout(CONNECT_MAX, &mut self.driver).await.ok()?.ok()?
    }
}

/// An answer whose head has arrived, and the connection for its body. Dropping it closes the connection: so the server
/// learns that the rest is not wanted.
pub struct AnswerBegun<B> {
    /// The answer's head; its body is still to be read.
    pub response: Response<Incoming>,
    /// When the time for the whole answer is over.
    until: Instant,
    /// Whether the connection was a kept one.
    stale: bool,
    conn: Conn<B>,
    runtime: Id,
}

impl<B> AnswerBegun<B> {
    /// Splits the answer: its head, its body, and the connection, which must be kept or dropped after the body.
    pub fn into_parts(self) -> (Parts, Incoming, UsedConnection<B>) {
        let AnswerBegun { response, conn, runtime, .. } = self;
        let (head, body) = response.into_parts();
        (head, body, UsedConnection { conn, runtime })
    }
}

/// A connection with an answer under way.
pub struct UsedConnection<B> {
    conn: Conn<B>,
    runtime: Id,
}

/// The connections to one server.
pub struct Wire<B = Full<Bytes>> {
    url: ServerUrl,
    /// `None`: no TLS. Otherwise the trusted authorities, and the name that the certificate must have.
    tls: Option<(Tls, HostName)>,
    /// A connection attempt that takes longer has failed.
    connects_within: Duration,
    idle: Mutex<HashMap<Id, Vec<Conn<B>>>>,
}

impl Wire {
    /// Sends a request and reads its whole answer, at most `limit` long. `effect` says whether it may be retried by
    /// itself when a kept connection turns out to be dead: only a call that changes nothing.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        effect: Effect,
        limit: Duration,
    ) -> Result<Heard, NoAnswer> {
        let spare = (effect == Effect::Reads).then(|| request.clone());
        let mut next = request;
        loop {
            let (why, stale) = match self.begin(next, limit).await {
                Ok(begun) => {
                    let stale = begun.stale;
                    match self.hear(begun, limit).await {
                        Ok(heard) => return Ok(heard),
                        Err(why) => (why, stale),
                    }
                }
                Err(NotBegun::NotSent { why, .. }) => return Err(NoAnswer::NotSent(why)),
                Err(NotBegun::Lost { why, stale }) => (why, stale),
            };
            match &spare {
                Some(again) if stale => next = again.clone(),
                _ => return Err(NoAnswer::Lost { why, stale }),
            }
        }
    }

    /// Reads the rest of an answer.
    pub(super) async fn hear(
        &self,
        begun: AnswerBegun<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Heard, String> {
        let until = begun.until;
        let (head, body, used) = begun.into_parts();
        let retry_after_s = seconds(&head.headers);
        let owner = head.headers.get(OWNER).and_then(|url| url.to_str().ok()).map(str::to_owned);
        let body = timeout_at(until, body.collect()).await.map_err(|_| too_late(limit))?;
        let body = body.map_err(|why| why.to_string())?.to_bytes();
        self.keep(used);
        Ok(Heard { status: head.status.as_u16(), retry_after_s, owner, body })
    }
}

impl<B> Wire<B>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    /// Opens no connection yet.
    pub fn new(url: ServerUrl, tls: Option<(Tls, HostName)>) -> Self {
        Wire { url, tls, connects_within: CONNECT_MAX, idle: Mutex::default() }
    }

    /// The same with another limit for a connection attempt. Starts as 5 s.
    pub fn connecting_within(self, connects_within: Duration) -> Self {
        Wire { connects_within, ..self }
    }

    /// The address of the server.
    pub fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Sends a request, and returns when the head of its answer has arrived: at most `limit` after it had a connection.
    pub async fn begin(
        &self,
        request: Request<B>,
        limit: Duration,
    ) -> Result<AnswerBegun<B>, NotBegun<B>> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(not_sent("a call needs a Tokio runtime".to_owned(), Some(request)));
        };
        let runtime = runtime.id();
        let mut request = request;
        loop {
            let (mut conn, stale) = match self.take(runtime) {
                Some(conn) => (conn, true),
                None => match self.connect().await {
                    Ok(conn) => (conn, false),
                    Err(NotConnected { why, refused }) => {
                        let request = Some(Box::new(request));
                        return Err(NotBegun::NotSent { why, refused, request });
                    }
                },
            };
            if !matches!(timeout(CONNECT_MAX, conn.sender.ready()).await, Ok(Ok(()))) {
                if stale {
                    continue;
                }
                let closed = || "the connection was closed at once".to_owned();
                let why = conn.refusal().await.unwrap_or_else(closed);
                return Err(not_sent(why, Some(request)));
            }
            let until = Instant::now() + limit;
            let sending = conn.sender.try_send_request(request);
            let mut failed = match timeout_at(until, sending).await {
                Ok(Ok(response)) => {
                    return Ok(AnswerBegun { response, until, stale, conn, runtime });
                }
                Ok(Err(failed)) => failed,
                Err(_) => return Err(NotBegun::Lost { why: too_late(limit), stale: false }),
            };
            let unsent = failed.take_message();
            let error = failed.into_error();
            // A failed handshake: its end may be read after the request was sent.
            if let Some(refused) = refusal(&error, &self.url.host) {
                return Err(not_sent(refused, unsent));
            }
            match unsent {
                // It came back unsent: the server had closed the connection meanwhile.
                Some(unsent) if stale => request = unsent,
                Some(unsent) => return Err(not_sent(error.to_string(), Some(unsent))),
                None => return Err(NotBegun::Lost { why: error.to_string(), stale }),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Vec<Conn<B>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The youngest idle connection of this runtime.
    fn take(&self, runtime: Id) -> Option<Conn<B>> {
        let mut idle = self.lock();
        let mine = idle.get_mut(&runtime)?;
        let conn = mine.pop()?;
        if !conn.sender.is_closed() && conn.idle_since.elapsed() < IDLE_MAX {
            return Some(conn);
        }
        // The others are older still.
        mine.retain(|conn| !conn.sender.is_closed() && conn.idle_since.elapsed() < IDLE_MAX);
        mine.pop()
    }

    /// Keeps a connection for the next request, after the body of its answer was read to the end.
    pub fn keep(&self, used: UsedConnection<B>) {
        let UsedConnection { mut conn, runtime } = used;
        if conn.sender.is_closed() {
            return;
        }
        conn.idle_since = Instant::now();
        let mut idle = self.lock();
        if !idle.contains_key(&runtime) {
            // The one place to look for runtimes that have ended: their connections are closed.
            idle.retain(|_, conns| conns.iter().any(|conn| !conn.sender.is_closed()));
        }
        let mine = idle.entry(runtime).or_default();
        if mine.len() < IDLE_CONNECTIONS_MAX {
            mine.push(conn);
        }
    }

    async fn connect(&self) -> Result<Conn<B>, NotConnected> {
        let place = || self.url.authority();
        let dial = async {
            let tcp = TcpStream::connect((self.url.host.as_str(), self.url.port)).await.map_err(
                |why| NotConnected {
                    refused: why.kind() == ErrorKind::ConnectionRefused,
                    why: format!("{}: {why}", place()),
                },
            )?;
            // Requests are small and waited for: never delayed to be sent together.
            tcp.set_nodelay(true).map_err(|why| format!("{}: {why}", place()))?;
            match &self.tls {
                None => Ok(handshake(tcp, &self.url.host).await?),
                Some((tls, name)) => {
                    let stream = tls.connect(name.clone(), tcp).await.map_err(|why| {
                        advice(&why, &self.url.host)
                            .unwrap_or_else(|| format!("{}: {why}", place()))
                    })?;
                    Ok(handshake(stream, &self.url.host).await?)
                }
            }
        };
        timeout(self.connects_within, dial).await.map_err(|_| {
            format!("{}: no connection within {} ms", place(), self.connects_within.as_millis())
        })?
    }
}

/// Why a connection attempt failed.
struct NotConnected {
    why: String,
    /// Whether the address refuses connections: no process listens there.
    refused: bool,
}

impl From<String> for NotConnected {
    fn from(why: String) -> Self {
        NotConnected { why, refused: false }
    }
}

fn not_sent<B>(why: String, request: Option<Request<B>>) -> NotBegun<B> {
    NotBegun::NotSent { why, refused: false, request: request.map(Box::new) }
}

fn too_late(limit: Duration) -> String {
    format!("no answer within {} ms", limit.as_millis())
}

async fn handshake<S, B>(stream: S, host: &str) -> Result<Conn<B>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let (sender, driver) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|why| why.to_string())?;
    // Requests get the error of their connection. The driver's result adds a reason if there is no request yet.
    let host = host.to_owned();
    let driver =
        tokio::spawn(async move { driver.await.err().and_then(|why| refusal(&why, &host)) });
    Ok(Conn { sender, driver, idle_since: Instant::now() })
}

fn seconds(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}
