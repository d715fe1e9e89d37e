//! Live pages: one stream per tab says that something changed; the tab then fetches its page again.
//!
//! One watcher per namespace looks for news, however many tabs there are. The more tabs there are and the longer a page
//! takes to draw, the less often each tab is notified, so that all together take a twentieth of a processor
//! (docs/decisions/089-live-pages-are-told-that-something-changed.md,
//! docs/decisions/100-tabs-are-told-as-often-as-pages-are-cheap.md).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tenure_core::bounds::LIVE_TABS_MAX;
use tenure_core::names::Namespace;
use tenure_core::requests::{EventsSince, ReadEvents};
use tenure_core::time::Span;
use tenure_engine_api::{Engine, EngineExt};
use tenure_server::PageBody;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The shortest time between two notices to a tab.
const PAUSE: Duration = Duration::from_millis(500);
/// The pages of all tabs take at most one part in this many of one processor's time.
const SHARE: u64 = 20;
/// The longest time between two notices, however expensive a page is.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// A change without an event (a heartbeat, the end of a rest) is seen after this.
const STALE: Duration = Duration::from_secs(5);
/// How often a stream checks for its end. It sends the browser a comment then, too.
const LOOK: Duration = Duration::from_secs(1);

/// The tabs that follow, and their watchers.
#[derive(Clone, Default)]
pub(crate) struct LiveTabs {
    tabs: Arc<AtomicUsize>,
    /// The time to draw a page, in microseconds: a running mean of about eight pages.
    cost_us: Arc<AtomicU64>,
    watched: Arc<Mutex<HashMap<Namespace, watch::Sender<u64>>>>,
}

/// One tab, counted until it is dropped.
struct CountedTab(LiveTabs);

impl Drop for CountedTab {
    fn drop(&mut self) {
        self.0.tabs.fetch_sub(1, Ordering::AcqRel);
    }
}

impl LiveTabs {
    /// A stream for one more tab; `None` if there are too many. `ends` is called once a second, and says when the
    /// stream must end: the server drains, or the session is over.
    pub(crate) fn stream(
        &self,
        engine: Arc<dyn Engine>,
        namespace: Namespace,
        ends: impl Fn() -> bool + Send + 'static,
    ) -> Option<Response<PageBody>> {
        let tab = CountedTab(self.clone());
        if self.tabs.fetch_add(1, Ordering::AcqRel) >= LIVE_TABS_MAX {
            return None;
        }
        let news = self.follow(engine, namespace);
        let (sender, receiver) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            // A tab that is gone gets no more notices.
            let _ = tell(&tab.0, news, sender, ends).await;
        });
        let mut response = Response::new(PageBody::Stream(receiver, task.abort_handle()));
        let media = http::HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(http::header::CONTENT_TYPE, media);
        Some(response)
    }

    /// News of a namespace, from its one watcher.
    fn follow(&self, engine: Arc<dyn Engine>, namespace: Namespace) -> watch::Receiver<u64> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = watched.get(&namespace) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(0);
        watched.insert(namespace.clone(), sender.clone());
        let all = self.watched.clone();
        tokio::spawn(async move {
            loop {
                look(engine.as_ref(), &namespace).await;
                sender.send_modify(|n| *n += 1);
                let mut watched = all.lock().unwrap_or_else(PoisonError::into_inner);
                // Checked under the lock under which a tab subscribes, so no tab can come between.
                if sender.receiver_count() == 0 {
                    watched.remove(&namespace);
                    return;
                }
                drop(watched);
                sleep(PAUSE).await;
            }
        });
        receiver
    }

    /// Records how long a page took to draw. Waiting for a busy machine counts, too: then tabs are notified less often.
    pub(crate) fn drew(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mean = self.cost_us.load(Ordering::Relaxed);
        // With two pages at once one may be lost, which a mean can bear.
        self.cost_us.store(mean - mean / 8 + took / 8, Ordering::Relaxed);
    }

    /// How long each tab waits between two pages.
    fn pause(&self) -> Duration {
        let tabs = self.tabs.load(Ordering::Acquire).max(1) as u64;
        let all = self.cost_us.load(Ordering::Relaxed).saturating_mul(tabs);
        Duration::from_micros(all.saturating_mul(SHARE)).clamp(PAUSE, PAUSE_MAX)
    }
}

/// Ends at the next event, or after the time in which a change without an event may have come.
async fn look(engine: &dyn Engine, namespace: &Namespace) {
    let until = Instant::now() + STALE;
    let here = ReadEvents { max: 1, ..ReadEvents::default() };
    let wait = Span::from(STALE);
    let read = async {
        let here = engine.run(namespace, here).await?;
        let since = EventsSince::Id(here.next);
        engine.run(namespace, ReadEvents { since, wait, max: 1, ..ReadEvents::default() }).await
    };
    match timeout(STALE, read).await {
        Ok(Ok(read)) if !read.items.is_empty() || read.gap.is_some() => {}
        // No events are kept, or the store is away: look again after a while.
        _ => sleep_until(until).await,
    }
}

async fn tell(
    tabs: &LiveTabs,
    mut news: watch::Receiver<u64>,
    sender: mpsc::Sender<Bytes>,
    ends: impl Fn() -> bool,
) -> Result<(), mpsc::error::SendError<Bytes>> {
    sender.send(Bytes::from_static(b"retry: 2000\n\n")).await?;
    let mut last = Instant::now();
    loop {
        let changed = match timeout(LOOK, news.changed()).await {
            Ok(Ok(())) => true,
            // The watcher is gone: the tab reconnects.
            Ok(Err(_)) => return Ok(()),
            Err(_) => false,
        };
        // The pause may be long, and a tab whose session ends must not wait for its end.
        let next = last + tabs.pause();
        while changed && Instant::now() < next && !ends() {
            sleep_until(next.min(Instant::now() + LOOK)).await;
        }
        if ends() {
            return Ok(());
        }
        if changed {
            last = Instant::now();
            news.mark_unchanged();
            sender.send(Bytes::from_static(b"event: changed\ndata:\n\n")).await?;
        } else {
            sender.send(Bytes::from_static(b":\n\n")).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_tab_waits_longer_with_more_tabs_and_dearer_pages() {
        for (tabs, ms, pause_ms) in [
            (1, 0, 500),
            (1, 2, 500),
            (10, 2, 500),
            (100, 2, 4_000),
            (1, 50, 1_000),
            (100, 15, 30_000),
            (200, 1_000, 60_000),
        ] {
            let live = LiveTabs::default();
            live.tabs.store(tabs, Ordering::Release);
            for _ in 0..200 {
                live.drew(Duration::from_millis(ms));
            }
            let (found, wanted) = (live.pause().as_millis() as f64, f64::from(pause_ms));
            assert!((found - wanted).abs() <= wanted / 50.0, "{tabs} tabs, {ms} ms: {found}");
        }
    }
}
