//! Lists, waits, calls on many jobs, and requests that have no bounds.

use super::jobs::filter;
use super::{Bounded, PAGE, Spans, kind};
use crate::at::At;
use crate::refusal::Refusal;
use crate::requests::{
    Audit, CancelFlow, CancelJob, CancelJobs, DeleteJob, DeleteJobs, DeleteLimit, DeletePool,
    DeleteQueue, DeleteResource, DeleteSchedule, ExplainJob, ForceLease, GetFlow, GetJob, GetLimit,
    GetPool, GetQueue, GetResource, GetResult, GetSchedule, GetStats, JobFilter, ListChildren,
    ListFailures, ListFlows, ListJobs, ListLeases, ListLimits, ListParents, ListPools, ListQueues,
    ListResources, ListSchedules, ListWorkers, ReadEvents, RestoreResource, ResumeLimit,
    ResumeQueue, ResumeSchedule, RetryJobs, RunJobNow, RunScheduleNow,
};
use crate::time::Span;

/// The parameters of a query stand below this in a pointer.
const QUERY: At<'_> = At::Member(&At::Body, "query");

macro_rules! unbounded {
    ($($request:ident)*) => { $(impl Bounded for $request {})* };
}
unbounded! {
    GetJob DeleteJob CancelJob RunJobNow ExplainJob ForceLease
    GetQueue DeleteQueue ResumeQueue GetLimit DeleteLimit ResumeLimit GetPool DeletePool
    GetResource DeleteResource RestoreResource CancelFlow
    GetSchedule DeleteSchedule ResumeSchedule RunScheduleNow GetStats Audit
}

macro_rules! pages {
    ($($request:ident)*) => {
        $(impl Bounded for $request {
            fn within_bounds(&self) -> Result<(), Refusal> {
                page(self.page.max, &QUERY)
            }
        })*
    };
}
pages! {
    ListParents ListChildren ListLeases ListQueues ListLimits ListPools ListResources ListFlows ListSchedules
    ListWorkers
}

fn page(max: usize, of: &At<'_>) -> Result<(), Refusal> {
    At::Member(of, "max").number(i64::try_from(max).unwrap_or(i64::MAX), PAGE)
}

fn wait(wait: Span) -> Result<(), Refusal> {
    At::Member(&QUERY, "wait").span(wait, Spans::WAIT)
}

impl Bounded for ListJobs {
    fn within_bounds(&self) -> Result<(), Refusal> {
        filter(&self.filter, &QUERY)?;
        page(self.page.max, &QUERY)
    }
}

impl Bounded for ListFailures {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let ListFailures { kind: of_kind, finished_after, max, .. } = self;
        of_kind.as_ref().map_or(Ok(()), |text| At::Member(&QUERY, "kind").here(kind(text)))?;
        let at = At::Member(&QUERY, "finished_after");
        finished_after.map_or(Ok(()), |moment| at.moment(moment))?;
        page(*max, &QUERY)
    }
}

fn many(of: &JobFilter, max: usize) -> Result<(), Refusal> {
    filter(of, &At::Body)?;
    page(max, &At::Body)
}

macro_rules! many {
    ($($request:ident)*) => {
        $(impl Bounded for $request {
            fn within_bounds(&self) -> Result<(), Refusal> {
                many(&self.filter, self.max)
            }
        })*
    };
}
many! { CancelJobs RetryJobs DeleteJobs }

impl Bounded for GetResult {
    fn within_bounds(&self) -> Result<(), Refusal> {
        wait(self.wait)
    }
}

impl Bounded for GetFlow {
    fn within_bounds(&self) -> Result<(), Refusal> {
        wait(self.wait)
    }
}

impl Bounded for ReadEvents {
    fn within_bounds(&self) -> Result<(), Refusal> {
        page(self.max, &QUERY)?;
        wait(self.wait)
    }
}
