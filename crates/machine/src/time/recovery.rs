//! Recovery: a machine whose store may have lost answered grants waits until the last of them is over.
//!
//! Until then no lease ends by time, and there are no grants of limits with a concurrency or of resources. All else
//! goes on. The holder of a lost lease may use it for its whole time, so only a tick may end a recovery, as only a tick
//! ends leases: a call may come after a leap of the clock that no tick has seen.

use crate::mutant::{Mutant, forgets};
use crate::state::{LimitId, Space};
use crate::{Machine, Namespace};
use tenure_core::bounds::LEAP_US;
use tenure_core::events::{About, EventType};
use tenure_core::gauge::Gauge;
use tenure_core::sentences::STORE_FORGOT;
use tenure_core::time::{Moment, Span};

/// The time of a machine's recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Recovery {
    /// By the engine's clock. Moves with the leaps of that clock.
    until: Moment,
    /// The length from beginning to end: the remaining time never exceeds this.
    span: Span,
    /// True while it is unknown if the store lost anything.
    is_doubt: bool,
}

impl Machine {
    /// Recovers for `span` from now on, or for longer if it already does so. A new leader of a store that may have lost
    /// answered grants calls this after [`restored`](Machine::restored) with the largest ttl noted there; a leader
    /// whose store lost its memory calls it with the larger of that and its own [`largest_ttl`](Machine::largest_ttl).
    pub fn recover_for(&mut self, span: Span, clock: Moment) {
        let mut recovery = Recovery { until: clock.plus(span), span, is_doubt: false };
        // The length of the inquiry was unknown, so the end of the doubt no longer counts.
        if let Some(known) = self.recovery.filter(|known| !known.is_doubt) {
            recovery.until = recovery.until.max(known.until);
            recovery.span = recovery.span.max(known.span);
        }
        self.begin_recovery(recovery, clock);
    }

    /// Doubts for at most `span`, while the leader asks if the store lost grants: until
    /// [`recover_for`](Machine::recover_for) or [`end_recovery`](Machine::end_recovery) all is as in a recovery,
    /// without an event of one.
    pub fn doubt_for(&mut self, span: Span, clock: Moment) {
        let mut doubt = Recovery { until: clock.plus(span), span, is_doubt: true };
        if let Some(known) = self.recovery {
            doubt.until = doubt.until.max(known.until);
            doubt.span = doubt.span.max(known.span);
        }
        self.begin_recovery(doubt, clock);
    }

    fn begin_recovery(&mut self, recovery: Recovery, clock: Moment) {
        if recovery.until <= clock {
            return;
        }
        let goes_on = self.recovery.is_some_and(|known| !known.is_doubt);
        let tells = !recovery.is_doubt && !goes_on;
        self.recovery = Some(recovery);
        self.each_space(|space| space.recovers(recovery.until, tells, clock));
    }

    /// True in a recovery, but not while the leader only asks if it needs one.
    pub fn is_lossy(&self) -> bool {
        self.recovery.is_some_and(|recovery| !recovery.is_doubt)
    }

    /// Ends a recovery early: the caller knows that nothing was lost, or answers for it. At the next tick waiting calls
    /// get their grants, and expired leases end.
    pub fn end_recovery(&mut self) {
        if self.recovery.take().is_some() {
            self.each_space(Space::has_recovered);
        }
    }

    /// The end of the recovery by the engine's clock, unless that leaps; `None` without a recovery.
    pub fn recovers_until(&self) -> Option<Moment> {
        self.recovery.map(|recovery| recovery.until)
    }

    /// Moves the time of a recovery on. `leapt`: the clock's gain over a monotonic one since the last tick; for the
    /// holders of lost leases that time has not passed. The remaining time never exceeds the whole if the clock was set
    /// back.
    pub(crate) fn tick_recovery(&mut self, clock: Moment, leapt: Span) {
        let Some(Recovery { mut until, span, is_doubt }) = self.recovery else { return };
        if leapt > Span::from_us(LEAP_US) && !forgets(Mutant::LeapShortensRecovery) {
            until = until.plus(leapt);
        }
        until = until.min(clock.plus(span));
        if until <= clock {
            return self.end_recovery();
        }
        if self.recovers_until() != Some(until) {
            self.recovery = Some(Recovery { until, span, is_doubt });
            self.each_space(|space| space.recovers_until = Some(until));
        }
    }

    /// A namespace without any call yet, or one that was lost as a whole.
    pub(crate) fn new_space(&self, namespace: &Namespace, clock: Moment) -> Space {
        let mut space = Space::new(namespace.clone(), self.config.patience);
        if let Some(until) = self.recovers_until()
            && !forgets(Mutant::NewNamespaceIsWhole)
        {
            space.recovers(until, self.is_lossy(), clock);
        }
        space
    }

    fn each_space(&mut self, change: impl Fn(&mut Space)) {
        self.wake_all();
        for (name, space) in &mut self.spaces {
            self.agenda.steps(name);
            change(space);
        }
    }
}

impl Space {
    /// `tells`: writes the event of it.
    fn recovers(&mut self, until: Moment, tells: bool, clock: Moment) {
        let now = self.advance(clock);
        self.recovers_until = Some(until);
        if tells {
            let why = Some(STORE_FORGOT.into());
            let about = About { why, until: Some(until), ..About::default() };
            self.happens(EventType::EngineLearning, about, now);
        }
        // Readings of a gauge up to now show nothing about lost runs.
        self.recovered_at = now;
        let limits = self.limits.iter().filter(|(_, limit)| limit.gauge.is_some());
        let gauged: Vec<LimitId> = limits.map(|(slot, _)| slot).collect();
        for limit in gauged {
            let counts = self.limits[limit].gauge.as_ref();
            let counts = counts.map(|state| self.readings_count_from(&state.gauge));
            if let (Some(state), Some(from)) = (&mut self.limits[limit].gauge, counts) {
                state.counts_from = from;
            }
            self.order_gauge(limit, now);
        }
    }

    /// Every wait queue that only the recovery closed has a timer, set to an end of it: the next tick checks them all.
    fn has_recovered(&mut self) {
        self.recovers_until = None;
        let now = self.last;
        self.lines.move_door_timers(now);
    }

    /// Only a reading that was requested then or later shows every lost run.
    pub(crate) fn readings_count_from(&self, gauge: &Gauge) -> Moment {
        match self.recovered_at {
            Moment::ZERO => Moment::ZERO,
            at => at.plus(gauge.lag),
        }
    }

    /// The time until which exclusive grants are closed, if they are.
    pub(crate) fn closed_until(&self, now: Moment) -> Option<Moment> {
        let over = |until: &Moment| *until > now || !forgets(Mutant::CallEndsRecovery);
        self.recovers_until.filter(over)
    }
}
