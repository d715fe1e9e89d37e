//! Limits: their settings, their state, and the times at which each changes or its gauge is read.

mod audit;
mod limit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::slots::{Slots, indexed};
use super::sparse::trim_ring;
use super::{GaugeState, LimitId};
use crate::time::timers::Timers;
use tenure_core::bounds::{FORGET_US, STEPS_MAX};
use tenure_core::names::LimitName;
use tenure_core::settings::LimitSettings;
use tenure_core::time::{Moment, Span};

pub(crate) use limit::{Limit, LimitReservation};

/// The settings of a lock that has none: a limit of concurrency 1.
pub(crate) const LOCK: LimitSettings =
    LimitSettings { concurrency: Some(1), rate: None, gap: None, quarantine: Span::ZERO };

/// All limits of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    settings: BTreeMap<LimitName, LimitSettings>,
    /// Number of changes of settings: an older cached setting is read again.
    generation: u64,
    /// Templates whose setting changed, each with the last of its limits that was told.
    families: VecDeque<(String, Option<LimitName>)>,
    limits: Slots<Limit>,
    by_name: BTreeMap<LimitName, LimitId>,
    timers: Timers<LimitId>,
    /// The order in which gauges are read: by the start of the attempt.
    attempts: BTreeSet<(Moment, LimitId)>,
    /// Limits whose rows the next drain writes.
    changed: BTreeSet<LimitId>,
}

indexed!(Limits { limits: Limit });

impl Limits {
    /// Those of a namespace without content, which had some before.
    pub fn none_after(generation: u64) -> Self {
        Limits { generation, ..Limits::default() }
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// True if there is neither a limit nor a setting.
    pub fn are_none(&self) -> bool {
        self.settings.is_empty() && self.by_name.is_empty()
    }

    pub fn by_name(&self) -> &BTreeMap<LimitName, LimitId> {
        &self.by_name
    }

    pub fn iter(&self) -> impl Iterator<Item = (LimitId, &Limit)> {
        self.limits.iter()
    }

    /// The limit of this name; makes it if necessary.
    pub fn named(&mut self, name: &LimitName) -> LimitId {
        if let Some(limit) = self.by_name.get(name) {
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
        self.by_name.insert(name.clone(), limit);
        limit
    }

    /// Drops a limit that is not needed and remembers nothing. Otherwise it is remembered until its debt or its
    /// observation is over.
    pub fn drop_if_idle(&mut self, limit: LimitId, last: Moment) -> Option<Limit> {
        let l = &self.limits[limit];
        if l.is_held() {
            return None;
        }
        if l.external > 0 || l.tat.max(l.paused_until.unwrap_or_default()) > last {
            self.arm(limit, last);
            return None;
        }
        if let Some(timer) = l.timer {
            self.timers.clear(timer, limit);
        }
        let l = self.limits.remove(limit)?;
        self.by_name.remove(&l.name);
        self.changed.remove(&limit);
        Some(l)
    }

    /// Marks the row of a limit for a write.
    pub fn mark(&mut self, limit: LimitId) {
        self.changed.insert(limit);
    }

    /// Takes the marked limits; all exist.
    pub fn take_changed(&mut self) -> BTreeSet<LimitId> {
        std::mem::take(&mut self.changed)
    }

    // ---- Settings ----

    /// The settings of limits and templates, by their names.
    pub fn settings(&self) -> &BTreeMap<LimitName, LimitSettings> {
        &self.settings
    }

    /// Gives a name this setting. Returns the earlier one. [`Limits::setting_changed`] must follow.
    pub fn set(&mut self, name: LimitName, settings: LimitSettings) -> Option<LimitSettings> {
        self.settings.insert(name, settings)
    }

    /// Restores a setting from its row.
    pub fn restore_setting(&mut self, name: LimitName, settings: LimitSettings) {
        self.settings.insert(name, settings);
        self.generation += 1;
    }

    /// The same for no setting.
    pub fn unset(&mut self, name: &LimitName) -> Option<LimitSettings> {
        self.settings.remove(name)
    }

    /// No cached setting counts any more. Returns the limit of this name; those of a template follow one by one.
    pub fn setting_changed(&mut self, name: &LimitName) -> Option<LimitId> {
        self.generation += 1;
        if name.is_template() {
            self.families.push_back((name.family().to_owned(), None));
            return None;
        }
        self.by_name.get(name).copied()
    }

    /// True if the limits of a changed template are not all told.
    pub fn have_changed_templates(&self) -> bool {
        !self.families.is_empty()
    }

    /// True if such a template may be that of this name.
    pub fn has_changed_template(&self, name: &str) -> bool {
        self.families.iter().any(|(family, _)| name.starts_with(family.as_str()))
    }

    /// One step through the limits of a changed template: perhaps the next of them.
    pub fn next_of_template(&mut self) -> Option<LimitId> {
        let (family, cursor) = self.families.front().cloned()?;
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = match (cursor, LimitName::parse(&format!("{family}:*"))) {
            (Some(cursor), _) => Excluded(cursor),
            // '*' sorts before most keys, but not all: begin at the family itself.
            (None, _) => match LimitName::parse(&family) {
                Ok(name) => Included(name),
                Err(_) => Unbounded,
            },
        };
        let next = self.by_name.range((from, Unbounded)).next();
        let next = next.map(|(name, limit)| (name.clone(), *limit));
        // A family sorts together, except for names such as "site-a", which lie between "site" and "site:": continue
        // behind them.
        let (name, limit) = match next {
            Some((name, limit)) if name.family() == family => (name, Some(limit)),
            Some((name, _)) if name.as_str() < format!("{family}:").as_str() => (name, None),
            Some(_) | None => {
                self.families.pop_front();
                return None;
            }
        };
        let limit = limit.filter(|_| name.key().is_some());
        if let Some(front) = self.families.front_mut() {
            front.1 = Some(name);
        }
        limit
    }

    /// The setting that applies to a name, and the template that it comes from.
    pub fn setting_of(&self, name: &LimitName) -> Option<(LimitSettings, Option<LimitName>)> {
        if let Some(own) = self.settings.get(name) {
            return Some((*own, None));
        }
        let template = name.template()?;
        match self.settings.get(&template) {
            Some(settings) => Some((*settings, Some(template))),
            None if name.family() == "lock" => Some((LOCK, Some(template))),
            None => None,
        }
    }

    /// The setting that applies to a limit, read again only after some setting changed.
    pub fn setting(&mut self, limit: LimitId) -> Option<LimitSettings> {
        let settings = self.setting_now(limit);
        let cached = &mut self.limits[limit].cached;
        if cached.is_none_or(|(at, _)| at != self.generation) {
            *cached = Some((self.generation, settings));
        }
        settings
    }

    /// The same without a note of what was read.
    pub fn setting_now(&self, limit: LimitId) -> Option<LimitSettings> {
        let l = &self.limits[limit];
        match l.cached {
            Some((at, settings)) if at == self.generation => settings,
            Some(_) | None => self.setting_of(&l.name).map(|found| found.0),
        }
    }

    /// True if a setting applies to a limit.
    pub fn is_set(&self, limit: LimitId) -> bool {
        self.setting_now(limit).is_some()
    }

    // ---- Rests ----

    /// Lets permits rest until a time; `n` keeps apart those that come back together.
    pub fn rest_until(&mut self, limit: LimitId, weight: u32, (until, mut n): (Moment, u64)) {
        let l = &mut self.limits[limit];
        while l.resting.contains_key(&(until, n)) {
            n += 1;
        }
        l.resting.insert((until, n), weight);
        l.resting_sum += u64::from(weight);
        self.mark(limit);
    }

    /// Cuts the rests of permits to the present setting: a shorter setting applies to rests that have begun, and so does
    /// a clock that was set back. Returns false if all are short enough.
    pub fn cut_rests(&mut self, limit: LimitId, now: Moment) -> bool {
        let longest = now.plus(self.setting(limit).unwrap_or_default().longest_rest());
        let l = &mut self.limits[limit];
        if l.resting.last_key_value().is_none_or(|((at, _), _)| *at <= longest) {
            return false;
        }
        for ((at, mut n), weight) in l.resting.split_off(&(longest, u64::MAX)) {
            let at = at.min(longest);
            while l.resting.contains_key(&(at, n)) {
                n += 1;
            }
            l.resting.insert((at, n), weight);
        }
        self.mark(limit);
        true
    }

    // ---- Time ----

    pub fn next_change(&self) -> Option<Moment> {
        self.timers.next()
    }

    /// True if an unset limit only has an observation or a pause left.
    fn is_left_over(&self, limit: LimitId) -> bool {
        let l = &self.limits[limit];
        !l.is_held() && (l.external > 0 || l.paused_until.is_some()) && !self.is_set(limit)
    }

    /// Sets the limit's timer to the next time at which it changes.
    pub fn arm(&mut self, limit: LimitId, last: Moment) {
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
        if l.uses == 0 && l.in_use == 0 && l.tat > last {
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
            self.timers.clear(old, limit);
        }
        if let Some(next) = next {
            self.timers.set(next, limit);
        }
    }

    /// Ends the timed parts of the limit whose time came first: rests, an observation, a pause.
    pub fn tick(&mut self, now: Moment) -> Option<LimitId> {
        let (_, limit) = self.timers.take_due(now)?;
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
        self.mark(limit);
        Some(limit)
    }

    /// Forgets what is left of a limit that was unset a day ago.
    pub fn forget_left_over(&mut self, limit: LimitId, now: Moment) {
        if self.is_left_over(limit) {
            let l = &mut self.limits[limit];
            if l.touched_at.plus(Span::from_us(FORGET_US)) <= now {
                (l.external, l.external_until, l.paused_until) = (0, None, None);
            }
        }
    }

    // ---- Gauges ----

    /// Takes the gauge of a limit away, and its next attempt.
    pub fn take_gauge(&mut self, limit: LimitId) -> Option<Box<GaugeState>> {
        self.set_attempt(limit, None);
        self.limits[limit].gauge.take()
    }

    /// Sets the start of the next attempt at a gauge.
    pub fn set_attempt(&mut self, limit: LimitId, next: Option<Moment>) {
        let Some(gauge) = &mut self.limits[limit].gauge else { return };
        let old = std::mem::replace(&mut gauge.due, next);
        if let Some(old) = old {
            self.attempts.remove(&(old, limit));
        }
        if let Some(next) = next {
            self.attempts.insert((next, limit));
        }
    }

    /// The earliest time at which a reading process has a gauge to claim.
    pub fn next_attempt(&self) -> Option<Moment> {
        self.attempts.first().map(|(at, _)| *at)
    }

    /// The limits whose gauges are to be read, in the order of their attempts.
    pub fn attempts_due(&self, now: Moment) -> impl Iterator<Item = LimitId> {
        self.attempts.iter().take_while(move |(at, _)| *at <= now).map(|(_, limit)| *limit)
    }

    pub fn trim(&mut self) {
        trim_ring(&mut self.families);
    }

    pub fn shrink_to_fit(&mut self) {
        self.families.shrink_to_fit();
    }
}
