//! Gauges, read by the sentence itself: it answers the engine's claims, so that time can be moved.

use std::time::Duration;

use tenure_core::gauge::{
    Gauge, GaugeAddress, GaugeClaim, GaugeReading, GaugeResult, GaugeSource, OnStale,
};
use tenure_core::requests::PutLimit;
use tenure_core::settings::LimitView;
use tenure_core::time::Span;
use tenure_engine_api::GaugeFeed;

use crate::bench::{Bench, noted};
use crate::words::*;

/// Longest real time until an engine claims a due gauge.
const CLAIMED_WITHIN: Duration = Duration::from_secs(10);

fn address(text: &str) -> GaugeAddress {
    GaugeAddress::parse(text).unwrap_or_else(|no| panic!("{text:?} is no address: {}", no.0))
}

fn with(source: GaugeSource) -> Gauge {
    Gauge { source, every: s(2), lag: s(10), stale: s(30), on_stale: OnStale::Keep }
}

/// A gauge whose address counts, with the defaults of the contract.
pub(crate) fn counting() -> Gauge {
    counting_at("http://host/load")
}

/// The same, at this address.
pub(crate) fn counting_at(url: &str) -> Gauge {
    with(GaugeSource::Count { url: address(url), count: vec!["/running".to_owned()] })
}

/// A gauge whose address lists ids.
pub(crate) fn listing() -> Gauge {
    with(GaugeSource::Scrapyd { scrapyd: address("http://host"), project: None })
}

/// A reading of an address that lists ids.
pub(crate) fn ids<const N: usize>(ids: [&str; N]) -> GaugeResult {
    GaugeResult::Ids(ids.map(str::to_owned).to_vec())
}

/// A reading of an address that counts.
pub(crate) fn sum(sum: u64) -> GaugeResult {
    GaugeResult::Sum(sum)
}

/// An attempt that failed.
pub(crate) fn unreadable() -> GaugeResult {
    GaugeResult::failed("http status 503")
}

/// The last reading of a limit's gauge.
pub(crate) fn reading_of(view: &LimitView) -> GaugeReading {
    let gauge = view.gauge.as_ref().expect("it has a gauge");
    gauge.reading.clone().unwrap_or_default()
}

/// A process that reads gauges.
pub(crate) struct GaugeDesk(GaugeFeed);

impl GaugeDesk {
    /// Waits for the next claim.
    pub(crate) async fn claim(&mut self) -> GaugeClaim {
        let claimed = tokio::time::timeout(CLAIMED_WITHIN, self.0.next()).await;
        let claimed = claimed.expect("a gauge is claimed").expect("the engine is open");
        claimed.claim
    }

    /// A claim, if there is one.
    pub(crate) fn try_claim(&mut self) -> Option<GaugeClaim> {
        self.0.try_next().map(|claimed| claimed.claim)
    }

    /// Checks that no gauge is due for this process. All due work has been done.
    #[track_caller]
    pub(crate) fn no_claim(&mut self) {
        let claim = self.try_claim();
        assert!(claim.is_none(), "{claim:?} was not to be");
    }

    /// Takes the next claim and answers it with `result`.
    pub(crate) async fn read(&mut self, b: &Bench, result: GaugeResult) {
        let claim = self.claim().await;
        b.read(&claim, result).await;
    }
}

impl Bench {
    /// A process that reads gauges from now on; `None` (and a note on stderr) if the engine cannot keep gauges.
    pub(crate) fn reader(&self) -> Option<GaugeDesk> {
        if !noted(self.can.gauges, "this engine keeps no gauges") {
            return None;
        }
        Some(GaugeDesk(self.engine().gauges().expect("an engine that keeps gauges has them read")))
    }

    /// Sends the answer to a claim.
    pub(crate) async fn read(&self, claim: &GaugeClaim, result: GaugeResult) {
        let answer = self.engine().answer_gauge(&self.namespace, claim.answered(result));
        answer.await.expect("an answer is taken, or dropped");
    }

    /// A limit with this cap and gauge.
    pub(crate) async fn set_gauge(&self, name: &str, cap: u32, gauge: Gauge) -> LimitView {
        let settings = crate::words::cap(cap);
        self.ok(PutLimit { limit: limit(name), settings, gauge: Some(Box::new(gauge)) }).await.view
    }

    /// Lets time pass, and answers each claim with this.
    pub(crate) async fn pass_reading(
        &self,
        reader: &mut GaugeDesk,
        span: Span,
        result: &GaugeResult,
    ) {
        let end = self.now().plus(span);
        while self.now() < end {
            while let Some(claim) = reader.try_claim() {
                self.read(&claim, result.clone()).await;
            }
            self.pass(end.since(self.now()).min(ms(500))).await;
        }
        while let Some(claim) = reader.try_claim() {
            self.read(&claim, result.clone()).await;
        }
    }

    /// The external permits of a limit.
    pub(crate) async fn external(&self, name: &str) -> u64 {
        self.limit(name).await.external
    }
}
