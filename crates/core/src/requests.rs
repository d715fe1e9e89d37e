//! One request struct per operation, one reply each: the whole surface of an engine.
//!
//! The server makes them from HTTP, the remote engine makes HTTP of them, the other engines answer
//! them. Each operation has one name in every layer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bounds::{LIST_DEFAULT, TTL_US_DEFAULT};
use crate::job::{JobState, JobView, Labels, Need, NewJob, PushedJob, Retry};
use crate::lease::{
    Explained, ExtendItem, Extended, Later, LeaseSummary, Leased, SettleItem, SettledLease, Worker,
};
use crate::names::{
    Group, JobId, JobRef, LimitName, PoolName, QueueName, RequestId, ResourceId, Tag, WorkerId,
};
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::settings::{
    LimitSettings, LimitView, NewResource, Pick, PoolSettings, PoolView, QueueSettings, QueueView,
    Rate, ResourceView, Synced,
};
use crate::time::{Moment, Span};

/// What a patch does to one field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Patch<T> {
    /// It is not named.
    #[default]
    Keep,
    /// It is `null`: back to the default.
    Reset,
    /// It is given.
    Set(T),
}

impl<T> Patch<T> {
    /// Applies it to an optional field.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Patch::Keep => {}
            Patch::Reset => *field = None,
            Patch::Set(value) => *field = Some(value),
        }
    }
    /// Applies it to a field that has a default.
    pub fn apply_or_default(self, field: &mut T)
    where
        T: Default,
    {
        match self {
            Patch::Keep => {}
            Patch::Reset => *field = T::default(),
            Patch::Set(value) => *field = value,
        }
    }
    /// Whether the field is named.
    pub fn is_named(&self) -> bool {
        !matches!(self, Patch::Keep)
    }
}

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

/// Which jobs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// In one of these states; empty = any.
    pub states: Vec<JobState>,
    /// Of this kind.
    pub kind: Option<String>,
    /// With this label.
    pub label: Option<(String, String)>,
}

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// At most so many, 1 to 1,000.
    pub max: usize,
    /// The `next` of the page before.
    pub cursor: Option<String>,
}

impl Default for Page {
    fn default() -> Self {
        Page { max: LIST_DEFAULT, cursor: None }
    }
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

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// Only a part was looked at; go on with `next`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
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

/// Makes a scheduled job ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunJobNow {
    /// Which.
    pub job: JobRef,
}

/// Calls off those that match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CancelJobs {
    /// Which.
    pub filter: JobFilter,
    /// At most so many, 1 to 1,000.
    pub max: usize,
}

/// Makes those that match ready again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryJobs {
    /// Which.
    pub filter: JobFilter,
    /// At most so many, 1 to 1,000.
    pub max: usize,
}

/// What a call on many did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoneMany {
    /// So many were changed.
    pub done: u64,
    /// There may be more.
    pub more: bool,
}

/// Says what a job waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainJob {
    /// Which.
    pub job: JobRef,
}

/// What a lease call asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Jobs, from the first of these queues that has one that may go.
    Jobs {
        /// 1 to 32, in order.
        queues: Vec<QueueName>,
        /// At most so many, 1 to 1,000.
        max: usize,
    },
    /// Needs alone.
    Needs(Vec<Need>),
}

/// Asks for a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// For what.
    pub ask: Ask,
    /// How long to wait for the first grant.
    pub wait: Span,
    /// How long a lease lives without an extend; zero with needs that are only rates.
    pub ttl: Span,
    /// Who asks.
    pub worker: Worker,
    /// By which the call can be repeated.
    pub request_id: Option<RequestId>,
    /// A place in line that an earlier call of the same wait took; its `request_id`.
    pub place: Option<RequestId>,
}

impl Lease {
    /// Asks for up to `max` jobs of these queues, at once or not at all.
    pub fn jobs(queues: Vec<QueueName>, max: usize) -> Self {
        Lease::asking(Ask::Jobs { queues, max })
    }
    /// Asks for needs alone, at once or not at all.
    pub fn needs(needs: Vec<Need>) -> Self {
        Lease::asking(Ask::Needs(needs))
    }
    fn asking(ask: Ask) -> Self {
        Lease {
            ask,
            wait: Span::ZERO,
            ttl: Span::from_us(TTL_US_DEFAULT),
            worker: Worker::default(),
            request_id: None,
            place: None,
        }
    }
}

/// Keeps leases alive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extend {
    /// At most 1,000.
    pub leases: Vec<ExtendItem>,
    /// A new ttl; `None` keeps each lease's own.
    pub ttl: Option<Span>,
}

/// Ends leases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settle {
    /// At most 1,000.
    pub settle: Vec<SettleItem>,
}

/// The answer of a settle call, in its order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// One each.
    pub settled: Vec<SettledLease>,
}

/// Lists live leases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListLeases {
    /// Of jobs of this queue.
    pub queue: Option<QueueName>,
    /// That hold this limit.
    pub limit: Option<LimitName>,
    /// That hold a resource of this pool.
    pub pool: Option<PoolName>,
    /// Of this holder.
    pub worker: Option<String>,
    /// The page.
    pub page: Page,
}

/// Takes a lease back by force: as a reap, but not counted in `lost`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForceLease {
    /// Which.
    pub lease: String,
}

/// Lists queues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListQueues {
    /// The page.
    pub page: Page,
}

/// Shows a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueue {
    /// Which.
    pub queue: QueueName,
}

/// Replaces all settings of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutQueue {
    /// Which.
    pub queue: QueueName,
    /// Settings.
    pub settings: QueueSettings,
}

/// Changes the named settings of a queue; makes it if it is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchQueue {
    /// Which.
    pub queue: QueueName,
    /// Needs of a job that states none.
    pub needs: Patch<Vec<Need>>,
    /// Retry of a job that states none.
    pub retry: Patch<Retry>,
    /// Timeout of a job that states none.
    pub timeout: Patch<Span>,
    /// Retain of a job that states none.
    pub retain: Patch<Span>,
    /// Most jobs that may wait.
    pub max_waiting: Patch<u32>,
    /// Turns of each group.
    pub shares: Patch<BTreeMap<Group, u32>>,
}

/// Forgets a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteQueue {
    /// Which.
    pub queue: QueueName,
}

/// Grants nothing of a queue for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseQueue {
    /// Which; made if it is not there.
    pub queue: QueueName,
    /// Until when; `None` = until it is resumed.
    pub until: Option<Later>,
}

/// Ends a pause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeQueue {
    /// Which.
    pub queue: QueueName,
}

/// The answer of a put: what is there now, and whether it is new.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put<T> {
    /// What is there now.
    pub view: T,
    /// It was not there.
    pub created: bool,
}

/// Lists limits that are set or in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListLimits {
    /// The page.
    pub page: Page,
}

/// Shows a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetLimit {
    /// Which.
    pub limit: LimitName,
}

/// Replaces all settings of a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutLimit {
    /// Which.
    pub limit: LimitName,
    /// Settings.
    pub settings: LimitSettings,
}

/// Changes the named settings of a limit; makes it if it is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchLimit {
    /// Which.
    pub limit: LimitName,
    /// How many at once.
    pub concurrency: Patch<u32>,
    /// How many per period.
    pub rate: Patch<Rate>,
    /// Rest of each permit.
    pub gap: Patch<Span>,
}

/// Forgets a limit's settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteLimit {
    /// Which.
    pub limit: LimitName,
}

/// Grants nothing of a limit for a while; the later moment holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseLimit {
    /// Which; never a template.
    pub limit: LimitName,
    /// Until when. There is no pause without end: a limit that is to grant nothing until further
    /// notice is set to a concurrency of 0.
    pub until: Later,
}

/// Ends a pause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeLimit {
    /// Which.
    pub limit: LimitName,
}

/// Says how many permits are taken by work that Tenure does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObserveLimit {
    /// Which.
    pub limit: LimitName,
    /// So many.
    pub external: u32,
    /// For so long; `None` = until the next observation.
    pub hold: Option<Span>,
}

/// Lists pools.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListPools {
    /// The page.
    pub page: Page,
}

/// Shows a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetPool {
    /// Which.
    pub pool: PoolName,
}

/// Replaces all settings of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutPool {
    /// Which.
    pub pool: PoolName,
    /// Settings.
    pub settings: PoolSettings,
}

/// Changes the named settings of a pool; makes it if it is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchPool {
    /// Which.
    pub pool: PoolName,
    /// Rest after a dead holder.
    pub quarantine: Patch<Span>,
    /// Rest after every use.
    pub cooldown: Patch<Span>,
    /// Grants per period of one resource.
    pub rate: Patch<Rate>,
    /// Grants after which a resource is banned.
    pub max_uses: Patch<u32>,
    /// Which of the free ones.
    pub pick: Patch<Pick>,
}

/// Forgets a pool that nobody holds anything of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletePool {
    /// Which.
    pub pool: PoolName,
}

/// Whether a set that retires most of a pool is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Meant {
    /// Refuse an empty set, and one that retires more than half.
    #[default]
    Ask,
    /// It is meant.
    Yes,
}

/// Makes this the whole set of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncResources {
    /// Which; made if it is not there.
    pub pool: PoolName,
    /// The whole set, of any length.
    pub resources: Vec<NewResource>,
    /// `?force`.
    pub meant: Meant,
    /// `?version`: one below the last is refused.
    pub version: Option<u64>,
}

/// Adds resources, or updates them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddResources {
    /// Which pool.
    pub pool: PoolName,
    /// 1 to 1,000.
    pub resources: Vec<NewResource>,
}

/// Lists the resources of a pool, without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListResources {
    /// Which pool.
    pub pool: PoolName,
    /// The page.
    pub page: Page,
}

/// Shows a resource, without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
}

/// Changes the named fields of a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
    /// Often secret.
    pub data: Patch<Json>,
    /// Tags.
    pub tags: Patch<Vec<Tag>>,
    /// Holders at once.
    pub slots: Patch<u32>,
}

/// Retires a resource: it goes when it is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
}

/// Lets a resource rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoolResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
    /// Until when.
    pub until: Later,
}

/// Hands a resource out no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BanResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
    /// Why.
    pub reason: Option<String>,
}

/// Makes a cooling or banned resource available again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoreResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
}

/// Lists who called within the last minute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListWorkers {
    /// The page.
    pub page: Page,
}

/// A worker as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its host.
    pub host: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Its version.
    pub version: Option<String>,
    /// Queues it asked for.
    pub queues: Vec<QueueName>,
    /// Leases it holds.
    pub leases: u64,
    /// When it called last.
    pub last_seen_at: Moment,
}

/// Totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GetStats;

/// Where state lives, and how much of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoreStats {
    /// `embedded`, `redis`.
    pub kind: String,
    /// Bytes on disk or in the store.
    pub bytes: u64,
}

/// Totals of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Jobs by state.
    pub jobs: BTreeMap<JobState, u64>,
    /// Jobs by queue and state.
    pub queues: BTreeMap<QueueName, BTreeMap<JobState, u64>>,
    /// Live leases.
    pub leases: u64,
    /// Since when the oldest ready job is ready.
    pub oldest_ready_at: Option<Moment>,
    /// Where state lives.
    pub store: StoreStats,
}

/// Checks that what is cached agrees with what is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunAudit;

/// What an audit found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Audit {
    /// Nothing is wrong.
    pub ok: bool,
    /// Things that were checked.
    pub checked: u64,
    /// What is wrong, a sentence each.
    pub faults: Vec<String>,
}

/// An operation of an engine: its request, and the reply it has.
pub trait Operation: Into<Request> + Send + 'static {
    /// What it answers.
    type Reply: Send + 'static;
    /// Its name, the same in every layer.
    const NAME: &'static str;
    /// Takes the reply out; `None` if an engine answered another operation.
    fn reply(reply: Reply) -> Option<Self::Reply>;
}

macro_rules! operations {
    ($($name:ident => $reply:ty, $label:literal;)*) => {
        /// Any request.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Request { $($name($name)),* }

        /// Any reply; its variant is that of its request.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Reply { $($name($reply)),* }

        impl Request {
            /// The operation's name, the same in every layer.
            pub fn name(&self) -> &'static str {
                match self { $(Request::$name(_) => $label),* }
            }
        }
        $(
            impl From<$name> for Request {
                fn from(request: $name) -> Request { Request::$name(request) }
            }
            impl Operation for $name {
                type Reply = $reply;
                const NAME: &'static str = $label;
                fn reply(reply: Reply) -> Option<$reply> {
                    match reply { Reply::$name(reply) => Some(reply), _ => None }
                }
            }
        )*
    };
}

operations! {
    Push => Pushed, "push";
    GetJob => Box<JobView>, "get_job";
    ListJobs => Listed<JobView>, "list_jobs";
    PatchJob => Box<JobView>, "patch_job";
    DeleteJob => (), "delete_job";
    CancelJob => Box<JobView>, "cancel_job";
    RetryJob => Box<JobView>, "retry_job";
    RunJobNow => Box<JobView>, "run_job_now";
    CancelJobs => DoneMany, "cancel_jobs";
    RetryJobs => DoneMany, "retry_jobs";
    ExplainJob => Explained, "explain_job";
    Lease => Leased, "lease";
    Extend => Extended, "extend";
    Settle => Settled, "settle";
    ListLeases => Listed<LeaseSummary>, "list_leases";
    ForceLease => (), "force_lease";
    ListQueues => Listed<QueueView>, "list_queues";
    GetQueue => QueueView, "get_queue";
    PutQueue => Put<QueueView>, "put_queue";
    PatchQueue => Put<QueueView>, "patch_queue";
    DeleteQueue => (), "delete_queue";
    PauseQueue => QueueView, "pause_queue";
    ResumeQueue => QueueView, "resume_queue";
    ListLimits => Listed<LimitView>, "list_limits";
    GetLimit => LimitView, "get_limit";
    PutLimit => Put<LimitView>, "put_limit";
    PatchLimit => Put<LimitView>, "patch_limit";
    DeleteLimit => (), "delete_limit";
    PauseLimit => LimitView, "pause_limit";
    ResumeLimit => LimitView, "resume_limit";
    ObserveLimit => LimitView, "observe_limit";
    ListPools => Listed<PoolView>, "list_pools";
    GetPool => PoolView, "get_pool";
    PutPool => Put<PoolView>, "put_pool";
    PatchPool => Put<PoolView>, "patch_pool";
    DeletePool => (), "delete_pool";
    SyncResources => Synced, "sync_resources";
    AddResources => Vec<ResourceView>, "add_resources";
    ListResources => Listed<ResourceView>, "list_resources";
    GetResource => ResourceView, "get_resource";
    PatchResource => ResourceView, "patch_resource";
    DeleteResource => (), "delete_resource";
    CoolResource => ResourceView, "cool_resource";
    BanResource => ResourceView, "ban_resource";
    RestoreResource => ResourceView, "restore_resource";
    ListWorkers => Listed<WorkerView>, "list_workers";
    GetStats => Stats, "get_stats";
    RunAudit => Audit, "audit";
}

/// What a request that was refused is answered with.
pub type Answer<T> = Result<T, Refusal>;
