//! The counts of one minute.

use std::time::Duration;

use tenure_core::time::{Moment, Span};
use tenure_engine_api::histogram::{WORK_BOUNDS, bucket_of};

/// A minute in microseconds.
pub(crate) const MINUTE_US: u64 = 60_000_000;

/// The events of one minute, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Minute {
    /// The start of the minute.
    pub at: Moment,
    /// Jobs that were pushed, without duplicates.
    pub pushed: u64,
    /// Jobs that were granted.
    pub granted: u64,
    /// Granted jobs whose run before was lost, because its holder was gone.
    pub lost: u64,
    /// Runs that ended with success.
    pub succeeded: u64,
    /// Runs that failed, for good or not.
    pub failed: u64,
    /// The highest age of the oldest ready job that was measured in this minute; zero if no job was ready, `None` if
    /// nobody looked. Always `None` for queues.
    pub oldest_ready: Option<Span>,
    /// How long the granted jobs had waited since they were due.
    pub waits: Times,
    /// How long the runs took that succeeded or failed, if their start is known.
    pub runs: Times,
}

impl Minute {
    /// An empty minute, by its number since 1970.
    pub(crate) fn of(number: u64) -> Self {
        let at = Moment::from_us(number.saturating_mul(MINUTE_US));
        let [pushed, granted, lost, succeeded, failed] = [0; 5];
        let [waits, runs] = [Times::default(); 2];
        Minute { at, pushed, granted, lost, succeeded, failed, oldest_ready: None, waits, runs }
    }

    /// The number of the minute since 1970.
    pub(crate) fn number(&self) -> u64 {
        number_of(self.at)
    }

    /// Whether there were counts, or a job waited.
    pub(crate) fn is_busy(&self) -> bool {
        let counted = self.pushed + self.granted + self.succeeded + self.failed;
        counted > 0 || self.oldest_ready.is_some_and(|age| age > Span::ZERO)
    }
}

/// The number of the minute of a moment.
pub(crate) fn number_of(at: Moment) -> u64 {
    at.us() / MINUTE_US
}

/// Times of one minute, in buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    buckets: [u32; WORK_BOUNDS.len() + 1],
    longest: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Times { buckets: [0; WORK_BOUNDS.len() + 1], longest: Duration::ZERO }
    }
}

impl Times {
    pub(crate) fn count(&mut self, took: Duration) {
        let times = &mut self.buckets[bucket_of(&WORK_BOUNDS, took)];
        *times = times.saturating_add(1);
        self.longest = self.longest.max(took);
    }

    /// The time that this share (0 to 1) of them did not exceed, interpolated within its bucket; at most the longest of
    /// them. `None` if there are no times.
    pub fn within(&self, share: f64) -> Option<Span> {
        let all: u64 = self.buckets.iter().map(|times| u64::from(*times)).sum();
        let wanted = all as f64 * share;
        let (mut below, mut from) = (0.0, 0.0);
        for (at, times) in self.buckets.iter().enumerate() {
            let times = f64::from(*times);
            let longest = self.longest.as_secs_f64();
            let to = WORK_BOUNDS.get(at).map_or(longest, |bound| bound.min(longest)).max(from);
            if times > 0.0 && below + times >= wanted {
                let within = ((wanted - below) / times).clamp(0.0, 1.0);
                let took = from + (to - from) * within;
                return Some(Span::from(Duration::from_secs_f64(took)));
            }
            (below, from) = (below + times, to);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn times(all: impl IntoIterator<Item = Duration>) -> Times {
        let mut times = Times::default();
        all.into_iter().for_each(|took| times.count(took));
        times
    }

    #[test]
    fn a_share_of_the_times_is_told_between_two_bounds() {
        let times = times((1..=144).map(Duration::from_secs));
        for (share, s) in [(0.5, 72.0), (0.95, 136.8)] {
            let took = Duration::from(times.within(share).unwrap()).as_secs_f64();
            assert!((took - s).abs() < 3.0, "{share}: {took} s");
        }
        assert_eq!(Times::default().within(0.5), None);
    }

    #[test]
    fn no_time_is_told_that_is_longer_than_the_longest() {
        for longest in [Duration::from_millis(3), Duration::from_secs(144), 3 * DAY] {
            let times = times([Duration::from_millis(2), longest, longest]);
            for share in [0.5, 0.95, 1.0] {
                let took = Duration::from(times.within(share).unwrap());
                assert!(took <= longest, "{took:?} of {longest:?}");
            }
            assert_eq!(Duration::from(times.within(1.0).unwrap()), longest);
        }
    }
}
