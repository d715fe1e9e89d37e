//! One connection: driven until it is over, too slow, or told to end.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::ServerRefusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::io::Watched;
use crate::problem;
use crate::service::Service;
use crate::traffic::{ConnectionTraffic, SocketVerdict};

/// What is told to all connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Go on.
    Serving,
    /// Answer what is being asked, and close.
    Ending,
}

/// What was granted and never left is undone, also if the connection's task is cut off.
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
    service: Arc<Service>,
    mut stage: watch::Receiver<Stage>,
) {
    let config = service.deps.config;
    let line = Arc::new(ConnectionTraffic::new(service.traffic.clone()));
    let _over = Over(line.clone());
    let peer = stream.peer_addr().ok().map(|at| at.ip());
    let io = TokioIo::new(Watched::new(stream, line.clone()));
    let answers = {
        let line = line.clone();
        service_fn(move |request: Request<Incoming>| {
            // Begun here, not in the future: the head is whole now.
            let turn = line.begin();
            let service = service.clone();
            let answer = async move {
                Ok::<_, std::convert::Infallible>(service.answer(request, turn, peer).await)
            };
            Box::pin(answer) as Pin<Box<dyn Future<Output = _> + Send>>
        })
    };
    // A caller who closes its side is gone: that is how a wait ends and a grant is undone. How long
    // a head or an idle connection may last is looked after here, since a slow one is answered.
    let mut conn = http1::Builder::new()
        .half_close(false)
        .header_read_timeout(None)
        .max_buf_size(config.head_bytes_max)
        .serve_connection(io, answers);
    let mut look = pin!(sleep_until(Instant::now() + ConnectionTraffic::look_every(&config)));
    let mut told = false;
    loop {
        tokio::select! {
            ended = &mut conn => {
                if let Err(why) = ended {
                    tracing::debug!(%why, "a connection broke");
                }
                let io = conn.into_parts().io.into_inner();
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

fn slow_head() -> Refusal {
    ServerRefusal::HeadTooSlow.into()
}

/// What the parser would have answered with a status alone.
fn not_http(status: u16) -> Refusal {
    match status {
        413 | 414 | 431 => ServerRefusal::HeadTooLong.into(),
        _ => ServerRefusal::NotHttp.into(),
    }
}

/// Says why the connection ends. Its sender may still be sending, and is read on for a moment so that
/// it sees the answer.
async fn last(mut stream: TcpStream, no: &Refusal, linger: Duration) {
    let (body, status) = (problem::json(no), no.code.status());
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        reason.unwrap_or_default(),
        body.len()
    );
    let said = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.shutdown().await?;
        let mut sink = [0; 4096];
        while stream.read(&mut sink).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    let _ = timeout(linger, said).await;
}
