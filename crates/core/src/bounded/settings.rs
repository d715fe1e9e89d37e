//! Bounds of the settings of queues, limits and pools, and of observations of a limit.

use super::{COUNT, SHARES, Spans};
use crate::at::At;
use crate::bounds::{GAUGE_POINTER_BYTES_MAX, GAUGE_POINTERS_MAX, NAME_BYTES_MAX};
use crate::gauge::{Gauge, GaugeSource, fresh};
use crate::names::Group;
use crate::refusal::Refusal;
use crate::requests::Patch;
use crate::sentences::LimitRefusal;
use crate::settings::Rate;
use crate::time::Span;

/// A duration of these settings, if it is set.
pub(crate) fn span(span: Option<Span>, name: &str, bounds: Spans) -> Result<(), Refusal> {
    span.map_or(Ok(()), |span| At::Member(&At::Body, name).span(span, bounds))
}

/// A duration of a patch.
pub(crate) fn patched(patch: &Patch<Span>, name: &str, bounds: Spans) -> Result<(), Refusal> {
    patch.each(|value| span(Some(*value), name, bounds))
}

pub(crate) fn shares<'s>(
    mut shares: impl Iterator<Item = (&'s Group, &'s u32)>,
) -> Result<(), Refusal> {
    let at = At::Member(&At::Body, "shares");
    shares.try_for_each(|(group, turns)| At::Member(&at, group.as_str()).number(*turns, SHARES))
}

pub(crate) fn rate(rate: &Rate) -> Result<(), Refusal> {
    let at = At::Member(&At::Body, "rate");
    At::Member(&at, "count").number(rate.count, COUNT)?;
    At::Member(&at, "per").span(rate.per, Spans::SOME)?;
    At::Member(&at, "burst").number(rate.burst, COUNT)?;
    burst_countable(rate, &at)
}

/// The least number that a double does not distinguish from the next one. The product of a rate
/// stays below it, so that every engine counts the same.
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

pub(crate) fn gauge(gauge: &Gauge) -> Result<(), Refusal> {
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

/// A fresh reading must never be stale.
pub(crate) fn stale_long_enough(gauge: &Gauge, at: &At<'_>) -> Result<(), Refusal> {
    let least = fresh(gauge.every);
    if gauge.stale < least {
        Err(At::Member(at, "stale").refuse(LimitRefusal::GaugeStaleTooShort { least }))
    } else {
        Ok(())
    }
}
