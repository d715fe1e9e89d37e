//! A live job, its shared shape, its unique key, and a push that replaced it. Data without actions.

use std::sync::Arc;

use crate::state::remembered::Ends;
use crate::state::{HeldNeed, Kin, LaneId, QueueId, Seq, ShapeId};
use tenure_core::job::{EndedJob, JobState, MadeBy, Outcome, Retry, Unique};
use tenure_core::lease::Fence;
use tenure_core::names::{FlowName, Group, JobId, QueueName};
use tenure_core::time::{Moment, Span};

/// The common part of many jobs, stored once.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The encoded form: its identity, and the bytes in the job's row.
    pub bytes: Arc<[u8]>,
    pub queue: QueueId,
    pub priority: i8,
    pub group: Option<Group>,
    pub held: Arc<[HeldNeed]>,
    pub retry: Retry,
    pub timeout: Option<Span>,
    pub retain: Option<Span>,
    /// Number of jobs with it; it goes with the last.
    pub jobs: u32,
    /// Its lane, once one of its jobs was in line.
    pub lane: Option<LaneId>,
}

/// The place of a live job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stand {
    /// In `due`, until `run_at`.
    Scheduled,
    /// In this lane's line, by its arrival.
    Waiting(LaneId),
    /// Waits until its parents have ended.
    Dependent,
    /// Held by this lease.
    Running(Fence),
}

/// A settle that a job remembers, so that a repeat gets the same answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PastSettle {
    pub fence: Fence,
    pub outcome: Outcome,
    pub state: tenure_core::job::JobState,
    pub run_at: Option<Moment>,
    /// The next occurrence of the job's schedule, if the settle moved it; `Some(None)` if no occurrence is left.
    pub next_at: Option<Option<Moment>>,
}

/// The schedule that made a job; never changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub by: MadeBy,
    /// The era of the schedule then: a job of an earlier era cannot move the schedule.
    pub era: u64,
}

/// An unfinished job. Payload, labels, errors and progress are only in rows.
#[derive(Debug)]
pub(crate) struct Job {
    pub seq: Seq,
    pub id: JobId,
    pub shape: ShapeId,
    pub stand: Stand,
    /// Its number in the order; 0 until it first became ready.
    pub arrival: u64,
    pub created_at: Moment,
    /// The time at which it may run, or became due.
    pub run_at: Moment,
    pub started_at: Option<Moment>,
    pub expires_at: Option<Moment>,
    /// Length of a wait that the engine chose (retry, snooze, suspect), a cap for it after the clock was set back; zero
    /// for a time that the client chose.
    pub wait: Span,
    /// Number of runs that ended in `succeeded` or `failed`.
    pub ended: u32,
    /// Reaps in a row; 1 or more makes it a suspect.
    pub lost: u32,
    /// Number of `released` in a row.
    pub released: u32,
    /// Unacknowledged grants in a row; 0 at first, after every accepted settle, and once they were counted as one
    /// `lost`.
    pub undelivered: u32,
    /// Runs that ended in `snoozed`; 0 at first, and after a retry or a replaced content.
    pub snoozed: u32,
    /// True once a lease of it ended without a settle, and stays. A run without a holder may then go on.
    pub ended_unsettled: bool,
    pub cancel_requested: bool,
    /// True if it keeps its arrival when it becomes due: it was released or lost, not delayed.
    pub keeps_place: bool,
    pub unique: Option<Box<JobKey>>,
    /// The schedule that made it.
    pub origin: Option<Box<Origin>>,
    /// Its flow and dependencies, if it has any.
    pub kin: Option<Box<Kin>>,
    pub settles: Vec<PastSettle>,
    /// The next occurrence that the settle at the end of its run chose; taken in the same step.
    pub next_at: Option<Option<Moment>>,
    /// Changes of data that only the row has and filters use: kind, labels, last error. Counted from its push; a change
    /// of many jobs compares it again before it changes a job whose row it has read.
    pub edits: u32,
    /// Approximate size of its row on disk, for the byte budget.
    pub bytes: u32,
    /// True while it is in the list of rows to write.
    pub dirty: bool,
}

impl Job {
    /// The flow that it belongs to.
    pub fn flow(&self) -> Option<&FlowName> {
        self.kin.as_ref()?.flow.as_ref()
    }
}

/// The unique key of a job, as in its row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JobKey {
    pub unique: Unique,
    /// The start of the wait that `within` is measured from, set by a push that lets the finished job live again;
    /// before that, the wait began with the job's own push.
    pub began: Option<Moment>,
}

impl JobKey {
    /// The key of a pushed job.
    pub fn of(unique: Unique) -> Self {
        JobKey { unique, began: None }
    }
}

impl std::ops::Deref for JobKey {
    type Target = Unique;
    fn deref(&self) -> &Unique {
        &self.unique
    }
}

/// The holder of a unique key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyHolder {
    pub seq: Seq,
    pub id: JobId,
    /// The key is held until this time in any case.
    pub until: Option<Moment>,
    /// True if the job's life holds it too (until its start or its end, as `until` says).
    pub by_job: bool,
    /// The finished job, if it is finished.
    pub ended: Option<Box<EndedJob>>,
}

/// A published progress report of a job.
#[derive(Debug)]
pub(crate) struct Report {
    /// True if another report came since.
    pub has_more: bool,
    /// The end of the second in which no other is published.
    pub until: Moment,
}

impl Ends for Report {
    fn ends_at(&self) -> Option<Moment> {
        Some(self.until)
    }
}

impl Ends for KeyHolder {
    fn ends_at(&self) -> Option<Moment> {
        self.until
    }
}

impl Ends for Replacing {
    fn ends_at(&self) -> Option<Moment> {
        Some(self.until)
    }
}

/// A push that replaced the content of a job, and the job in its answer.
#[derive(Debug)]
pub(crate) struct Replacing {
    pub seq: Seq,
    pub id: JobId,
    pub queue: QueueName,
    pub state: JobState,
    pub created_at: Moment,
    pub run_at: Moment,
    pub until: Moment,
}
