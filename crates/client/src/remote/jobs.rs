//! Calls about jobs over HTTP.
//!
//! A body leaves out fields at their defaults, where the contract says that absence means the same.

use tenure_core::decode::AsBody;
use tenure_core::names::{FlowName, ScheduleId};
use tenure_core::requests::{
    CancelJob, CancelJobs, DeleteJob, DeleteJobs, ExplainJob, GetJob, GetResult, JobFilter,
    ListFailures, ListJobs, PatchJob, Push, PushAnswer, Pushed, Reply, RetryJob, RetryJobs,
    RunJobNow,
};
use tenure_core::time::Moment;

use super::answer::{Reader, one_or_many, read};
use super::ask::{Body, OverHttp, Query, Unsendable, json, with_bodies};

impl OverHttp for GetJob {}
impl OverHttp for DeleteJob {}
impl OverHttp for CancelJob {}
impl OverHttp for RunJobNow {}
impl OverHttp for ExplainJob {}

impl OverHttp for Push {
    /// Always an array: one form of answer to read, and its status adds nothing to its items.
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(self.jobs.as_slice()))
    }
    fn minimal(&self) -> bool {
        self.answer == PushAnswer::Ids
    }
    fn reader(&self) -> Reader {
        match self.answer {
            PushAnswer::Whole => read::<Push>,
            PushAnswer::Ids => |_, body| Ok(Reply::Push(Pushed::Ids(one_or_many(body)?))),
        }
    }
}

impl OverHttp for ListJobs {
    fn query(&self, query: &mut Query) {
        let filter = &self.filter;
        query.with("queue", filter.queue.as_ref().map(|queue| queue.as_str()));
        query.with("state", states(filter).as_deref());
        query.with("kind", filter.kind.as_deref());
        query.with("label", label(filter).as_deref());
        query.with("error", filter.error.as_deref());
        query.with("finished_after", moment(filter.finished_after).as_deref());
        query.with("finished_before", moment(filter.finished_before).as_deref());
        query.with("flow", filter.flow.as_ref().map(FlowName::as_str));
        query.with("schedule", filter.schedule.as_ref().map(ScheduleId::as_str));
        query.page(&self.page);
        query.with("full", self.full.then_some("true"));
    }
}

impl OverHttp for GetResult {
    fn query(&self, query: &mut Query) {
        query.wait(self.wait);
        query.with("seen", self.seen.map(|seen| seen.to_string()).as_deref());
    }
}

impl OverHttp for RetryJob {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        self.finished_at.map_or(Ok(None), |_| json(&AsBody(self)))
    }
}

impl OverHttp for ListFailures {
    fn query(&self, query: &mut Query) {
        query.with("queue", self.queue.as_ref().map(|queue| queue.as_str()));
        query.with("kind", self.kind.as_deref());
        query.with("finished_after", moment(self.finished_after).as_deref());
        query.with("max", Some(self.max.to_string()).as_deref());
    }
}

/// `ready,blocked`; `None` for any.
fn states(filter: &JobFilter) -> Option<String> {
    let words: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// `key:value`; `None` for any.
fn label(filter: &JobFilter) -> Option<String> {
    filter.label.as_ref().map(|(key, value)| format!("{key}:{value}"))
}

/// In the form of a query.
fn moment(at: Option<Moment>) -> Option<String> {
    at.map(|at| at.to_string())
}

with_bodies! { PatchJob CancelJobs RetryJobs DeleteJobs }
