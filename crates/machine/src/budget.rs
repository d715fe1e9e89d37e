//! The byte budget of finished jobs: which of them go before their time.
//!
//! It chooses among what the archive names and never looks at a live job.

use super::rows::Class;
use super::{Machine, Rest};
use tenure_core::bounds::TICK_MAX;
use tenure_core::job::JobState;

impl Machine {
    /// Within the byte budget what would go soonest goes first, and failed jobs own half of it: an
    /// hour of successes does not evict yesterday's failures.
    pub(super) fn keep_budget(&mut self, rest: &dyn Rest) {
        let [failed, ended] = self.kept;
        // What this very tick purged is in the archive still: nothing may be dropped twice. The
        // budget is looked at again once that is drained.
        let purged = self
            .agenda
            .stepped()
            .filter_map(|name| self.spaces.get(name))
            .any(|space| !space.out.purged.is_empty());
        if purged || failed + ended <= self.config.retain_bytes {
            return;
        }
        let over = failed + ended - self.config.retain_bytes;
        let half = self.config.retain_bytes / 2;
        // Failed jobs give back what is above their half and no more, however large the overrun is:
        // the rest of it is for the others to give, at the next look.
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

    /// Whether finished jobs take more than their budget: a tick is due now.
    pub fn over_budget(&self) -> bool {
        self.kept[0] + self.kept[1] > self.config.retain_bytes
    }
}

/// Where the bytes of jobs that ended so are counted: failed ones first, then all others.
pub(super) fn class_index(state: JobState) -> usize {
    usize::from(state != JobState::Failed)
}
