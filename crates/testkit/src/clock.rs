//! A clock that moves only when a test moves it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::time::{Moment, Span};
use tenure_engine::Clock;

type Wake = Arc<dyn Fn() + Send + Sync>;

/// What it shows.
#[derive(Clone, Copy)]
struct Shown {
    wall: Moment,
    /// Starts at zero; a set clock, a leap and a step back leave it.
    monotonic: Duration,
}

/// See the module. Engines over it sleep until it is moved, however long that takes.
pub struct TestClock {
    shown: Mutex<Shown>,
    wakes: Mutex<Vec<Wake>>,
}

/// Longer than any test: who sleeps by this clock is woken, or the test is broken.
const LONG: Duration = Duration::from_secs(3_600);

impl TestClock {
    /// A clock that stands at `now`.
    pub fn at(now: Moment) -> Self {
        let shown = Shown { wall: now, monotonic: Duration::ZERO };
        TestClock { shown: Mutex::new(shown), wakes: Mutex::default() }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self) {
        let wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wakes.iter().for_each(|wake| wake());
    }

    /// Time passes: both clocks go on, and those that sleep by them are woken.
    pub fn advance(&self, span: Span) {
        let mut shown = self.shown();
        shown.wall = shown.wall.plus(span);
        shown.monotonic += span.std();
        drop(shown);
        self.moved();
    }

    /// The wall clock alone is set ahead, and those that sleep by it are woken.
    pub fn leap(&self, span: Span) {
        let mut shown = self.shown();
        shown.wall = shown.wall.plus(span);
        drop(shown);
        self.moved();
    }

    /// The wall clock alone is set back, and those that sleep by it are woken.
    pub fn step_back(&self, span: Span) {
        let mut shown = self.shown();
        shown.wall = shown.wall.minus(span);
        drop(shown);
        self.moved();
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
        self.shown().wall
    }
    fn monotonic(&self) -> Duration {
        self.shown().monotonic
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
