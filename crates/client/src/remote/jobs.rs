//! Calls about jobs over HTTP.
//!
//! A body leaves out fields at their defaults, where the contract says that absence means the same.

use serde::Serialize;
use tenure_core::flow::OnParentFailure;
use tenure_core::job::{Labels, Need, NewJob, Retry, Unique, When};
use tenure_core::names::{FlowName, Group, JobId, QueueName, Ref, ScheduleId};
use tenure_core::requests::{
    CancelJob, CancelJobs, DeleteJob, DeleteJobs, ExplainJob, GetJob, GetResult, JobFilter,
    ListFailures, ListJobs, Patch, PatchJob, Push, PushAnswer, Pushed, Reply, RetryJob, RetryJobs,
    RunJobNow,
};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tenure_core::trace::TraceParent;

use super::answer::{Reader, one_or_many, read};
use super::ask::{Body, OverHttp, Query, Unsendable, json};
use super::body::patch_body;
use super::flows::{self, AfterBody};

impl OverHttp for GetJob {}
impl OverHttp for DeleteJob {}
impl OverHttp for CancelJob {}
impl OverHttp for RunJobNow {}
impl OverHttp for ExplainJob {}

impl OverHttp for Push {
    /// Always an array: one form of answer to read, and its status adds nothing to its items.
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let jobs: Vec<JobBody<'_>> = self.jobs.iter().map(JobBody::from).collect();
        json(&jobs)
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

impl OverHttp for PatchJob {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&JobChange::from(self))
    }
}

impl OverHttp for RetryJob {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        self.finished_at.map_or(Ok(None), |finished_at| json(&RetryOne { finished_at }))
    }
}

impl OverHttp for CancelJobs {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&ManyCall::new(&self.filter, self.max, self.cursor.as_deref()))
    }
}

impl OverHttp for RetryJobs {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&ManyCall::new(&self.filter, self.max, self.cursor.as_deref()))
    }
}

impl OverHttp for DeleteJobs {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&ManyCall::new(&self.filter, self.max, self.cursor.as_deref()))
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

/// A job to be pushed.
#[derive(Serialize)]
pub struct JobBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a JobId>,
    queue: &'a QueueName,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Json::is_null")]
    payload: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Span>,
    #[serde(skip_serializing_if = "is_zero")]
    priority: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'a [Need]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<&'a Unique>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<&'a Retry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain: Option<Span>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    labels: &'a Labels,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<AfterBody<'a>>,
    #[serde(skip_serializing_if = "flows::is_default")]
    on_parent_failure: OnParentFailure,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<&'a Ref>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a FlowName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a TraceParent>,
}

fn is_zero(n: &i8) -> bool {
    *n == 0
}

impl<'a> From<&'a NewJob> for JobBody<'a> {
    fn from(job: &'a NewJob) -> Self {
        let (run_at, delay) = match job.when {
            When::Now => (None, None),
            When::At(at) => (Some(at), None),
            When::In(span) => (None, Some(span)),
        };
        JobBody {
            id: job.id.as_ref(),
            queue: &job.queue,
            kind: &job.kind,
            payload: &job.payload,
            run_at,
            delay,
            priority: job.priority,
            group: job.group.as_ref(),
            needs: job.needs.as_deref(),
            unique: job.unique.as_ref(),
            retry: job.retry.as_ref(),
            timeout: job.timeout,
            expires_at: job.expires_at,
            retain: job.retain,
            labels: &job.labels,
            after: job.after.iter().map(AfterBody::from).collect(),
            on_parent_failure: job.on_parent_failure,
            reference: job.reference.as_ref(),
            flow: job.flow.as_ref(),
            traceparent: job.traceparent.as_ref(),
        }
    }
}

patch_body! {
    /// Changes of a job, except when it may run.
    JobFields of PatchJob {
        priority: i8,
        payload: Json,
        needs: Vec<Need>,
        group: Group,
        labels: Labels,
        timeout: Span,
        expires_at: Moment,
    }
}

/// Changes of a job.
#[derive(Serialize)]
struct JobChange<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Option<Moment>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Span>,
    #[serde(flatten)]
    fields: JobFields<'a>,
}

impl<'a> From<&'a PatchJob> for JobChange<'a> {
    fn from(patch: &'a PatchJob) -> Self {
        let (run_at, delay) = match patch.when {
            Patch::Keep => (None, None),
            Patch::Reset | Patch::Set(When::Now) => (Some(None), None),
            Patch::Set(When::At(at)) => (Some(Some(at)), None),
            Patch::Set(When::In(span)) => (None, Some(span)),
        };
        JobChange { run_at, delay, fields: JobFields::from(patch) }
    }
}

/// A call on many jobs: the filter in the forms of the query.
#[derive(Serialize)]
struct ManyCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a QueueName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_after: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_before: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a FlowName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a ScheduleId>,
    max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

impl<'a> ManyCall<'a> {
    /// At most `max` of the jobs that match the filter, from the cursor on.
    fn new(filter: &'a JobFilter, max: usize, cursor: Option<&'a str>) -> Self {
        ManyCall {
            queue: filter.queue.as_ref(),
            state: states(filter),
            kind: filter.kind.as_deref(),
            label: label(filter),
            error: filter.error.as_deref(),
            finished_after: filter.finished_after,
            finished_before: filter.finished_before,
            flow: filter.flow.as_ref(),
            schedule: filter.schedule.as_ref(),
            max,
            cursor,
        }
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

#[derive(Serialize)]
struct RetryOne {
    /// Retried only if it still has this end.
    finished_at: Moment,
}
