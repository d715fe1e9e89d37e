//! The one way to read a clock. Rules take time as an argument; an engine gets it here.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_core::time::Moment;

/// A clock that an engine reads, and sleeps by.
pub trait Clock: Send + Sync + 'static {
    /// Now. It may step back; the engine copes.
    fn now(&self) -> Moment;

    /// How long to sleep, in real time, for `due` to come; at most that long. A clock under a test's
    /// control answers a long time and calls `wake` instead.
    fn sleep(&self, due: Moment) -> Duration;

    /// `wake` is called whenever this clock was moved by hand. The system's clock never calls it.
    fn on_move(&self, wake: Arc<dyn Fn() + Send + Sync>);
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::from_us(since.as_micros() as u64)
    }
    fn sleep(&self, due: Moment) -> Duration {
        due.since(self.now()).std()
    }
    fn on_move(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}
