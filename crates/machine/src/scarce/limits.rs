//! Limits: fit checks, grants and returns of permits and tokens.
//!
//! `in_use` is the sum of the weights of live leases and of nothing else. This module does not decide the
//! order of grants.

use crate::mutant::{Mutant, forgets};
use crate::queue::doors::Fit;
use crate::scarce::rates::{rate_fits_at, tokens};
use crate::state::{LaneId, Limit, LimitId, Space};
use tenure_core::bounds::{FORGET_US, STEPS_MAX};
use tenure_core::names::LimitName;
use tenure_core::settings::LimitSettings;
use tenure_core::time::{Moment, Span};

/// The settings of a lock that has none: a limit of concurrency 1.
pub(crate) const LOCK: LimitSettings =
    LimitSettings { concurrency: Some(1), rate: None, gap: None, quarantine: Span::ZERO };

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
    /// The limit of this name; makes it if necessary.
    pub(crate) fn limit_for(&mut self, name: &LimitName) -> LimitId {
        if let Some(limit) = self.limit_by_name.get(name) {
            return *limit;
        }
        let limit = self.limits.insert(Limit {
            name: name.clone(),
            uses: 0,
            in_use: 0,
            holders: Default::default(),
            resting: Default::default(),
            resting_sum: 0,
            external: 0,
            external_until: None,
            gauge: None,
            touched_at: Moment::ZERO,
            tat: Moment::ZERO,
            paused_until: None,
            door: None,
            reservation: None,
            cached: None,
            timer: None,
            stored: false,
        });
        self.limit_by_name.insert(name.clone(), limit);
        limit
    }

    /// Drops a limit that is not needed and remembers nothing.
    pub(crate) fn drop_limit_if_idle(&mut self, limit: LimitId) {
        let l = &self.limits[limit];
        if l.is_held() {
            return;
        }
        let debt = l.tat.max(l.paused_until.unwrap_or_default());
        if l.external > 0 || debt > self.last {
            // It is remembered until its debt or its observation is over.
            self.arm_limit(limit);
            return;
        }
        if let Some(timer) = l.timer {
            self.limit_timers.clear(timer, limit);
        }
        if let Some(l) = self.limits.remove(limit) {
            self.limit_by_name.remove(&l.name);
            self.out.dirty_limits.remove(&limit);
            if l.stored {
                self.forget_limit_row(&l.name);
            }
        }
    }

    /// The setting that applies to a name, and the template that it comes from.
    pub(crate) fn setting_of(
        &self,
        name: &LimitName,
    ) -> Option<(LimitSettings, Option<LimitName>)> {
        if let Some(own) = self.limit_settings.get(name) {
            return Some((*own, None));
        }
        let template = name.template()?;
        match self.limit_settings.get(&template) {
            Some(settings) => Some((*settings, Some(template))),
            None if name.family() == "lock" => Some((LOCK, Some(template))),
            None => None,
        }
    }

    /// The setting that applies to a limit, read again only after some setting changed.
    pub(crate) fn setting(&mut self, limit: LimitId) -> Option<LimitSettings> {
        let generation = self.settings_generation;
        if let Some((at, settings)) = self.limits[limit].cached
            && at == generation
        {
            return settings;
        }
        let settings = self.setting_of(&self.limits[limit].name).map(|found| found.0);
        self.limits[limit].cached = Some((generation, settings));
        settings
    }

    pub(crate) fn setting_now(&self, limit: LimitId) -> Option<LimitSettings> {
        match self.limits[limit].cached {
            Some((at, settings)) if at == self.settings_generation => settings,
            _ => self.setting_of(&self.limits[limit].name).map(|found| found.0),
        }
    }

    /// True if a setting applies to a limit.
    pub(crate) fn is_set(&self, limit: LimitId) -> bool {
        self.setting_now(limit).is_some()
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
        let Some(settings) = self.setting_now(limit) else { return Fit::Never };
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
        let settings = self.setting(limit);
        self.limits[limit].in_use += u64::from(weight);
        self.order_gauge(limit, now);
        let l = &mut self.limits[limit];
        match settings.and_then(|settings| settings.rate) {
            Some(rate) => {
                l.tat = l.tat.max(now).plus(tokens(&rate, cost));
                self.out.dirty_limits.insert(limit);
                cost
            }
            None => 0,
        }
    }

    /// Returns permits: at once, or after the longer of the rests that they owe.
    pub(crate) fn return_limit(&mut self, limit: LimitId, weight: u32, owes: Owes, now: Moment) {
        let settings = self.setting(limit).filter(|s| s.concurrency.is_some()).unwrap_or_default();
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
        let fence = self.leases.last_fence();
        let l = &mut self.limits[limit];
        // Several may come back at the same time: the number keeps them apart.
        let mut n = fence.get();
        while l.resting.contains_key(&(until, n)) {
            n += 1;
        }
        l.resting.insert((until, n), weight);
        l.resting_sum += u64::from(weight);
        self.out.dirty_limits.insert(limit);
        self.arm_limit(limit);
    }

    /// Corrects the booked tokens of a grant to those that were spent.
    pub(crate) fn correct_cost(&mut self, limit: LimitId, booked: u32, spent: u32, now: Moment) {
        let Some(rate) = self.setting(limit).and_then(|settings| settings.rate) else { return };
        let l = &mut self.limits[limit];
        l.tat = if spent >= booked {
            l.tat.plus(Span::from_us(tokens(&rate, spent).us() - tokens(&rate, booked).us()))
        } else {
            let back = tokens(&rate, booked).us() - tokens(&rate, spent).us();
            l.tat.minus(Span::from_us(back)).max(now.min(l.tat))
        };
        self.out.dirty_limits.insert(limit);
        self.limit_due(limit);
    }

    /// True if an unset limit only has an observation or a pause left.
    fn is_left_over(&self, limit: LimitId) -> bool {
        let l = &self.limits[limit];
        !l.is_held() && (l.external > 0 || l.paused_until.is_some()) && !self.is_set(limit)
    }

    /// The limit may serve more than before.
    pub(crate) fn limit_due(&mut self, limit: LimitId) {
        if let Some(door) = self.limits[limit].door {
            self.door_due(door);
        }
    }

    /// Sets the limit's timer to the next time at which it changes.
    pub(crate) fn arm_limit(&mut self, limit: LimitId) {
        let left_over = self.is_left_over(limit);
        let l = &mut self.limits[limit];
        let mut next = l.resting.first_key_value().map(|((at, _), _)| *at);
        let mut sooner = |at: Moment| next = Some(next.map_or(at, |next| next.min(at)));
        if let Some(until) = l.external_until {
            sooner(until);
        }
        if let Some(until) = l.paused_until.filter(|until| *until < Moment::MAX) {
            sooner(until);
        }
        if let Some(gauge) = &l.gauge {
            gauge.attempt_ends().map(&mut sooner);
            gauge.kept_rest_ends().map(&mut sooner);
        }
        if l.uses == 0 && l.in_use == 0 && l.tat > self.last {
            sooner(l.tat);
        }
        if left_over {
            sooner(l.touched_at.plus(Span::from_us(FORGET_US)));
        }
        if l.timer == next {
            return;
        }
        let old = std::mem::replace(&mut l.timer, next);
        if let Some(old) = old {
            self.limit_timers.clear(old, limit);
        }
        if let Some(next) = next {
            self.limit_timers.set(next, limit);
        }
    }

    /// Ends the timed parts of a limit: rests, an observation, a pause.
    pub(crate) fn tick_limit(&mut self, limit: LimitId, now: Moment) {
        let l = &mut self.limits[limit];
        l.timer = None;
        let mut steps = 0;
        while let Some(((at, n), weight)) = l.resting.first_key_value().map(|(k, w)| (*k, *w)) {
            if at > now || steps >= STEPS_MAX {
                break;
            }
            steps += 1;
            l.resting.remove(&(at, n));
            l.resting_sum -= u64::from(weight);
        }
        if l.external_until.is_some_and(|until| until <= now) {
            l.external_until = None;
            l.external = 0;
        }
        if l.paused_until.is_some_and(|until| until <= now) {
            l.paused_until = None;
        }
        self.tick_gauge(limit, now);
        if self.is_left_over(limit) {
            let l = &mut self.limits[limit];
            if l.touched_at.plus(Span::from_us(FORGET_US)) <= now {
                (l.external, l.external_until, l.paused_until) = (0, None, None);
            }
        }
        self.out.dirty_limits.insert(limit);
        self.arm_limit(limit);
        self.limit_due(limit);
        self.drop_limit_if_idle(limit);
    }

    /// A setting changed: all wait queues that it governs are due, a template's one by one.
    pub(crate) fn setting_changed(&mut self, name: &LimitName, now: Moment) {
        self.settings_generation += 1;
        if name.is_template() {
            self.families.push_back((name.family().to_owned(), None));
        } else if let Some(limit) = self.limit_by_name.get(name).copied() {
            self.limit_setting_changed(limit, now);
        }
    }

    /// Cuts the rests of permits to the present setting: a shorter setting applies to rests that have begun, and so
    /// does a clock that was set back.
    pub(crate) fn cut_rests(&mut self, limit: LimitId, now: Moment) {
        let longest = now.plus(self.setting(limit).unwrap_or_default().longest_rest());
        let l = &mut self.limits[limit];
        if l.resting.last_key_value().is_none_or(|((at, _), _)| *at <= longest) {
            return;
        }
        for ((at, mut n), weight) in l.resting.split_off(&(longest, u64::MAX)) {
            let at = at.min(longest);
            while l.resting.contains_key(&(at, n)) {
                n += 1;
            }
            l.resting.insert((at, n), weight);
        }
        self.out.dirty_limits.insert(limit);
        self.arm_limit(limit);
    }

    fn limit_setting_changed(&mut self, limit: LimitId, now: Moment) {
        if let Some(rate) = self.setting(limit).and_then(|settings| settings.rate) {
            let l = &mut self.limits[limit];
            let most = now.plus(tokens(&rate, rate.burst));
            if l.tat > most {
                l.tat = most;
                self.out.dirty_limits.insert(limit);
            }
        }
        self.cut_rests(limit, now);
        if let Some(door) = self.limits[limit].door
            && !forgets(Mutant::SettingIsNoEvent)
        {
            self.retry_misfits(door);
            self.door_due(door);
        }
        self.recheck_reservations_of(limit, now);
        // Its remaining state goes in a day, or stays from now on.
        self.arm_limit(limit);
    }

    /// One step through the limits of a changed template; `false` if no template has changed.
    pub(crate) fn step_family(&mut self) -> bool {
        let now = self.last;
        let Some((family, cursor)) = self.families.front().cloned() else { return false };
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = match (cursor, LimitName::parse(&format!("{family}:*"))) {
            (Some(cursor), _) => Excluded(cursor),
            // '*' sorts before most keys, but not all: begin at the family itself.
            (None, _) => match LimitName::parse(&family) {
                Ok(name) => Included(name),
                Err(_) => Unbounded,
            },
        };
        let next = self.limit_by_name.range((from, Unbounded)).next();
        match next.map(|(name, limit)| (name.clone(), *limit)) {
            Some((name, limit)) if name.family() == family => {
                if name.key().is_some() {
                    self.limit_setting_changed(limit, now);
                }
                if let Some(front) = self.families.front_mut() {
                    front.1 = Some(name);
                }
            }
            // A family sorts together, except for names such as "site-a", which lie between "site" and "site:":
            // continue behind them.
            Some((name, _)) if name.as_str() < format!("{family}:").as_str() => {
                if let Some(front) = self.families.front_mut() {
                    front.1 = Some(name);
                }
            }
            _ => {
                self.families.pop_front();
            }
        }
        true
    }
}
