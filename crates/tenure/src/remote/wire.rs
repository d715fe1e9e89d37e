//! HTTP/1.1 connections that are kept, and one request on one of them.
//!
//! It knows no operation. What it must get right is the difference between "never sent" and "sent,
//! no answer", since one of them may have happened; and that a caller who goes away closes its
//! connection, since that is how the other side learns it.
//!
//! An own pool of fifty lines, because connections must stay with the runtime that drives them: the
//! keeper's heartbeats must not ride on a connection whose driver sits on a runtime that user code
//! blocks. The pool of the HTTP library shares them between all.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HeaderMap, RETRY_AFTER};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tenure_core::requests::Effect;
use tenure_tls::{HostName, Tls, advice, refusal};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Id};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::url::ServerUrl;

/// A connection attempt that takes longer has failed.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// An idle connection that is older is not trusted: what stands between may have forgotten it.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Idle connections that are kept for each runtime.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// Why a request has no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// It never left: nothing happened.
    NotSent(String),
    /// It left, and no whole answer came back: it may have happened.
    Lost(String),
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Heard {
    /// The status.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
    /// The body. May hold secrets: never shown.
    pub body: Bytes,
}

/// A connection and the task that drives it; dropping it closes the connection at once.
struct Conn {
    sender: SendRequest<Full<Bytes>>,
    /// Ends with what the server told of a client that it does not take.
    driver: JoinHandle<Option<String>>,
    idle_since: Instant,
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Conn {
    /// Why the server closed a new connection at once, if it said so.
    async fn refusal(&mut self) -> Option<String> {
        timeout(CONNECT_MAX, &mut self.driver).await.ok()?.ok()?
    }
}

/// The connections to one server.
pub struct Wire {
    url: ServerUrl,
    /// `None`: no TLS. Otherwise what is trusted, and the name that the certificate must carry.
    tls: Option<(Tls, HostName)>,
    idle: Mutex<HashMap<Id, Vec<Conn>>>,
}

impl Wire {
    /// Nothing is connected yet.
    pub fn new(url: ServerUrl, tls: Option<(Tls, HostName)>) -> Self {
        Wire { url, tls, idle: Mutex::default() }
    }

    /// The server.
    pub fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Sends a request and reads its whole answer, at most `limit` long. `effect` says whether it
    /// may be sent again by itself when a kept connection turns out to be dead: only what changes
    /// nothing.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        effect: Effect,
        limit: Duration,
    ) -> Result<Heard, NoAnswer> {
        let runtime = Handle::try_current()
            .map_err(|_| NoAnswer::NotSent("a call needs a Tokio runtime".to_owned()))?
            .id();
        let mut next = Some(request);
        while let Some(request) = next.take() {
            let (mut conn, kept) = match self.take(runtime) {
                Some(conn) => (conn, true),
                None => (self.connect().await.map_err(NoAnswer::NotSent)?, false),
            };
            if !matches!(timeout(CONNECT_MAX, conn.sender.ready()).await, Ok(Ok(()))) {
                if kept {
                    next = Some(request);
                    continue;
                }
                let closed = || "the connection was closed at once".to_owned();
                return Err(NoAnswer::NotSent(conn.refusal().await.unwrap_or_else(closed)));
            }
            let spare = (kept && effect == Effect::Reads).then(|| request.clone());
            let sending = conn.sender.try_send_request(request);
            // By the handshake, of which the end may come after the request was sent.
            let mut refused = None;
            let heard = timeout(limit, async {
                match sending.await {
                    Ok(response) => hear(response).await.map_err(|why| (why, None)),
                    Err(mut failed) => {
                        let unsent = failed.take_message();
                        let error = failed.into_error();
                        refused = refusal(&error, &self.url.host);
                        Err((error.to_string(), unsent))
                    }
                }
            });
            match heard.await {
                Ok(Ok(heard)) => {
                    self.keep(runtime, conn);
                    return Ok(heard);
                }
                Ok(Err(_)) if refused.is_some() => {
                    return Err(NoAnswer::NotSent(refused.unwrap_or_default()));
                }
                // It came back unsent: the server had closed the connection meanwhile.
                Ok(Err((_, Some(unsent)))) if kept => next = Some(unsent),
                Ok(Err((why, Some(_)))) => return Err(NoAnswer::NotSent(why)),
                Ok(Err((why, None))) => match spare {
                    Some(again) => next = Some(again),
                    None => return Err(NoAnswer::Lost(why)),
                },
                Err(_) => {
                    return Err(NoAnswer::Lost(format!(
                        "no answer within {} ms",
                        limit.as_millis()
                    )));
                }
            }
        }
        Err(NoAnswer::NotSent("nothing was to be sent".to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Vec<Conn>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The youngest idle connection of this runtime.
    fn take(&self, runtime: Id) -> Option<Conn> {
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

    fn keep(&self, runtime: Id, mut conn: Conn) {
        if conn.sender.is_closed() {
            return;
        }
        conn.idle_since = Instant::now();
        let mut idle = self.lock();
        if !idle.contains_key(&runtime) {
            // The one moment to look for runtimes that are gone: their connections are closed.
            idle.retain(|_, conns| conns.iter().any(|conn| !conn.sender.is_closed()));
        }
        let mine = idle.entry(runtime).or_default();
        if mine.len() < IDLE_CONNECTIONS_MAX {
            mine.push(conn);
        }
    }

    async fn connect(&self) -> Result<Conn, String> {
        let place = || self.url.authority();
        let dial = async {
            let tcp = TcpStream::connect((self.url.host.as_str(), self.url.port))
                .await
                .map_err(|why| format!("{}: {why}", place()))?;
            // Requests are small and waited for: never held back to be sent together.
            tcp.set_nodelay(true).map_err(|why| format!("{}: {why}", place()))?;
            match &self.tls {
                None => handshake(tcp, &self.url.host).await,
                Some((tls, name)) => {
                    let stream = tls.connect(name.clone(), tcp).await.map_err(|why| {
                        advice(&why, &self.url.host)
                            .unwrap_or_else(|| format!("{}: {why}", place()))
                    })?;
                    handshake(stream, &self.url.host).await
                }
            }
        };
        timeout(CONNECT_MAX, dial).await.map_err(|_| {
            format!("{}: no connection within {} ms", place(), CONNECT_MAX.as_millis())
        })?
    }
}

async fn handshake<S>(stream: S, host: &str) -> Result<Conn, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, driver) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|why| why.to_string())?;
    // How a connection ends is told to its requests. The driver's own word adds something where there is none yet.
    let host = host.to_owned();
    let driver =
        tokio::spawn(async move { driver.await.err().and_then(|why| refusal(&why, &host)) });
    Ok(Conn { sender, driver, idle_since: Instant::now() })
}

async fn hear(response: Response<Incoming>) -> Result<Heard, String> {
    let status = response.status().as_u16();
    let retry_after_s = seconds(response.headers());
    let body = response.into_body().collect().await.map_err(|why| why.to_string())?;
    Ok(Heard { status, retry_after_s, body: body.to_bytes() })
}

fn seconds(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}
