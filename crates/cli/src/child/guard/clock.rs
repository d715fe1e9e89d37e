//! Time since the machine was started, which also passes while the machine is suspended.
//!
//! A lease runs out on the store's clock, even while this machine sleeps. The clock by which a program usually waits
//! stands still meanwhile on Linux, so that a laptop that wakes up would believe its lease to be fresh.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// There the usual clock goes on while the machine is suspended, or nothing better is known.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// The longest sleep where the system cannot wait for a moment of this clock.
#[cfg(not(target_os = "linux"))]
const NAP: Duration = Duration::from_millis(200);

/// Now. A clock that cannot be read shows the end of all time, at which nothing may run any more.
pub fn now() -> Duration {
    clock_gettime(CLOCK).map_or(Duration::MAX, Duration::from)
}

/// Sleeps until then, or somewhat less: the caller looks at the clock again.
#[cfg(target_os = "linux")]
pub fn sleep_towards(at: Duration) {
    use nix::time::{ClockNanosleepFlags, clock_nanosleep};
    // It returns early after a signal, which the caller's look makes up for.
    let _ = clock_nanosleep(CLOCK, ClockNanosleepFlags::TIMER_ABSTIME, &at.into());
}

/// Sleeps until then, or somewhat less: the caller looks at the clock again.
#[cfg(not(target_os = "linux"))]
pub fn sleep_towards(at: Duration) {
    std::thread::sleep(at.saturating_sub(now()).min(NAP));
}

/// From moments of this process, whose clock may stand still while the machine is suspended, to moments of this clock.
pub struct Translation {
    /// One moment on both clocks.
    anchor: (Instant, Duration),
    /// How long the machine was suspended since, as of the last translation.
    suspended: Duration,
}

impl Translation {
    /// Takes moments from now on as they are.
    pub fn from_now() -> Self {
        Translation { anchor: (Instant::now(), now()), suspended: Duration::ZERO }
    }

    /// A moment that was decided since the last translation. If the machine was suspended meanwhile, nobody knows if
    /// that was before or after the decision, so the earlier moment is taken: CMD may end too soon, and never too late.
    pub fn of<const N: usize>(&mut self, moments: [Instant; N]) -> [Duration; N] {
        // In this order: a pause between the two makes the suspension seem shorter, and the moments earlier.
        let there = now();
        self.as_of((Instant::now(), there), moments)
    }

    fn as_of<const N: usize>(
        &mut self,
        (here, there): (Instant, Duration),
        moments: [Instant; N],
    ) -> [Duration; N] {
        let passed = there.saturating_sub(self.anchor.1);
        let suspended = passed.saturating_sub(here.saturating_duration_since(self.anchor.0));
        let before = std::mem::replace(&mut self.suspended, suspended);
        moments.map(|moment| {
            let after = moment.saturating_duration_since(self.anchor.0);
            let earlier = self.anchor.0.saturating_duration_since(moment);
            (self.anchor.1 + before + after).saturating_sub(earlier)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_and_can_be_waited_for() {
        let soon = now() + Duration::from_millis(30);
        while now() < soon {
            sleep_towards(soon);
        }
        assert!(now() < soon + Duration::from_secs(60));
    }

    #[test]
    fn a_suspension_counts_from_the_next_translation_on() {
        let s = Duration::from_secs;
        let (here, there) = (Instant::now(), s(1_000));
        let mut translation = Translation { anchor: (here, there), suspended: Duration::ZERO };
        // The moments at which it is asked on both clocks, the one that is asked for, and what it is there.
        for (now_here, now_there, asked, want) in [
            (1, 1_001, 10, 1_010),
            // Suspended for 100 s: before the decision or after it, which nobody knows.
            (5, 1_105, 14, 1_014),
            (9, 1_109, 20, 1_120),
            (10, 1_110, 21, 1_121),
        ] {
            let now = (here + s(now_here), s(now_there));
            assert_eq!(translation.as_of(now, [here + s(asked)]), [s(want)]);
        }
        let mut translation = Translation { anchor: (here + s(10), there), suspended: s(0) };
        assert_eq!(translation.as_of((here + s(11), s(1_001)), [here]), [s(990)]);
    }
}
