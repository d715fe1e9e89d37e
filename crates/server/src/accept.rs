//! Accepts connections until the shutdown begins, then drains.

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

/// Pause before the next try, after the system had no room for a connection.
const NO_ROOM: Duration = Duration::from_millis(50);
/// How often a drain checks for its end.
const LOOK: Duration = Duration::from_millis(20);

/// Memory that a connection without a token may take. The budget of bytes does not count it, so there are at most as
/// many of them as fit into one part in `STRANGERS_PART` of that budget.
const STRANGER_BYTES: usize = 16 * 1024;
const STRANGERS_PART: usize = 16;
/// The least number of such connections, however small the budget is.
const STRANGERS_MIN: usize = 16;

/// The end of a server, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrainReport {
    /// Requests that were answered, whatever the answer.
    pub answered: u64,
    /// Connections that were cut off because the drain took too long.
    pub cut: usize,
}

/// Serves until `shutdown` is done, then drains: lease calls that wait get an empty answer, and new ones are refused.
/// All other calls are answered, and each connection closes after its answer. The drain ends when the requests that it
/// found are answered and no heartbeat or settle has come for [`Config::quiet`](crate::Config::quiet), at the latest
/// after [`Config::drain_max`](crate::Config::drain_max). Dropping the future cuts everything off.
///
/// Where several servers share the store, the listener closes as soon as another one may lead it: at once, except on
/// the leader, which hands the store over first. From then on heartbeats and settles do not prolong the drain.
///
/// [`may_listen`](crate::may_listen) decides whether a server without a token may listen there.
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
    let leadership = deps.leadership.clone();
    let scheme = if deps.tls.is_some() { "https" } else { "http" };
    let service = Arc::new(Service {
        budget: Budget::new(config.in_flight_bytes_max),
        forwarding: Default::default(),
        deps,
        traffic: traffic.clone(),
        here: Here { at: here, scheme },
        streams: Default::default(),
        backups: Default::default(),
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
    leadership.drain();
    let mut quiet = pin!(timeout_at(end, async {
        while !traffic.is_quiet(config.quiet) {
            sleep(LOOK).await;
        }
    }));
    let is_quiet = tokio::select! {
        () = accepter.accept() => false,
        _ = &mut quiet => true,
        // From now on the next leader answers new connections: callers move to it, and none of them keeps this server
        // from ending.
        () = leadership.handed_over() => {
            // Callers that connected before are in the listener's backlog.
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
    // A connection whose last request has just come gets a moment in any case.
    let _ = timeout_at(end.max(Instant::now() + config.quiet), all).await;
    let cut = conns.len();
    if cut > 0 {
        tracing::warn!(cut, "connections were cut off: the drain took too long");
    }
    conns.shutdown().await;
    DrainReport { answered: traffic.answered(), cut }
}

/// Answers `GET /metrics` and nothing else at a port of its own, until the future is dropped: also while the server
/// drains. `deps` are those of the server.
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
    /// Accepts connections for ever. The future may be dropped and the call repeated.
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
                // The connection that has been silent longest makes room for a new one.
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

/// Answers are small and a caller waits for each: the system must not hold them back to send them together.
fn ready(stream: TcpStream) -> TcpStream {
    if let Err(why) = stream.set_nodelay(true) {
        tracing::debug!(%why, "a connection cannot be set up");
    }
    stream
}

/// Whether the error is about one connection only.
fn is_of_one(why: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    matches!(why.kind(), K::ConnectionAborted | K::ConnectionReset | K::ConnectionRefused)
}
