//! Requests over HTTP, by route and by the class of their status.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenure_engine_api::histogram::{Histogram, Seen};

/// Classes of status, from `1xx`.
pub(crate) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

#[derive(Debug, Default)]
struct RouteCounts {
    classes: [AtomicU64; CLASSES.len()],
    took: Histogram,
}

/// Counts of a server's requests. The routes are known from the start, so counting takes no lock.
#[derive(Debug)]
pub struct HttpCounts {
    routes: HashMap<&'static str, RouteCounts>,
    now: AtomicU64,
}

impl HttpCounts {
    /// For these routes; requests for other ones are not counted.
    pub fn of(routes: impl Iterator<Item = &'static str>) -> Self {
        let routes = routes.map(|route| (route, RouteCounts::default())).collect();
        HttpCounts { routes, now: AtomicU64::new(0) }
    }

    /// Counts a request as in flight, until its answer begins or the returned value is dropped.
    pub fn begin(&self) -> InFlight<'_> {
        self.now.fetch_add(1, Ordering::Relaxed);
        InFlight { counts: self, since: Instant::now() }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Each route with requests, in the order of names: its name, answers by class, and times.
    pub(crate) fn seen(&self) -> Vec<(&'static str, [u64; CLASSES.len()], Seen)> {
        let mut all: Vec<_> = self
            .routes
            .iter()
            .map(|(route, counts)| {
                let classes: [u64; CLASSES.len()] =
                    std::array::from_fn(|at| counts.classes[at].load(Ordering::Relaxed));
                (*route, classes, counts.took.seen())
            })
            .filter(|(_, classes, _)| classes.iter().any(|times| *times > 0))
            .collect();
        all.sort_unstable_by_key(|(route, ..)| *route);
        all
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct InFlight<'c> {
    counts: &'c HttpCounts,
    since: Instant,
}

impl InFlight<'_> {
    pub fn answered(self, route: &str, status: u16) {
        self.count(route, status, self.since.elapsed());
    }

    fn count(&self, route: &str, status: u16, took: Duration) {
        let Some(counts) = self.counts.routes.get(route) else { return };
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        counts.classes[class].fetch_add(1, Ordering::Relaxed);
        counts.took.count(took);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.counts.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_in_flight_until_it_is_answered_or_given_up() {
        let counts = HttpCounts::of(["push", "lease"].into_iter());
        let (one, other) = (counts.begin(), counts.begin());
        assert_eq!(counts.now(), 2);
        one.answered("push", 201);
        drop(other);
        assert_eq!(counts.now(), 0);
        let seen = counts.seen();
        let [("push", classes, took)] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!((classes, took.buckets.iter().sum()), (&[0, 1, 0, 0, 0], 1u64));
    }
}
