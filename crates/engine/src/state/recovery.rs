//! Recovery of a store that may have forgotten answered changes: the machine recovers, and streams of events begin
//! another life.
//!
//! It never learns the forgotten changes: nobody knows them.

use std::sync::atomic::Ordering;

use tenure_core::time::{Moment, Span};

use super::StateThread;

impl StateThread {
    /// Recovers for this span from now on.
    pub(crate) fn recover(&mut self, span: Span) {
        let now = self.shared.clock.now();
        let goes_on = self.machine.is_lossy();
        self.machine.recover_for(span, now);
        // Numbers of forgotten events come again with other content. The machine notes in each namespace that it
        // recovers, so the other life is in the next entry, and followers of the journal have it too.
        if !goes_on && self.machine.is_lossy() {
            self.streams.begin_lives(now, &mut self.batch.changes.events);
        }
        self.absorb();
        self.tell_of_recovery();
    }

    /// Recovers while it is unknown if anything was forgotten; streams of events go on.
    pub(super) fn doubt(&mut self, span: Span) {
        self.machine.doubt_for(span, self.shared.clock.now());
        self.absorb();
        self.tell_of_recovery();
    }

    /// Ends a recovery early.
    pub(super) fn end_recovery(&mut self) {
        self.machine.end_recovery();
        self.tell_of_recovery();
    }

    /// Shows callers the end of the recovery.
    pub(super) fn tell_of_recovery(&self) {
        let until = self.machine.recovers_until().map_or(0, Moment::us);
        self.shared.recovers_until_us.store(until, Ordering::Relaxed);
    }
}
