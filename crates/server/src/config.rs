//! What a server is started with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::gauge::GaugeHosts;
use tenure_metrics::Metrics;
use tenure_seam::MovedTime;
use tenure_tls::ServerTls;

use crate::pages::Pages;
use crate::tokens::Tokens;
use crate::whereabouts::Whereabouts;

/// Bounds of one server. The contract's own bounds are not here: they are `tenure_core::bounds`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The head of a request must have come so long after its first byte; else 408.
    pub head_max: Duration,
    /// The next bytes of a body must have come so long after those before; else 408.
    pub body_pause_max: Duration,
    /// A body that is not NDJSON must have come whole within this; else 408.
    pub body_max: Duration,
    /// A connection without a request is closed after so long. Above what clients keep theirs, so
    /// that it is mostly they who close.
    pub idle_max: Duration,
    /// A caller who does not read its answer for so long is gone.
    pub write_pause_max: Duration,
    /// A refused request's body is read on for so long, so that its sender sees the answer.
    pub linger: Duration,
    /// Connections at once; more wait in the listener's own line.
    pub connections_max: usize,
    /// Bytes of bodies and of answers that have not left, of all connections together; beyond it
    /// calls are refused with 503 `overloaded`. A single call may need 16 MiB.
    pub in_flight_bytes_max: usize,
    /// The longest head of a request, before whose end nothing is known of its caller; else 431.
    pub head_bytes_max: usize,
    /// While it drains, the server ends when no heartbeat and no settle came for this long.
    pub quiet: Duration,
    /// A call of a store that several servers share is refused if no owner answers for this long. Above the pause of a takeover, and
    /// below the 10 s for which our clients wait: they hear the refusal.
    pub pass_on_max: Duration,
    /// A drain ends after so long, whatever is still asked.
    pub drain_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            head_max: Duration::from_secs(10),
            body_pause_max: Duration::from_secs(15),
            body_max: Duration::from_secs(120),
            idle_max: Duration::from_secs(75),
            write_pause_max: Duration::from_secs(30),
            linger: Duration::from_secs(1),
            // All who may stand at one door, and as many beside them.
            connections_max: 2 * tenure_core::bounds::LINE_MAX,
            in_flight_bytes_max: 512 * 1024 * 1024,
            head_bytes_max: 32 * 1024,
            quiet: Duration::from_millis(500),
            pass_on_max: Duration::from_secs(8),
            drain_max: Duration::from_secs(25),
        }
    }
}

impl Config {
    /// The same for a port that a few programs ask now and then, so that it cannot take what the server itself needs.
    pub(crate) fn for_metrics(self) -> Self {
        Config { connections_max: 32, in_flight_bytes_max: 32 * 1024 * 1024, ..self }
    }
}

/// What a server needs.
#[derive(Clone)]
pub struct Deps {
    /// Where state lives: in this process, or with another server of the same store.
    pub whereabouts: Whereabouts,
    /// A caller that shows one may call; if there are none, any caller by a loopback name may.
    pub tokens: Tokens,
    /// Bounds.
    pub config: Config,
    /// The server speaks HTTPS with this alone; `None`: HTTP in clear.
    pub tls: Option<ServerTls>,
    /// Where a gauge may lead, beside what everybody may ask.
    pub gauge_hosts: GaugeHosts,
    /// The time of the engine, if a test moves it: only then the routes of the test clock are there. Normally `None`.
    pub moved: Option<Arc<dyn MovedTime>>,
    /// What stands at paths that are no route of the API; `None`: nothing does.
    pub pages: Option<Arc<dyn Pages>>,
    /// What `GET /metrics` answers; `None`: the path leads nowhere.
    pub metrics: Option<MetricsDoor>,
}

/// The metrics of a server, and the token that reads them alone.
#[derive(Clone, Debug)]
pub struct MetricsDoor {
    /// They count the calls of this server, and ask its engine for the state of the store.
    pub metrics: Arc<Metrics>,
    /// They read the metrics and nothing else; with none, only the server's own tokens are taken.
    pub tokens: Tokens,
    /// Nothing else is answered: this port is for the metrics. Starts as false; `run_metrics` sets it.
    pub alone: bool,
}

impl fmt::Debug for Deps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deps").field("config", &self.config).finish_non_exhaustive()
    }
}
