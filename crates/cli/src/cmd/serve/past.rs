//! The pictures of the dashboard continue from before the start of the server: it reads the kept events of the store in
//! the background. A server of a store that another one serves reads on until it counts calls itself.
//!
//! The API does not list namespaces: the main one is read, and others when something was counted in them. A store that
//! keeps no events, or refuses to show them, leaves the pictures as they are.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::bounds::LIST_MAX;
use tenure_core::events::{EventFilter, GapWhy};
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::{EventsSince, ReadEvents};
use tenure_engine_api::{CallError, Engine, EngineExt, Fault};
use tenure_server::metrics::{CallCounts, Past};
use tokio::time::sleep;

/// Pause between two pages, so that calls have the store.
const PAUSE: Duration = Duration::from_millis(20);
/// Time until a store that nobody serves is asked again.
const AGAIN: Duration = Duration::from_millis(500);
/// Time between two looks for new events, or for counts of another namespace.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Fills the pictures for as long as it is polled.
pub async fn fill_in(engine: Arc<dyn Engine>, counts: Arc<CallCounts>) -> Infallible {
    let mut filled = Vec::new();
    loop {
        let counted = counts.minutes.namespaces().into_iter();
        for namespace in std::iter::once(Namespace::main()).chain(counted) {
            if !filled.contains(&namespace) {
                fill(&engine, &counts, &namespace, LOOK_EVERY).await;
                filled.push(namespace);
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Reads the kept events of a namespace, up to the start of this process's counts.
async fn fill(
    engine: &Arc<dyn Engine>,
    counts: &Arc<CallCounts>,
    namespace: &Namespace,
    look_every: Duration,
) {
    let past = Past::new(counts.clone(), namespace.clone());
    let filter = EventFilter { types: Past::TYPES.to_vec(), ..EventFilter::default() };
    let mut since = EventsSince::First;
    loop {
        let counts_here = counts.counts_since().is_some();
        let request =
            ReadEvents { since, filter: filter.clone(), max: LIST_MAX, ..ReadEvents::default() };
        let read = match engine.run(namespace, request).await {
            Ok(read) => read,
            Err(why) if is_away(&why) => {
                sleep(AGAIN).await;
                continue;
            }
            Err(why) => {
                tracing::debug!(namespace = namespace.as_str(), %why, "no events from before the start");
                return;
            }
        };
        // Events of another life of the store may be those that were counted.
        let is_anew = read.gap.as_ref().is_some_and(|gap| gap.why == GapWhy::Restarted);
        if is_anew && since != EventsSince::First {
            return;
        }
        let all = read.items.iter().all(|event| past.count(&event.happened));
        let is_end = since == EventsSince::Id(read.next);
        if !all || is_end && counts_here {
            past.told();
            return;
        }
        since = EventsSince::Id(read.next);
        sleep(if is_end { look_every } else { PAUSE }).await;
    }
}

/// Nobody serves the store now, and a server may soon.
fn is_away(why: &CallError) -> bool {
    match why {
        CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_) | Fault::Unknown(_)) => true,
        CallError::Fault(Fault::Denied(_) | Fault::Broken(_)) => false,
        CallError::Refused(no) => {
            matches!(no.code, Code::StoreUnavailable | Code::NotOwner | Code::Draining)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tenure_core::access::TokenName;
    use tenure_core::job::NewJob;
    use tenure_core::requests::{Push, PushAnswer, Request};
    use tenure_engine::{Embedded, Location, Options};
    use tenure_engine_api::{AroundEngine, CallFuture};
    use tenure_server::metrics::CountingEngine;

    use super::*;

    /// Time between two looks, in tests.
    const SOON: Duration = Duration::from_millis(5);

    /// A store that nobody leads at the first call.
    struct AwayAtFirst {
        inner: Arc<dyn Engine>,
        calls: AtomicUsize,
    }

    impl AroundEngine for AwayAtFirst {
        fn inner(&self) -> &dyn Engine {
            &*self.inner
        }

        fn call_around(
            &self,
            by: Option<&TokenName>,
            namespace: &Namespace,
            request: Request,
        ) -> CallFuture {
            if self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
                let away = Fault::Unavailable("nobody leads".to_owned());
                return Box::pin(async { Err(away.into()) });
            }
            self.inner.call_by(by, namespace, request)
        }
    }

    /// A store, and the counts of a server that was started on it.
    struct Scene {
        store: Arc<dyn Engine>,
        counts: Arc<CallCounts>,
    }

    impl Scene {
        /// A scene after this many pushes.
        async fn after(pushes: usize, options: Options) -> Self {
            let store: Arc<dyn Engine> = Arc::new(Embedded::open(options).unwrap());
            for some in (0..pushes).collect::<Vec<_>>().chunks(500) {
                push(&store, some.len()).await;
            }
            Scene { store, counts: Arc::new(CallCounts::default()) }
        }

        /// The engine by which this server answers calls.
        fn served(&self) -> Arc<dyn Engine> {
            Arc::new(CountingEngine::new(self.store.clone(), self.counts.clone()))
        }

        /// How many pushes the pictures show.
        fn drawn(&self) -> u64 {
            let minutes = self.counts.minutes.last(&Namespace::main(), None, 60);
            minutes.iter().map(|minute| minute.pushed).sum()
        }
    }

    async fn push(engine: &Arc<dyn Engine>, jobs: usize) {
        let jobs = (0..jobs).map(|_| NewJob::new("crawl".parse().unwrap())).collect();
        let push = Push { jobs, answer: PushAnswer::Ids };
        engine.run(&Namespace::main(), push).await.unwrap();
    }

    #[tokio::test]
    async fn history_is_read_in_pages_under_a_leader_and_counted_once() {
        let scene = Scene::after(2_500, Options::new(Location::Memory)).await;
        push(&scene.served(), 1).await;
        assert_eq!(scene.drawn(), 1);
        let away = Arc::new(AwayAtFirst { inner: scene.store.clone(), calls: AtomicUsize::new(0) });
        let engine: Arc<dyn Engine> = away.clone();
        fill(&engine, &scene.counts, &Namespace::main(), SOON).await;
        assert_eq!(scene.drawn(), 2_501);
        assert!(away.calls.load(Ordering::Relaxed) > 3);
    }

    #[tokio::test]
    async fn pushes_led_by_another_server_are_drawn_from_events() {
        let scene = Scene::after(3, Options::new(Location::Memory)).await;
        let main = Namespace::main();
        let filled = fill(&scene.store, &scene.counts, &main, SOON);
        let pushed = async {
            let until = async |wanted| {
                while scene.drawn() != wanted {
                    sleep(SOON).await;
                }
            };
            until(3).await;
            push(&scene.store, 4).await;
            until(3 + 4).await;
            push(&scene.served(), 5).await;
        };
        let all = async { tokio::join!(filled, pushed) };
        tokio::time::timeout(Duration::from_secs(30), all).await.unwrap();
        assert_eq!(scene.drawn(), 3 + 4 + 5);
    }

    #[tokio::test]
    async fn a_store_that_keeps_no_events_leaves_the_pictures_as_they_are() {
        let mut options = Options::new(Location::Memory);
        options.events_bytes = 0;
        let scene = Scene::after(1, options).await;
        fill(&scene.store, &scene.counts, &Namespace::main(), SOON).await;
        assert_eq!(scene.drawn(), 0);
    }
}
