//! Decides when the machine ticks, and reports a clock that steps back or leaps ahead.
//!
//! It must notice either even when nothing is due; and it must notice a leap before any work that becomes due by it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::bounds::{CLOCK_BEHIND_ACCEPT_US, CLOCK_BEHIND_LOUD_US, LEAP_US, PULSE_US};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::Clock;

use super::StateThread;

impl StateThread {
    pub(super) fn due(&self) -> Option<Moment> {
        if self.machine.over_budget() && !self.stuck {
            return Some(Moment::ZERO);
        }
        self.machine.next_due()
    }

    /// The time without work. At most a second, since only a look at the clock shows a step back.
    pub(super) fn patience(&self) -> Duration {
        let most = Span::from_us(PULSE_US).std();
        // Nothing is due any more.
        if self.shared.fatal().is_some() {
            return most;
        }
        if !self.again.is_empty() {
            return Duration::ZERO;
        }
        if !self.wanted.is_empty() {
            return Duration::ZERO;
        }
        let due = [self.due(), self.streams.next_until()].into_iter().flatten().min();
        let tick = match due {
            Some(due) if due <= self.shared.clock.now() => Duration::ZERO,
            Some(due) => self.shared.clock.sleep(due),
            None => most,
        };
        let others = [self.firing_waits(), self.gauges_wait()].into_iter().flatten().min();
        let batch = Some(self.may_wait()).filter(|left| !left.is_zero());
        tick.min(others.unwrap_or(most)).min(batch.unwrap_or(most)).min(most)
    }

    /// True if work is due now: for callers that wait until there is no more.
    pub(super) fn is_due(&self) -> bool {
        let now = self.shared.clock.now();
        let full = self.shared.room.is_used_up();
        self.due().is_some_and(|due| due <= now)
            || !self.wanted.is_empty()
            || self.gauges_wait() == Some(Duration::ZERO)
            || !full && self.machine.next_fire().is_some_and(|due| due <= now)
    }

    /// Ticks once if something is due, or if the clock is not where it should be; true if it did.
    pub(super) fn tick(&mut self) -> bool {
        let look = ClockLook::at(&*self.shared.clock);
        let now = look.wall;
        let leapt = self.clock.leapt(look);
        if leapt > Span::ZERO {
            self.shared.last_leap.note(leapt);
        }
        let first = self.clock.top == Moment::ZERO;
        let behind = self.clock.sees(now);
        // A namespace without due work keeps the old time until it is used, so the machine is
        // asked until the clock has caught up with its highest reading.
        let looks = first || leapt > Span::ZERO || self.clock.below_top(now);
        let ticks = looks || self.due().is_some_and(|due| due <= now);
        if ticks {
            let over = self.machine.over_budget();
            self.machine.tick(now, leapt, &self.overlay);
            if first || behind > Span::from_us(CLOCK_BEHIND_ACCEPT_US) {
                self.clock.stands_at(now.plus(self.machine.clock_behind().unwrap_or(Span::ZERO)));
            }
            self.tell_of_recovery();
            let changed = self.absorb();
            self.stuck = over && self.machine.over_budget() && !changed;
        }
        self.end_readers(now);
        let told = self.clock.loud(now).map_or(0, Span::us);
        self.shared.behind_us.store(told, Ordering::Relaxed);
        ticks
    }
}

/// One look at both clocks. The wall clock is read between two readings of the monotonic one: a thread that is stopped
/// in between must not look like a leap.
#[derive(Clone, Copy)]
struct ClockLook {
    before: Duration,
    wall: Moment,
    after: Duration,
}

impl ClockLook {
    fn at(clock: &dyn Clock) -> Self {
        let before = clock.monotonic();
        let wall = clock.now();
        ClockLook { before, wall, after: clock.monotonic() }
    }
}

/// The readings of this engine's clock. Starts at zero.
#[derive(Default)]
pub(super) struct SeenClock {
    /// The look to which the next ones are compared; at most a second old while looks go on.
    base: Option<ClockLook>,
    /// The latest reading since a step back was accepted.
    accepted: Moment,
    /// The latest reading ever.
    top: Moment,
}

impl SeenClock {
    /// The gain of the wall clock on the monotonic one, if that is a leap. While NTP slews, the gain stays below the
    /// bound in the second after which a new base is taken.
    fn leapt(&mut self, look: ClockLook) -> Span {
        let Some(base) = self.base else {
            self.base = Some(look);
            return Span::ZERO;
        };
        let passed = look.after.saturating_sub(base.before);
        let passed_us = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        let gained = look.wall.since(base.wall).us().saturating_sub(passed_us);
        let leaps = gained > LEAP_US;
        if leaps || look.wall < base.wall || passed_us >= PULSE_US {
            self.base = Some(look);
        }
        if leaps { Span::from_us(gained) } else { Span::ZERO }
    }

    /// Takes a reading; returns how far the clock is behind.
    fn sees(&mut self, now: Moment) -> Span {
        self.accepted = self.accepted.max(now);
        self.top = self.top.max(now);
        self.accepted.since(now)
    }

    /// Sets the time after a step back was accepted, or after rows showed a later moment.
    fn stands_at(&mut self, at: Moment) {
        self.accepted = at;
        self.top = self.top.max(at);
    }

    fn below_top(&self, now: Moment) -> bool {
        self.top.since(now) > Span::from_us(CLOCK_BEHIND_LOUD_US)
    }

    /// How far the clock is behind, if that must be reported.
    fn loud(&self, now: Moment) -> Option<Span> {
        Some(self.accepted.since(now)).filter(|by| *by > Span::from_us(CLOCK_BEHIND_LOUD_US))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(monotonic_ms: u64, wall_ms: u64) -> ClockLook {
        let at = Duration::from_millis(monotonic_ms);
        ClockLook { before: at, wall: Moment::from_us(1_000_000_000 + wall_ms * 1_000), after: at }
    }

    #[test]
    fn a_leap_is_what_the_wall_clock_gains_at_once() {
        for (what, looks, leapt_ms) in [
            ("time that passes", vec![(0, 0), (900, 900), (5_000, 5_000)], 0),
            ("a leap", vec![(0, 0), (500, 500), (501, 2_401)], 1_900),
            ("a leap while nobody looks", vec![(0, 0), (3_000, 4_900)], 1_900),
            ("a small leap", vec![(0, 0), (10, 110)], 0),
            ("one beyond the bound", vec![(0, 0), (10, 111)], 101),
            ("a clock that runs at twice the speed", vec![(0, 0), (60, 120), (120, 240)], 120),
            ("NTP that slews", (0..100).map(|s| (s * 1_000, s * 1_000 + s / 2)).collect(), 0),
            ("a step back", vec![(0, 5_000), (10, 10)], 0),
            ("a step back that is mended", vec![(0, 5_000), (10, 10), (20, 5_020)], 5_000),
        ] {
            let mut seen = SeenClock::default();
            let leaps = looks.into_iter().map(|(mono, wall)| seen.leapt(look(mono, wall)));
            assert_eq!(leaps.max(), Some(Span::from_ms(leapt_ms)), "{what}");
        }
    }

    #[test]
    fn a_thread_that_is_stopped_between_two_readings_saw_no_leap() {
        let mut seen = SeenClock::default();
        let stopped = ClockLook { after: Duration::from_millis(800), ..look(0, 800) };
        assert_eq!(seen.leapt(stopped), Span::ZERO);
        assert_eq!(seen.leapt(look(900, 900)), Span::ZERO);
        let stopped = ClockLook { before: Duration::from_millis(1_000), ..look(4_000, 4_000) };
        assert_eq!(seen.leapt(stopped), Span::ZERO);
    }
}
