//! The lease: what is asked for, what is granted, how it is kept and ended; and how waits are explained.

use serde::{Deserialize, Serialize};

use crate::job::{JobState, JobView, NewJob, Outcome, PushedJob};
use crate::names::{JobId, LimitName, PoolName, QueueName, ResourceId, Tag, WorkerId};
use crate::refusal::Code;
use crate::secret::Json;
use crate::sentences::summary;
use crate::settings::Holder;
use crate::time::{Moment, Span};

crate::number! {
    /// A number that grows with every grant in a namespace: `max(previous + 1, now in µs)`.
    Fence
}

/// Who asks; for people, never a right.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Worker {
    /// Random per process; `None` is `anonymous`, of whom nothing is remembered.
    pub id: Option<WorkerId>,
    /// Its host.
    pub host: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Its version.
    pub version: Option<String>,
}

impl Worker {
    /// What leases show.
    pub fn holder(&self) -> &str {
        self.id.as_ref().map_or("anonymous", WorkerId::as_str)
    }
}

/// A resource in a lease. Its data is here and nowhere else.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeasedResource {
    /// Its pool.
    pub pool: PoolName,
    /// Its id.
    pub id: ResourceId,
    /// Often secret.
    pub data: Json,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// A lease as its holder sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaseView {
    /// Its id; null for tokens that were granted and given back in one step.
    pub lease: Option<String>,
    /// Grows with every grant.
    pub fence: Fence,
    /// The worker's id.
    #[serde(default)]
    pub holder: String,
    /// When.
    #[serde(default)]
    pub granted_at: Moment,
    /// When it is taken back unless it is extended.
    #[serde(default)]
    pub expires_at: Moment,
    /// When the run must be over.
    #[serde(default)]
    pub deadline: Option<Moment>,
    /// The job; null if needs alone were asked for.
    #[serde(default)]
    pub job: Option<JobView>,
    /// Resources held, with their data.
    #[serde(default)]
    pub resources: Vec<LeasedResource>,
    /// Limits held.
    #[serde(default)]
    pub limits: Vec<LimitName>,
}

/// A lease in a list: no data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaseSummary {
    /// Its id.
    pub lease: String,
    /// Its fence.
    pub fence: Fence,
    /// The worker's id.
    pub holder: String,
    /// When.
    pub granted_at: Moment,
    /// When it is taken back unless it is extended.
    pub expires_at: Moment,
    /// When the run must be over.
    pub deadline: Option<Moment>,
    /// The job's id.
    pub job: Option<JobId>,
    /// The job's queue.
    pub queue: Option<QueueName>,
    /// Resources held.
    #[serde(default)]
    pub resources: Vec<HeldResource>,
    /// Limits held.
    #[serde(default)]
    pub limits: Vec<LimitName>,
    /// Whether a cancel waits for its holder.
    #[serde(default)]
    pub cancel_requested: bool,
}

/// Which resource a lease holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldResource {
    /// Its pool.
    pub pool: PoolName,
    /// Its id.
    pub id: ResourceId,
}

/// The answer of a lease call.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Leased {
    /// What was granted; empty if nothing could be within the wait.
    pub leases: Vec<LeaseView>,
    /// When the answer may change at the earliest; null if unknown.
    #[serde(default)]
    pub next_at: Option<Moment>,
    /// Why the needs that were asked for alone were not granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// One lease to extend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtendItem {
    /// The lease.
    pub lease: String,
    /// What its holder reports, at most 4 KiB; shown with the job until the next report, also in its next runs. `None`
    /// and JSON's `null` are no report.
    pub progress: Option<Json>,
}

/// One lease that was extended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExtendedLease {
    /// The lease.
    pub lease: String,
    /// When it is taken back now.
    pub expires_at: Moment,
}

/// The answer of an extend call.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Extended {
    /// Those that live.
    pub extended: Vec<ExtendedLease>,
    /// Those that are no longer held.
    pub lost: Vec<String>,
    /// Those of `extended` whose job should stop.
    pub cancel: Vec<String>,
    /// Those of `lost` that their holder had settled: a heartbeat crossed its settle. Not in an answer over HTTP; what counts
    /// lost leases leaves them out.
    #[serde(skip)]
    pub crossed: Vec<String>,
}

impl Extended {
    /// Leases whose holder came too late.
    pub fn too_late(&self) -> impl Iterator<Item = &str> {
        self.lost.iter().filter(|lease| !self.crossed.contains(lease)).map(String::as_str)
    }
}

/// How long something lasts, or until when: a snooze, a pause, a resource's rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Later {
    /// After so long.
    For(Span),
    /// At a moment.
    Until(Moment),
}

impl Later {
    /// The moment it means for a call that arrived at `now`.
    pub fn moment(self, now: Moment) -> Moment {
        match self {
            Later::For(span) => now.plus(span),
            Later::Until(at) => at,
        }
    }
}

/// How a settle ends its lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Done.
    Succeeded {
        /// Any JSON.
        result: Option<Json>,
    },
    /// Not done.
    Failed {
        /// What went wrong.
        error: String,
        /// Instead of the backoff.
        retry_in: Option<Span>,
        /// No more attempts.
        last: bool,
    },
    /// Not yet.
    Snoozed {
        /// When to ask again; at least 100 ms ahead.
        later: Later,
        /// Whether attempts start again from 0: a job that lives on by snoozing does not fail for good after the
        /// twentieth failure of its life.
        reset: bool,
    },
    /// Given back untouched.
    Released,
}

impl Ending {
    /// Its outcome.
    pub fn outcome(&self) -> Outcome {
        match self {
            Ending::Succeeded { .. } => Outcome::Succeeded,
            Ending::Failed { .. } => Outcome::Failed,
            Ending::Snoozed { .. } => Outcome::Snoozed,
            Ending::Released => Outcome::Released,
        }
    }
}

/// What the holder says of a resource it gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing special.
    Ok,
    /// Let it rest.
    Cool(Later),
    /// Hand it out no more.
    Ban {
        /// Why.
        reason: Option<String>,
    },
}

/// A verdict on one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceVerdict {
    /// Its pool.
    pub pool: PoolName,
    /// Its id.
    pub id: ResourceId,
    /// What the holder says.
    pub verdict: Verdict,
}

/// What the holder says of a limit it held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitVerdict {
    /// The limit.
    pub limit: LimitName,
    /// Nobody is granted it for so long, counted from the settle; a later pause that is there holds.
    pub pause: Option<Span>,
    /// What was spent in truth; corrects the cost that the grant booked.
    pub spent: Option<u32>,
}

/// One lease to settle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettleItem {
    /// The lease.
    pub lease: String,
    /// How it ends.
    pub ending: Ending,
    /// What its holder reports last, at most 4 KiB; kept with the job as the report of an extend is. `None` and JSON's
    /// `null` are no report. Without effect for a lease without a job.
    pub progress: Option<Json>,
    /// The job's schedule has its next moment this long after the settle: whole seconds. Without effect for a job without
    /// a schedule, or whose schedule is gone or had its timing changed since.
    pub next_in: Option<Span>,
    /// Of resources held.
    pub resources: Vec<ResourceVerdict>,
    /// Of limits held.
    pub limits: Vec<LimitVerdict>,
    /// Follow-up jobs, stored in the same step as the settle, or neither is.
    pub push: Vec<NewJob>,
}

impl SettleItem {
    /// Ends a lease so, and says nothing else.
    pub fn new(lease: String, ending: Ending) -> Self {
        SettleItem {
            lease,
            ending,
            progress: None,
            next_in: None,
            resources: Vec::new(),
            limits: Vec::new(),
            push: Vec::new(),
        }
    }
}

/// The answer to one settle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettledLease {
    /// The lease.
    pub lease: String,
    /// Whether it was settled, by this call or by the same one before.
    pub ok: bool,
    /// What became of the job; absent for a lease without a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<JobState>,
    /// When it runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Moment>,
    /// `lease_lost` or `already_settled`; `None` also for a code that this release does not know.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "code_if_known")]
    pub code: Option<Code>,
    /// The next moment of the job's schedule, where the item said `next_in`; `Some(None)`, null in JSON, if the schedule
    /// has no moment any more. Absent where `next_in` was not given or meant nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub next_at: Option<Option<Moment>>,
    /// The follow-up jobs, without payload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pushed: Vec<PushedJob>,
}

/// A field that is there, null or not.
fn said<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Option<Moment>>, D::Error> {
    Option::<Moment>::deserialize(d).map(Some)
}

fn code_if_known<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Code>, D::Error> {
    let text = Option::<String>::deserialize(d)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Why something waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// For other jobs.
    WaitingOn,
    /// For a moment.
    Scheduled,
    /// Others go first.
    Behind,
    /// Its queue is paused.
    QueuePaused,
    /// Nobody asked for its queue for 60 s.
    NoWorker,
    /// All who ask for its queue are busy.
    WorkersFull,
    /// All permits are taken.
    Limit,
    /// The rate has no token left.
    Rate,
    /// The permits that are free still rest.
    Gap,
    /// The limit is paused.
    LimitPaused,
    /// Work outside fills the limit.
    External,
    /// No resource that matches is free.
    Pool,
    /// What is free is kept for another who waited longer.
    Reserved,
    /// It can never be granted as the settings are.
    NeverFits,
    /// A word that this release does not know: another one said it. Show it, and the detail.
    #[serde(untagged)]
    Other(String),
}

/// One thing that a job waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// Why.
    pub kind: ReasonKind,
    /// The limit, pool, queue; null if there is none.
    pub name: Option<String>,
    /// Units taken.
    pub in_use: Option<u64>,
    /// Units there are.
    pub capacity: Option<u64>,
    /// Who holds them; at most 20.
    #[serde(default)]
    pub holders: Vec<Holder>,
    /// Place in that line; 1 is the next.
    pub position: Option<u64>,
    /// Jobs that go first.
    pub ahead: Option<u64>,
    /// No sooner than this; null if a holder decides.
    pub earliest: Option<Moment>,
    /// The same in words, with what is beside it (who reserved, since when). Empty if the other side
    /// does not say.
    #[serde(default)]
    pub detail: String,
}

impl Reason {
    /// A reason of a kind, told in a sentence; all else is for the caller to fill in.
    pub fn told(kind: ReasonKind, detail: String) -> Self {
        Reason {
            kind,
            name: None,
            in_use: None,
            capacity: None,
            holders: Vec::new(),
            position: None,
            ahead: None,
            earliest: None,
            detail,
        }
    }
}

/// Which lease runs a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunningLease {
    /// The lease.
    pub lease: String,
    /// The worker's id.
    pub holder: String,
    /// When it was granted.
    pub since: Moment,
    /// When it is taken back unless it is extended.
    pub expires_at: Moment,
}

/// What a job waits for, exactly.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Explained {
    /// The job.
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// One sentence, without the state, which stands beside it.
    #[serde(default)]
    pub summary: String,
    /// What must happen first.
    #[serde(default)]
    pub reasons: Vec<Reason>,
    /// For a running job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<RunningLease>,
}

impl Explained {
    /// What a job in `state` waits for, and the sentence that it comes to.
    pub fn new(
        id: JobId,
        state: JobState,
        reasons: Vec<Reason>,
        lease: Option<RunningLease>,
    ) -> Self {
        let summary = summary(state, &reasons, lease.as_ref());
        Explained { id, state, summary, reasons, lease }
    }
}

#[cfg(test)]
mod tests;
