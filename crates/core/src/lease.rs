//! Leases: requests, grants, heartbeats, ends, and the reasons why something waits.

use serde::{Deserialize, Serialize};

use crate::job::{JobState, JobView, NewJob, Outcome, PushedJob};
use crate::names::{JobId, LimitName, PoolName, QueueName, ResourceId, Tag, WorkerId};
use crate::refusal::Code;
use crate::secret::Json;
use crate::sentences::summary;
use crate::settings::Holder;
use crate::time::{Moment, Span};
use crate::view;

crate::schemas!(ReasonKind);

crate::number! {
    /// A number that grows with every grant in a namespace: `max(previous + 1, now in µs)`.
    Fence
}

/// The caller of a lease call, for people to read; never a right.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Worker {
    /// Random per process. `None` is shown as `anonymous`, and nothing is remembered of such a worker.
    pub id: Option<WorkerId>,
    /// Host of the process, at most 256 bytes.
    pub host: Option<String>,
    /// Process id on that host.
    pub pid: Option<u32>,
    /// Version of the program, at most 256 bytes.
    pub version: Option<String>,
}

impl Worker {
    /// The text that leases show: the worker's id, or `anonymous`.
    pub fn holder(&self) -> &str {
        self.id.as_ref().map_or("anonymous", WorkerId::as_str)
    }
}

/// One lease to extend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtendItem {
    pub lease: String,
    /// Progress report of the holder, at most 4 KiB; shown with the job until the next report, also in its next runs.
    /// `None` and JSON's `null` are no report.
    pub progress: Option<Json>,
}

view! {
    /// A resource in a lease. Its data is here and nowhere else.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct LeasedResource {
        /// The pool of the resource.
        pub pool: PoolName,
        /// The id of the resource.
        pub id: ResourceId,
        /// The data of the resource, often secret; it is shown here and nowhere else.
        pub data: Json,
        /// The tags of the resource.
        pub tags: Vec<Tag>,
    }

    /// A lease as its holder sees it. Tokens are granted and given back in one step: their `lease` is `None`.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct LeaseView as "Lease" {
        /// The id of the lease, for extend and settle.
        pub lease: Option<String> as view::text(),
        /// A number that grows with every grant in the namespace; pass it to whatever the lease protects.
        pub fence: Fence,
        /// The id of the worker.
        #[serde(default)]
        pub holder: String,
        /// When the lease was granted.
        #[serde(default)]
        pub granted_at: Moment,
        /// When the lease is taken back unless it is extended.
        #[serde(default)]
        pub expires_at: Moment,
        /// When the run must be over; null without a timeout.
        #[serde(default)]
        pub deadline: Option<Moment>,
        /// The job to run; null if needs alone were asked for.
        #[serde(default)]
        pub job: Option<Box<JobView>>,
        /// The resources that it holds, with their data.
        #[serde(default)]
        pub resources: Vec<LeasedResource>,
        /// Names of the limits that it holds.
        #[serde(default)]
        pub limits: Vec<LimitName>,
    }

    /// A lease in a list, without the data of its resources.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct LeaseSummary {
        /// The id of the lease, for extend and settle.
        pub lease: String,
        /// A number that grows with every grant in the namespace; pass it to whatever the lease protects.
        pub fence: Fence,
        /// The id of the worker.
        pub holder: String,
        /// When the lease was granted.
        pub granted_at: Moment,
        /// When the lease is taken back unless it is extended.
        pub expires_at: Moment,
        /// When the run must be over; null without a timeout.
        pub deadline: Option<Moment>,
        /// The id of the job; null for a lease without a job.
        pub job: Option<JobId>,
        /// The queue of the job; null for a lease without a job.
        pub queue: Option<QueueName>,
        /// The resources that it holds, without data.
        #[serde(default)]
        pub resources: Vec<HeldResource>,
        /// Names of the limits that it holds.
        #[serde(default)]
        pub limits: Vec<LimitName>,
        /// Whether a cancel waits until its holder hears of it.
        #[serde(default)]
        pub cancel_requested: bool,
    }

    /// A resource that a lease holds.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct HeldResource {
        /// The pool of the resource.
        pub pool: PoolName,
        /// The id of the resource.
        pub id: ResourceId,
    }

    /// The answer to a lease call.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct Leased {
        /// What was granted; empty if nothing could be within the wait.
        pub leases: Vec<LeaseView> as view::items(view::named("Granted")),
        /// When the answer may change at the earliest; null if that is unknown.
        #[serde(default)]
        pub next_at: Option<Moment>,
        /// Why needs that were asked for alone were not granted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub reasons: Vec<Reason>,
    }

    /// One lease that was extended.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct ExtendedLease {
        /// The id of the lease.
        pub lease: String,
        /// When it is taken back now unless it is extended again.
        pub expires_at: Moment,
    }

    /// The answer to an extend call.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct Extended {
        /// Leases that live on.
        pub extended: Vec<ExtendedLease>,
        /// Ids of leases that are not held any more: stop their work.
        pub lost: Vec<String>,
        /// Ids of extended leases whose job is to be cancelled: stop its work, and settle it.
        pub cancel: Vec<String>,
        /// Those of `lost` that their holder had settled: a heartbeat crossed its settle. Never sent over HTTP, and not
        /// counted as lost.
        #[serde(skip)]
        pub crossed: Vec<String>,
    }
}

impl Extended {
    /// Lost leases that their holder had not settled.
    pub fn too_late(&self) -> impl Iterator<Item = &str> {
        self.lost.iter().filter(|lease| !self.crossed.contains(lease)).map(String::as_str)
    }
}

/// A duration or an end: of a snooze, a pause, a resource's rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Later {
    /// This long after the call arrived.
    For(Span),
    Until(Moment),
}

impl Later {
    /// The moment that it means for a call that arrived at `now`.
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
    /// The job is finished. A lease without a job takes this or `Released`.
    Succeeded {
        /// Any JSON of at most 256 KiB.
        result: Option<Json>,
    },
    /// The job is retried by its policy, or fails for good.
    Failed {
        /// The error text; its last 8 KiB are kept.
        error: String,
        /// Delay of the next attempt, instead of the backoff.
        retry_in: Option<Span>,
        /// No attempt follows, whatever the policy says.
        last: bool,
    },
    /// The job runs again later; this costs no attempt.
    Snoozed {
        /// When it runs again; at least 100 ms ahead.
        later: Later,
        /// Attempts start again from 0: a job that lives on by snoozing does not fail for good after the twentieth
        /// failure of its life.
        reset: bool,
    },
    /// The job is given back untouched, at its old place; this costs no attempt.
    Released,
}

impl Ending {
    pub fn outcome(&self) -> Outcome {
        match self {
            Ending::Succeeded { .. } => Outcome::Succeeded,
            Ending::Failed { .. } => Outcome::Failed,
            Ending::Snoozed { .. } => Outcome::Snoozed,
            Ending::Released => Outcome::Released,
        }
    }
}

/// The holder's verdict on a resource that it gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing special; the default.
    Ok,
    /// It rests before the next grant.
    Cool(Later),
    /// It is handed out no more until it is restored.
    Ban {
        /// For people, at most 8 KiB.
        reason: Option<String>,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceVerdict {
    pub pool: PoolName,
    pub id: ResourceId,
    pub verdict: Verdict,
}

/// The holder's report on a limit that it held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitVerdict {
    pub limit: LimitName,
    /// Pauses the limit for this long after the settle; a pause that ends later stays.
    pub pause: Option<Span>,
    /// Rate tokens that were really spent; corrects the cost that the grant booked.
    pub spent: Option<u32>,
}

/// One lease to settle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettleItem {
    pub lease: String,
    pub ending: Ending,
    /// Last progress report, at most 4 KiB; kept with the job like the report of an extend. `None` and JSON's `null`
    /// are no report. Without effect for a lease without a job.
    pub progress: Option<Json>,
    /// The job's schedule has its next moment this long after the settle: whole seconds. Without effect if the job has
    /// no schedule, or if the schedule is gone or got another timing since.
    pub next_in: Option<Span>,
    /// Verdicts on resources held; all others get `Verdict::Ok`.
    pub resources: Vec<ResourceVerdict>,
    /// Reports on limits held.
    pub limits: Vec<LimitVerdict>,
    /// Follow-up jobs, at most 100; stored in the same step as the settle, or neither is.
    pub push: Vec<NewJob>,
}

impl SettleItem {
    /// Ends a lease this way, with nothing beside it.
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

view! {
    /// The answer to one settle. A `next_at` of `Some(None)` is null in JSON. A code that this release does not know is
    /// read as `None`.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct SettledLease {
        /// The id of the lease.
        pub lease: String,
        /// Whether it was settled, by this call or by the same one before.
        pub ok: bool,
        /// Where the job stands after the settle; absent for a lease without a job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub state: Option<JobState>,
        /// When the job may run again; absent if it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub run_at: Option<Moment>,
        /// Why it was not settled: the lease is not held any more, or was settled otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "code_if_known")]
        pub code: Option<Code> as view::words(&["lease_lost", "already_settled"]),
        /// The next moment of the schedule of the job, after next_in; null if it has none any more.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
        pub next_at: Option<Option<Moment>>,
        /// The follow-up jobs, without payload.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub pushed: Vec<PushedJob>,
    }
}

/// A field that is present is `Some`, even if it is null.
fn said<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Option<Moment>>, D::Error> {
    Option::<Moment>::deserialize(d).map(Some)
}

fn code_if_known<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Code>, D::Error> {
    let text = Option::<String>::deserialize(d)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Kind of a [`Reason`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// It waits for other jobs.
    WaitingOn,
    /// It waits for a moment: a delay, a retry, a snooze.
    Scheduled,
    /// Other jobs go first.
    Behind,
    /// Its queue is paused.
    QueuePaused,
    /// Nobody asked for its queue for 60 s.
    NoWorker,
    /// All workers that ask for its queue are busy.
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
    /// Free units are reserved for a job that has waited longer.
    Reserved,
    /// It can never be granted with the present settings.
    NeverFits,
    /// A word of another release that this one does not know. Show it with the detail.
    #[serde(untagged)]
    Other(String),
}

impl ReasonKind {
    /// Those that this release knows, in the order of the contract.
    #[rustfmt::skip]
    pub const KNOWN: [ReasonKind; 14] = {
        use ReasonKind::*;
        [
            WaitingOn, Scheduled, Behind, QueuePaused, NoWorker, WorkersFull, Limit, Rate, Gap, LimitPaused, External,
            Pool, Reserved, NeverFits,
        ]
    };
}

view! {
    /// One thing that a job waits for.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Reason {
        /// What kind of thing is waited for.
        pub kind: ReasonKind,
        /// The limit, pool or queue; null if there is none.
        pub name: Option<String>,
        /// How many units of it are taken; null if nothing is counted.
        pub in_use: Option<u64>,
        /// How many units of it there are; null if nothing is counted.
        pub capacity: Option<u64>,
        /// Who holds it, at most 20.
        #[serde(default)]
        pub holders: Vec<Holder>,
        /// The place in that line, 1 for the next; null without a line.
        pub position: Option<u64>,
        /// How many jobs go first; null if unknown.
        pub ahead: Option<u64>,
        /// No sooner than this moment; null if a holder decides.
        pub earliest: Option<Moment>,
        /// The same in one sentence.
        #[serde(default)]
        pub detail: String,
    }

    /// The lease that runs a job.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct RunningLease {
        /// The id of the lease.
        pub lease: String,
        /// The id of the worker.
        pub holder: String,
        /// When the lease was granted.
        pub since: Moment,
        /// When it is taken back unless it is extended.
        pub expires_at: Moment,
    }

    /// The answer to an explain call.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Explained {
        /// The id of the job.
        pub id: JobId,
        /// Where the job stands.
        pub state: JobState,
        /// In one sentence, what the job waits for.
        #[serde(default)]
        pub summary: String,
        /// All that the job waits for; empty while it runs and when it has ended.
        #[serde(default)]
        pub reasons: Vec<Reason>,
        /// The lease of a running job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub lease: Option<RunningLease>,
    }
}

impl Reason {
    /// A reason with its sentence; the caller fills in the other fields.
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

impl Explained {
    /// Sums the reasons up in one sentence.
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
