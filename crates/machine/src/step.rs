//! A namespace as a whole: one step of it, and its end.
//!
//! A namespace exists while it has content, and for a day after its last call. Its fences stay above all earlier ones:
//! a fence is never below the clock, and no namespace ends while its own fence is above it.

use crate::state::{Seq, Space};
use crate::{Command, Done, Rest};
use tenure_core::bounds::FORGET_US;
use tenure_core::lease::Fence;
use tenure_core::refusal::Refusal;
use tenure_core::time::{Moment, Span};

impl Space {
    /// Applies one command at the time of the engine's clock.
    pub(crate) fn step(
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

    /// True if it is like one that was never used, except for its numbers.
    pub(crate) fn holds_nothing(&self) -> bool {
        self.lines.hold_nothing()
            && self.limits.are_none()
            && self.pools.by_name().is_empty()
            && self.leases.hold_nothing()
            && self.jobs.hold_nothing()
            && self.schedules.are_none()
            && self.flows.named().is_empty()
            && self.dependencies.are_none()
            && self.waiters.are_none()
            && self.workers.known().is_empty()
            && !self.outbox.has_rows()
    }

    /// Its end if no call comes; `None` while it has content.
    pub(crate) fn ends_at(&self) -> Option<Moment> {
        self.holds_nothing().then(|| ends_at(self.used_at, self.leases.last_fence()))
    }
}

/// The end of an empty namespace if no call comes.
pub(crate) fn ends_at(used_at: Moment, fence: Fence) -> Moment {
    used_at.plus(Span::from_us(FORGET_US)).max(Moment::from_us(fence.get()))
}
