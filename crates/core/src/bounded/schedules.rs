//! Schedules, and the job that each of their moments makes.

use super::jobs::{labels, needs, payload, retry};
use super::leases::later;
use super::resources::SetIds;
use super::{Bounded, CATCH_UP_COUNT, PRIORITY, Spans, kind, whole_seconds};
use crate::at::At;
use crate::bounds::CRON_BYTES_MAX;
use crate::refusal::Refusal;
use crate::requests::{PatchSchedule, PauseSchedule, PutSchedule, SyncSchedules};
use crate::schedule::{ScheduleSettings, ScheduledJob, TimingSpec};
use crate::sentences::{BodyRefusal, SetPlace};
use crate::time::Span;

impl Bounded for PutSchedule {
    fn within_bounds(&self) -> Result<(), Refusal> {
        settings(&self.settings, At::Body)
    }
}

impl Bounded for SyncSchedules {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let mut ids = SetIds::default();
        for (index, (id, set)) in self.schedules.iter().enumerate() {
            let at = At::Item(&At::Body, index);
            let once = ids.once(id, SetPlace::Item(index), &At::Member(&at, "id"));
            once.and_then(|()| settings(set, at)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for PatchSchedule {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        self.cron.each(|text| At::Member(&body, "cron").text(text, CRON_BYTES_MAX))?;
        self.every.each(|span| every(*span, &body))?;
        self.starts_at.each(|moment| At::Member(&body, "starts_at").moment(*moment))?;
        self.ends_at.each(|moment| At::Member(&body, "ends_at").moment(*moment))?;
        self.jitter.each(|span| At::Member(&body, "jitter").span(*span, Spans::JITTER))?;
        self.catch_up_max.each(|n| At::Member(&body, "catch_up_max").number(*n, CATCH_UP_COUNT))?;
        self.job.each(|one| job(one, At::Member(&body, "job")))
    }
}

impl Bounded for PauseSchedule {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.until.as_ref().map_or(Ok(()), |until| later(until, Spans::ANY, &At::Body))
    }
}

fn settings(set: &ScheduleSettings, at: At<'_>) -> Result<(), Refusal> {
    timing(&set.timing, &at)?;
    At::Member(&at, "catch_up_max").number(set.catch_up_max, CATCH_UP_COUNT)?;
    job(&set.job, At::Member(&at, "job"))
}

fn timing(timing: &TimingSpec, at: &At<'_>) -> Result<(), Refusal> {
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

fn every(span: Span, of: &At<'_>) -> Result<(), Refusal> {
    let at = At::Member(of, "every");
    at.span(span, Spans::EVERY)?;
    at.here(whole_seconds(span, || span.to_string()))
}

fn job(job: &ScheduledJob, at: At<'_>) -> Result<(), Refusal> {
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
