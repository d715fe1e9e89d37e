//! Tells the operator of a server, on stderr, when its store is away and when it is back, and what else it
//! has to say.
//!
//! It only looks: calls are answered as they are, and what `/readyz` says is asked of the engine anew.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenure_engine::Engine;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Between two looks. The first comes after a while, when a connection can have been made.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks for as long as it is polled; one line for each change, and for each notice when it begins.
pub async fn tell(engine: Arc<dyn Engine>) -> Infallible {
    let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut told, mut noticed) = (None, false);
    loop {
        looks.tick().await;
        let now = engine.health().degraded;
        match &now {
            Some(why) if told.is_none() => tracing::warn!(%why, "the store is not well"),
            None if told.is_some() => tracing::info!("the store is well again"),
            _ => {}
        }
        told = now;
        let notice = engine.notice();
        if let Some(notice) = notice.as_ref().filter(|_| !noticed) {
            tracing::warn!("{notice}");
        }
        noticed = notice.is_some();
    }
}
