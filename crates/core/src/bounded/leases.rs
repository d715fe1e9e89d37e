//! Bounds of lease calls, heartbeats and settles.

use super::jobs::{needs, new_job};
use super::{AMOUNT, Spans, retry_goes_on, whole_seconds};
use crate::at::At;
use crate::bounds::{
    ERROR_BYTES_MAX, ITEMS_MAX, KEY_BYTES_MAX, PAYLOAD_BYTES_MAX, PROGRESS_BYTES_MAX, QUEUES_MAX,
    SETTLE_PUSH_MAX,
};
use crate::lease::{Ending, Later, SettleItem, Verdict};
use crate::names::LimitName;
use crate::refusal::Refusal;
use crate::requests::{Ask, Lease};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, NameRefusal};
use crate::time::Span;

pub(crate) fn lease(call: &Lease, at: At<'_>) -> Result<(), Refusal> {
    let Lease { ask, wait, ttl, worker, .. } = call;
    match ask {
        Ask::Needs(all) => needs(all, &at, 1)?,
        Ask::Jobs { queues, max } => {
            At::Member(&at, "queues").items(queues.len(), 1..=QUEUES_MAX)?;
            let max = i64::try_from(*max).unwrap_or(i64::MAX);
            At::Member(&at, "max").number(max, 1..=ITEMS_MAX as i64)?;
        }
    }
    At::Member(&at, "wait").span(*wait, Spans::WAIT)?;
    if *ttl == Span::ZERO {
        needs_leave_no_ttl(ask, &At::Member(&at, "ttl"))?;
    } else {
        At::Member(&at, "ttl").span(*ttl, Spans::TTL)?;
    }
    let at = At::Member(&at, "worker");
    let short = |name, text: &Option<String>| {
        text.as_ref().map_or(Ok(()), |text| At::Member(&at, name).text(text, KEY_BYTES_MAX))
    };
    short("host", &worker.host)?;
    short("version", &worker.version)
}

/// A ttl of zero is for tokens, which leave no lease. Only the state machine knows if the needs are only rates.
pub(crate) fn needs_leave_no_ttl(ask: &Ask, at: &At<'_>) -> Result<(), Refusal> {
    match ask {
        Ask::Needs(_) => Ok(()),
        Ask::Jobs { .. } => Err(at.refuse(BodyRefusal::TtlWithoutLease)),
    }
}

/// A limit that can be held, so no template.
pub(crate) fn one_of_needs(limit: &LimitName) -> Result<(), Refusal> {
    if !limit.is_template() {
        return Ok(());
    }
    let (shown, family) = (limit.to_string(), limit.family().to_owned());
    Err(NameRefusal::LimitTemplate { shown, family }.into())
}

pub(crate) fn progress(progress: Option<&Json>, of: &At<'_>) -> Result<(), Refusal> {
    let at = At::Member(of, "progress");
    progress.map_or(Ok(()), |report| at.content(report.text().len(), PROGRESS_BYTES_MAX))
}

/// A moment or a duration, under their names in a body.
pub(crate) fn later(later: &Later, bounds: Spans, of: &At<'_>) -> Result<(), Refusal> {
    match later {
        Later::For(span) => At::Member(of, "for").span(*span, bounds),
        Later::Until(moment) => At::Member(of, "until").moment(*moment),
    }
}

pub(crate) fn settle_item(item: &SettleItem, at: At<'_>) -> Result<(), Refusal> {
    match &item.ending {
        Ending::Succeeded { result } => {
            let at = At::Member(&at, "result");
            result.as_ref().map_or(Ok(()), |r| at.content(r.text().len(), PAYLOAD_BYTES_MAX))?;
        }
        // An error that is too long is cut, not refused: its run has ended in any case.
        Ending::Failed { error: _, retry_in, last } => {
            let at = At::Member(&at, "retry_in");
            retry_in.map_or(Ok(()), |span| at.span(span, Spans::ANY))?;
            retry_goes_on(*last, retry_in.is_some(), &at)?;
        }
        Ending::Snoozed { later: until, .. } => later(until, Spans::SNOOZE, &at)?,
        Ending::Released => {}
    }
    progress(item.progress.as_ref(), &at)?;
    if let Some(span) = item.next_in {
        let at = At::Member(&at, "next_in");
        at.span(span, Spans::EVERY)?;
        at.here(whole_seconds(span, || span.to_string()))?;
    }
    let resources = At::Member(&at, "resources");
    resources.items(item.resources.len(), 0..=ITEMS_MAX)?;
    for (index, resource) in item.resources.iter().enumerate() {
        let at = At::Item(&resources, index);
        match &resource.verdict {
            Verdict::Ok | Verdict::Ban { reason: None } => {}
            Verdict::Cool(until) => later(until, Spans::ANY, &at)?,
            Verdict::Ban { reason: Some(reason) } => {
                At::Member(&at, "reason").text(reason, ERROR_BYTES_MAX)?;
            }
        }
    }
    let limits = At::Member(&at, "limits");
    limits.items(item.limits.len(), 0..=ITEMS_MAX)?;
    for (index, limit) in item.limits.iter().enumerate() {
        let at = At::Item(&limits, index);
        At::Member(&at, "limit").here(one_of_needs(&limit.limit))?;
        limit.pause.map_or(Ok(()), |span| At::Member(&at, "pause").span(span, Spans::ANY))?;
        limit.spent.map_or(Ok(()), |spent| At::Member(&at, "spent").number(spent, AMOUNT))?;
    }
    let push = At::Member(&at, "push");
    push.items(item.push.len(), 0..=SETTLE_PUSH_MAX)?;
    let mut push_items = item.push.iter().enumerate();
    push_items.try_for_each(|(index, job)| new_job(job, At::Item(&push, index)))
}
