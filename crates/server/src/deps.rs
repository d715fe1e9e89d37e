//! The parts that a server starts with: its store, tokens and bounds, and its pages beside the API.

use std::fmt;
use std::sync::Arc;

use crate::metrics::Metrics;
use tenure_core::gauge::GaugeHosts;
use tenure_engine_api::MovedTime;
use tenure_tls::ServerTls;

use crate::config::Config;
use crate::leadership::Leadership;
use crate::pages::Pages;
use crate::tokens::Tokens;
use crate::trail::Trail;

#[derive(Clone)]
pub struct Deps {
    /// Where state lives: in this process, or at another server of the same store.
    pub leadership: Leadership,
    /// A caller that shows one of them may call. Without tokens, any caller by a loopback name may.
    pub tokens: Tokens,
    /// Times, sizes and counts.
    pub config: Config,
    /// With this the server speaks HTTPS only; `None`: HTTP in clear.
    pub tls: Option<ServerTls>,
    /// Hosts that a gauge may ask, beside those that any gauge may ask.
    pub gauge_hosts: GaugeHosts,
    /// The engine's time, if a test moves it: only then the routes of the test clock exist. Normally `None`.
    pub moved: Option<Arc<dyn MovedTime>>,
    /// Pages at paths that are no route of the API; `None`: no pages.
    pub pages: Option<Arc<dyn Pages>>,
    /// The answer to `GET /metrics`; `None`: the path leads nowhere.
    pub metrics: Option<MetricsDoor>,
    /// Has a line for each change and refusal.
    pub trail: Trail,
}

/// The metrics of a server, and tokens that can read the metrics only.
#[derive(Clone, Debug)]
pub struct MetricsDoor {
    /// Counts the calls of this server, and asks its engine for the state of the store.
    pub metrics: Arc<Metrics>,
    /// Tokens that read the metrics and nothing else; if there are none, only the server's own tokens are valid.
    pub tokens: Tokens,
    /// The port answers nothing but the metrics. Initially false; `run_metrics` sets it.
    pub alone: bool,
}

impl fmt::Debug for Deps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deps").field("config", &self.config).finish_non_exhaustive()
    }
}
