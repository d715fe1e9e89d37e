//! Reads the gauges of limits: takes the engine's claims for this process, asks each address once, and returns the
//! answers.
//!
//! One place for every process that ticks: a server, and a worker on a store of its own. The engine decides when a
//! gauge is read and what its answer means. Nothing here shows the secret part of an address.

mod counted;
mod get;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::gauge::{GaugeClaim, GaugeHosts, GaugeResult};
use tenure_core::names::{LimitName, Namespace};
use tenure_engine_api::{ClaimedGauge, Engine};
use tokio::task::JoinSet;

use self::counted::{counted, question};
use self::get::{ReadFailed, get};

/// Gauges that are read at once. An address that hangs takes a place for two seconds.
const AT_ONCE_MAX: usize = 256;

/// Reads until the engine is closed; ends at once if another process ticks for it. A link-local address is read only if
/// `hosts` names its host. Dropping the future stops the readings under way, and the engine has others read.
pub async fn read_gauges(engine: Arc<dyn Engine>, hosts: GaugeHosts) {
    let Some(mut feed) = engine.gauges() else { return };
    let (mut asking, failing) = (JoinSet::new(), Arc::<FailingGauges>::default());
    let hosts = Arc::new(hosts);
    while let Some(claimed) = feed.next().await {
        while asking.try_join_next().is_some() {}
        if asking.len() >= AT_ONCE_MAX {
            asking.join_next().await;
        }
        asking.spawn(answer(engine.clone(), hosts.clone(), claimed, failing.clone()));
    }
}

async fn answer(
    engine: Arc<dyn Engine>,
    hosts: Arc<GaugeHosts>,
    ClaimedGauge { namespace, claim }: ClaimedGauge,
    failing: Arc<FailingGauges>,
) {
    let result = read(&claim, &hosts).await.map_err(|why| why.to_string());
    failing.heard(&namespace, &claim.limit, result.as_ref().err());
    let result = result.unwrap_or_else(|why| GaugeResult::failed(&why));
    // If the engine cannot be called, it fails the attempt by itself.
    let _ = engine.answer_gauge(&namespace, claim.answered(result)).await;
}

/// The gauges whose last reading here failed: the first failure and the first success after it are logged.
#[derive(Default)]
struct FailingGauges(Mutex<HashSet<(Namespace, LimitName)>>);

impl FailingGauges {
    /// `why`: the reason if the reading failed.
    fn heard(&self, namespace: &Namespace, limit: &LimitName, why: Option<&String>) {
        let gauge = (namespace.clone(), limit.clone());
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (namespace, limit) = (namespace.as_str(), limit.as_str());
        match why {
            Some(why) => {
                if failing.insert(gauge) {
                    tracing::warn!(namespace, limit, why, "a gauge cannot be read");
                }
            }
            None => {
                if failing.remove(&gauge) {
                    tracing::info!(namespace, limit, "a gauge is read again");
                }
            }
        }
    }
}

async fn read(claim: &GaugeClaim, hosts: &GaugeHosts) -> Result<GaugeResult, ReadFailed> {
    let source = &claim.gauge.source;
    let (address, path_and_query) = question(source)?;
    let body = get(address, path_and_query, hosts).await?;
    counted(source, &body)
}

#[cfg(test)]
mod tests;
