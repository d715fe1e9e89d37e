//! Reads the gauges of limits: takes what the engine claims for this process, asks each address once, and brings the
//! answers.
//!
//! One place for every process that ticks: a server, and a worker on a store of its own. When a gauge is read, and what
//! its answer means, is for the engine. Nothing here shows what is secret in an address.

mod counted;
mod get;

use std::sync::Arc;

use tenure_core::gauge::{GaugeClaim, GaugeResult};
use tenure_engine::{ClaimedGauge, Engine};
use tokio::task::JoinSet;

use self::counted::{counted, question};
use self::get::{ReadFailed, get};

/// Gauges that are asked at once. An address that hangs takes a place for two seconds.
const AT_ONCE_MAX: usize = 256;

/// Reads until the engine is closed; ends at once where another process ticks for it. Dropping it stops what is under
/// way, and the engine has others read.
pub async fn read_gauges(engine: Arc<dyn Engine>) {
    let Some(mut feed) = engine.gauges() else { return };
    let mut asking = JoinSet::new();
    while let Some(claimed) = feed.next().await {
        while asking.try_join_next().is_some() {}
        if asking.len() >= AT_ONCE_MAX {
            asking.join_next().await;
        }
        asking.spawn(answer(engine.clone(), claimed));
    }
}

async fn answer(engine: Arc<dyn Engine>, ClaimedGauge { namespace, claim }: ClaimedGauge) {
    let result = read(&claim).await.unwrap_or_else(|why| GaugeResult::failed(&why.to_string()));
    // An engine that cannot be asked has the attempt fail by itself.
    let _ = engine.answer_gauge(&namespace, claim.answered(result)).await;
}

async fn read(claim: &GaugeClaim) -> Result<GaugeResult, ReadFailed> {
    let source = &claim.gauge.source;
    let (address, path_and_query) = question(source)?;
    let body = get(address, path_and_query).await?;
    counted(source, &body)
}

#[cfg(test)]
mod tests;
