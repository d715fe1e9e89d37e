//! Limits: caps that are set, paused and observed at run time. A change takes effect at once, also for waiting calls
//! and jobs.

use crate::answer::acts;
use crate::state::Space;
use tenure_core::events::{About, EventType};
use tenure_core::gauge::Gauge;
use tenure_core::lease::Later;
use tenure_core::names::LimitName;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    DeleteLimit, GetLimit, ListLimits, Listed, ObserveLimit, PatchLimit, PauseLimit, Put, PutLimit,
    ResumeLimit,
};
use tenure_core::sentences::LimitRefusal;
use tenure_core::settings::LimitView;
use tenure_core::time::Moment;

pub(crate) fn limit_not_found(limit: &LimitName) -> Refusal {
    LimitRefusal::NotSet { limit: limit.clone() }.into()
}

impl Space {
    /// True for a limit with a setting of its own or a template's, or in use.
    pub(crate) fn limit_is_known(&self, name: &LimitName) -> bool {
        self.limits.setting_of(name).is_some()
            || name.is_template()
                && (self.limits.settings().contains_key(name) || name.family() == "lock")
            || self.limits.by_name().get(name).is_some_and(|limit| {
                let l = &self.limits[*limit];
                l.in_use > 0 || l.external > 0
            })
    }

    fn limit_happens(&mut self, name: &LimitName, kind: EventType, about: About, now: Moment) {
        self.happens(kind, About { limit: Some(name.clone()), ..about }, now);
    }

    /// The gauge of a limit, if it has one.
    pub(crate) fn gauge_of(&self, name: &LimitName) -> Option<&Gauge> {
        let limit = self.limits.by_name().get(name)?;
        Some(&self.limits[*limit].gauge.as_ref()?.gauge)
    }

    pub(crate) fn put_limit(&mut self, put: PutLimit, now: Moment) -> Result<bool, Refusal> {
        put.check()?;
        let PutLimit { limit: name, settings, gauge } = put;
        let old = self.limits.set(name.clone(), settings);
        let regauged = self.gauge_of(&name) != gauge.as_deref();
        if regauged {
            let limit = self.limits.named(&name);
            self.set_gauge(limit, gauge, now);
        }
        if regauged || old != Some(settings) {
            self.limit_setting_row(&name);
            self.limit_happens(&name, EventType::LimitChanged, About::default(), now);
            self.setting_changed(&name, now);
        }
        if let Some(limit) = self.limits.by_name().get(&name).copied().filter(|_| regauged) {
            self.drop_limit_if_idle(limit);
        }
        let built_in = name.as_str() == "lock:*";
        Ok(old.is_none() && !built_in)
    }

    /// Changes a limit that is set. A limit under a template has no setting to change: its own would replace the whole
    /// template, and a change names only some fields.
    pub(crate) fn patch_limit(&mut self, patch: PatchLimit, now: Moment) -> Result<bool, Refusal> {
        let mut settings = match self.limits.settings().get(&patch.limit) {
            Some(settings) => *settings,
            None if patch.limit.as_str() == "lock:*" => crate::state::LOCK,
            None => return Err(limit_not_found(&patch.limit)),
        };
        patch.concurrency.apply(&mut settings.concurrency);
        patch.rate.apply(&mut settings.rate);
        patch.gap.apply(&mut settings.gap);
        patch.quarantine.apply_or_default(&mut settings.quarantine);
        let mut gauge = self.gauge_of(&patch.limit).cloned().map(Box::new);
        patch.gauge.apply(&mut gauge);
        self.put_limit(PutLimit { limit: patch.limit, settings, gauge }, now)
    }

    pub(crate) fn delete_limit(&mut self, name: &LimitName, now: Moment) -> Result<(), Refusal> {
        if name.as_str() == "lock:*" {
            return Err(LimitRefusal::LockTemplateStays.into());
        }
        let limit = self.limits.by_name().get(name).copied();
        let was_set = self.limits.unset(name).is_some();
        if let Some(limit) = limit {
            self.limits[limit].touched_at = now;
            self.limits.mark(limit);
        }
        if was_set || limit.is_some_and(|limit| self.limits[limit].external > 0) {
            self.limit_happens(name, EventType::LimitDeleted, About::default(), now);
        }
        if was_set {
            if let Some(limit) = limit {
                self.set_gauge(limit, None, now);
            }
            self.limit_setting_row(name);
            self.setting_changed(name, now);
            if let Some(limit) = limit {
                self.drop_limit_if_idle(limit);
            }
            return Ok(());
        }
        // Only an observation of it is left.
        let Some(limit) = limit.filter(|limit| self.limits[*limit].external > 0) else {
            return Err(limit_not_found(name));
        };
        let l = &mut self.limits[limit];
        (l.external, l.external_until) = (0, None);
        self.limits.arm(limit, self.last);
        self.limit_due(limit);
        self.drop_limit_if_idle(limit);
        Ok(())
    }

    pub(crate) fn pause_limit(
        &mut self,
        name: &LimitName,
        until: Later,
        now: Moment,
    ) -> Result<(), Refusal> {
        if name.is_template() || !self.limit_is_known(name) {
            return Err(limit_not_found(name));
        }
        self.pause_limit_until(name, until.moment(now), now);
        Ok(())
    }

    /// Pauses the limit until a time; the later of two ends holds.
    pub(crate) fn pause_limit_until(&mut self, name: &LimitName, until: Moment, now: Moment) {
        let limit = self.limits.named(name);
        let l = &mut self.limits[limit];
        let until = l.paused_until.map_or(until, |old| old.max(until));
        l.paused_until = (until > now).then_some(until);
        let until = l.paused_until;
        l.touched_at = now;
        if until.is_some() {
            let about = About { until, ..About::default() };
            self.limit_happens(name, EventType::LimitPaused, about, now);
        }
        self.limits.mark(limit);
        self.limits.arm(limit, self.last);
        self.recheck_reservations_of(limit, now);
    }

    pub(crate) fn resume_limit(&mut self, name: &LimitName, now: Moment) -> Result<(), Refusal> {
        if name.is_template() || !self.limit_is_known(name) {
            return Err(limit_not_found(name));
        }
        if let Some(limit) = self.limits.by_name().get(name).copied() {
            if self.limits[limit].paused_until.take().is_some_and(|until| until > now) {
                self.limit_happens(name, EventType::LimitResumed, About::default(), now);
            }
            self.limits.mark(limit);
            self.limits.arm(limit, self.last);
            self.limit_due(limit);
        }
        Ok(())
    }

    pub(crate) fn observe_limit(&mut self, seen: ObserveLimit, now: Moment) -> Result<(), Refusal> {
        if seen.limit.is_template() || !self.limit_is_known(&seen.limit) {
            return Err(limit_not_found(&seen.limit));
        }
        if self.gauge_of(&seen.limit).is_some() {
            return Err(LimitRefusal::Gauged { limit: seen.limit }.into());
        }
        let limit = self.limits.named(&seen.limit);
        let l = &mut self.limits[limit];
        l.external = seen.external;
        l.touched_at = now;
        l.external_until = seen.hold.filter(|_| seen.external > 0).map(|span| now.plus(span));
        let about = About {
            until: l.external_until,
            external: Some(u64::from(seen.external)),
            ..About::default()
        };
        self.limit_happens(&seen.limit, EventType::LimitObserved, about, now);
        self.limits.mark(limit);
        self.limits.arm(limit, self.last);
        self.limit_due(limit);
        Ok(())
    }
}

acts! {
    ListLimits => Listed<LimitView>, |ask, at| Ok(at.space.list_limits(&ask.page, at.now));
    GetLimit => LimitView, |ask, at| {
        if !at.space.limit_is_known(&ask.limit) {
            return Err(limit_not_found(&ask.limit));
        }
        Ok(at.space.limit_view(&ask.limit, true, at.now))
    };
    PutLimit => Put<LimitView>, |ask, at| {
        let name = ask.limit.clone();
        let created = at.space.put_limit(ask, at.now)?;
        Ok(Put { view: at.space.limit_view(&name, true, at.now), created })
    };
    PatchLimit => Put<LimitView>, |ask, at| {
        let name = ask.limit.clone();
        let created = at.space.patch_limit(ask, at.now)?;
        Ok(Put { view: at.space.limit_view(&name, true, at.now), created })
    };
    DeleteLimit => (), |ask, at| at.space.delete_limit(&ask.limit, at.now);
    PauseLimit => LimitView, |ask, at| {
        at.space.pause_limit(&ask.limit, ask.until, at.now)?;
        Ok(at.space.limit_view(&ask.limit, true, at.now))
    };
    ResumeLimit => LimitView, |ask, at| {
        at.space.resume_limit(&ask.limit, at.now)?;
        Ok(at.space.limit_view(&ask.limit, true, at.now))
    };
    ObserveLimit => LimitView, |ask, at| {
        let name = ask.limit.clone();
        at.space.observe_limit(ask, at.now)?;
        Ok(at.space.limit_view(&name, true, at.now))
    };
}
