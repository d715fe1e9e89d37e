//! Moves the time for a test: from one due moment to the next, and all due work is done before time goes on.
//!
//! It runs within one call of the state, so no other call sees a time in between, and a day without due work
//! takes no longer than a second.

use std::time::Duration;

use tenure_core::bounds::PULSE_US;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Clock, TestClock};

use super::StateThread;

impl StateThread {
    /// Does all work that is due now.
    pub(super) fn settle_due(&mut self) {
        self.tick();
        self.do_asked();
        while self.is_due() {
            self.no_fire_before = Duration::ZERO;
            self.do_asked();
            self.tick();
        }
    }

    /// Moves the clock by `span`. It stops at each moment at which something is due, so that due work is done exactly
    /// then; while leases live that is at least once a second, so the engine never takes the move for a time
    /// in which it could not hear its callers.
    pub(super) fn pass_time(&mut self, clock: &TestClock, span: Span) {
        let until = clock.now().plus(span);
        loop {
            self.settle_due();
            self.hand_on_if_enough();
            let now = clock.now();
            if now >= until || self.shared.fatal().is_some() {
                return;
            }
            let next = match self.next_moment() {
                Some(next) if next > now => next.min(until),
                // Work that is due and cannot be done now, such as an occurrence of a schedule while the store is full.
                Some(_) => now.plus(Span::from_us(PULSE_US)).min(until),
                None => until,
            };
            clock.advance(next.since(now));
        }
    }

    /// The next moment at which any work is due.
    fn next_moment(&self) -> Option<Moment> {
        let gauge = self.gauge_readers.any().then(|| self.machine.next_gauge()).flatten();
        let streams = self.streams.next_until();
        [self.due(), self.machine.next_fire(), gauge, streams].into_iter().flatten().min()
    }
}
