//! How an engine has gauges read: its ticks claim those that are due for a process that reads, the process asks their
//! addresses, and brings the answers.
//!
//! Nothing here reads a gauge or decides when one is read.

use std::future::Future;
use std::pin::Pin;

use tenure_core::gauge::GaugeClaim;
use tenure_core::names::Namespace;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::CallError;

/// A gauge that this process is to read now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimedGauge {
    /// The namespace of its limit, to which the answer goes too.
    pub namespace: Namespace,
    /// What is to be read. An answer that comes after 5 s is dropped.
    pub claim: GaugeClaim,
}

/// Gauges that are due, as an engine claims them. As long as it is held its process says with its ticks that it reads;
/// what is claimed and not answered keeps others from reading that gauge for 5 s.
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
    /// A feed and its other end. There is at most one open claim for each limit, so a feed is as long as there are
    /// gauges, however slowly they are read.
    pub fn new() -> (GaugeReader, GaugeFeed) {
        let (sender, claims) = unbounded_channel();
        (GaugeReader { claims: sender }, GaugeFeed { claims })
    }

    /// The next gauge to read; `None` once the engine is closed.
    pub async fn next(&mut self) -> Option<ClaimedGauge> {
        self.claims.recv().await
    }

    /// A gauge that was claimed already, without waiting for one.
    pub fn try_next(&mut self) -> Option<ClaimedGauge> {
        self.claims.try_recv().ok()
    }
}

impl GaugeReader {
    /// Hands a claim on; `false` if nobody holds the feed any more.
    pub fn claimed(&self, namespace: &Namespace, claim: GaugeClaim) -> bool {
        self.claims.send(ClaimedGauge { namespace: namespace.clone(), claim }).is_ok()
    }

    /// Whether the feed is still held, so that its process still reads.
    pub fn reads(&self) -> bool {
        !self.claims.is_closed()
    }
}

/// The future of an answer. It fails only as a call does: an answer whose claim is over is dropped without a word.
pub type ReadingFuture = Pin<Box<dyn Future<Output = Result<(), CallError>> + Send>>;
