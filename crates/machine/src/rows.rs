//! What a step changed, as rows to write: the only way by which state reaches a disk.
//!
//! A store writes them in one durable batch, and later hands them back to `Machine::restore`. Each
//! row stands once, however often its thing changed in the batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::state::Seq;
use tenure_core::job::{JobError, JobState, Labels};
use tenure_core::names::{FlowName, JobId, Namespace, PoolName, QueueName, ResourceId};
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;

/// What a job's row gets when it is new or its content changed.
#[derive(Clone, PartialEq, Debug)]
pub struct JobContent {
    /// What a worker dispatches on.
    pub kind: String,
    /// Its payload.
    pub payload: Json,
    /// Its labels.
    pub labels: Labels,
    /// The trace that it was pushed in.
    pub traceparent: Option<TraceParent>,
}

/// What changes of a content that stays otherwise.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ContentPatch {
    /// The new kind.
    pub kind: Option<String>,
    /// The new payload.
    pub payload: Option<Json>,
    /// The new labels.
    pub labels: Option<Labels>,
    /// The trace of the push that replaces the content; `Some(None)` takes the old one away.
    pub traceparent: Option<Option<TraceParent>>,
}

/// How a job ended.
#[derive(Clone, PartialEq, Debug)]
pub struct JobEnd {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its id.
    pub id: JobId,
    /// Its shape.
    pub shape: Arc<[u8]>,
    /// Kept until then.
    pub until: Moment,
    /// About what the row takes, for the byte budget.
    pub bytes: u32,
    /// What it succeeded with.
    pub result: Option<Json>,
}

/// How long a finished job is kept, and what it takes of the budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptUntil {
    /// Its namespace.
    pub namespace: Namespace,
    /// Until then; the greatest moment is without end.
    pub until: Moment,
    /// About what the row takes, for the byte budget.
    pub bytes: u32,
}

/// What is written of one job.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobChange {
    /// The row is new: its namespace, id and content.
    pub new: Option<Arc<(Namespace, JobId, JobContent)>>,
    /// The queue, when the row is new.
    pub queue: Option<QueueName>,
    /// The flow that it belongs to, when the row is new.
    pub flow: Option<FlowName>,
    /// Content of a row that is there.
    pub patch: Option<Box<ContentPatch>>,
    /// Where it stands now; `Ready` for all that waits.
    pub state: Option<JobState>,
    /// Its shape, when the row is new or the shape changed.
    pub shape: Option<Arc<[u8]>>,
    /// Its life. Without a state, only the life of a row that is there changes.
    pub life: Option<Vec<u8>>,
    /// It ended: from now on only the archive knows it.
    pub end: Option<JobEnd>,
    /// It is finished already, and is kept otherwise from now on.
    pub kept: Option<KeptUntil>,
    /// It was finished and lives again: `until` and `result` go.
    pub revived: bool,
    /// The last error; `Some(None)` takes it away.
    pub error: Option<Option<String>>,
    /// What its holder reported; `Some(None)` takes it away.
    pub progress: Option<Option<Json>>,
    /// The row goes, with its errors.
    pub deleted: bool,
}

/// Kinds of the rows that are not jobs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Numbers of the namespace.
    Meta,
    /// A queue.
    Queue,
    /// The virtual time of a group; that of its priority, for the group that is none.
    Turn,
    /// A limit's setting.
    LimitSetting,
    /// A limit's state.
    Limit,
    /// A pool.
    Pool,
    /// A resource, without its data.
    Resource,
    /// A schedule, and its job unless that is long.
    Schedule,
    /// The long job of a schedule, which is written when it changes and not when a moment fires.
    ScheduledJob,
    /// The version of the set of schedules that an owner synced last.
    SyncedSet,
    /// Who waits, or was told: a job, or a flow, and one of its children.
    Edge,
    /// What is kept of a job for those that name it.
    Followed,
    /// The parents of a job that has ended, until it has let them all go.
    Leaving,
    /// The counts of a flow.
    Flow,
    /// A lease without a job.
    Lease,
    /// Who holds a unique key.
    Key,
    /// What a request id was granted.
    Request,
    /// A push that replaced the content of a job.
    Replacing,
    /// A lease without a job, after its end.
    Stub,
}

impl Kind {
    /// All kinds, in the order in which they are declared. A journal holds a kind by its place here: a new one comes last.
    pub const ALL: [Kind; 19] = [
        Kind::Meta,
        Kind::Queue,
        Kind::Turn,
        Kind::LimitSetting,
        Kind::Limit,
        Kind::Pool,
        Kind::Resource,
        Kind::Schedule,
        Kind::ScheduledJob,
        Kind::SyncedSet,
        Kind::Edge,
        Kind::Followed,
        Kind::Leaving,
        Kind::Flow,
        Kind::Lease,
        Kind::Key,
        Kind::Request,
        Kind::Replacing,
        Kind::Stub,
    ];
    /// Its name in a store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Meta => "meta",
            Kind::Queue => "queue",
            Kind::Turn => "turn",
            Kind::LimitSetting => "limit_setting",
            Kind::Limit => "limit",
            Kind::Pool => "pool",
            Kind::Resource => "resource",
            Kind::Schedule => "schedule",
            Kind::ScheduledJob => "scheduled_job",
            Kind::SyncedSet => "synced_set",
            Kind::Edge => "edge",
            Kind::Followed => "followed",
            Kind::Leaving => "leaving",
            Kind::Flow => "flow",
            Kind::Lease => "lease",
            Kind::Key => "key",
            Kind::Request => "request",
            Kind::Replacing => "replacing",
            Kind::Stub => "stub",
        }
    }
    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The key of a row that is not a job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowKey {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Kind,
    /// Unique within both.
    pub key: String,
}

/// Whose data it is.
pub type DataKey = (Namespace, PoolName, ResourceId);

/// Everything that a batch of steps changed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rows {
    /// Jobs, by row number.
    pub jobs: BTreeMap<Seq, JobChange>,
    /// Errors to append; a store keeps the last 20 of each job.
    pub errors: Vec<(Seq, JobError)>,
    /// Other rows: text to put, or `None` to delete.
    pub other: BTreeMap<RowKey, Option<String>>,
    /// Jobs whose rows go, and with them the edges of their children, all of which are closed.
    pub childless: Vec<(Namespace, Seq)>,
    /// Data of resources to put, or `None` to delete. Secret: never logged.
    pub data: BTreeMap<DataKey, Option<Json>>,
}

impl Rows {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
            && self.errors.is_empty()
            && self.other.is_empty()
            && self.childless.is_empty()
            && self.data.is_empty()
    }
    /// Whether a lease is among them that was granted, or changed.
    pub fn grants(&self) -> bool {
        self.jobs.values().any(|change| change.state == Some(JobState::Running))
            || self.other.iter().any(|(key, row)| key.kind == Kind::Lease && row.is_some())
    }
    /// About what they take in a journal.
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

/// A live job's row, as a store hands it back at a start.
#[derive(Clone, Debug)]
pub struct LiveRow<'a> {
    /// Its row number.
    pub seq: Seq,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its id.
    pub id: &'a str,
    /// Where it stands.
    pub state: JobState,
    /// Its shape.
    pub shape: &'a [u8],
    /// Its life.
    pub life: &'a [u8],
}

/// A finished job, as the archive knows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Archived {
    /// Its row number.
    pub seq: Seq,
    /// Its id.
    pub id: JobId,
    /// How it ended.
    pub state: JobState,
    /// Its shape.
    pub shape: Vec<u8>,
    /// Its life.
    pub life: Vec<u8>,
    /// Kept until then.
    pub until: Moment,
    /// About what the row takes.
    pub bytes: u32,
}

/// Which finished jobs go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Failed jobs, which own half of the byte budget.
    Failed,
    /// Succeeded and cancelled ones.
    Ended,
}

impl Class {
    /// The class of an end.
    pub fn of(state: JobState) -> Class {
        if state == JobState::Failed { Class::Failed } else { Class::Ended }
    }
}

/// Finished jobs: rows that no index in memory knows. What a step changed is seen by the next one.
pub trait Archive {
    /// The finished job with this id.
    fn by_id(&self, namespace: &Namespace, id: &JobId) -> Option<Archived>;
    /// The finished job with this row number.
    fn by_seq(&self, namespace: &Namespace, seq: Seq) -> Option<Archived>;
    /// Finished jobs of a namespace whose time is over, soonest first.
    fn over(&self, namespace: &Namespace, now: Moment, max: usize) -> Vec<Archived>;
    /// The soonest moment at which one of the namespace goes.
    fn next_over(&self, namespace: &Namespace) -> Option<Moment>;
    /// Of all namespaces, the jobs of this class that would go soonest.
    fn soonest(&self, class: Class, max: usize) -> Vec<(Namespace, Archived)>;
}
