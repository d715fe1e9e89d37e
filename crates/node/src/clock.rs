//! The clock of the engine: the wall clock of the leader, carried on by this server's monotonic clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::time::{Moment, Span};
use tenure_engine_api::Clock;

/// Before the store was ever taken, it shows the moment of the clock beneath.
pub(crate) struct StoreClock {
    base: Arc<dyn Clock>,
    /// The moment at which the monotonic clock was zero, in microseconds; 0 before the store was taken.
    zero: AtomicU64,
}

impl StoreClock {
    pub fn new(base: Arc<dyn Clock>) -> StoreClock {
        StoreClock { base, zero: AtomicU64::new(0) }
    }

    /// The reading of the monotonic clock.
    pub fn at(&self) -> Span {
        self.base.monotonic().into()
    }

    /// Sets the moment at which the monotonic clock shows `at`.
    pub fn is(&self, moment: Moment, at: Span) {
        self.zero.store(moment.us().saturating_sub(at.us()), Ordering::Release);
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Moment {
        match self.zero.load(Ordering::Acquire) {
            0 => self.base.now(),
            zero => Moment::from_us(zero).plus(self.at()),
        }
    }
    fn monotonic(&self) -> Duration {
        self.base.monotonic()
    }
    fn sleep(&self, due: Moment) -> Duration {
        due.since(self.now()).std()
    }
    fn on_move(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.base.on_move(wake);
    }
}
