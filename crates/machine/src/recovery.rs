//! Recovery: what a machine does whose store may have forgotten grants that it had answered. It waits until the last of
//! them is over.
//!
//! Until then no lease ends by time, and nothing is granted that needs permits of a limit with a concurrency or resources
//! of a pool. All else goes on. Whoever was told of a lease that is forgotten may go on with it for the whole time, so
//! only a tick may end this, as only a tick ends leases: a call may come after a leap of the clock that no tick has seen.

use super::mutant::{Mutant, forgets};
use super::state::{LimitId, Space};
use super::{Machine, Namespace};
use tenure_core::bounds::LEAP_US;
use tenure_core::events::{About, EventType};
use tenure_core::gauge::Gauge;
use tenure_core::sentences::STORE_FORGOT;
use tenure_core::time::{Moment, Span};

/// How long a machine recovers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Recovery {
    /// By the engine's clock. It moves with the leaps of that clock.
    until: Moment,
    /// From its beginning to its end: it never has more than this before it.
    span: Span,
    /// Whether the store forgot anything is being asked.
    is_doubt: bool,
}

impl Machine {
    /// Recovers for `span` from now on, or for longer if it does so already. A new owner of a store that may have forgotten
    /// answered grants calls this after [`restored`](Machine::restored) with the largest ttl that is noted there; an owner
    /// that loses its store's memory, with the larger of that and its own [`largest_ttl`](Machine::largest_ttl).
    pub fn recover_for(&mut self, span: Span, clock: Moment) {
        let mut recovery = Recovery { until: clock.plus(span), span, is_doubt: false };
        // How long the asking takes was not known, so what was said of that does not count any more.
        if let Some(known) = self.recovery.filter(|known| !known.is_doubt) {
            recovery.until = recovery.until.max(known.until);
            recovery.span = recovery.span.max(known.span);
        }
        self.begin_recovery(recovery, clock);
    }

    /// Whether the store forgot grants is being asked, for `span` at most: until [`recover_for`](Machine::recover_for) or
    /// [`end_recovery`](Machine::end_recovery) says more, all is as in a recovery, and nothing is told of one.
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

    /// Whether it recovers, and does not merely ask whether it has to.
    pub fn is_lossy(&self) -> bool {
        self.recovery.is_some_and(|recovery| !recovery.is_doubt)
    }

    /// Ends a recovery before its time: whoever asks knows that nothing was forgotten, or answers for it. What waits is
    /// granted, and leases that are over end, at the next tick.
    pub fn end_recovery(&mut self) {
        if self.recovery.take().is_some() {
            self.each_space(Space::has_recovered);
        }
    }

    /// Until when it recovers, by the engine's clock, unless that leaps; `None` if it does not.
    pub fn recovers_until(&self) -> Option<Moment> {
        self.recovery.map(|recovery| recovery.until)
    }

    /// Time goes on for a recovery. `leapt`: what the clock gained on a monotonic one since the last tick; that time has not
    /// passed for whoever holds what is forgotten. Nor has more of it to come than the whole, if the clock was set back.
    pub(super) fn tick_recovery(&mut self, clock: Moment, leapt: Span) {
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

    /// A namespace that nobody has called yet, or that was forgotten as a whole.
    pub(super) fn new_space(&self, namespace: &Namespace, clock: Moment) -> Space {
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
    /// `tells`: the event of it is written.
    fn recovers(&mut self, until: Moment, tells: bool, clock: Moment) {
        let now = self.advance(clock);
        self.recovers_until = Some(until);
        if tells {
            let why = Some(STORE_FORGOT.into());
            let about = About { why, until: Some(until), ..About::default() };
            self.happens(EventType::EngineLearning, about, now);
        }
        // Nothing that a gauge has shown so far says anything of what was forgotten.
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

    /// Every door that was closed by the recovery alone has a timer, set to an end that it had: all are looked at by the next
    /// tick.
    fn has_recovered(&mut self) {
        self.recovers_until = None;
        let now = self.last;
        self.move_door_timers(now);
    }

    /// Only a reading that was asked then or later shows each run that was forgotten.
    pub(crate) fn readings_count_from(&self, gauge: &Gauge) -> Moment {
        match self.recovered_at {
            Moment::ZERO => Moment::ZERO,
            at => at.plus(gauge.lag),
        }
    }

    /// Until when what is exclusive is closed, if it is.
    pub(crate) fn closed_until(&self, now: Moment) -> Option<Moment> {
        let over = |until: &Moment| *until > now || !forgets(Mutant::CallEndsRecovery);
        self.recovers_until.filter(over)
    }
}
