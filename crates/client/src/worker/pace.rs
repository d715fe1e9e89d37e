//! Decides how many jobs a worker leases ahead of its free slots: as many as end while a lease call is under way, so
//! that a slot that becomes free finds its next job here.
//!
//! Pure arithmetic on spans: it reads no clock and makes no calls.

use std::time::Duration;

/// A job that has waited ahead for longer than this is given back, since another worker may have a slot for it.
pub const AHEAD_MAX: Duration = Duration::from_millis(20);

/// Most jobs ahead per slot: a lease call costs about the same for all of them.
const AHEAD_PER_SLOT: u128 = 4;

/// How many calls the mean of their spans covers.
const CALLS: u32 = 8;
/// How many runs the mean of their spans covers at least; it covers one run of each slot.
const RUNS_MIN: u32 = 8;

/// The mean of spans, weighted towards the latest.
#[derive(Clone, Copy, Debug, Default)]
struct Mean(Option<Duration>);

impl Mean {
    /// Counts `span` as one of the last `reach`.
    fn note(&mut self, span: Duration, reach: u32) {
        let mean = self.0.map_or(span, |mean| (mean * (reach - 1) + span) / reach);
        self.0 = Some(mean);
    }

    fn at_least(&mut self, span: Duration) {
        self.0 = self.0.max(Some(span));
    }
}

/// As many jobs as end in `slots` slots during a call, at most [`AHEAD_PER_SLOT`]. A worker with one slot never holds
/// two. Jobs that begin together end together, so a job ahead may wait for one run more than stand before it: no more
/// are ahead than runs fit into [`AHEAD_MAX`] beside the present one, since they would often be given back.
fn ahead(slots: usize, call: Duration, run: Duration) -> usize {
    if slots <= 1 {
        return 0;
    }
    let runs = AHEAD_MAX.as_nanos().checked_div(run.as_nanos());
    let per_slot = runs.map_or(AHEAD_PER_SLOT, |runs| runs.saturating_sub(1).min(AHEAD_PER_SLOT));
    let most = slots as u128 * per_slot;
    let ended = (slots as u128 * call.as_nanos()).checked_div(run.as_nanos());
    usize::try_from(ended.map_or(most, |ended| ended.min(most))).unwrap_or(usize::MAX)
}

/// Measurements of a worker's calls and handlers.
#[derive(Clone, Debug)]
pub struct Pace {
    slots: usize,
    /// From the time at which there was room for jobs to the answer that filled it.
    call: Mean,
    /// How long a job occupies a slot.
    run: Mean,
    /// Whether the last answer had as many jobs as requested: then there are more, and no waiting worker could be given
    /// them.
    backlog: bool,
}

impl Pace {
    /// Without measurements, nothing is leased ahead.
    pub fn new(slots: usize) -> Self {
        Pace { slots, call: Mean::default(), run: Mean::default(), backlog: false }
    }

    /// How many jobs to hold beyond those that have a slot.
    pub fn ahead(&self) -> usize {
        match (self.call.0, self.run.0) {
            (Some(call), Some(run)) if self.backlog => ahead(self.slots, call, run),
            _ => 0,
        }
    }

    /// A call was answered `took` after there was room for jobs. `filled`: with as many jobs as requested. `scarce`:
    /// with a resource, which must not lie idle here, and whose use counts even if it is given back.
    pub fn answered(&mut self, filled: bool, scarce: bool, took: Duration) {
        let backlog = filled && !scarce;
        // The call may have waited for the first jobs of a backlog, so its span does not count.
        if backlog && self.backlog {
            self.call.note(took.min(AHEAD_MAX), CALLS);
        }
        self.backlog = backlog;
    }

    /// A job occupied a slot for `span`.
    pub fn ran(&mut self, span: Duration) {
        let reach = u32::try_from(self.slots).unwrap_or(u32::MAX).max(RUNS_MIN);
        self.run.note(span, reach);
    }

    /// Jobs waited ahead for too long: the handlers have become slower than their past runs.
    pub fn waited_too_long(&mut self) {
        self.run.at_least(AHEAD_MAX);
        self.backlog = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }
    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn jobs_ahead_cover_one_call_and_are_at_most_four_a_slot() {
        for (slots, call, run, want) in [
            (100, ms(1), us(0), 400),
            (100, ms(1), us(1), 400),
            (100, ms(4), ms(1), 400),
            (100, ms(5), ms(1), 400),
            (100, ms(20), ms(4), 400),
            (100, ms(20), ms(5), 300),
            (100, ms(20), ms(6), 200),
            (100, ms(20), ms(7), 100),
            (100, ms(1), ms(1), 100),
            (100, ms(1), ms(10), 10),
            (100, ms(1), ms(11), 0),
            (100, ms(1_000), ms(50), 0),
            (100, ms(1), ms(1_000), 0),
            (100, us(0), ms(1), 0),
            (2, ms(1), ms(1), 2),
            (2, ms(1), ms(2), 1),
            (2, ms(1), ms(3), 0),
            (100, ms(1_000), ms(10), 100),
            (1, ms(1), us(1), 0),
            (0, ms(1), us(1), 0),
            (usize::MAX, ms(20), us(0), usize::MAX),
        ] {
            assert_eq!(ahead(slots, call, run), want, "{slots} slots, call {call:?}, run {run:?}");
        }
    }

    #[test]
    fn a_mean_begins_with_the_first_span_and_follows_the_latest() {
        let mut mean = Mean::default();
        mean.note(ms(8), 8);
        assert_eq!(mean.0, Some(ms(8)));
        mean.note(ms(16), 8);
        assert_eq!(mean.0, Some(ms(9)));
        for _ in 0..100 {
            mean.note(ms(1), 8);
        }
        assert_eq!(mean.0.map(|mean| mean.as_millis()), Some(1));
        mean.at_least(ms(20));
        mean.at_least(ms(2));
        assert_eq!(mean.0, Some(ms(20)));
    }

    /// A worker with `slots` slots whose calls take 1 ms and whose handlers take `run`, with a backlog.
    fn steady(slots: usize, run: Duration) -> Pace {
        let mut pace = Pace::new(slots);
        for _ in 0..3 {
            pace.answered(true, false, ms(1));
            pace.ran(run);
        }
        pace
    }

    #[test]
    fn nothing_is_ahead_before_calls_and_runs_are_known() {
        let mut pace = Pace::new(10);
        assert_eq!(pace.ahead(), 0);
        pace.answered(true, false, ms(1));
        pace.ran(us(1));
        assert_eq!(pace.ahead(), 0, "the first call may have waited for a push");
        pace.answered(true, false, ms(1));
        assert_eq!(pace.ahead(), 40);
    }

    #[test]
    fn nothing_is_ahead_without_a_backlog_nor_of_what_is_scarce() {
        for (filled, scarce, want) in [(true, false, 40), (false, false, 0), (true, true, 0)] {
            let mut pace = steady(10, us(1));
            pace.answered(filled, scarce, ms(1));
            assert_eq!(pace.ahead(), want, "filled {filled}, scarce {scarce}");
        }
    }

    #[test]
    fn a_call_that_may_have_waited_does_not_count() {
        let mut pace = steady(100, ms(10));
        assert_eq!(pace.ahead(), 10);
        // No job for a second; then a push of many, which the call had waited for.
        pace.answered(false, false, ms(1_000));
        pace.answered(true, false, ms(1_000));
        assert_eq!(pace.ahead(), 10);
    }

    #[test]
    fn leasing_ahead_pauses_after_long_waits_until_runs_are_fast() {
        let mut pace = steady(10, us(1));
        pace.waited_too_long();
        assert_eq!(pace.ahead(), 0);
        pace.answered(true, false, ms(1));
        assert_eq!(pace.ahead(), 0);
        for _ in 0..100 {
            pace.ran(us(1));
        }
        assert_eq!(pace.ahead(), 40);
    }
}
