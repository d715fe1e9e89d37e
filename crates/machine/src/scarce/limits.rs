//! Limits: fit checks, grants and returns of permits and tokens.
//!
//! `in_use` is the sum of the weights of live leases and of nothing else. This module does not decide the
//! order of grants.

use crate::mutant::{Mutant, forgets};
use crate::queue::doors::Fit;
use crate::rows::Kind;
use crate::scarce::rates::{rate_fits_at, tokens};
use crate::state::{LaneId, LimitId, Space};
use tenure_core::names::LimitName;
use tenure_core::time::{Moment, Span};

/// The rests that the permits of a lease owe on their return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owes {
    pub gap: bool,
    /// True if its end was no settle, so its run may go on.
    pub quarantine: bool,
    /// The time of the grant.
    pub granted_at: Moment,
}

impl Space {
    /// Drops a limit that is not needed and remembers nothing.
    pub(crate) fn drop_limit_if_idle(&mut self, limit: LimitId) {
        if let Some(l) = self.limits.drop_if_idle(limit, self.last)
            && l.stored
        {
            self.put(Kind::Limit, l.name.as_str(), None);
        }
    }

    /// True if `weight` permits and `cost` tokens fit now, without the reservations of others.
    pub(crate) fn limit_fit(
        &self,
        limit: LimitId,
        weight: u32,
        cost: u32,
        lane: Option<LaneId>,
        now: Moment,
    ) -> Fit {
        let Some(settings) = self.limits.setting_now(limit) else { return Fit::Never };
        let l = &self.limits[limit];
        let (kept, kept_cost) = match l.reservation {
            Some(other) if Some(other.lane) != lane => (other.weight, other.cost),
            _ => (0, 0),
        };
        if let Some(cap) = settings.concurrency
            && cap > 0
            && weight > cap
        {
            return Fit::Never;
        }
        if let Some(rate) = &settings.rate
            && cost > rate.burst
        {
            return Fit::Never;
        }
        if settings.concurrency.is_some()
            && let Some(until) = self.closed_until(now)
            && !forgets(Mutant::RecoveryGrantsLimits)
        {
            return Fit::No(Some(until));
        }
        let mut at = Moment::ZERO;
        if let Some(until) = l.paused_until
            && until > now
        {
            if until == Moment::MAX {
                return Fit::No(None);
            }
            at = until;
        }
        if let Some(gauge) = &l.gauge
            && !gauge.may_be_used(now)
        {
            // The next reading makes the wait queue due, and so does a failed attempt.
            return Fit::No(None);
        }
        if let Some(cap) = settings.concurrency {
            let used = l.in_use + l.resting_sum + u64::from(l.external);
            // The job's own run is already in use, and takes nothing that is kept for others.
            let missing = u64::from(weight.saturating_sub(self.own_permits(limit, lane)));
            let kept = if missing > 0 { u64::from(kept) } else { 0 };
            if cap == 0 && weight > 0 || used + missing + kept > u64::from(cap) {
                // Time alone frees it only by resting permits and the end of an observation; both have timers of their
                // own, which make the wait queue due.
                return Fit::No(None);
            }
        }
        if let Some(rate) = &settings.rate {
            let wanted = cost.saturating_add(kept_cost).min(rate.burst);
            if cost > 0 {
                at = at.max(rate_fits_at(rate, l.tat, wanted, now));
            }
        }
        if at > now { Fit::No(Some(at)) } else { Fit::Yes }
    }

    /// Takes permits and tokens for a lease. Returns the booked tokens.
    pub(crate) fn take_limit(
        &mut self,
        limit: LimitId,
        weight: u32,
        cost: u32,
        now: Moment,
    ) -> u32 {
        let settings = self.limits.setting(limit);
        self.limits[limit].in_use += u64::from(weight);
        self.order_gauge(limit, now);
        let l = &mut self.limits[limit];
        match settings.and_then(|settings| settings.rate) {
            Some(rate) => {
                l.tat = l.tat.max(now).plus(tokens(&rate, cost));
                self.limits.mark(limit);
                cost
            }
            None => 0,
        }
    }

    /// Returns permits: at once, or after the longer of the rests that they owe.
    pub(crate) fn return_limit(&mut self, limit: LimitId, weight: u32, owes: Owes, now: Moment) {
        let settings =
            self.limits.setting(limit).filter(|s| s.concurrency.is_some()).unwrap_or_default();
        let gap = settings.gap.filter(|_| owes.gap).unwrap_or_default();
        let rest = if owes.quarantine { gap.max(settings.quarantine) } else { gap };
        self.limits[limit].in_use -= u64::from(weight);
        let until = now.plus(rest);
        let rests = self.rest_for_gauge(limit, weight, owes, until, now);
        if !rests && rest > Span::ZERO {
            self.rest_until(limit, weight, until);
        }
        if rests || rest > Span::ZERO {
            self.recheck_reservations_of(limit, now);
        }
        if !forgets(Mutant::ReturnIsNoEvent) {
            self.limit_due(limit);
        }
    }

    /// Lets permits rest until a time.
    pub(crate) fn rest_until(&mut self, limit: LimitId, weight: u32, until: Moment) {
        // Several may come back at the same time: the number keeps them apart.
        self.limits.rest_until(limit, weight, (until, self.leases.last_fence().get()));
        self.limits.arm(limit, self.last);
    }

    /// Corrects the booked tokens of a grant to those that were spent.
    pub(crate) fn correct_cost(&mut self, limit: LimitId, booked: u32, spent: u32, now: Moment) {
        let Some(rate) = self.limits.setting(limit).and_then(|settings| settings.rate) else {
            return;
        };
        let l = &mut self.limits[limit];
        l.tat = if spent >= booked {
            l.tat.plus(Span::from_us(tokens(&rate, spent).us() - tokens(&rate, booked).us()))
        } else {
            let back = tokens(&rate, booked).us() - tokens(&rate, spent).us();
            l.tat.minus(Span::from_us(back)).max(now.min(l.tat))
        };
        self.limits.mark(limit);
        self.limit_due(limit);
    }

    /// The limit may serve more than before.
    pub(crate) fn limit_due(&mut self, limit: LimitId) {
        if let Some(door) = self.limits[limit].door {
            self.lines.door_due(door);
        }
    }

    /// Ends the timed parts of a limit and of its gauge.
    pub(crate) fn tick_limit(&mut self, limit: LimitId, now: Moment) {
        self.tick_gauge(limit, now);
        self.limits.forget_left_over(limit, now);
        self.limits.arm(limit, self.last);
        self.limit_due(limit);
        self.drop_limit_if_idle(limit);
    }

    /// A setting changed: all wait queues that it governs are due, a template's one by one.
    pub(crate) fn setting_changed(&mut self, name: &LimitName, now: Moment) {
        if let Some(limit) = self.limits.setting_changed(name) {
            self.limit_setting_changed(limit, now);
        }
    }

    /// Cuts the rests of permits to the present setting and clock.
    pub(crate) fn cut_rests(&mut self, limit: LimitId, now: Moment) {
        if self.limits.cut_rests(limit, now) {
            self.limits.arm(limit, self.last);
        }
    }

    fn limit_setting_changed(&mut self, limit: LimitId, now: Moment) {
        if let Some(rate) = self.limits.setting(limit).and_then(|settings| settings.rate) {
            let l = &mut self.limits[limit];
            let most = now.plus(tokens(&rate, rate.burst));
            if l.tat > most {
                l.tat = most;
                self.limits.mark(limit);
            }
        }
        self.cut_rests(limit, now);
        if let Some(door) = self.limits[limit].door
            && !forgets(Mutant::SettingIsNoEvent)
        {
            self.lines.retry_misfits(door);
            self.lines.door_due(door);
        }
        self.recheck_reservations_of(limit, now);
        // Its remaining state goes in a day, or stays from now on.
        self.limits.arm(limit, self.last);
    }

    /// One step through the limits of a changed template; `false` if no template has changed.
    pub(crate) fn step_family(&mut self) -> bool {
        if !self.limits.have_changed_templates() {
            return false;
        }
        if let Some(limit) = self.limits.next_of_template() {
            self.limit_setting_changed(limit, self.last);
        }
        true
    }
}
