//! Arguments of the calls about jobs.

use serde::Serialize;
use tenure_core::job::{JobState, NewJob, When};
use tenure_core::names::JobRef;
use tenure_core::requests::{Patch, PatchJob};
use tenure_core::time::Moment;

use super::body::body_of;
use super::items::{NeedArg, Patched, RetryArg, UniqueArg, moment, needs, span};
use crate::ids::bucket;

/// A job as it is pushed.
#[derive(Serialize)]
pub(crate) struct NewJobArg<'a> {
    id: &'a str,
    b: u8,
    q: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    pr: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Vec<NeedArg<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryArg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ex: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    u: Option<UniqueArg<'a>>,
    body: String,
    n: usize,
}

fn is_zero(priority: &i8) -> bool {
    *priority == 0
}

/// When a job may run, as `at` or `dl`.
fn when(when: When) -> (Option<u64>, Option<u64>) {
    match when {
        When::Now => (None, None),
        When::At(at) => (Some(moment(at)), None),
        When::In(delay) => (None, Some(span(delay))),
    }
}

/// What a job's payload and labels count for in the byte budget.
pub(crate) fn content_bytes(payload: &str, labels: &tenure_core::job::Labels) -> usize {
    payload.len() + labels.iter().map(|(key, value)| key.len() + value.len() + 6).sum::<usize>()
}

impl<'a> NewJobArg<'a> {
    fn of(job: &'a NewJob) -> Self {
        // The ids are filled in before this.
        let id = job.id.as_ref().map_or("", |id| id.as_str());
        let (at, dl) = when(job.when);
        NewJobArg {
            id,
            b: bucket(id),
            q: job.queue.as_str(),
            pr: job.priority,
            g: job.group.as_ref().map(|group| group.as_str()),
            needs: job.needs.as_deref().map(needs),
            retry: job.retry.as_ref().map(RetryArg),
            timeout: job.timeout.map(span),
            retain: job.retain.map(span),
            at,
            dl,
            ex: job.expires_at.map(moment),
            u: job.unique.as_ref().map(UniqueArg),
            body: body_of(&job.kind, &job.payload, &job.labels),
            n: content_bytes(job.payload.text(), &job.labels),
        }
    }
}

/// Jobs as they are pushed; each has an id by now.
pub(crate) fn new_jobs(jobs: &[NewJob]) -> Vec<NewJobArg<'_>> {
    jobs.iter().map(NewJobArg::of).collect()
}

/// Of `push`.
#[derive(Serialize)]
pub(crate) struct PushArgs<'a> {
    pub jobs: Vec<NewJobArg<'a>>,
    pub dr: RetryArg<'a>,
    pub whole: bool,
}

/// Which job, and for a retry which end of it.
#[derive(Serialize)]
pub(crate) struct RefArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<u64>,
}

impl<'a> RefArgs<'a> {
    pub(crate) fn of(job: &'a JobRef) -> Self {
        match job {
            JobRef::Id(id) => RefArgs {
                id: Some(id.as_str()),
                b: Some(bucket(id.as_str())),
                key: None,
                finished_at: None,
            },
            JobRef::Key(key) => {
                RefArgs { id: None, b: None, key: Some(key.as_str()), finished_at: None }
            }
        }
    }
    pub(crate) fn ended(job: &'a JobRef, finished_at: Option<Moment>) -> Self {
        RefArgs { finished_at: finished_at.map(moment), ..RefArgs::of(job) }
    }
}

/// Of `patch`.
#[derive(Serialize)]
pub(crate) struct PatchJobArgs<'a> {
    #[serde(flatten)]
    job: RefArgs<'a>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    pr: Patched<i8>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    g: Patched<&'a str>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    needs: Patched<Vec<NeedArg<'a>>>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    timeout: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    ex: Patched<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dl: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    now: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'a str>,
}

/// A body that takes the place of another: what it was, what it is, and what it counts for.
pub(crate) struct NewBody {
    pub was: String,
    pub body: String,
    pub bytes: usize,
}

impl<'a> PatchJobArgs<'a> {
    pub(crate) fn of(patch: &'a PatchJob, body: Option<&'a NewBody>) -> Self {
        let ((at, dl), now) = match patch.when {
            Patch::Keep => ((None, None), false),
            Patch::Reset | Patch::Set(When::Now) => ((None, None), true),
            Patch::Set(to) => (when(to), false),
        };
        PatchJobArgs {
            job: RefArgs::of(&patch.job),
            pr: Patched::of(&patch.priority, |priority| *priority),
            g: Patched::of(&patch.group, |group| group.as_str()),
            needs: Patched::of(&patch.needs, |all| needs(all)),
            timeout: Patched::of(&patch.timeout, |timeout| span(*timeout)),
            ex: Patched::of(&patch.expires_at, |at| moment(*at)),
            at,
            dl,
            now,
            body: body.map(|body| body.body.as_str()),
            n: body.map(|body| body.bytes),
            was: body.map(|body| body.was.as_str()),
        }
    }
}

/// The letter of a state.
pub(crate) const fn letter(state: JobState) -> &'static str {
    match state {
        JobState::Dependent => "d",
        JobState::Scheduled => "s",
        JobState::Ready => "w",
        JobState::Blocked => "b",
        JobState::Running => "r",
        JobState::Succeeded => "S",
        JobState::Failed => "F",
        JobState::Cancelled => "C",
    }
}

/// Of `list_jobs`.
#[derive(Serialize)]
pub(crate) struct ListJobsArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    pub max: usize,
    pub scan: usize,
}

/// Of `cancel_many` and `retry_many`.
#[derive(Serialize)]
pub(crate) struct ManyArgs<'a> {
    pub seqs: &'a [u64],
}
