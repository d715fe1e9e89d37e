//! Gauges: the times of their readings, the outside work that a reading shows, and the permits that rest until the next
//! one.
//!
//! Used permits are those of live leases, those that rest, and `external`. Each of our runs is in one of the first two
//! until a reading that was requested late enough to show it, so none falls between two counts. This module reads no
//! address.

pub(crate) mod own_runs;
pub(crate) mod rows;

use std::collections::HashMap;

use self::own_runs::OwnRuns;
use crate::mutant::{Mutant, forgets};
use crate::scarce::limits::Owes;
use crate::state::{
    GaugeRest, GaugeState, GoodReading, LimitId, OpenClaim, ReadingFailure, Space, Stand,
};
use tenure_core::bounds::{COUNT_MAX, GAUGE_CLAIMS_MAX, GAUGE_PASSED_OVER_US, GAUGE_SUM_MAX};
use tenure_core::events::{About, EventType};
use tenure_core::gauge::{Gauge, GaugeClaim, GaugeResult, GaugeSource, OnStale, Reading};
use tenure_core::lease::Fence;
use tenure_core::sentences::StoredNote;
use tenure_core::time::{Moment, Span};

impl Space {
    // ---- Settings ----

    /// Gives a limit this gauge, or none. The same gauge again changes nothing.
    pub(crate) fn set_gauge(&mut self, limit: LimitId, gauge: Option<Box<Gauge>>, now: Moment) {
        let l = &mut self.limits[limit];
        if l.gauge.as_ref().map(|state| &state.gauge) == gauge.as_ref() {
            return;
        }
        let (mut rests, mut number) = (Vec::new(), 0);
        if let Some(old) = self.limits.take_gauge(limit) {
            (rests, number) = (old.rests, old.number);
        }
        // Observations and readings of another gauge no longer count.
        let counts_from = gauge.as_ref().map(|gauge| self.readings_count_from(gauge));
        let counts_from = counts_from.unwrap_or_default();
        let l = &mut self.limits[limit];
        (l.external, l.external_until) = (0, None);
        match gauge {
            Some(gauge) => {
                let new = GaugeState::new(gauge);
                l.gauge = Some(Box::new(GaugeState { number, rests, counts_from, ..new }));
            }
            None => {
                for rest in rests {
                    self.rest_shown(limit, rest, now);
                }
            }
        }
        self.gauge_changed(limit, now);
    }

    // ---- When it is read ----

    /// True if the limit has a holder, or an entry in its line.
    fn is_wanted(&self, limit: LimitId) -> bool {
        self.limits[limit].in_use > 0 || self.stands_at(limit)
    }

    fn stands_at(&self, limit: LimitId) -> bool {
        let door = self.limits[limit].door.and_then(|door| self.lines.door(door));
        door.is_some_and(|door| !door.lines.is_empty())
    }

    /// The start of the next attempt at this gauge; `None` while one is claimed, or without a user of the limit.
    pub(crate) fn next_attempt(&self, limit: LimitId, now: Moment) -> Option<Moment> {
        let g = self.limits[limit].gauge.as_ref()?;
        if g.claim.is_some() || !self.is_wanted(limit) {
            return None;
        }
        Some(g.next_attempt(self.stands_at(limit), now))
    }

    /// Sorts a gauge into the order of readings; does nothing for a limit without one. An attempt that has begun stays:
    /// it fails if no process claims it.
    pub(crate) fn order_gauge(&mut self, limit: LimitId, now: Moment) {
        let Some(g) = &self.limits[limit].gauge else { return };
        let old = g.due;
        let begun = old.filter(|due| *due <= now);
        let next = self.next_attempt(limit, now);
        let next = next.map(|at| begun.unwrap_or(at.max(now)));
        if next == old {
            return;
        }
        self.limits.set_attempt(limit, next);
        self.limits.arm(limit, self.last);
    }

    /// The earliest time at which a reading process has a gauge to claim.
    pub(crate) fn next_gauge(&self) -> Option<Moment> {
        self.limits.next_attempt()
    }

    /// Claims the due gauges for a reading process. `others` read too: a process that failed leaves a gauge to those
    /// that did not.
    pub(crate) fn claim_gauges(
        &mut self,
        reader: &str,
        others: &[String],
        now: Moment,
    ) -> Vec<GaugeClaim> {
        let due: Vec<LimitId> = self.limits.attempts_due(now).collect();
        let mut claims = Vec::new();
        for limit in due {
            if claims.len() == GAUGE_CLAIMS_MAX {
                break;
            }
            if self.next_attempt(limit, now).is_none() {
                // The gauge has no user any more.
                self.order_gauge(limit, now);
                continue;
            }
            let l = &mut self.limits[limit];
            let Some(g) = &mut l.gauge else { continue };
            let others_can = || others.iter().any(|other| !g.passes_over(other, now));
            if g.passes_over(reader, now) && others_can() {
                continue;
            }
            g.number += 1;
            g.claim = Some(OpenClaim { asked_at: now, reader: reader.to_owned() });
            g.asked_at = Some(now);
            claims.push(GaugeClaim {
                limit: l.name.clone(),
                number: g.number,
                asked_at: now,
                gauge: g.gauge.clone(),
            });
            self.limits.mark(limit);
            self.order_gauge(limit, now);
            self.limits.arm(limit, self.last);
        }
        claims
    }

    // ---- What is read ----

    /// Accepts the answer to a claim; silently drops one whose claim is over.
    pub(crate) fn take_reading(&mut self, reading: Reading, now: Moment) {
        let Reading { limit, number, asked_at, result } = reading;
        let Some(limit) = self.limits.by_name().get(&limit).copied() else { return };
        let Some(g) = &mut self.limits[limit].gauge else { return };
        let answers = |claim: &OpenClaim| claim.asked_at == asked_at && number == g.number;
        let Some(claim) = g.claim.take_if(|claim| answers(claim)) else { return };
        let mut own_runs = OwnRuns::new();
        let counted = match (result, &g.gauge.source) {
            (GaugeResult::Sum(sum), GaugeSource::Count { .. }) => {
                let sum = sum.min(GAUGE_SUM_MAX);
                Ok((sum, sum.saturating_sub(self.seen(limit, asked_at))))
            }
            (GaugeResult::Ids(ids), GaugeSource::Scrapyd { .. }) => {
                own_runs = self.own_runs(&ids);
                Ok((ids.len() as u64, self.not_ours(limit, &ids, asked_at)))
            }
            (GaugeResult::Failed(why), _) => Err(why),
            (GaugeResult::Sum(_) | GaugeResult::Ids(_), _) => {
                Err(StoredNote::GaugeOfOtherKind.to_string())
            }
        };
        match counted {
            Ok((sum, external)) => {
                let external = external.min(COUNT_MAX as u64) as u32;
                self.read(limit, &claim, GoodReading { asked_at, sum, external }, own_runs, now);
            }
            Err(why) => self.gauge_failed(limit, Some(&claim.reader), asked_at, why, now),
        }
    }

    /// The weight of our leases that the address must show by now.
    fn seen(&self, limit: LimitId, asked_at: Moment) -> u64 {
        let holders = self.limits[limit].holders.iter();
        let shown = holders.filter(|fence| self.is_shown(limit, **fence, asked_at));
        shown.map(|fence| self.weight_of(limit, *fence)).sum()
    }

    fn is_shown(&self, limit: LimitId, fence: Fence, asked_at: Moment) -> bool {
        let lag = self.limits[limit].gauge.as_ref().map_or(Span::ZERO, |g| g.gauge.lag);
        let lag = if forgets(Mutant::SeenTooEarly) { Span::ZERO } else { lag };
        self.leases.get(fence).is_some_and(|lease| lease.granted_at.plus(lag) < asked_at)
    }

    fn weight_of(&self, limit: LimitId, fence: Fence) -> u64 {
        let held = self.leases.get(fence).into_iter().flat_map(|lease| &lease.limits);
        held.filter(|held| held.limit == limit).map(|held| u64::from(held.weight)).sum()
    }

    /// The number of these runs that are outside work. Of the runs with the id of a job that holds the limit, one is
    /// ours, unless it may be the run of an earlier, dead holder.
    fn not_ours(&self, limit: LimitId, ids: &[String], asked_at: Moment) -> u64 {
        let mut listed: HashMap<&str, u64> = HashMap::new();
        for id in ids {
            *listed.entry(id).or_default() += 1;
        }
        let is_ours = |id: &str| {
            let Some(slot) = self.jobs.by_id(id) else { return false };
            let job = &self.jobs[slot];
            let Stand::Running(fence) = job.stand else { return false };
            self.limits[limit].holders.contains(&fence)
                && (!job.ended_unsettled
                    || self.is_shown(limit, fence, asked_at)
                    || self.leases.get(fence).is_some_and(|lease| lease.goes_on))
        };
        let outside = |(id, times): (&str, u64)| times - u64::from(is_ours(id));
        listed.into_iter().map(outside).sum()
    }

    fn read(
        &mut self,
        limit: LimitId,
        claim: &OpenClaim,
        reading: GoodReading,
        own_runs: OwnRuns,
        now: Moment,
    ) {
        let l = &mut self.limits[limit];
        let changed = std::mem::replace(&mut l.external, reading.external) != reading.external;
        let Some(g) = &mut l.gauge else { return };
        g.reading = Some(reading);
        g.own_runs = own_runs;
        let failed = g.failure.take().is_some();
        g.tell_of(&claim.reader, None, Span::ZERO);
        let lag = g.gauge.lag;
        if failed {
            self.gauge_happens(limit, EventType::GaugeReadAgain, About::default(), now);
        }
        if changed {
            let external = Some(u64::from(reading.external));
            let about = About { external, ..About::default() };
            self.gauge_happens(limit, EventType::LimitObserved, about, now);
        }
        self.end_rests(limit, |rest| rest.shown_after(lag) < reading.asked_at, now);
        self.open_own_runs(limit, now);
        self.gauge_changed(limit, now);
    }

    /// An attempt that began at `asked_at` failed; `reader` is `None` if no process claimed it.
    fn gauge_failed(
        &mut self,
        limit: LimitId,
        reader: Option<&str>,
        asked_at: Moment,
        error: String,
        now: Moment,
    ) {
        let Some(g) = &mut self.limits[limit].gauge else { return };
        g.asked_at = Some(asked_at);
        let since = g.failure.as_ref().map_or(now, |failure| failure.since);
        let told = g.failure.as_ref().is_some_and(|failure| failure.error == error);
        let why = (!told).then(|| error.clone().into());
        g.failure = Some(ReadingFailure { since, at: now, error });
        if let Some(reader) = reader {
            g.tell_of(reader, Some(now), Span::from_us(GAUGE_PASSED_OVER_US));
        }
        if why.is_some() {
            let about = About { why, ..About::default() };
            self.gauge_happens(limit, EventType::GaugeFailed, about, now);
        }
        self.gauge_changed(limit, now);
    }

    fn gauge_happens(&mut self, limit: LimitId, kind: EventType, about: About, now: Moment) {
        let name = Some(self.limits[limit].name.clone());
        self.happens(kind, About { limit: name, ..about }, now);
    }

    /// The consequences of any change of a gauge's state.
    fn gauge_changed(&mut self, limit: LimitId, now: Moment) {
        self.limits.mark(limit);
        self.order_gauge(limit, now);
        self.limits.arm(limit, self.last);
        self.recheck_reservations_of(limit, now);
        self.limit_due(limit);
    }

    // ---- Time ----

    /// Ends the timed parts of a gauge: an attempt without an answer, and rests that no reading ends.
    pub(crate) fn tick_gauge(&mut self, limit: LimitId, now: Moment) {
        let Some(g) = &mut self.limits[limit].gauge else { return };
        if g.attempt_ends().is_some_and(|ends| ends <= now) {
            match (g.claim.take(), g.due) {
                (Some(claim), _) => {
                    let why = StoredNote::GaugeUnanswered.to_string();
                    self.gauge_failed(limit, Some(&claim.reader), claim.asked_at, why, now);
                }
                (None, Some(began)) if self.is_wanted(limit) => {
                    self.limits.set_attempt(limit, None);
                    let why = StoredNote::GaugeUnclaimed.to_string();
                    self.gauge_failed(limit, None, began, why, now);
                }
                (None, _) => self.order_gauge(limit, now),
            }
        }
        let Some(g) = &self.limits[limit].gauge else { return };
        if g.gauge.on_stale == OnStale::Keep && g.is_stale(now) {
            let lag = g.gauge.lag;
            self.end_rests(limit, |rest| rest.kept_until(lag) <= now, now);
        }
    }

    /// The clock was set back: moves all later times of requests, failures and ends to now.
    pub(crate) fn set_gauge_back(&mut self, limit: LimitId, clock: Moment) {
        self.limits.set_attempt(limit, None);
        let Some(g) = &mut self.limits[limit].gauge else { return };
        if let Some(claim) = &mut g.claim {
            claim.asked_at = claim.asked_at.min(clock);
        }
        if let Some(reading) = &mut g.reading {
            reading.asked_at = reading.asked_at.min(clock);
        }
        if let Some(failure) = &mut g.failure {
            (failure.since, failure.at) = (failure.since.min(clock), failure.at.min(clock));
        }
        g.asked_at = g.asked_at.map(|at| at.min(clock));
        g.counts_from = g.counts_from.min(clock.plus(g.gauge.lag));
        for rest in &mut g.rests {
            rest.until = rest.until.min(clock.plus(rest.until.since(rest.ended_at)));
            rest.ended_at = rest.ended_at.min(clock);
            rest.unsettled = rest.unsettled.map(|at| at.min(clock));
        }
        for bad in g.bad_readers.values_mut() {
            let most = clock.plus(Span::from_us(GAUGE_PASSED_OVER_US));
            bad.passed_over_until = bad.passed_over_until.min(most);
        }
        self.order_gauge(limit, clock);
    }

    // ---- Rests ----

    /// A returned permit rests until a reading shows the end of its run. `false` without a gauge.
    pub(crate) fn rest_for_gauge(
        &mut self,
        limit: LimitId,
        weight: u32,
        owes: Owes,
        until: Moment,
        now: Moment,
    ) -> bool {
        let l = &mut self.limits[limit];
        let Some(g) = &mut l.gauge else { return false };
        let clean = !owes.quarantine || forgets(Mutant::UncleanIsShown);
        let unsettled = if clean { None } else { Some(owes.granted_at) };
        if forgets(Mutant::NoRestForGauge) {
            return false;
        }
        g.rests.push(GaugeRest { ended_at: now, unsettled, weight, until });
        l.resting_sum += u64::from(weight);
        self.limits.mark(limit);
        self.order_gauge(limit, now);
        self.limits.arm(limit, self.last);
        true
    }

    fn end_rests(&mut self, limit: LimitId, over: impl Fn(&GaugeRest) -> bool, now: Moment) {
        let Some(g) = &mut self.limits[limit].gauge else { return };
        let ended: Vec<GaugeRest> = g.rests.extract_if(.., |rest| over(rest)).collect();
        for rest in ended {
            self.rest_shown(limit, rest, now);
        }
    }

    /// The gauge keeps a permit no longer; a gap or a quarantine may.
    fn rest_shown(&mut self, limit: LimitId, rest: GaugeRest, now: Moment) {
        self.limits[limit].resting_sum -= u64::from(rest.weight);
        if rest.until > now {
            self.rest_until(limit, rest.weight, rest.until);
        }
        self.limits.mark(limit);
    }
}
