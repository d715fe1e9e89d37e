//! Tells the operator of a server, on stderr, when its store is away and when it is back, and each notice of the store.
//!
//! It only looks: calls are answered as before, and `/readyz` asks the engine itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::time::Span;
use tenure_engine_api::Engine;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::service_manager::ServiceManager;

/// The time between two looks at the health of the store.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time from the start to the first look: by then a server of a new store leads it.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// Looks for as long as it is polled; logs one line for each change, and for each notice when it begins. The service
/// manager shows the state of the store.
pub async fn tell(engine: Arc<dyn Engine>, manager: &ServiceManager) -> Infallible {
    let mut looks = interval_at(Instant::now() + FIRST_LOOK, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut ill_since, mut noticed): (Option<Instant>, Option<String>) = (None, None);
    loop {
        looks.tick().await;
        match (engine.health().degraded, ill_since) {
            (Some(why), None) => {
                manager.status(&format!("the store is not well: {why}"));
                tracing::warn!(why, "the store is not well");
                ill_since = Some(Instant::now());
            }
            (None, Some(since)) => {
                manager.status("serves; the store is well again");
                tracing::info!(after = %seconds(since.elapsed()), "the store is well again");
                ill_since = None;
            }
            _ => {}
        }
        let notice = engine.notice();
        match (&notice, &noticed) {
            (Some(notice), None) => tracing::warn!("{notice}"),
            (None, Some(notice)) => tracing::info!("it is over: {notice}"),
            _ => {}
        }
        noticed = notice;
    }
}

/// How long something was, to the second.
fn seconds(span: Duration) -> Span {
    Span::from_s(span.as_secs())
}
