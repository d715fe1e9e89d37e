//! The byte budget of finished jobs: chooses the jobs that go early.
//!
//! It chooses from the archive alone, and never looks at a live job.

use crate::rows::Class;
use crate::{Machine, Rest};
use tenure_core::bounds::TICK_MAX;
use tenure_core::job::JobState;

impl Machine {
    /// Over the byte budget, the job with the earliest end goes first, and failed jobs own half of
    /// the budget: an hour of successes does not evict yesterday's failures.
    pub(crate) fn keep_budget(&mut self, rest: &dyn Rest) {
        let [failed, ended] = self.kept;
        // Jobs that this very tick purged are still in the archive, and nothing may be dropped
        // twice. The budget is checked again once the purge is drained.
        let purged = self
            .agenda
            .stepped()
            .filter_map(|name| self.spaces.get(name))
            .any(|space| !space.outbox.purged.is_empty());
        if purged || failed + ended <= self.config.retain_bytes {
            return;
        }
        let over = failed + ended - self.config.retain_bytes;
        let half = self.config.retain_bytes / 2;
        // Failed jobs give up only the part above their half, even under a large overrun: the next
        // check takes the rest from the others.
        let (class, mut over) = if failed > half {
            (Class::Failed, over.min(failed - half))
        } else {
            (Class::Ended, over)
        };
        for (namespace, job) in rest.soonest(class, TICK_MAX) {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(u64::from(job.bytes));
            self.space(&namespace).forget_archived(&job);
        }
    }

    /// True if finished jobs exceed their budget: a tick is due now.
    pub fn over_budget(&self) -> bool {
        self.kept[0] + self.kept[1] > self.config.retain_bytes
    }
}

/// The index of a state's byte count: failed jobs first, then all others.
pub(crate) fn class_index(state: JobState) -> usize {
    usize::from(state != JobState::Failed)
}
