//! The reading of usage probes (gauges) for an engine: its ticks claim due ones for a process that reads, the process
//! asks their addresses, and brings the answers.
//!
//! Nothing here reads a probe or decides when one is read.

use std::future::Future;
use std::pin::Pin;

use tenure_core::gauge::GaugeClaim;
use tenure_core::names::Namespace;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::CallError;

/// A usage probe that this process must read now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimedGauge {
    /// The namespace of its limit, to which the answer goes too.
    pub namespace: Namespace,
    /// The probe, with its address. An answer that comes after 5 s is dropped.
    pub claim: GaugeClaim,
}

/// Due usage probes, as an engine claims them. While the feed is held, its process counts as a reader at each tick;
/// a claim without an answer keeps others from reading that probe for 5 s.
#[derive(Debug)]
pub struct GaugeFeed {
    claims: UnboundedReceiver<ClaimedGauge>,
}

/// The engine's end of a feed.
#[derive(Clone, Debug)]
pub struct GaugeReader {
    claims: UnboundedSender<ClaimedGauge>,
}

impl GaugeFeed {
    /// A feed and its other end. There is at most one open claim for each limit, so a feed holds at most as many claims
    /// as there are probes, however slowly they are read.
    pub fn new() -> (GaugeReader, GaugeFeed) {
        let (sender, claims) = unbounded_channel();
        (GaugeReader { claims: sender }, GaugeFeed { claims })
    }

    /// The next probe to read; `None` once the engine is closed.
    pub async fn next(&mut self) -> Option<ClaimedGauge> {
        self.claims.recv().await
    }

    /// A probe that was claimed already, without waiting for one.
    pub fn try_next(&mut self) -> Option<ClaimedGauge> {
        self.claims.try_recv().ok()
    }
}

impl GaugeReader {
    /// Hands a claim on; `false` if the feed was dropped.
    pub fn claimed(&self, namespace: &Namespace, claim: GaugeClaim) -> bool {
        self.claims.send(ClaimedGauge { namespace: namespace.clone(), claim }).is_ok()
    }

    /// True while the feed is held, so that its process still reads.
    pub fn reads(&self) -> bool {
        !self.claims.is_closed()
    }
}

/// The future of an answer. It fails only as a call does: an answer whose claim is over is dropped silently.
pub type ReadingFuture = Pin<Box<dyn Future<Output = Result<(), CallError>> + Send>>;
