//! The one way to read a clock. Rules take time as an argument; an engine reads it here.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenure_core::time::Moment;

/// A clock that an engine reads, and sleeps by.
pub trait Clock: Send + Sync + 'static {
    /// Now. It may step back; the engine copes.
    fn now(&self) -> Moment;

    /// The time for which this machine has been awake, from an arbitrary start: it never goes back and never leaps when
    /// the wall clock is set. On Linux it stands still while the machine is suspended, so that a resume looks like a
    /// leap of [`now`](Clock::now), as it should: nobody could extend anything meanwhile.
    fn monotonic(&self) -> Duration;

    /// How long to sleep, in real time, until `due`; at most that long. A clock that a test moves
    /// returns a long time and calls `wake` instead.
    fn sleep(&self, due: Moment) -> Duration;

    /// Sets a callback for each move of this clock by hand. The system's clock never calls it.
    fn on_move(&self, wake: Arc<dyn Fn() + Send + Sync>);
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::from_us(since.as_micros() as u64)
    }
    fn monotonic(&self) -> Duration {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }
    fn sleep(&self, due: Moment) -> Duration {
        due.since(self.now()).std()
    }
    fn on_move(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}
