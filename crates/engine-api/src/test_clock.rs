//! A clock that only a test moves, and the trait of engines whose time a test moves.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::time::{Moment, Span};

use crate::{CallError, Clock};

/// The future of a move of time; its result is the engine's new time.
pub type MovedFuture = Pin<Box<dyn Future<Output = Result<Moment, CallError>> + Send>>;

/// An engine whose time stands still unless a test moves it.
pub trait MovedTime: Send + Sync + 'static {
    /// The engine's present time.
    fn now(&self) -> Moment;

    /// Lets `span` pass as if it had passed by itself: work that becomes due on the way is done, each at its own
    /// moment. Returns after that, so a call that is made later finds it done.
    fn advance(&self, span: Span) -> MovedFuture;
}

type Wake = Arc<dyn Fn() + Send + Sync>;

/// Both clocks of a machine, as a [`TestClock`] shows them.
#[derive(Clone, Copy)]
struct ShownTime {
    wall: Moment,
    /// Starts at zero; a leap and a step back of the wall clock do not change it.
    monotonic: Duration,
}

/// A clock that a test moves. Engines over it sleep until it is moved, however long that takes.
pub struct TestClock {
    shown: Mutex<ShownTime>,
    wakes: Mutex<Vec<Wake>>,
}

/// Longer than any test: an engine that sleeps by this clock is woken, or the test is broken.
const LONG: Duration = Duration::from_secs(3_600);

impl TestClock {
    /// A clock that stands at `now`.
    pub fn at(now: Moment) -> Self {
        let shown = ShownTime { wall: now, monotonic: Duration::ZERO };
        TestClock { shown: Mutex::new(shown), wakes: Mutex::default() }
    }

    fn shown(&self) -> MutexGuard<'_, ShownTime> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self) {
        let wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wakes.iter().for_each(|wake| wake());
    }

    /// Lets time pass: both clocks go on, and sleepers are woken.
    pub fn advance(&self, span: Span) {
        let mut shown = self.shown();
        shown.wall = shown.wall.plus(span);
        shown.monotonic += span.std();
        drop(shown);
        self.moved();
    }

    /// Sets only the wall clock ahead, and wakes sleepers.
    pub fn leap(&self, span: Span) {
        let mut shown = self.shown();
        shown.wall = shown.wall.plus(span);
        drop(shown);
        self.moved();
    }

    /// Sets only the wall clock back, and wakes sleepers.
    pub fn step_back(&self, span: Span) {
        let mut shown = self.shown();
        shown.wall = shown.wall.minus(span);
        drop(shown);
        self.moved();
    }
}

impl Default for TestClock {
    /// A clock that stands at 2027-01-15T08:00:00Z.
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
