//! Counts of times by how long they were, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in seconds; times above the last one are in `+Inf` alone.
pub(crate) const BOUNDS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0];

/// In which bucket a time is; `BOUNDS.len()` for one above all bounds.
pub(crate) fn bucket_of(took: Duration) -> usize {
    let seconds = took.as_secs_f64();
    BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len())
}

/// Times of one kind.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    pub(crate) fn count(&self, took: Duration) {
        self.buckets[bucket_of(took)].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn seen(&self) -> Seen {
        let buckets = std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed));
        Seen { buckets, sum: self.sum_us.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

/// What a histogram holds at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Seen {
    /// Times in each bucket alone.
    pub buckets: [u64; BOUNDS.len() + 1],
    /// Seconds of all together.
    pub sum: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it() {
        for (ms, bucket) in [(0, 0), (1, 0), (2, 1), (1000, 6), (1001, 7), (100_000_000, 14)] {
            assert_eq!(bucket_of(Duration::from_millis(ms)), bucket, "{ms} ms");
        }
        let times = Histogram::default();
        times.count(Duration::from_millis(2));
        times.count(Duration::from_secs(200_000));
        let seen = times.seen();
        assert_eq!((seen.buckets[1], seen.buckets[14]), (1, 1));
        assert!((seen.sum - 200_000.002).abs() < 1e-6, "{}", seen.sum);
    }
}
