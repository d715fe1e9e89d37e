//! The clock of a bench whose engine runs in the test's own process and reads a
//! [`TestClock`](tenure_testkit::TestClock). An engine with another clock brings its own.

use std::sync::Arc;

use tenure_core::time::{Moment, Span};
use tenure_engine_api::Clock;

use crate::bench::{Task, TestClock};

/// A test clock together with the engine that reads it.
pub struct MovedClock<F> {
    clock: Arc<tenure_testkit::TestClock>,
    settled: F,
}

impl<F: Fn() -> Task<'static, ()> + Send + Sync> MovedClock<F> {
    /// Moves `clock`; `settled` returns when the open engine has ticked at the new time and has
    /// done everything due by then.
    pub fn new(clock: Arc<tenure_testkit::TestClock>, settled: F) -> Self {
        MovedClock { clock, settled }
    }
}

impl<F: Fn() -> Task<'static, ()> + Send + Sync> TestClock for MovedClock<F> {
    fn now(&self) -> Moment {
        self.clock.now()
    }
    fn leap(&self, span: Span) -> Task<'_, ()> {
        self.clock.advance(span);
        (self.settled)()
    }
    fn wall_leap(&self, span: Span) -> Task<'_, ()> {
        self.clock.leap(span);
        (self.settled)()
    }
    fn back(&self, span: Span) -> Task<'_, ()> {
        self.clock.step_back(span);
        (self.settled)()
    }
}
