//! Drives one connection until it is over, too slow, or the server ends.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tenure_core::refusal::Refusal;
use tenure_core::sentences::ServerRefusal;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::closing::last;
use crate::config::Config;
use crate::handshake;
use crate::io::{Socket, Stream, Watched};
use crate::out::Out;
use crate::service::Service;
use crate::strangers::Stranger;
use crate::traffic::{ConnectionTraffic, SocketVerdict};

/// Requests that one connection of HTTP/2 may have at once; more wait at the caller.
const STREAMS_MAX: u32 = 256;
/// Bytes of one body, and of all bodies of a connection, that HTTP/2 buffers before anybody reads them. The budget of
/// bytes does not count these: 20,000 connections of unknown callers could hold 5 GiB in them.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;

/// The server's stage, which every connection follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Answers every request. The first stage.
    Serving,
    /// Each connection answers its current requests and closes.
    Ending,
}

/// Resets a request: its connection has shown no token and has too many requests under way.
#[derive(Debug)]
struct Crowded;

impl fmt::Display for Crowded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a connection that has shown no token has too many requests under way")
    }
}

impl std::error::Error for Crowded {}

/// Undoes grants that never left, also if the connection's task is cut off.
struct Over(Arc<ConnectionTraffic>);

impl Drop for Over {
    fn drop(&mut self) {
        for grant in self.0.undelivered() {
            grant.undo();
        }
    }
}

/// Drives a connection to its end.
pub(crate) async fn drive(
    stream: TcpStream,
    stranger: Option<Stranger>,
    service: Arc<Service>,
    mut stage: watch::Receiver<Stage>,
) {
    let config = service.deps.config;
    let line = Arc::new(ConnectionTraffic::new(service.traffic.clone(), stranger));
    let _over = Over(line.clone());
    let peer = stream.peer_addr().ok().map(|at| at.ip());
    let socket = Socket { stream, line: line.clone() };
    let stream = match &service.deps.tls {
        None => Stream::Clear(socket),
        Some(tls) => {
            let shaking = handshake::shake(tls, socket, &config, &service.handshakes, peer);
            let shaken = tokio::select! {
                shaken = shaking => shaken,
                _ = stage.wait_for(|stage| *stage == Stage::Ending) => None,
            };
            let Some(stream) = shaken else { return };
            stream
        }
    };
    let is_http2 = stream.is_http2();
    let io = Watched::new(stream, line.clone());
    let answers = {
        let line = line.clone();
        service_fn(move |request: Request<Incoming>| {
            // Begins here, not in the future: the head is complete now.
            let turn = line.begin();
            let service = service.clone();
            let is_crowded = line.is_crowded();
            let answer = async move {
                let (head, body) = request.into_parts();
                // Requests of a known caller come all at once as well, so the token of this one counts.
                if is_crowded && !service.knows(&head) {
                    return Err(Crowded);
                }
                Ok(service.answer(Request::from_parts(head, body), turn, peer).await)
            };
            Box::pin(answer) as Pin<Box<dyn Future<Output = _> + Send>>
        })
    };
    if is_http2 {
        return many_at_once(io, answers, &line, &config, stage).await;
    }
    // A caller that closes its side is gone: that ends a wait and undoes a grant. The slow head and the idle connection
    // are timed here, not by the library, since a slow head gets an answer.
    let mut conn = http1::Builder::new()
        .half_close(false)
        .header_read_timeout(None)
        .max_buf_size(config.head_bytes_max)
        .serve_connection(TokioIo::new(io), answers.clone());
    let mut look = pin!(sleep_until(Instant::now() + ConnectionTraffic::look_every(&config)));
    let mut told = false;
    loop {
        tokio::select! {
            ended = &mut conn => {
                let begins_http2 = ended.as_ref().is_err_and(hyper::Error::is_parse_version_h2);
                if let Err(why) = ended {
                    tracing::debug!(%why, "a connection broke");
                }
                let parts = conn.into_parts();
                let io = parts.io.into_inner();
                if begins_http2 {
                    let io = io.rewound(parts.read_buf);
                    return many_at_once(io, answers, &line, &config, stage).await;
                }
                if let Some(status) = io.held_back() {
                    last(io.into_stream(), &not_http(status), config.linger).await;
                }
                return;
            }
            () = &mut look => match line.look(&config, Instant::now()) {
                SocketVerdict::Well(next) => look.as_mut().reset(next),
                SocketVerdict::Over => return,
                SocketVerdict::SlowHead => {
                    let stream = conn.into_parts().io.into_inner().into_stream();
                    last(stream, &slow_head(), config.linger).await;
                    return;
                }
            },
            changed = stage.changed(), if !told => {
                if changed.is_err() || *stage.borrow() == Stage::Ending {
                    told = true;
                    Pin::new(&mut conn).graceful_shutdown();
                }
            }
        }
    }
}

/// Drives a connection of HTTP/2, on which a caller has many requests at once. A caller that resets one of them is gone
/// for that request, as if it had closed a connection of HTTP/1.1: its wait ends, and its grant is undone.
async fn many_at_once<A>(
    io: Watched,
    answers: A,
    line: &ConnectionTraffic,
    config: &Config,
    mut stage: watch::Receiver<Stage>,
) where
    A: HttpService<Incoming, ResBody = Out, Error = Crowded> + Unpin,
    A::Future: Send + 'static,
{
    line.share();
    let head_bytes_max = u32::try_from(config.head_bytes_max).unwrap_or(u32::MAX);
    let mut conn = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(head_bytes_max)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .serve_connection(TokioIo::new(io.counts_frames()), answers);
    let mut look = pin!(sleep_until(Instant::now() + ConnectionTraffic::look_every(config)));
    let (mut told, mut floods) = (false, false);
    loop {
        tokio::select! {
            ended = &mut conn => {
                if let Err(why) = ended {
                    tracing::debug!(%why, "a connection broke");
                }
                return;
            }
            () = line.flooded().notified(), if !floods => {
                tracing::debug!("a connection sent too many control frames");
                floods = true;
                // A GOAWAY notifies the caller, which has a moment to read it. Nothing more is read from the caller.
                Pin::new(&mut conn).graceful_shutdown();
                look.as_mut().reset(Instant::now() + config.linger);
            }
            () = &mut look => match line.look(config, Instant::now()) {
                _ if floods => return,
                SocketVerdict::Well(next) => look.as_mut().reset(next),
                // A slow head needs no case of its own: the connection is over when it has been idle for too long.
                SocketVerdict::Over | SocketVerdict::SlowHead => return,
            },
            changed = stage.changed(), if !told => {
                if changed.is_err() || *stage.borrow() == Stage::Ending {
                    told = true;
                    Pin::new(&mut conn).graceful_shutdown();
                }
            }
        }
    }
}

fn slow_head() -> Refusal {
    ServerRefusal::HeadTooSlow.into()
}

/// The refusal for which the parser would have sent a status alone.
fn not_http(status: u16) -> Refusal {
    match status {
        413 | 414 | 431 => ServerRefusal::HeadTooLong.into(),
        _ => ServerRefusal::NotHttp.into(),
    }
}
