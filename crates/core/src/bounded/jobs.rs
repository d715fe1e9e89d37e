//! Bounds of a job, for all requests that contain one.

use super::{AMOUNT, COUNT, LABEL_VALUE, PRIORITY, Spans, kind, label_key, labels as label_count};
use crate::at::At;
use crate::bounds::{AFTER_MAX, DELAYS_MAX, ERROR_BYTES_MAX, NEEDS_MAX, PAYLOAD_BYTES_MAX};
use crate::flow::After;
use crate::job::{Backoff, Labels, Need, NewJob, OnConflict, Retry, Unique, When};
use crate::refusal::Refusal;
use crate::requests::JobFilter;
use crate::secret::Json;
use crate::sentences::{BodyRefusal, NeedRefusal, ValueRefusal};

/// A job of a push or of a settle. A field at its default costs one comparison.
pub(crate) fn new_job(job: &NewJob, at: At<'_>) -> Result<(), Refusal> {
    let NewJob { after, unique, .. } = job;
    At::Member(&at, "kind").here(kind(&job.kind))?;
    payload(&job.payload, &at)?;
    when(job.when, &at)?;
    At::Member(&at, "priority").number(job.priority, PRIORITY)?;
    job.needs.as_ref().map_or(Ok(()), |all| needs(all, &at, 0))?;
    unique.as_ref().map_or(Ok(()), |one| unique_key(one, At::Member(&at, "unique")))?;
    job.retry.as_ref().map_or(Ok(()), |one| retry(one, At::Member(&at, "retry")))?;
    job.timeout.map_or(Ok(()), |span| At::Member(&at, "timeout").span(span, Spans::SOME))?;
    job.expires_at.map_or(Ok(()), |moment| At::Member(&at, "expires_at").moment(moment))?;
    job.retain.map_or(Ok(()), |span| At::Member(&at, "retain").span(span, Spans::ANY))?;
    labels(&job.labels, &at)?;
    At::Member(&at, "after").items(after.len(), 0..=AFTER_MAX)?;
    parents_stay(after, unique.as_ref(), &At::Member(&at, "after"))
}

/// A job gets its parents once: a push that replaces it cannot give it others.
pub(crate) fn parents_stay(
    after: &[After],
    unique: Option<&Unique>,
    at: &At<'_>,
) -> Result<(), Refusal> {
    if !after.is_empty() && unique.is_some_and(|u| u.on_conflict == OnConflict::Replace) {
        let because = "\"on_conflict\": \"replace\"".to_owned();
        return Err(at.refuse(BodyRefusal::FieldWithout { name: "after".into(), because }));
    }
    Ok(())
}

pub(crate) fn payload(payload: &Json, of: &At<'_>) -> Result<(), Refusal> {
    At::Member(of, "payload").content(payload.text().len(), PAYLOAD_BYTES_MAX)
}

pub(crate) fn when(when: When, of: &At<'_>) -> Result<(), Refusal> {
    match when {
        When::Now => Ok(()),
        When::At(moment) => At::Member(of, "run_at").moment(moment),
        When::In(span) => At::Member(of, "delay").span(span, Spans::ANY),
    }
}

/// At least `least` needs, at most 16, each name once.
pub(crate) fn needs(needs: &[Need], of: &At<'_>, least: usize) -> Result<(), Refusal> {
    let at = At::Member(of, "needs");
    at.items(needs.len(), least..=NEEDS_MAX)?;
    for (index, need) in needs.iter().enumerate() {
        let at = At::Item(&at, index);
        match need {
            Need::Limit { limit, weight, cost } => {
                At::Member(&at, "limit").here(super::one_of_needs(limit))?;
                At::Member(&at, "weight").number(*weight, COUNT)?;
                At::Member(&at, "cost").number(*cost, AMOUNT)?;
            }
            Need::Pool { id, count, .. } => {
                At::Member(&at, "count").number(*count, COUNT)?;
                need_count(id.is_some(), *count, &At::Member(&at, "count"))?;
            }
        }
    }
    distinct(needs).map_err(|no| no.below(&at.to_string()))
}

/// A need with an id names one resource, so its count must be 1.
pub(crate) fn need_count(has_id: bool, count: u32, at: &At<'_>) -> Result<(), Refusal> {
    if has_id && count > 1 { Err(at.refuse(BodyRefusal::CountWithId)) } else { Ok(()) }
}

/// Refuses the same limit or the same pool twice; the pointer is `/INDEX` of the second.
pub(crate) fn distinct(needs: &[Need]) -> Result<(), Refusal> {
    for (index, need) in needs.iter().enumerate() {
        let same = |other: &Need| match (need, other) {
            (Need::Limit { limit: a, .. }, Need::Limit { limit: b, .. }) => a == b,
            (Need::Pool { pool: a, .. }, Need::Pool { pool: b, .. }) => a == b,
            _ => false,
        };
        if needs[..index].iter().any(same) {
            let no: Refusal = match need {
                Need::Limit { limit, .. } => NeedRefusal::LimitTwice { limit: limit.clone() },
                Need::Pool { pool, .. } => NeedRefusal::PoolTwice { pool: pool.clone() },
            }
            .into();
            return Err(no.at(format!("/{index}")));
        }
    }
    Ok(())
}

pub(crate) fn unique_key(unique: &Unique, at: At<'_>) -> Result<(), Refusal> {
    unique.hold.map_or(Ok(()), |span| At::Member(&at, "for").span(span, Spans::ANY))?;
    unique.within.map_or(Ok(()), |span| At::Member(&at, "within").span(span, Spans::ANY))
}

pub(crate) fn retry(retry: &Retry, at: At<'_>) -> Result<(), Refusal> {
    At::Member(&at, "max_attempts").number(retry.max_attempts, AMOUNT)?;
    At::Member(&at, "max_lost").number(retry.max_lost, AMOUNT)?;
    if let Some(most) = retry.max_snoozes {
        At::Member(&at, "max_snoozes").number(most, AMOUNT)?;
    }
    let at = At::Member(&at, "backoff");
    match &retry.backoff {
        Backoff::Exponential { base, max, .. } => {
            At::Member(&at, "base").span(*base, Spans::ANY)?;
            At::Member(&at, "max").span(*max, Spans::ANY)
        }
        Backoff::Fixed { base, .. } => At::Member(&at, "base").span(*base, Spans::ANY),
        Backoff::List { delays, .. } => {
            let at = At::Member(&at, "delays");
            at.items(delays.len(), 1..=DELAYS_MAX)?;
            let mut delays = delays.iter().enumerate();
            delays.try_for_each(|(index, delay)| At::Item(&at, index).span(*delay, Spans::ANY))
        }
    }
}

/// Refuses a `retry_in` for a run after which no attempt follows.
pub(crate) fn retry_goes_on(last: bool, has_retry_in: bool, at: &At<'_>) -> Result<(), Refusal> {
    if last && has_retry_in { Err(at.refuse(BodyRefusal::RetryInWithFinal)) } else { Ok(()) }
}

pub(crate) fn labels(labels: &Labels, of: &At<'_>) -> Result<(), Refusal> {
    let at = At::Member(of, "labels");
    for (key, value) in labels {
        let at = At::Member(&at, key);
        label_key(key).map_err(|no| at.refuse(no))?;
        at.text(value, LABEL_VALUE)?;
    }
    label_count(labels.len()).map_err(|no| at.refuse(no))
}

/// The filter of a list, or of a call on many jobs.
pub(crate) fn filter(filter: &JobFilter, of: &At<'_>) -> Result<(), Refusal> {
    let JobFilter { kind: of_kind, label, error, finished_after, finished_before, .. } = filter;
    of_kind.as_ref().map_or(Ok(()), |text| At::Member(of, "kind").here(kind(text)))?;
    if label.as_ref().is_some_and(|(key, value)| key.is_empty() || value.contains(':')) {
        // In the form KEY:VALUE it would be read as another label.
        return Err(At::Member(of, "label").refuse(ValueRefusal::LabelValueColon));
    }
    error.as_ref().map_or(Ok(()), |text| At::Member(of, "error").text(text, ERROR_BYTES_MAX))?;
    let moment = |name, moment: &Option<_>| {
        moment.map_or(Ok(()), |moment| At::Member(of, name).moment(moment))
    };
    moment("finished_after", finished_after)?;
    moment("finished_before", finished_before)
}
