//! What each operation sends beside its method and its path. Queries and bodies come from the table of fields.
//!
//! A plan of a schedule is never sent: the server computes its own.

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::decode::{AsBody, Queried};
use tenure_core::requests::*;

use super::answer::{Reader, one_or_many, read};
use super::ask::{Body, OverHttp, Unsendable, json, set};

/// Requests whose paths say everything.
macro_rules! with_paths {
    ($($request:ident)*) => { $(impl OverHttp for $request {})* };
}

/// Requests with a query.
macro_rules! with_queries {
    ($($request:ident)*) => {
        $(impl OverHttp for $request {
            fn query(&self) -> Vec<(&'static str, String)> {
                self.pairs()
            }
        })*
    };
}

/// Requests with a body: the request itself, or what this function makes of it.
macro_rules! with_bodies {
    ($($request:ident $(as $body:expr)?;)*) => {
        $(impl OverHttp for $request {
            fn body(&self) -> Result<Option<Body>, Unsendable> {
                with_bodies!(@json self $($body)?)
            }
        })*
    };
    (@json $request:ident) => { json(&AsBody($request)) };
    (@json $request:ident $body:expr) => { json(&AsBody(&$body($request))) };
}

with_paths! {
    GetJob DeleteJob CancelJob RunJobNow ExplainJob CancelFlow ForceLease GetQueue DeleteQueue ResumeQueue GetLimit
    DeleteLimit ResumeLimit GetPool DeletePool GetResource DeleteResource RestoreResource GetSchedule DeleteSchedule
    ResumeSchedule GetStats
}

with_queries! {
    ListJobs GetResult ListFailures ListParents ListChildren ListFlows GetFlow ReadEvents ListLeases ListQueues
    ListLimits ListPools ListResources ListSchedules ListWorkers Audit
}

with_bodies! {
    PatchJob;
    RetryJob;
    CancelJobs;
    RetryJobs;
    DeleteJobs;
    Lease;
    Extend;
    Settle;
    PutQueue as PatchQueue::from;
    PatchQueue;
    PauseQueue;
    PutLimit as PatchLimit::from;
    PatchLimit;
    PauseLimit;
    ObserveLimit;
    PutPool as PatchPool::from;
    PatchPool;
    PatchResource;
    CoolResource;
    BanResource;
    PatchSchedule;
    PauseSchedule;
    RunScheduleNow;
}

impl OverHttp for Push {
    /// Always an array: one form of answer to read, and its status adds nothing to its items.
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(self.jobs.as_slice()))
    }
    fn minimal(&self) -> bool {
        self.answer == PushAnswer::Ids
    }
    fn reader(&self) -> Reader {
        match self.answer {
            PushAnswer::Whole => read::<Push>,
            PushAnswer::Ids => |_, body| Ok(Reply::Push(Pushed::Ids(one_or_many(body)?))),
        }
    }
}

impl OverHttp for AddResources {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(self.resources.as_slice()))
    }
}

impl OverHttp for SyncResources {
    fn query(&self) -> Vec<(&'static str, String)> {
        self.pairs()
    }
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let rows: Vec<_> = self.resources.iter().map(AsBody).collect();
        set(&rows, usize::MAX)
    }
}

impl OverHttp for PutSchedule {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(self.settings.as_ref()))
    }
}

impl OverHttp for SyncSchedules {
    fn query(&self) -> Vec<(&'static str, String)> {
        self.pairs()
    }
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let rows: Vec<_> = self.schedules.iter().map(AsBody).collect();
        set(&rows, ITEMS_MAX)
    }
}
