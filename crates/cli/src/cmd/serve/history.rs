//! The pictures of the dashboard: the server counts its calls, and observes the age of the oldest ready job.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::names::{Namespace, QueueName};
use tenure_core::requests::GetStats;
use tenure_core::time::Span;
use tenure_dashboard::{History, Minute};
use tenure_engine_api::{Clock, Engine, EngineExt, SystemClock};
use tenure_server::metrics::CallCounts;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Time between two looks at the oldest ready jobs. A picture has a point for each minute.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// A store that takes longer is not looked at.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// The minutes of these counts.
pub struct CountedHistory(pub Arc<CallCounts>);

impl History for CountedHistory {
    fn minutes(
        &self,
        namespace: &Namespace,
        queue: Option<&QueueName>,
        minutes: usize,
    ) -> Vec<Minute> {
        let counted = self.0.minutes.last(namespace, queue, minutes);
        let drawn = counted.iter().map(|minute| Minute {
            at: minute.at,
            pushed: minute.pushed,
            lost: minute.lost,
            succeeded: minute.succeeded,
            failed: minute.failed,
            oldest_ready: minute.oldest_ready,
            half_waited: minute.waits.within(0.5),
            most_waited: minute.waits.within(0.95),
            half_ran: minute.runs.within(0.5),
            most_ran: minute.runs.within(0.95),
        });
        drawn.collect()
    }

    fn namespaces(&self) -> Vec<Namespace> {
        self.0.minutes.namespaces()
    }
}

/// Looks for as long as it is polled.
pub async fn watch(engine: Arc<dyn Engine>, counts: Arc<CallCounts>) -> Infallible {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        look(&engine, &counts).await;
    }
}

async fn look(engine: &Arc<dyn Engine>, counts: &CallCounts) {
    for namespace in counts.minutes.busy() {
        // A store that does not answer is a gap in the picture, and shows elsewhere.
        let Ok(Ok(stats)) = timeout(LOOK_MAX, engine.run(&namespace, GetStats)).await else {
            return;
        };
        let now = SystemClock.now();
        let age = stats.oldest_ready_at.map_or(Span::ZERO, |since| now.since(since));
        counts.minutes.looked(&namespace, age);
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::job::NewJob;
    use tenure_core::requests::{Push, PushAnswer};
    use tenure_engine::{Embedded, Location, Options};
    use tenure_server::metrics::CountingEngine;

    use super::*;

    #[tokio::test]
    async fn it_looks_where_something_was_pushed_and_nowhere_else() {
        let store: Arc<dyn Engine> =
            Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
        let counts = Arc::new(CallCounts::default());
        let engine: Arc<dyn Engine> = Arc::new(CountingEngine::new(store, counts.clone()));
        let [used, unused] = ["used", "unused"].map(|name| Namespace::parse(name).unwrap());
        look(&engine, &counts).await;
        let job = NewJob::new("crawl".parse().unwrap());
        engine.run(&used, Push { jobs: vec![job], answer: PushAnswer::Ids }).await.unwrap();
        look(&engine, &counts).await;
        let history = CountedHistory(counts);
        let seen = |namespace| {
            let minutes = history.minutes(namespace, None, 2);
            minutes.iter().any(|minute| minute.oldest_ready.is_some())
        };
        assert_eq!([seen(&used), seen(&unused)], [true, false]);
    }
}
