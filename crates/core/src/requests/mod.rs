//! One request struct per operation, one reply each: the whole surface of an engine.
//!
//! The server makes them from HTTP, the remote engine makes HTTP of them, the other engines answer
//! them. Each operation has one name in every layer. Nothing here decides: a request that cannot be
//! met is refused by who answers it.

mod jobs;
mod leases;
mod limits;
mod pages;
mod patch;
mod pools;
mod queues;
mod resources;
mod stats;

pub use jobs::{
    BulkChange, CancelJob, CancelJobs, DeleteJob, DoneMany, ExplainJob, GetJob, JobFilter,
    ListJobs, PatchJob, Push, PushAnswer, Pushed, PushedId, RetryJob, RetryJobs, RunJobNow,
};
pub use leases::{Ask, Extend, ForceLease, Lease, ListLeases, Settle, Settled};
pub use limits::{
    DeleteLimit, GetLimit, ListLimits, ObserveLimit, PatchLimit, PauseLimit, PutLimit, ResumeLimit,
};
pub use pages::{Listed, Page};
pub use patch::{Patch, Put};
pub use pools::{DeletePool, GetPool, ListPools, PatchPool, PutPool};
pub use queues::{
    DeleteQueue, GetQueue, ListQueues, PatchQueue, PauseQueue, PutQueue, ResumeQueue,
};
pub use resources::{
    AddResources, BanResource, CoolResource, DeleteResource, GetResource, ListResources, Meant,
    PatchResource, RestoreResource, SyncResources,
};
pub use stats::{Audit, GetStats, ListWorkers, RunAudit, Stats, StoreStats, WorkerView};

use crate::job::JobView;
use crate::lease::{Explained, Extended, LeaseSummary, Leased};
use crate::refusal::Refusal;
use crate::settings::{LimitView, PoolView, QueueView, ResourceView, Synced};

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
