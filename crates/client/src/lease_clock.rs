//! Clock of leases: the time since the machine was started, which also passes while the machine is suspended.
//!
//! A lease runs out on the store's clock, even while this machine sleeps. The clock by which a program usually waits
//! stands still meanwhile on Linux, so that a laptop that wakes up would believe its lease to be fresh. Its timers stand
//! still too, so each wait for a moment of this clock looks at it again and again.

use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The longest time between two looks at the clock.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// A moment of the clock of leases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LeaseTime(Duration);

impl LeaseTime {
    /// Now, by the system's clock. If it shows nothing that can be read, that is the end of all time, at which nothing
    /// may run any more.
    #[cfg(unix)]
    #[doc(hidden)]
    pub fn now() -> Self {
        use rustix::time::{ClockId, clock_gettime};
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const CLOCK: ClockId = ClockId::Boottime;
        // There the usual clock goes on while the machine is suspended, or nothing better is known.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const CLOCK: ClockId = ClockId::Monotonic;
        LeaseTime(Duration::try_from(clock_gettime(CLOCK)).unwrap_or(Duration::MAX))
    }
    /// Now, from the first call on.
    #[cfg(not(unix))]
    #[doc(hidden)]
    pub fn now() -> Self {
        static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        LeaseTime(FIRST.get_or_init(std::time::Instant::now).elapsed())
    }

    /// The time since the machine was started.
    #[doc(hidden)]
    pub fn since_start(self) -> Duration {
        self.0
    }
    /// The time since an earlier moment; zero if that is a later one.
    pub(crate) fn since(self, earlier: LeaseTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for LeaseTime {
    type Output = LeaseTime;
    fn add(self, time: Duration) -> LeaseTime {
        LeaseTime(self.0.saturating_add(time))
    }
}

/// The clock of leases. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LeaseClock(Arc<dyn Fn() -> LeaseTime + Send + Sync>);

impl LeaseClock {
    /// The clock of the system.
    pub(crate) fn system() -> Self {
        LeaseClock(Arc::new(LeaseTime::now))
    }

    /// The clock of tokio, which a test moves, and the time for which the test had the machine sleep.
    #[cfg(test)]
    pub(crate) fn of_tokio(slept: &Slept) -> Self {
        let (begun, slept) = (Instant::now(), slept.clone());
        let start = LeaseTime(Duration::from_secs(1_000));
        LeaseClock(Arc::new(move || start + begun.elapsed() + slept.time()))
    }

    pub(crate) fn now(&self) -> LeaseTime {
        (self.0)()
    }

    /// Completes at this moment; or half a second late, if the machine was suspended meanwhile.
    pub(crate) async fn sleep_until(&self, at: LeaseTime) {
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(LOOK)).await;
        }
    }

    /// This moment on the clock of the process, if the machine is not suspended before.
    pub(crate) fn instant(&self, at: LeaseTime) -> std::time::Instant {
        // In this order: a pause between the two makes the moment earlier.
        let (here, now) = (Instant::now().into_std(), self.now());
        let there = if now <= at {
            here.checked_add(at.since(now))
        } else {
            here.checked_sub(now.since(at))
        };
        // What cannot be said is over.
        there.unwrap_or(here)
    }
}

/// For how long a test had the machine sleep.
#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct Slept(Arc<std::sync::atomic::AtomicU64>);

#[cfg(test)]
impl Slept {
    /// The machine was suspended for this long, in whole seconds: tokio's clock stood still.
    pub(crate) fn suspend(&self, time: Duration) {
        let s = time.as_secs();
        self.0.fetch_add(s, std::sync::atomic::Ordering::SeqCst);
    }
    fn time(&self) -> Duration {
        Duration::from_secs(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_as_fast_as_the_clock_of_the_process() {
        let (here, there) = (std::time::Instant::now(), LeaseTime::now());
        std::thread::yield_now();
        let (passed, here) = (LeaseTime::now().since(there), here.elapsed());
        assert!(there.since_start() > Duration::ZERO && passed <= here + Duration::from_secs(1));
        let at = LeaseTime::now() + Duration::from_secs(60);
        let left =
            LeaseClock::system().instant(at).saturating_duration_since(std::time::Instant::now());
        assert!(left > Duration::from_secs(30) && left <= Duration::from_secs(60), "{left:?}");
    }
}
