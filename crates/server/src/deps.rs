//! What a server is started with: its store, its tokens and bounds, and what it serves beside the API.

use std::fmt;
use std::sync::Arc;

use tenure_core::gauge::GaugeHosts;
use tenure_metrics::Metrics;
use tenure_seam::MovedTime;
use tenure_tls::ServerTls;

use crate::config::Config;
use crate::pages::Pages;
use crate::tokens::Tokens;
use crate::whereabouts::Whereabouts;

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
