//! The clock of leases, on which `tenure` and a guard agree: the time since the machine was started, which also passes
//! while the machine is suspended. A guard has no runtime, and waits for it by the system alone.

use std::time::Duration;

use tenure::lease_clock::LeaseTime;

/// The longest sleep where the system cannot wait for a moment of this clock.
#[cfg(not(target_os = "linux"))]
const NAP: Duration = Duration::from_millis(200);

/// The time since the machine was started.
pub fn now() -> Duration {
    LeaseTime::now().since_start()
}

/// Sleeps until then, or somewhat less: the caller looks at the clock again.
#[cfg(target_os = "linux")]
pub fn sleep_towards(at: Duration) {
    use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
    // It returns early after a signal, which the caller's look makes up for.
    let _ =
        clock_nanosleep(ClockId::CLOCK_BOOTTIME, ClockNanosleepFlags::TIMER_ABSTIME, &at.into());
}

/// Sleeps until then, or somewhat less: the caller looks at the clock again.
#[cfg(not(target_os = "linux"))]
pub fn sleep_towards(at: Duration) {
    std::thread::sleep(at.saturating_sub(now()).min(NAP));
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
}
