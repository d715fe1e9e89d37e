//! Changes of a step as rows to write: state reaches a disk in no other way.
//!
//! A store writes them in one durable batch, and later returns them to `Machine::restore`. Each row appears once, even
//! if its thing changed more often in the batch.

pub(crate) mod changes;
pub(crate) mod codec;
pub(crate) mod drain;
pub(crate) mod durable;
pub(crate) mod entries;
pub(crate) mod restore;
pub(crate) mod schedule_text;
pub(crate) mod stored;
pub(crate) mod text_codec;
pub(crate) mod times;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::state::Seq;
use tenure_core::job::{JobError, JobState, Labels};
use tenure_core::names::{FlowName, JobId, Namespace, PoolName, QueueName, ResourceId};
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;
use tenure_core::words;

/// The content of a job's row, written when it is new or changed.
#[derive(Clone, PartialEq, Debug)]
pub struct JobContent {
    /// The name that a worker dispatches on.
    pub kind: String,
    pub payload: Json,
    pub labels: Labels,
    /// The trace of its push.
    pub traceparent: Option<TraceParent>,
}

/// A change of some fields of a job's content.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ContentPatch {
    /// The new kind; `None`: unchanged.
    pub kind: Option<String>,
    /// The new payload; `None`: unchanged.
    pub payload: Option<Json>,
    /// The new labels; `None`: unchanged.
    pub labels: Option<Labels>,
    /// The trace of the push that replaces the content; `Some(None)` removes the old one.
    pub traceparent: Option<Option<TraceParent>>,
}

/// The end of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobEnd {
    pub namespace: Namespace,
    pub id: JobId,
    /// The encoded shape of the job.
    pub shape: Arc<[u8]>,
    /// The time until which it is kept.
    pub until: Moment,
    /// Approximate size of the row, for the byte budget.
    pub bytes: u32,
    /// The result of a succeeded job.
    pub result: Option<Json>,
}

/// The retention of a finished job, and its part of the budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptUntil {
    pub namespace: Namespace,
    /// The end of the retention; the greatest moment means without end.
    pub until: Moment,
    /// Approximate size of the row, for the byte budget.
    pub bytes: u32,
}

/// Changes of one job's row.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobChange {
    /// The row is new: its namespace, id and content.
    pub new: Option<Arc<(Namespace, JobId, JobContent)>>,
    /// The queue, for a new row.
    pub queue: Option<QueueName>,
    /// The flow of the job, for a new row.
    pub flow: Option<FlowName>,
    /// A change of an existing row's content.
    pub patch: Option<Box<ContentPatch>>,
    /// Its state now; `Ready` for every waiting job.
    pub state: Option<JobState>,
    /// Its shape, for a new row or a changed shape.
    pub shape: Option<Arc<[u8]>>,
    /// The encoded life of the job. Without a state, only the life of an existing row changes.
    pub life: Option<Vec<u8>>,
    /// It ended: from now on only the archive knows it.
    pub end: Option<JobEnd>,
    /// A new retention for a job that was already finished.
    pub kept: Option<KeptUntil>,
    /// True if it was finished and lives again: `until` and `result` are removed.
    pub revived: bool,
    /// The last error; `Some(None)` removes it.
    pub error: Option<Option<String>>,
    /// The last progress report; `Some(None)` removes it.
    pub progress: Option<Option<Json>>,
    /// True if the row goes, with its errors.
    pub deleted: bool,
}

words! {
    /// Kinds of the rows that are not jobs. A journal holds a kind by its index in `ALL`: a new one comes last.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Kind {
        /// Numbers of the namespace.
        Meta = "meta",
        /// Settings and pause of a queue.
        Queue = "queue",
        /// The virtual time of a group; for jobs without a group, the time of their priority.
        Turn = "turn",
        /// The setting of a limit or template.
        LimitSetting = "limit_setting",
        /// The state of a limit: debt, pause, rests, observation.
        Limit = "limit",
        /// The settings of a pool.
        Pool = "pool",
        /// A resource, without its data.
        Resource = "resource",
        /// A schedule, and its job unless that is long.
        Schedule = "schedule",
        /// The long job of a schedule, which is written when it changes and not at each occurrence.
        ScheduledJob = "scheduled_job",
        /// The version of the set of schedules in an owner's last sync.
        SyncedSet = "synced_set",
        /// An edge: a job or a flow, and one child that waits or was notified.
        Edge = "edge",
        /// A finished job that is kept for its dependents.
        Followed = "followed",
        /// The parents of an ended job, until it has let them all go.
        Leaving = "leaving",
        /// The counts of a flow.
        Flow = "flow",
        /// A lease without a job.
        Lease = "lease",
        /// The holder of a unique key.
        Key = "key",
        /// The grants of a request id.
        Request = "request",
        /// A push that replaced the content of a job.
        Replacing = "replacing",
        /// A tombstone: a lease without a job, after its end.
        Stub = "stub",
        /// The name of a key with which the engine seals contents. The machine never reads it.
        SealKey = "seal_key",
    }
}

impl Kind {
    /// The kind with this name.
    pub fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The key of a row that is not a job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowKey {
    pub namespace: Namespace,
    pub kind: Kind,
    /// Unique within namespace and kind.
    pub key: String,
}

/// The resource that the data belongs to.
pub type DataKey = (Namespace, PoolName, ResourceId);

/// All changes of a batch of steps.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rows {
    /// Jobs, by row number.
    pub jobs: BTreeMap<Seq, JobChange>,
    /// Errors to append; a store keeps the last 20 of each job.
    pub errors: Vec<(Seq, JobError)>,
    /// Other rows: text to put, or `None` to delete.
    pub other: BTreeMap<RowKey, Option<String>>,
    /// Jobs whose rows go, with the edges of their children; all of these are closed.
    pub childless: Vec<(Namespace, Seq)>,
    /// Data of resources to put, or `None` to delete. Secret: never logged.
    pub data: BTreeMap<DataKey, Option<Json>>,
}

impl Rows {
    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
            && self.errors.is_empty()
            && self.other.is_empty()
            && self.childless.is_empty()
            && self.data.is_empty()
    }
    /// True if they contain a granted or changed lease.
    pub fn grants(&self) -> bool {
        self.jobs.values().any(|change| change.state == Some(JobState::Running))
            || self.other.iter().any(|(key, row)| key.kind == Kind::Lease && row.is_some())
    }
    /// Approximate size in a journal.
    pub fn bytes(&self) -> usize {
        let text = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.text().len());
        let job = |change: &JobChange| {
            let new = change.new.as_ref().map_or(0, |new| {
                let labels = new.2.labels.iter().map(|(name, value)| name.len() + value.len());
                new.2.payload.text().len() + new.2.kind.len() + labels.sum::<usize>()
            });
            let patch = change.patch.as_ref().map_or(0, |patch| text(&patch.payload));
            let end = change.end.as_ref().map_or(0, |end| text(&end.result));
            let error = change.error.as_ref().and_then(Option::as_ref).map_or(0, String::len);
            let progress = change.progress.as_ref().map_or(0, text);
            64 + new + patch + end + error + progress + change.life.as_ref().map_or(0, Vec::len)
        };
        let row = |(key, value): (&RowKey, &Option<String>)| {
            16 + key.key.len() + value.as_ref().map_or(0, String::len)
        };
        self.jobs.values().map(job).sum::<usize>()
            + self.errors.iter().map(|(_, error)| 16 + error.error.len()).sum::<usize>()
            + self.other.iter().map(row).sum::<usize>()
            + 16 * self.childless.len()
            + self.data.values().map(|data| 64 + text(data)).sum::<usize>()
    }
    pub(crate) fn job(&mut self, seq: Seq) -> &mut JobChange {
        self.jobs.entry(seq).or_default()
    }
}

/// A live job's row, from a store at a start.
#[derive(Clone, Debug)]
pub struct LiveRow<'a> {
    pub seq: Seq,
    pub namespace: &'a str,
    pub id: &'a str,
    pub state: JobState,
    /// The encoded shape of the job.
    pub shape: &'a [u8],
    /// The encoded life of the job.
    pub life: &'a [u8],
}

/// A finished job, from the archive.
#[derive(Clone, PartialEq, Debug)]
pub struct Archived {
    pub seq: Seq,
    pub id: JobId,
    /// The state in which it ended.
    pub state: JobState,
    /// The encoded shape of the job.
    pub shape: Vec<u8>,
    /// The encoded life of the job.
    pub life: Vec<u8>,
    /// The time until which it is kept.
    pub until: Moment,
    /// Approximate size of the row.
    pub bytes: u32,
}

/// The classes of the byte budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Failed jobs, which own half of the byte budget.
    Failed,
    /// Succeeded and cancelled ones.
    Ended,
}

impl Class {
    /// The class of a final state.
    pub fn of(state: JobState) -> Class {
        if state == JobState::Failed { Class::Failed } else { Class::Ended }
    }
}

/// Finished jobs: rows without an index in memory. A step sees the changes of earlier steps.
pub trait Archive {
    /// The finished job with this id.
    fn by_id(&self, namespace: &Namespace, id: &JobId) -> Option<Archived>;
    /// The finished job with this row number.
    fn by_seq(&self, namespace: &Namespace, seq: Seq) -> Option<Archived>;
    /// Finished jobs of a namespace whose retention is over, earliest first.
    fn over(&self, namespace: &Namespace, now: Moment, max: usize) -> Vec<Archived>;
    /// The earliest end of a retention in the namespace.
    fn next_over(&self, namespace: &Namespace) -> Option<Moment>;
    /// The jobs of this class with the earliest ends, over all namespaces.
    fn soonest(&self, class: Class, max: usize) -> Vec<(Namespace, Archived)>;
}
