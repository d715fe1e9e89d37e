//! Schedules, beside the ticks: computes plans for those that ask for one, and decides due occurrences.
//!
//! Firing never takes more than half of the thread's time: after an outage pushes, leases and settles go on in between.

use std::time::Duration;

use tenure_core::bounds::SECOND_US;
use tenure_core::time::Span;
use tenure_engine_api::schedules::plan;
use tenure_machine::Command;

use super::StateThread;

impl StateThread {
    /// Computes the requested plans, and decides the occurrences that are due.
    pub(super) fn schedules(&mut self) {
        for (namespace, wanted) in std::mem::take(&mut self.wanted) {
            let plan = plan(wanted, self.shared.clock.now());
            // A plan is never refused: a useless one is dropped.
            let _ = self.apply(&namespace, Command::Plan(plan));
            self.absorb();
        }
        // Each takes some time, and then the next one waits; on a test clock, which stands still, all come at once.
        while self.firing_waits() == Some(Duration::ZERO) {
            let began = self.shared.clock.monotonic();
            // A full store makes schedules late, never itself fuller.
            if self.shared.room.is_used_up() {
                self.no_fire_before = began + Span::from_us(SECOND_US).std();
                return;
            }
            self.machine.fire(self.shared.clock.now(), &self.overlay);
            self.absorb();
            let ended = self.shared.clock.monotonic();
            self.no_fire_before = ended + ended.saturating_sub(began);
        }
    }

    /// The time until occurrences may be decided; `None` if no schedule has any.
    pub(super) fn firing_waits(&self) -> Option<Duration> {
        let due = self.machine.next_fire()?;
        let clock = &self.shared.clock;
        let until_due = if due <= clock.now() { Duration::ZERO } else { clock.sleep(due) };
        Some(until_due.max(self.no_fire_before.saturating_sub(clock.monotonic())))
    }
}
