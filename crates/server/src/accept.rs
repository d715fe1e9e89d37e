//! Takes connections until it is told to stop, then drains.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::budget::Budget;
use crate::conn::{self, Stage};
use crate::deps::{Deps, MetricsDoor};
use crate::gate::Here;
use crate::service::Service;
use crate::strangers::{Strangers, StrangersMost};
use crate::traffic::Traffic;

/// After the system had no room for a connection, the next one is tried so much later.
const NO_ROOM: Duration = Duration::from_millis(50);
/// How often a drain looks whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// What a connection may take that has shown no token. As many of them are taken as fit into a part of the budget of bytes:
/// what they hold is not counted by it.
const STRANGER_BYTES: usize = 16 * 1024;
const STRANGERS_PART: usize = 16;
/// So many are taken however small the budget is.
const STRANGERS_MIN: usize = 16;

/// What a server did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrainReport {
    /// Requests that were answered, whatever the answer.
    pub answered: u64,
    /// Connections that were cut off since the drain took too long.
    pub cut: usize,
}

/// Serves until `shutdown` is done, then drains: whoever waits for a lease is answered with none, and new lease calls are
/// refused. All else is answered, and each connection is told to close. The drain ends when the requests that it found are
/// answered and no heartbeat or settle has come for [`Config::quiet`](crate::Config::quiet), at the latest after
/// [`Config::drain_max`](crate::Config::drain_max). Dropping it cuts everything off.
///
/// Where several servers share the store, the listener closes as soon as another one may lead it: at once, except on the leader,
/// which hands the store over first. From then on heartbeats and settles do not prolong the drain.
///
/// Whether it may listen there without a token is for [`may_listen`](crate::may_listen).
pub async fn run(
    listener: TcpListener,
    deps: Deps,
    shutdown: impl Future<Output = ()>,
) -> DrainReport {
    let here = match listener.local_addr() {
        Ok(here) => here,
        Err(why) => {
            tracing::warn!(%why, "the address of the listener is unknown");
            SocketAddr::from(([127, 0, 0, 1], 0))
        }
    };
    let traffic = Arc::new(Traffic::new());
    let config = deps.config;
    let whereabouts = deps.whereabouts.clone();
    let scheme = if deps.tls.is_some() { "https" } else { "http" };
    let service = Arc::new(Service {
        budget: Budget::new(config.in_flight_bytes_max),
        passes_on: Default::default(),
        deps,
        traffic: traffic.clone(),
        here: Here { at: here, scheme },
        streams: Default::default(),
        refused: Default::default(),
        handshakes: Default::default(),
        late: Default::default(),
    });
    let (stage, stages) = watch::channel(Stage::Serving);
    let mut accepter = Accepter {
        listener,
        service,
        stages,
        room: Arc::new(Semaphore::new(config.connections_max)),
        strangers: Strangers::default(),
        most: StrangersMost {
            of_one_address: config.strangers_per_address_max,
            in_all: (config.in_flight_bytes_max / STRANGERS_PART / STRANGER_BYTES)
                .clamp(STRANGERS_MIN, config.connections_max.max(STRANGERS_MIN)),
        },
        conns: JoinSet::new(),
    };
    tokio::select! {
        () = accepter.accept() => {}
        () = shutdown => {}
    }
    let end = Instant::now() + config.drain_max;
    tracing::info!("draining");
    traffic.drain();
    whereabouts.drain();
    let mut quiet = pin!(timeout_at(end, async {
        while !traffic.is_quiet(config.quiet) {
            sleep(LOOK).await;
        }
    }));
    let is_quiet = tokio::select! {
        () = accepter.accept() => false,
        _ = &mut quiet => true,
        // The next leader answers who connects from now on: callers move on to it, and none keeps this server from ending.
        () = whereabouts.handed_over() => {
            // Those who connected before are in the listener's own line.
            let _ = timeout(Duration::ZERO, accepter.accept()).await;
            false
        }
    };
    let Accepter { listener, mut conns, .. } = accepter;
    drop(listener);
    if !is_quiet {
        let _ = quiet.await;
    }
    stage.send_replace(Stage::Ending);
    let all = async { while conns.join_next().await.is_some() {} };
    // A connection that just got its last request is given a moment in any case.
    let _ = timeout_at(end.max(Instant::now() + config.quiet), all).await;
    let cut = conns.len();
    if cut > 0 {
        tracing::warn!(cut, "connections were cut off: the drain took too long");
    }
    conns.shutdown().await;
    DrainReport { answered: traffic.answered(), cut }
}

/// Answers `GET /metrics` at a port of its own and nothing else, until it is dropped: also while the server drains. `deps` are
/// those of the server.
pub async fn run_metrics(listener: TcpListener, deps: Deps) -> Infallible {
    let metrics = deps.metrics.map(|door| MetricsDoor { alone: true, ..door });
    let deps = Deps { config: deps.config.for_metrics(), pages: None, metrics, ..deps };
    run(listener, deps, pending::<()>()).await;
    pending().await
}

struct Accepter {
    listener: TcpListener,
    service: Arc<Service>,
    stages: watch::Receiver<Stage>,
    room: Arc<Semaphore>,
    strangers: Strangers,
    most: StrangersMost,
    conns: JoinSet<()>,
}

impl Accepter {
    /// Takes connections for ever. May be dropped and called again.
    async fn accept(&mut self) {
        let mut full = false;
        loop {
            while self.conns.try_join_next().is_some() {}
            let (stream, from) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(why) if is_of_one(&why) => {
                    tracing::debug!(%why, "a connection was gone");
                    continue;
                }
                Err(why) => {
                    if !full {
                        tracing::warn!(%why, "no connection can be taken; raise the limit of open files");
                    }
                    full = true;
                    sleep(NO_ROOM).await;
                    continue;
                }
            };
            full = false;
            if self.room.available_permits() == 0 {
                // Whoever has said nothing for longest makes room for whoever may have something to say.
                self.strangers.end_oldest();
            }
            let Ok(room) = self.room.clone().acquire_owned().await else { return };
            let Some(stranger) = self.strangers.come(from.ip(), self.most) else {
                tracing::debug!(%from, "too many connections that have shown no token");
                continue;
            };
            let ends = stranger.ends();
            let conn = conn::drive(
                ready(stream),
                Some(stranger),
                self.service.clone(),
                self.stages.clone(),
            );
            self.conns.spawn(async move {
                tokio::select! {
                    () = conn => {}
                    () = ends.notified() => {}
                }
                drop(room);
            });
        }
    }
}

/// Answers are small and waited for: never held back to be sent together.
fn ready(stream: TcpStream) -> TcpStream {
    if let Err(why) = stream.set_nodelay(true) {
        tracing::debug!(%why, "a connection cannot be set up");
    }
    stream
}

/// Whether only this one connection failed.
fn is_of_one(why: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    matches!(why.kind(), K::ConnectionAborted | K::ConnectionReset | K::ConnectionRefused)
}
