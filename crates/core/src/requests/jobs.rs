//! Requests about jobs, one or many. Nothing here decides: the engine refuses a request that cannot
//! be met.

use crate::bounded::unbounded;
use crate::job::{Labels, Need, NewJob, PushedJob};
use crate::names::{Group, JobId, JobRef};
use crate::progress::ProgressSeen;
use crate::secret::Json;
use crate::time::{Moment, Span};
use crate::view;
use serde::{Deserialize, Serialize};

use super::{Effect, JobFilter, Page, Patch};

/// The form in which a push answers its jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PushAnswer {
    /// Each job in full.
    #[default]
    Whole,
    /// Ids alone: a library needs no more.
    Ids,
}

/// Stores jobs: all of them, or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Push {
    /// 1 to 1,000 jobs.
    pub jobs: Vec<NewJob>,
    pub answer: PushAnswer,
}

impl Push {
    /// A job without an id gets another one at each sending, so a second push would store it again.
    pub(super) fn effect(&self) -> Effect {
        if self.jobs.iter().any(|job| job.id.is_none()) { Effect::Adds } else { Effect::Sets }
    }
}

view! {
    /// One job in the short answer of a push.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PushedId {
        /// The id of the job.
        pub id: JobId,
        /// Whether the job was there already, and nothing was stored.
        pub duplicate: bool,
        /// Whether a job that was there got the new content.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub replaced: bool,
        /// 0 if nobody asked for the queue within the last minute; absent otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub workers: Option<u32>,
    }
}

/// The answer to a push, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// The answer for [`PushAnswer::Whole`].
    Whole(Vec<PushedJob>),
    /// The answer for [`PushAnswer::Ids`].
    Ids(Vec<PushedId>),
}

/// Shows one job in full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetJob {
    pub job: JobRef,
}

/// Lists jobs, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListJobs {
    pub filter: JobFilter,
    pub page: Page,
    /// Shows `payload` and `result` too.
    pub full: bool,
}

/// Changes a job that is neither running nor finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchJob {
    pub job: JobRef,
    /// When it may run; `Reset` means now.
    pub when: Patch<crate::job::When>,
    /// `Reset` means priority 0.
    pub priority: Patch<i8>,
    /// `Reset` means null; at most 256 KiB.
    pub payload: Patch<Json>,
    /// `Reset` means the needs of the queue.
    pub needs: Patch<Vec<Need>>,
    /// `Reset` means no group.
    pub group: Patch<Group>,
    /// Replaces all labels; `Reset` removes them.
    pub labels: Patch<Labels>,
    /// `Reset` means the timeout of the queue.
    pub timeout: Patch<Span>,
    /// `Reset` means that it never expires.
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

/// Cancels a job and forgets it; a running one is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteJob {
    pub job: JobRef,
}

/// Ends a job that waits; asks the holder of a running one to stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CancelJob {
    pub job: JobRef,
}

/// Makes a failed or cancelled job ready again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryJob {
    pub job: JobRef,
    /// Retries only a job that ended at this moment; `None`: whenever it ended.
    pub finished_at: Option<Moment>,
}

impl RetryJob {
    /// If the request did not name the end that it takes back, a job that ran and failed again between two sendings
    /// would lose its attempts twice.
    pub(super) fn effect(&self) -> Effect {
        match self.finished_at {
            Some(_) => Effect::Sets,
            None => Effect::Adds,
        }
    }
}

/// Makes a scheduled job ready at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunJobNow {
    pub job: JobRef,
}

/// Shows the result of a job; waits for its end if it is unfinished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetResult {
    /// A key means the job that holds it when the call arrives, even if another job holds it later.
    pub job: JobRef,
    /// How long to wait for the end, at most a minute. After that, the job is shown as it is.
    pub wait: Span,
    /// The progress that the caller has seen: another report ends the wait, too. `None`: only the end does.
    pub seen: Option<ProgressSeen>,
}

/// Explains why a job waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainJob {
    pub job: JobRef,
}

unbounded! { GetJob DeleteJob CancelJob RunJobNow ExplainJob }
