//! What this process sees of the server's clock, by its own monotonic clock: since when it has watched it without seeing
//! it leap, and what it shows at least. A tick tells it, and leases are reaped by it (`lua/machine/sight.lua`).
//!
//! It never waits, and never believes more than two readings prove.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::bounds::{DRIFT_PPM, LEAP_US};
use tenure_core::time::Span;

/// A leap beyond what a call's time on its way can explain.
const LEAP: i64 = LEAP_US as i64;

/// What is known of the server's clock. Starts with the first answer.
#[derive(Clone, Copy)]
struct Seen {
    /// What the server's clock showed at the first of the answers since which it has not leapt, in µs.
    since: u64,
    /// What the server's clock is ahead of this process's watch, in µs: at least, and at most. Each answer narrows it,
    /// and since clocks drift it widens with time.
    low: i64,
    high: i64,
    /// When that was so, by this process's watch, in µs.
    at: u64,
}

impl Seen {
    fn widened(self, at: u64) -> Self {
        let drift = at.saturating_sub(self.at) / 1_000_000 * DRIFT_PPM
            + at.saturating_sub(self.at) % 1_000_000 * DRIFT_PPM / 1_000_000;
        let drift = i64::try_from(drift).unwrap_or(i64::MAX);
        Seen {
            low: self.low.saturating_sub(drift),
            high: self.high.saturating_add(drift),
            at: self.at.max(at),
            ..self
        }
    }
}

/// What a tick tells: `(since, sure)`, both by the server's clock, in µs.
pub(crate) type SightTold = (u64, u64);

/// See the module.
#[derive(Default)]
pub(crate) struct Sight(Mutex<Option<Seen>>);

impl Sight {
    fn lock(&self) -> MutexGuard<'_, Option<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer showed the server's clock at `us`; its call left at `sent` and it was here at `received`, by this
    /// process's watch. By how much the clock leapt ahead, if it did: then the watch begins anew.
    pub(crate) fn heard(&self, us: u64, sent: u64, received: u64) -> Option<Span> {
        let ahead = |at: u64| us as i64 - at as i64;
        let (low, high) = (ahead(received), ahead(sent));
        let mut known = self.lock();
        let anew = Seen { since: us, low, high, at: received };
        let Some(seen) = known.map(|seen| seen.widened(received)) else {
            *known = Some(anew);
            return None;
        };
        // Even if the answer was read in the moment in which it was made, the clock shows too much.
        let leapt = low.saturating_sub(seen.high);
        if leapt > LEAP {
            *known = Some(anew);
            return Some(Span::from_us(leapt.unsigned_abs()));
        }
        let since = seen.since.min(us);
        *known = Some(match high < seen.low.saturating_sub(LEAP) {
            // It stepped back, or stands still since it had been set back: time that passed is still watched.
            true => Seen { since, ..anew },
            false => Seen { since, low: seen.low.max(low), high: seen.high.min(high), ..seen },
        });
        None
    }

    /// What a tick that leaves now, by this process's watch, can say; nothing before the first answer.
    pub(crate) fn tell(&self, now: u64) -> Option<SightTold> {
        let seen = (*self.lock())?.widened(now);
        let sure = u64::try_from(seen.low.saturating_add_unsigned(now)).unwrap_or_default();
        Some((seen.since, sure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_800_000_000_000_000;
    const MS: u64 = 1_000;
    const S: u64 = 1_000_000;

    /// A process that was answered at its watch's `10 s`, in 2 ms.
    fn watching() -> Sight {
        let sight = Sight::default();
        assert_eq!(sight.tell(0), None);
        assert_eq!(sight.heard(US, 10 * S - 2 * MS, 10 * S), None);
        sight
    }

    #[test]
    fn it_is_sure_of_the_time_that_passed_here() {
        let sight = watching();
        assert_eq!(sight.tell(10 * S), Some((US, US)));
        let (since, sure) = sight.tell(11 * S).expect("it was answered");
        assert_eq!((since, sure), (US, US + S - MS), "less what clocks may drift in a second");
        // A slow answer tells nothing new, a quick one does.
        assert_eq!(sight.heard(US + S + 300 * MS, 11 * S, 11 * S + 600 * MS), None);
        assert_eq!(sight.tell(11 * S).expect("so").0, US);
        assert_eq!(sight.heard(US + 2 * S, 12 * S - 2 * MS, 12 * S), None);
        assert_eq!(sight.tell(12 * S), Some((US, US + 2 * S)));
    }

    #[test]
    fn a_leap_begins_the_watch_anew_and_a_slow_call_does_not() {
        let sight = watching();
        // Two seconds under way: how much of them was a leap cannot be told, and is not believed.
        assert_eq!(sight.heard(US + 3 * S, 11 * S, 13 * S), None);
        assert!(sight.tell(13 * S).expect("so").1 <= US + 3 * S);
        let leapt = sight.heard(US + 6 * S, 14 * S, 14 * S + 2 * MS).expect("a leap");
        assert!(leapt > Span::from_ms(1_900) && leapt < Span::from_ms(2_050), "{leapt}");
        assert_eq!(sight.tell(14 * S + 2 * MS), Some((US + 6 * S, US + 6 * S)));
    }

    #[test]
    fn a_leap_that_hides_behind_a_slow_call_is_seen_by_the_next() {
        let sight = watching();
        // Two seconds under way, while the clock leapt by two.
        assert_eq!(sight.heard(US + 3 * S, 11 * S, 13 * S), None);
        let (_, sure) = sight.tell(13 * S).expect("so");
        assert!(sure <= US + 3 * S, "{sure}");
        assert!(sight.heard(US + 5 * S + 10 * MS, 13 * S, 13 * S + 2 * MS).is_some());
    }

    #[test]
    fn a_step_back_and_a_clock_that_stands_still_are_no_leap() {
        let sight = watching();
        assert_eq!(sight.heard(US - 5 * S, 11 * S, 11 * S), None);
        assert_eq!(sight.tell(11 * S), Some((US - 5 * S, US - 5 * S)));
        for second in 12..20 {
            assert_eq!(sight.heard(US - 5 * S, second * S, second * S), None);
        }
        assert!(sight.heard(US, 20 * S, 20 * S).is_some(), "set right again");
    }

    #[test]
    fn a_clock_that_is_slewed_does_not_leap() {
        let sight = watching();
        for second in 1..1_000 {
            let us = US + second * S + second * 500;
            let at = 10 * S + second * S;
            assert_eq!(sight.heard(us, at, at + MS), None, "{second}");
        }
        assert_eq!(sight.tell(1_009 * S).expect("so").0, US);
    }
}
