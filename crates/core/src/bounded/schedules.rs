//! Bounds of schedules, and of the job that each of their moments makes.

use super::jobs::{labels, needs, payload, retry};
use super::{CATCH_UP_COUNT, PRIORITY, Spans, kind, whole_seconds};
use crate::at::At;
use crate::bounds::CRON_BYTES_MAX;
use crate::refusal::Refusal;
use crate::schedule::{ScheduleSettings, ScheduledJob, TimingSpec};
use crate::sentences::BodyRefusal;
use crate::time::Span;

pub(crate) fn settings(set: &ScheduleSettings, at: At<'_>) -> Result<(), Refusal> {
    timing(&set.timing, &at)?;
    At::Member(&at, "catch_up_max").number(set.catch_up_max, CATCH_UP_COUNT)?;
    job(&set.job, At::Member(&at, "job"))
}

pub(crate) fn timing(timing: &TimingSpec, at: &At<'_>) -> Result<(), Refusal> {
    let exclude = |one: &'static str, other: &'static str| {
        let case = BodyRefusal::FieldsExclude { one: one.into(), other: other.into() };
        Err(At::Member(at, other).refuse(case))
    };
    match (&timing.cron, timing.every, &timing.zone) {
        (None, None, _) => return Err(At::Member(at, "cron").refuse(BodyRefusal::TimingMissing)),
        (Some(_), Some(_), _) => return exclude("cron", "every"),
        (None, Some(_), Some(_)) => return exclude("every", "zone"),
        (Some(cron), None, _) => At::Member(at, "cron").text(cron, CRON_BYTES_MAX)?,
        (None, Some(span), None) => every(span, at)?,
    }
    let moment = |name, moment: Option<_>| {
        moment.map_or(Ok(()), |moment| At::Member(at, name).moment(moment))
    };
    moment("starts_at", timing.starts_at)?;
    moment("ends_at", timing.ends_at)?;
    At::Member(at, "jitter").span(timing.jitter, Spans::JITTER)
}

pub(crate) fn every(span: Span, of: &At<'_>) -> Result<(), Refusal> {
    let at = At::Member(of, "every");
    at.span(span, Spans::EVERY)?;
    at.here(whole_seconds(span, || span.to_string()))
}

pub(crate) fn job(job: &ScheduledJob, at: At<'_>) -> Result<(), Refusal> {
    At::Member(&at, "kind").here(kind(&job.kind))?;
    job.payload.as_ref().map_or(Ok(()), |json| payload(json, &at))?;
    At::Member(&at, "priority").number(job.priority, PRIORITY)?;
    job.needs.as_ref().map_or(Ok(()), |all| needs(all, &at, 0))?;
    job.retry.as_ref().map_or(Ok(()), |one| retry(one, At::Member(&at, "retry")))?;
    let span = |name, span: Option<Span>, bounds| {
        span.map_or(Ok(()), |span| At::Member(&at, name).span(span, bounds))
    };
    span("timeout", job.timeout, Spans::SOME)?;
    span("retain", job.retain, Spans::ANY)?;
    span("expires_in", job.expires_in, Spans::SOME)?;
    labels(&job.labels, &at)
}
