//! When the machine ticks, and what is told of a clock that steps back.
//!
//! It must never let a step back go unseen because nothing is due.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::bounds::{CLOCK_BEHIND_ACCEPT_US, CLOCK_BEHIND_LOUD_US, PULSE_US};
use tenure_core::time::{Moment, Span};

use super::State;

impl State {
    pub(super) fn due(&self) -> Option<Moment> {
        if self.machine.over_budget() && !self.stuck {
            return Some(Moment::ZERO);
        }
        self.machine.next_due()
    }

    /// How long nothing is to do. At most a second, since only who looks sees a clock step back.
    pub(super) fn patience(&self) -> Duration {
        let most = Span::from_us(PULSE_US).std();
        if !self.again.is_empty() {
            return Duration::ZERO;
        }
        match self.due() {
            Some(due) if due <= self.shared.clock.now() => Duration::ZERO,
            Some(due) => self.shared.clock.sleep(due).min(most),
            None => most,
        }
    }

    /// Ticks once if something is due, or if the clock is not where it was.
    pub(super) fn tick(&mut self) {
        let now = self.shared.clock.now();
        let first = self.clock.top == Moment::ZERO;
        let behind = self.clock.sees(now);
        // A namespace where nothing was due keeps the old time until it is used, so the machine is
        // asked for as long as the clock has not caught up with all that it ever said.
        let looks = first || self.clock.below_top(now);
        if looks || self.due().is_some_and(|due| due <= now) {
            let over = self.machine.over_budget();
            self.machine.tick(now, &self.shelf);
            if first || behind > Span::from_us(CLOCK_BEHIND_ACCEPT_US) {
                self.clock.stands_at(now.plus(self.machine.clock_behind().unwrap_or(Span::ZERO)));
            }
            let changed = self.absorb();
            self.stuck = over && self.machine.over_budget() && !changed;
        }
        let told = self.clock.loud(now).map_or(0, Span::us);
        self.shared.behind_us.store(told, Ordering::Relaxed);
    }
}

/// What this engine saw of its clock. Starts at zero.
#[derive(Default)]
pub(super) struct Seen {
    /// The latest that the clock said since a step back was accepted.
    accepted: Moment,
    /// The latest that it ever said.
    top: Moment,
}

impl Seen {
    /// The clock says this: by how much it is behind.
    fn sees(&mut self, now: Moment) -> Span {
        self.accepted = self.accepted.max(now);
        self.top = self.top.max(now);
        self.accepted.since(now)
    }

    /// Time goes on from here: the clock was accepted, or rows told of a later moment.
    fn stands_at(&mut self, at: Moment) {
        self.accepted = at;
        self.top = self.top.max(at);
    }

    fn below_top(&self, now: Moment) -> bool {
        self.top.since(now) > Span::from_us(CLOCK_BEHIND_LOUD_US)
    }

    /// By how much the clock is behind, if that is worth telling.
    fn loud(&self, now: Moment) -> Option<Span> {
        Some(self.accepted.since(now)).filter(|by| *by > Span::from_us(CLOCK_BEHIND_LOUD_US))
    }
}
