//! A store that may have forgotten what it answered: the machine recovers, and streams of events begin another life.
//!
//! It must never be told of what was forgotten: nobody knows.

use std::sync::atomic::Ordering;

use tenure_core::time::{Moment, Span};

use super::StateThread;

impl StateThread {
    /// Recovers for this long from now on.
    pub(crate) fn recover(&mut self, span: Span) {
        let now = self.shared.clock.now();
        let goes_on = self.machine.is_lossy();
        self.machine.recover_for(span, now);
        // Numbers of events that were forgotten come again with other content. The machine says in each namespace that it
        // recovers, so the other life is in the next entry, and whoever follows the journal has it too.
        if !goes_on && self.machine.is_lossy() {
            self.streams.begin_lives(now, &mut self.batch.changes.events);
        }
        self.absorb();
        self.tell_of_recovery();
    }

    /// Does the same while nobody knows whether anything was forgotten, and streams of events go on.
    pub(super) fn doubt(&mut self, span: Span) {
        self.machine.doubt_for(span, self.shared.clock.now());
        self.absorb();
        self.tell_of_recovery();
    }

    /// Ends it before its time.
    pub(super) fn end_recovery(&mut self) {
        self.machine.end_recovery();
        self.tell_of_recovery();
    }

    /// Callers see whether it recovers.
    pub(super) fn tell_of_recovery(&self) {
        let until = self.machine.recovers_until().map_or(0, Moment::us);
        self.shared.recovers_until_us.store(until, Ordering::Relaxed);
    }
}
