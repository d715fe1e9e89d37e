//! State of a limit's gauge: the last reading, the open claim, and the permits that rest until the next reading.

use std::collections::BTreeMap;

use tenure_core::gauge::{Gauge, GaugeReading, OnStale};
use tenure_core::time::{Moment, Span};

use crate::mutant::{Mutant, forgets};
use crate::scarce::gauges::own_runs::OwnRuns;
use tenure_core::bounds::{GAUGE_ATTEMPT_US, GAUGE_CLAIM_US_MIN, GAUGE_FAILURES_MAX};

/// A reading that succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GoodReading {
    pub asked_at: Moment,
    /// The sum of the numbers, or the count of the listed ids.
    pub sum: u64,
    /// The part of it that was outside work when it was stored.
    pub external: u32,
}

/// Failed readings since the last good one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReadingFailure {
    /// The time of the first of them.
    pub since: Moment,
    /// The time of the last of them: the last good reading may be used for a while from then.
    pub at: Moment,
    pub error: String,
}

/// The claim of a process that reads the gauge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OpenClaim {
    pub asked_at: Moment,
    /// The process that took it; empty after a start, when all readers are new.
    pub reader: String,
}

/// Permits of an ended lease, whose run a reading may still miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GaugeRest {
    pub ended_at: Moment,
    /// The time of the grant, if the lease did not end by a settle: its run may not even have begun.
    pub unsettled: Option<Moment>,
    pub weight: u32,
    /// The end of an additional gap or quarantine; `ended_at` without one.
    pub until: Moment,
}

impl GaugeRest {
    /// A reading that is requested after this time shows the end of the run.
    pub fn shown_after(&self, lag: Span) -> Moment {
        let begun = self.unsettled.map_or(Moment::ZERO, |granted| granted.plus(lag));
        self.ended_at.max(begun)
    }

    /// The end of the rest if the gauge is not read.
    pub fn kept_until(&self, lag: Span) -> Moment {
        self.shown_after(lag).max(self.ended_at.plus(lag))
    }
}

/// A process that cannot read a gauge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BadReader {
    /// Number of failures in a row.
    pub failures: u32,
    /// The process leaves the gauge to others until this time.
    pub passed_over_until: Moment,
}

/// The gauge of a limit.
#[derive(Debug)]
pub(crate) struct GaugeState {
    pub gauge: Box<Gauge>,
    pub reading: Option<GoodReading>,
    /// Runs in this reading whose holder died, by job. Only in memory.
    pub own_runs: OwnRuns,
    /// Earlier readings show nothing about lost runs of the store. Zero without a loss.
    pub counts_from: Moment,
    /// Failures since the last good reading; `None` after a good one.
    pub failure: Option<ReadingFailure>,
    pub claim: Option<OpenClaim>,
    /// The number of the last claim; 0 before the first.
    pub number: u64,
    /// The time at which the last attempt was claimed, or should have been.
    pub asked_at: Option<Moment>,
    /// The start of the next attempt, or of an unclaimed one; its place among the attempts.
    pub due: Option<Moment>,
    /// Ordered by the ends of the leases.
    pub rests: Vec<GaugeRest>,
    /// Processes whose last attempt failed. Only in memory: a start gives each a new chance.
    pub bad_readers: BTreeMap<String, BadReader>,
}

impl GaugeState {
    pub fn new(gauge: Box<Gauge>) -> Self {
        GaugeState {
            gauge,
            reading: None,
            own_runs: OwnRuns::new(),
            counts_from: Moment::ZERO,
            failure: None,
            claim: None,
            number: 0,
            asked_at: None,
            due: None,
            rests: Vec::new(),
            bad_readers: BTreeMap::new(),
        }
    }

    /// True if a grant may rely on the gauge: on a fresh reading, or on an older one for a while after a failed
    /// attempt.
    pub fn may_be_used(&self, now: Moment) -> bool {
        let Some(reading) = &self.reading else { return false };
        if reading.asked_at < self.counts_from && !forgets(Mutant::ForgottenRunsAreShown) {
            return false;
        }
        let fresh = reading.asked_at.plus(self.gauge.fresh()) >= now || forgets(Mutant::OldIsFresh);
        let counts = !self.is_stale(now) || self.gauge.on_stale == OnStale::Keep;
        fresh || self.has_failed(now) && counts
    }

    /// True if an attempt failed a short time ago: meanwhile the next one keeps to `every`.
    pub fn has_failed(&self, now: Moment) -> bool {
        let until = |failure: &ReadingFailure| {
            failure.at.plus(self.gauge.every).plus(Span::from_us(GAUGE_ATTEMPT_US))
        };
        self.failure.as_ref().is_some_and(|failure| until(failure) > now)
    }

    /// True if `on_stale` applies to the last good reading.
    pub fn is_stale(&self, now: Moment) -> bool {
        self.reading.is_some_and(|reading| reading.asked_at.plus(self.gauge.stale) <= now)
    }

    /// The start of the next attempt, if the limit has a holder or an entry in its wait queue (`stands`).
    pub fn next_attempt(&self, stands: bool, now: Moment) -> Moment {
        let Some(asked_at) = self.asked_at else { return now };
        let soonest = asked_at.plus(Span::from_us(GAUGE_CLAIM_US_MIN));
        let at = asked_at.plus(self.gauge.every);
        if !stands {
            return at;
        }
        let reading_is_fresh = self.may_be_used(now) || self.has_failed(now);
        let wanted = if reading_is_fresh { None } else { Some(soonest.max(self.counts_from)) };
        // Only a reading that is requested later releases a permit.
        let after = self.rests.iter().map(|rest| rest.shown_after(self.gauge.lag));
        let after = after.filter(|after| *after >= asked_at).min();
        let frees = after.map(|after| soonest.max(after.plus(Span::from_us(1))));
        [Some(at), wanted, frees].into_iter().flatten().min().unwrap_or(at)
    }

    /// The time at which an unanswered or unclaimed attempt has failed.
    pub fn attempt_ends(&self) -> Option<Moment> {
        let began = self.claim.as_ref().map(|claim| claim.asked_at).or(self.due)?;
        Some(began.plus(Span::from_us(GAUGE_ATTEMPT_US)))
    }

    /// The end of the first rest if the gauge is not read.
    pub fn kept_rest_ends(&self) -> Option<Moment> {
        if self.gauge.on_stale != OnStale::Keep {
            return None;
        }
        let stale_at = self.reading?.asked_at.plus(self.gauge.stale);
        let first = self.rests.iter().map(|rest| rest.kept_until(self.gauge.lag)).min()?;
        Some(first.max(stale_at))
    }

    /// Notes the result of a process's attempt.
    pub fn tell_of(&mut self, reader: &str, failed_at: Option<Moment>, passed_over: Span) {
        let Some(at) = failed_at else {
            self.bad_readers.remove(reader);
            return;
        };
        // More processes than this never read; the only loss is the memory of a failure.
        if self.bad_readers.len() > tenure_core::bounds::GAUGE_CLAIMS_MAX {
            self.bad_readers.clear();
        }
        let bad = self.bad_readers.entry(reader.to_owned()).or_default();
        bad.failures += 1;
        if bad.failures >= GAUGE_FAILURES_MAX {
            bad.passed_over_until = at.plus(passed_over);
        }
    }

    /// True if a process leaves this gauge to others now.
    pub fn passes_over(&self, reader: &str, now: Moment) -> bool {
        self.bad_readers.get(reader).is_some_and(|bad| bad.passed_over_until > now)
    }

    /// The view of the last reading; `None` before the first attempt.
    pub fn shown(&self) -> Option<GaugeReading> {
        let (reading, failure) = (self.reading.as_ref(), self.failure.as_ref());
        (reading.is_some() || failure.is_some()).then(|| GaugeReading {
            asked_at: reading.map(|reading| reading.asked_at),
            sum: reading.map(|reading| reading.sum),
            external: reading.map(|reading| u64::from(reading.external)),
            failed_at: failure.map(|failure| failure.at),
            error: failure.map(|failure| failure.error.clone()),
        })
    }
}
