//! A clock that moves only when a test moves it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::time::{Moment, Span};
use tenure_engine::Clock;

type Wake = Arc<dyn Fn() + Send + Sync>;

/// See the module. Engines over it sleep until it is moved, however long that takes.
pub struct TestClock {
    now: Mutex<Moment>,
    wakes: Mutex<Vec<Wake>>,
}

/// Longer than any test: who sleeps by this clock is woken, or the test is broken.
const LONG: Duration = Duration::from_secs(3_600);

impl TestClock {
    /// A clock that stands at `now`.
    pub fn at(now: Moment) -> Self {
        TestClock { now: Mutex::new(now), wakes: Mutex::default() }
    }

    /// Moves it to `now`, be it back, and wakes who sleeps by it.
    pub fn set(&self, now: Moment) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        let wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wakes.iter().for_each(|wake| wake());
    }

    /// Moves it forward, and wakes who sleeps by it.
    pub fn advance(&self, span: Span) {
        self.set(self.now().plus(span));
    }

    /// Moves it back, and wakes who sleeps by it.
    pub fn step_back(&self, span: Span) {
        self.set(self.now().minus(span));
    }
}

impl Default for TestClock {
    /// Stands at 2027-01-15T08:00:00Z.
    fn default() -> Self {
        TestClock::at(Moment::from_us(1_800_000_000_000_000))
    }
}

impl Clock for TestClock {
    fn now(&self) -> Moment {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn sleep(&self, _due: Moment) -> Duration {
        LONG
    }
    fn on_move(&self, wake: Wake) {
        self.wakes.lock().unwrap_or_else(PoisonError::into_inner).push(wake);
    }
}

impl std::fmt::Debug for TestClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TestClock").field(&self.now()).finish()
    }
}
