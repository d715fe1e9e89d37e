//! Shrinks the tables of a namespace after a peak. It changes no state.

use crate::state::Space;

impl Space {
    /// Shrinks every sparse table. A shrink costs a step per remaining entry, and comes at most once per seven times as
    /// many removed ones.
    pub(crate) fn trim(&mut self) {
        self.jobs.trim();
        self.lines.trim();
        self.leases.trim();
        self.waiters.trim();
        self.limits.trim();
    }

    /// Drops the tables of a namespace without live jobs and recent calls: a queue that is left there for a day must
    /// not keep them.
    pub(crate) fn drop_empty_tables(&mut self) {
        let is_quiet = self.jobs.none_lives()
            && self.leases.is_empty()
            && self.workers.known().is_empty()
            && self.waiters.no_lease_call_waits()
            && self.leases.requests.is_empty();
        if !is_quiet || self.jobs.capacity() == 0 {
            return;
        }
        self.jobs.drop_tables();
        self.lines.shrink_to_fit();
        self.leases.shrink_to_fit();
        self.waiters.shrink_to_fit();
        self.outbox.shrink_to_fit();
        self.limits.shrink_to_fit();
    }
}
