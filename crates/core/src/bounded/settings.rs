//! Settings of queues, limits and pools, and what is said of a limit.

use super::jobs::{needs, retry};
use super::leases::{later, one_of_needs};
use super::{AMOUNT, Bounded, COUNT, SHARES, Spans};
use crate::at::At;
use crate::bounds::{GAUGE_POINTER_BYTES_MAX, GAUGE_POINTERS_MAX, NAME_BYTES_MAX};
use crate::gauge::{Gauge, GaugeSource, fresh};
use crate::names::Group;
use crate::refusal::Refusal;
use crate::requests::{
    ObserveLimit, Patch, PatchLimit, PatchPool, PatchQueue, PauseLimit, PauseQueue, PutLimit,
    PutPool, PutQueue,
};
use crate::sentences::LimitRefusal;
use crate::settings::Rate;
use crate::time::Span;

/// A duration of these settings, if it is set.
fn span(span: Option<Span>, name: &str, bounds: Spans) -> Result<(), Refusal> {
    span.map_or(Ok(()), |span| At::Member(&At::Body, name).span(span, bounds))
}

/// A duration of a patch.
fn patched(patch: &Patch<Span>, name: &str, bounds: Spans) -> Result<(), Refusal> {
    patch.each(|value| span(Some(*value), name, bounds))
}

impl Bounded for PutQueue {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let (set, body) = (&self.settings, At::Body);
        needs(&set.needs, &body, 0)?;
        set.retry.as_ref().map_or(Ok(()), |one| retry(one, At::Member(&body, "retry")))?;
        span(set.timeout, "timeout", Spans::SOME)?;
        span(set.retain, "retain", Spans::ANY)?;
        let at = At::Member(&body, "max_waiting");
        set.max_waiting.map_or(Ok(()), |most| at.number(most, AMOUNT))?;
        span(set.lost_delay, "lost_delay", Spans::ANY)?;
        shares(set.shares.iter())
    }
}

impl Bounded for PatchQueue {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        self.needs.each(|value| needs(value, &body, 0))?;
        self.retry.each(|value| retry(value, At::Member(&body, "retry")))?;
        patched(&self.timeout, "timeout", Spans::SOME)?;
        patched(&self.retain, "retain", Spans::ANY)?;
        self.max_waiting.each(|most| At::Member(&body, "max_waiting").number(*most, AMOUNT))?;
        patched(&self.lost_delay, "lost_delay", Spans::ANY)?;
        self.shares.each(|value| shares(value.iter()))
    }
}

fn shares<'s>(mut shares: impl Iterator<Item = (&'s Group, &'s u32)>) -> Result<(), Refusal> {
    let at = At::Member(&At::Body, "shares");
    shares.try_for_each(|(group, turns)| At::Member(&at, group.as_str()).number(*turns, SHARES))
}

impl Bounded for PauseQueue {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.until.as_ref().map_or(Ok(()), |until| later(until, Spans::ANY, &At::Body))
    }
}

impl Bounded for PutLimit {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let (set, body) = (&self.settings, At::Body);
        let at = At::Member(&body, "concurrency");
        set.concurrency.map_or(Ok(()), |most| at.number(most, AMOUNT))?;
        set.rate.map_or(Ok(()), |one| rate(&one))?;
        span(set.gap, "gap", Spans::ANY)?;
        span(Some(set.quarantine), "quarantine", Spans::ANY)?;
        self.gauge.as_ref().map_or(Ok(()), |one| gauge(one))?;
        self.check()
    }
}

impl Bounded for PatchLimit {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.concurrency.each(|n| At::Member(&At::Body, "concurrency").number(*n, AMOUNT))?;
        self.rate.each(rate)?;
        patched(&self.gap, "gap", Spans::ANY)?;
        patched(&self.quarantine, "quarantine", Spans::ANY)?;
        self.gauge.each(|one| gauge(one))
    }
}

impl Bounded for PauseLimit {
    fn within_bounds(&self) -> Result<(), Refusal> {
        one_of_needs(&self.limit).map_err(|no| no.at("/path/name"))?;
        later(&self.until, Spans::ANY, &At::Body)
    }
}

impl Bounded for ObserveLimit {
    fn within_bounds(&self) -> Result<(), Refusal> {
        one_of_needs(&self.limit).map_err(|no| no.at("/path/name"))?;
        At::Member(&At::Body, "external").number(self.external, AMOUNT)?;
        span(self.hold, "for", Spans::ANY)
    }
}

impl Bounded for PutPool {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let set = &self.settings;
        span(Some(set.quarantine), "quarantine", Spans::ANY)?;
        span(Some(set.cooldown), "cooldown", Spans::ANY)?;
        set.rate.map_or(Ok(()), |one| rate(&one))?;
        let at = At::Member(&At::Body, "max_uses");
        set.max_uses.map_or(Ok(()), |most| at.number(most, COUNT))
    }
}

impl Bounded for PatchPool {
    fn within_bounds(&self) -> Result<(), Refusal> {
        patched(&self.quarantine, "quarantine", Spans::ANY)?;
        patched(&self.cooldown, "cooldown", Spans::ANY)?;
        self.rate.each(rate)?;
        self.max_uses.each(|most| At::Member(&At::Body, "max_uses").number(*most, COUNT))
    }
}

fn rate(rate: &Rate) -> Result<(), Refusal> {
    let at = At::Member(&At::Body, "rate");
    At::Member(&at, "count").number(rate.count, COUNT)?;
    At::Member(&at, "per").span(rate.per, Spans::SOME)?;
    At::Member(&at, "burst").number(rate.burst, COUNT)?;
    burst_countable(rate, &at)
}

/// The least number that a double does not tell from the next: what a rate multiplies stays below
/// it, so that every engine counts the same.
const EXACT: u64 = 1 << 53;

/// `burst * per` is the greatest of all `n * per` with `n <= burst`.
pub(crate) fn burst_countable(rate: &Rate, at: &At<'_>) -> Result<(), Refusal> {
    let Rate { burst, per, .. } = *rate;
    let product = u64::from(burst).checked_mul(per.us());
    if product.is_some_and(|product| product < EXACT) {
        return Ok(());
    }
    let most = (EXACT - 1) / per.us().max(1);
    Err(At::Member(at, "burst").refuse(LimitRefusal::BurstUncountable { burst, per, most }))
}

fn gauge(gauge: &Gauge) -> Result<(), Refusal> {
    let at = At::Member(&At::Body, "gauge");
    match &gauge.source {
        GaugeSource::Scrapyd { project, .. } => {
            let at = At::Member(&at, "project");
            project.as_ref().map_or(Ok(()), |name| at.text(name, NAME_BYTES_MAX))?;
        }
        GaugeSource::Count { count, .. } => {
            let at = At::Member(&at, "count");
            at.items(count.len(), 1..=GAUGE_POINTERS_MAX)?;
            for (index, pointer) in count.iter().enumerate() {
                At::Item(&at, index).text(pointer, GAUGE_POINTER_BYTES_MAX)?;
            }
        }
    }
    At::Member(&at, "every").span(gauge.every, Spans::GAUGE_EVERY)?;
    At::Member(&at, "lag").span(gauge.lag, Spans::GAUGE_LAG)?;
    At::Member(&at, "stale").span(gauge.stale, Spans::GAUGE_STALE)?;
    stale_long_enough(gauge, &at)
}

/// A reading that is fresh is never stale.
pub(crate) fn stale_long_enough(gauge: &Gauge, at: &At<'_>) -> Result<(), Refusal> {
    let least = fresh(gauge.every);
    match gauge.stale < least {
        true => Err(At::Member(at, "stale").refuse(LimitRefusal::GaugeStaleTooShort { least })),
        false => Ok(()),
    }
}
