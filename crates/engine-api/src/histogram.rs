//! Lock-free histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The number of bounds of a histogram.
const BOUNDS: usize = 28;

/// The upper bounds of the buckets, in seconds; longer times are only in `+Inf`. Each bound is at most twice the
/// one before, so that a value read between two of them is off by less than that.
pub type Bounds = [f64; BOUNDS];

/// Bounds for the times of jobs, runs and requests.
pub const WORK_BOUNDS: Bounds = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0,
    30.0, 60.0, 120.0, 240.0, 480.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 57600.0,
    86400.0,
];

/// Bounds for the times of a store.
pub const STORE_BOUNDS: Bounds = [
    0.0001, 0.0002, 0.0003, 0.0004, 0.0006, 0.0008, 0.0012, 0.0016, 0.0025, 0.0035, 0.005, 0.007,
    0.01, 0.015, 0.02, 0.03, 0.045, 0.06, 0.09, 0.125, 0.18, 0.25, 0.35, 0.5, 1.0, 2.0, 4.0, 8.0,
];

/// The bucket of a time; the number of bounds for a time above all of them.
pub fn bucket_of(bounds: &Bounds, took: Duration) -> usize {
    let seconds = took.as_secs_f64();
    bounds.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS)
}

/// Counted durations of one kind.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static Bounds,
    buckets: [AtomicU64; BOUNDS + 1],
    sum_us: AtomicU64,
}

/// Uses [`WORK_BOUNDS`], without any time yet.
impl Default for Histogram {
    fn default() -> Self {
        Histogram::with(&WORK_BOUNDS)
    }
}

impl Histogram {
    /// An empty histogram with these bounds.
    pub fn with(bounds: &'static Bounds) -> Self {
        Histogram { bounds, buckets: Default::default(), sum_us: AtomicU64::new(0) }
    }

    /// Counts one duration in its bucket.
    pub fn count(&self, took: Duration) {
        self.buckets[bucket_of(self.bounds, took)].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// A copy of the present counts.
    pub fn seen(&self) -> Seen {
        let buckets = std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed));
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        Seen { bounds: self.bounds, buckets, sum }
    }
}

/// The counts of a histogram at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seen {
    /// The bounds of the histogram.
    pub bounds: &'static Bounds,
    /// The count of each bucket by itself, not cumulated.
    pub buckets: [u64; BOUNDS + 1],
    /// The sum of all times, in seconds.
    pub sum: f64,
}

impl Seen {
    /// The number of times that were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it() {
        for (ms, bucket) in [(0, 0), (1, 0), (2, 1), (1000, 10), (1001, 11), (100_000_000, 28)] {
            assert_eq!(bucket_of(&WORK_BOUNDS, Duration::from_millis(ms)), bucket, "{ms} ms");
        }
        let times = Histogram::default();
        times.count(Duration::from_millis(2));
        times.count(Duration::from_secs(200_000));
        let seen = times.seen();
        assert_eq!((seen.buckets[1], seen.buckets[28], seen.count()), (1, 1, 2));
        assert!((seen.sum - 200_000.002).abs() < 1e-6, "{}", seen.sum);
    }

    #[test]
    fn a_bound_is_at_most_twice_the_one_before() {
        for bounds in [WORK_BOUNDS, STORE_BOUNDS] {
            let grows = |one: &f64, next: &f64| one < next && *next <= 2.0 * one;
            assert!(bounds.is_sorted_by(grows), "{bounds:?}");
        }
    }
}
