//! Requests about jobs, one or many. They say what is asked; whether it may be is the engine's to
//! say.

use crate::at::At;
use crate::bounded::jobs::{filter, labels, needs, new_job, payload, when};
use crate::bounded::queries::{QUERY, page, wait};
use crate::bounded::{Bounded, PRIORITY, Spans, unbounded};
use crate::bounds::ITEMS_MAX;
use crate::job::{Labels, Need, NewJob, PushedJob};
use crate::names::{Group, JobId, JobRef};
use crate::progress::ProgressSeen;
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::time::{Moment, Span};
use serde::{Deserialize, Serialize};

use super::{Effect, JobFilter, Page, Patch};

/// How much of the jobs a push answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PushAnswer {
    /// The jobs.
    #[default]
    Whole,
    /// Their ids, which is all that a library needs.
    Ids,
}

/// Stores jobs: all, or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Push {
    /// 1 to 1,000.
    pub jobs: Vec<NewJob>,
    /// What to answer.
    pub answer: PushAnswer,
}

impl Push {
    /// A job without an id gets another one at each sending, so that a second push would store it again.
    pub(super) fn effect(&self) -> Effect {
        match self.jobs.iter().any(|job| job.id.is_none()) {
            true => Effect::Adds,
            false => Effect::Sets,
        }
    }
}

/// One job in the short answer of a push.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushedId {
    /// The job that is there now.
    pub id: JobId,
    /// It was there already.
    pub duplicate: bool,
    /// It was there already, and got the new content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// `Some(0)`: nobody asked for its queue within the last minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
}

/// The answer of a push, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// For [`PushAnswer::Whole`].
    Whole(Vec<PushedJob>),
    /// For [`PushAnswer::Ids`].
    Ids(Vec<PushedId>),
}

/// Shows a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetJob {
    /// Which.
    pub job: JobRef,
}

/// Lists jobs, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListJobs {
    /// Which.
    pub filter: JobFilter,
    /// The page.
    pub page: Page,
    /// With `payload` and `result`.
    pub full: bool,
}

/// Changes a job that is neither running nor finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchJob {
    /// Which.
    pub job: JobRef,
    /// When it may run; `Reset` is now.
    pub when: Patch<crate::job::When>,
    /// `Reset`: 0.
    pub priority: Patch<i8>,
    /// `Reset`: null.
    pub payload: Patch<Json>,
    /// `Reset`: the queue's.
    pub needs: Patch<Vec<Need>>,
    /// `Reset`: none.
    pub group: Patch<Group>,
    /// `Reset`: none.
    pub labels: Patch<Labels>,
    /// `Reset`: the queue's.
    pub timeout: Patch<Span>,
    /// `Reset`: none.
    pub expires_at: Patch<Moment>,
}

impl PatchJob {
    /// A patch that changes nothing yet.
    pub fn new(job: JobRef) -> Self {
        PatchJob {
            job,
            when: Patch::Keep,
            priority: Patch::Keep,
            payload: Patch::Keep,
            needs: Patch::Keep,
            group: Patch::Keep,
            labels: Patch::Keep,
            timeout: Patch::Keep,
            expires_at: Patch::Keep,
        }
    }
}

/// Cancels a job and forgets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteJob {
    /// Which.
    pub job: JobRef,
}

/// Calls a job off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CancelJob {
    /// Which.
    pub job: JobRef,
}

/// Makes a finished job ready again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryJob {
    /// Which.
    pub job: JobRef,
    /// Only if it is still that end.
    pub finished_at: Option<Moment>,
}

impl RetryJob {
    /// Unless the request names the end that it takes back, a job that ran and failed again between two sendings would
    /// lose its attempts twice.
    pub(super) fn effect(&self) -> Effect {
        match self.finished_at {
            Some(_) => Effect::Sets,
            None => Effect::Adds,
        }
    }
}

/// Makes a scheduled job ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunJobNow {
    /// Which.
    pub job: JobRef,
}

/// Shows how a job ended; waits for its end if it has not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetResult {
    /// Which. A key means the job that holds it when the call is made, whoever holds it later.
    pub job: JobRef,
    /// How long to wait for the end, at most a minute. When it is over the job is shown as it is.
    pub wait: Span,
    /// What the caller has seen of its progress: the wait ends with another one, too. `None`: only with the end.
    pub seen: Option<ProgressSeen>,
}

/// Says what a job waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainJob {
    /// Which.
    pub job: JobRef,
}

impl Bounded for Push {
    fn within_bounds(&self) -> Result<(), Refusal> {
        At::Body.items(self.jobs.len(), 1..=ITEMS_MAX)?;
        for (index, job) in self.jobs.iter().enumerate() {
            new_job(job, At::Body).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for PatchJob {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        self.when.each(|value| when(*value, &body))?;
        self.priority.each(|value| At::Member(&body, "priority").number(*value, PRIORITY))?;
        self.payload.each(|value| payload(value, &body))?;
        self.needs.each(|value| needs(value, &body, 0))?;
        self.labels.each(|value| labels(value, &body))?;
        self.timeout.each(|value| At::Member(&body, "timeout").span(*value, Spans::SOME))?;
        self.expires_at.each(|value| At::Member(&body, "expires_at").moment(*value))
    }
}

impl Bounded for RetryJob {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let at = At::Member(&At::Body, "finished_at");
        self.finished_at.map_or(Ok(()), |moment| at.moment(moment))
    }
}

impl Bounded for ListJobs {
    fn within_bounds(&self) -> Result<(), Refusal> {
        filter(&self.filter, &QUERY)?;
        page(self.page.max, &QUERY)
    }
}

impl Bounded for GetResult {
    fn within_bounds(&self) -> Result<(), Refusal> {
        wait(self.wait)
    }
}

unbounded! { GetJob DeleteJob CancelJob RunJobNow ExplainJob }
