//! A namespace as a whole: one step of it, and when it ends.
//!
//! A namespace is there while something is in it, and for a day after its last call. Fences stay above
//! all that were given there: a fence is never below the clock, and no namespace ends while its own is
//! above it.

use super::state::{CALLERS, Seq, Space};
use super::{Command, Done, Rest};
use tenure_core::bounds::FORGET_US;
use tenure_core::lease::Fence;
use tenure_core::refusal::Refusal;
use tenure_core::time::{Moment, Span};

impl Space {
    /// Applies one command at what the engine's clock says.
    pub(super) fn step(
        &mut self,
        command: Command,
        clock: Moment,
        next_seq: &mut Seq,
        rest: &dyn Rest,
    ) -> Result<Done, Refusal> {
        let mut over = Vec::new();
        let done = if let Command::Tick { leapt } = command {
            over = self.tick(clock, leapt, rest);
            Ok(Done::Nothing)
        } else {
            let now = self.advance(clock);
            let by_itself = matches!(
                command,
                Command::Fire
                    | Command::Plan(_)
                    | Command::ClaimGauges { .. }
                    | Command::TakeReading(_)
            );
            if !by_itself {
                self.used_at = now;
            }
            let done = self.run(command, next_seq, rest, now);
            self.tell(now);
            done
        };
        let now = self.last;
        self.serve(now);
        if !over.is_empty() {
            self.end_waits(&over, now);
        }
        done
    }

    /// Whether it is as one that was never used, but for its numbers.
    pub(super) fn holds_nothing(&self) -> bool {
        self.queue_by_name.is_empty()
            && self.limit_settings.is_empty()
            && self.limit_by_name.is_empty()
            && self.pool_by_name.is_empty()
            && self.leases.is_empty()
            && self.keys.is_empty()
            && self.requests.is_empty()
            && self.replacing.is_empty()
            && self.stubs.is_empty()
            && self.schedule_by_id.is_empty()
            && self.synced_sets.is_empty()
            && self.flows.is_empty()
            && self.edges.is_empty()
            && self.leaving.is_empty()
            && self.places.is_empty()
            && self.takers.is_empty()
            && self.awaiting.is_empty()
            && self.caller_by_taker.is_empty()
            && self.workers.is_empty()
            && self.queues[CALLERS].priorities.is_empty()
            && self.out.rows.is_empty()
    }

    /// When it ends if nobody calls; `None` while something is in it.
    pub(super) fn ends_at(&self) -> Option<Moment> {
        self.holds_nothing().then(|| ends_at(self.used_at, self.fence))
    }
}

/// When a namespace ends that holds nothing, if nobody calls.
pub(super) fn ends_at(used_at: Moment, fence: Fence) -> Moment {
    used_at.plus(Span::from_us(FORGET_US)).max(Moment::from_us(fence.get()))
}
