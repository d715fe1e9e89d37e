//! Live jobs, what many of them share, who holds a unique key, and which pushes replaced a job. Finished jobs are never
//! here, only rows know them.

use std::sync::Arc;

use super::{HeldNeed, Kin, LaneId, LiveJobId, QueueId, Seq, ShapeId};
use tenure_core::job::{EndedJob, JobState, Outcome, Retry, Unique};
use tenure_core::lease::Fence;
use tenure_core::names::{FlowName, Group, JobId, QueueName};
use tenure_core::schedule::MadeBy;
use tenure_core::time::{Moment, Span};

/// What many jobs have in common, stored once.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The encoded form: its identity, and what the job's row holds.
    pub bytes: Arc<[u8]>,
    pub queue: QueueId,
    pub priority: i8,
    pub group: Option<Group>,
    pub held: Arc<[HeldNeed]>,
    pub retry: Retry,
    pub timeout: Option<Span>,
    pub retain: Option<Span>,
    /// Jobs that have it; it goes with the last.
    pub jobs: u32,
    /// Its lane, once a job of it stood in line.
    pub lane: Option<LaneId>,
}

/// Where a live job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stand {
    /// In `due`, until `run_at`.
    Scheduled,
    /// In this lane's line, by its arrival.
    Waiting(LaneId),
    /// Until those it waits for have ended.
    Dependent,
    /// Held by this lease.
    Running(Fence),
}

/// One settle a job remembers, so that a repeat is answered as the first was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PastSettle {
    pub fence: Fence,
    pub outcome: Outcome,
    pub state: tenure_core::job::JobState,
    pub run_at: Option<Moment>,
    /// The next moment of the job's schedule, where the settle moved it; `Some(None)` if it has none any more.
    pub next_at: Option<Option<Moment>>,
}

/// A job in a list by moments; with its row number, so that jobs of one moment come in the order of their pushes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Due {
    pub at: Moment,
    pub seq: Seq,
    pub job: LiveJobId,
}

/// Which schedule made a job; it never changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub by: MadeBy,
    /// The era of the schedule then: the word of a job of an earlier era moves nothing.
    pub era: u64,
}

/// A job that is not finished. Payload, labels, errors and progress are rows, not here.
#[derive(Debug)]
pub(crate) struct Job {
    pub seq: Seq,
    pub id: JobId,
    pub shape: ShapeId,
    pub stand: Stand,
    /// Its place in the order; 0 until it first became ready.
    pub arrival: u64,
    pub created_at: Moment,
    /// When it may run, or might first; the moment it became due.
    pub run_at: Moment,
    pub started_at: Option<Moment>,
    pub expires_at: Option<Moment>,
    /// Length of a wait that the engine chose (retry, snooze, suspect), to cut it by when the
    /// clock was set back; zero for a moment that the client chose.
    pub wait: Span,
    /// Runs that ended in `succeeded` or `failed`.
    pub ended: u32,
    /// Reaps in a row; 1 or more makes it a suspect.
    pub lost: u32,
    /// `released` in a row.
    pub released: u32,
    /// Leases in a row that were never delivered; starts at 0, again with every accepted settle,
    /// and when they were counted as one `lost`.
    pub undelivered: u32,
    /// Runs that ended in `snoozed`: starts at 0, again when the job is retried or its content is replaced.
    pub snoozed: u32,
    /// A lease of it ended once otherwise than by a settle: starts as false, and stays. A run of it may go on that
    /// nobody holds.
    pub ended_unsettled: bool,
    pub cancel_requested: bool,
    /// It keeps its arrival when it becomes due: it was released or lost, not delayed.
    pub keeps_place: bool,
    pub unique: Option<Box<JobKey>>,
    /// The schedule that made it.
    pub origin: Option<Box<Origin>>,
    /// What it has to do with other jobs.
    pub kin: Option<Box<Kin>>,
    pub settles: Vec<PastSettle>,
    /// What the settle that ends its run said of the next moment of its schedule; taken in the same step.
    pub next_at: Option<Option<Moment>>,
    /// Changes of what only the row knows and filters ask for: kind, labels, last error. Counted from its push on; a
    /// call on many jobs that has read the row compares it again before it changes the job.
    pub edits: u32,
    /// About what its row takes on disk, for the byte budget.
    pub bytes: u32,
    /// It is in the list of rows to write.
    pub dirty: bool,
}

impl Job {
    /// What it belongs to.
    pub fn flow(&self) -> Option<&FlowName> {
        self.kin.as_ref()?.flow.as_ref()
    }
}

/// The unique key of a job, as its row holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JobKey {
    pub unique: Unique,
    /// When the wait began by which `within` is counted: set by a push that lets the finished job live again; until
    /// then the wait began with the job's own push.
    pub began: Option<Moment>,
}

impl JobKey {
    /// The key of a job that is pushed.
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

/// Who holds a unique key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyHolder {
    pub seq: Seq,
    pub id: JobId,
    /// Held in any case until then.
    pub until: Option<Moment>,
    /// Held by the job's life too (not yet started or ended, as `until` says).
    pub by_job: bool,
    /// What became of the job, if it is finished.
    pub ended: Option<Box<EndedJob>>,
}

/// A push that replaced the content of a job, and the job as its answer showed it.
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
