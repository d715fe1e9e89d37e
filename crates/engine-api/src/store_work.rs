//! Statistics of a store: the durations of its commits, syncs and calls, and a log line when it is slow.
//!
//! An engine counts here and decides nothing by it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::Seldom;
use crate::histogram::{Histogram, STORE_BOUNDS, Seen};

/// A longer time is reported. A healthy disk or network takes a hundredth of it.
pub const SLOW: Duration = Duration::from_secs(1);

/// Statistics of an engine's store since it was opened, for metrics.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StoreWork {
    /// Transactions of the rows of a store, without their syncs.
    pub commits: Option<Seen>,
    /// Syncs of a disk, or appends to a journal.
    pub syncs: Option<Seen>,
    /// The time to read the store when it was opened; `None` if nothing is read then.
    pub opened_in: Option<Duration>,
    /// The time for which nothing exclusive is granted yet, because the store may have forgotten answered changes; zero
    /// if it is well, `None` for a store that never does so.
    pub recovers_for: Option<Duration>,
}

/// The durations of a store's operations, with log lines about slow ones.
#[derive(Debug, Default)]
pub struct StoreTimes {
    times: RwLock<BTreeMap<&'static str, Arc<Histogram>>>,
    slow: Mutex<SlowState>,
}

#[derive(Debug, Default)]
struct SlowState {
    lines: Seldom,
    longest: Duration,
}

impl StoreTimes {
    /// Counts the duration of one `what`, and logs a line if it is slow and no line was written recently.
    pub fn took(&self, what: &'static str, took: Duration) {
        self.of(what).count(took);
        if took < SLOW {
            return;
        }
        let mut state = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        state.longest = state.longest.max(took);
        state.lines.happened(1);
        if let Some(times) = state.lines.due(Instant::now()) {
            let longest_ms = std::mem::take(&mut state.longest).as_millis() as u64;
            let threshold_ms = SLOW.as_millis() as u64;
            tracing::warn!(what, times, longest_ms, threshold_ms, "the store is slow");
        }
    }

    fn of(&self, what: &'static str) -> Arc<Histogram> {
        {
            let times = self.times.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = times.get(what) {
                return known.clone();
            }
        }
        let mut times = self.times.write().unwrap_or_else(PoisonError::into_inner);
        times.entry(what).or_insert_with(|| Arc::new(Histogram::with(&STORE_BOUNDS))).clone()
    }

    /// All counts, by name.
    pub fn seen(&self) -> Vec<(&'static str, Seen)> {
        let times = self.times.read().unwrap_or_else(PoisonError::into_inner);
        times.iter().map(|(what, times)| (*what, times.seen())).collect()
    }

    /// The counts under this name, if there are any.
    pub fn seen_of(&self, what: &str) -> Option<Seen> {
        let times = self.times.read().unwrap_or_else(PoisonError::into_inner);
        times.get(what).map(|times| times.seen())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_by_what_they_were_for() {
        let times = StoreTimes::default();
        times.took("sync", Duration::from_millis(3));
        times.took("sync", Duration::from_millis(4));
        times.took("commit", Duration::from_millis(1));
        let seen = times.seen();
        let told: Vec<_> = seen.iter().map(|(what, seen)| (*what, seen.count())).collect();
        assert_eq!(told, [("commit", 1), ("sync", 2)]);
        assert_eq!(times.seen_of("sync").map(|seen| seen.sum), Some(0.007));
        assert_eq!(times.seen_of("push"), None);
    }
}
