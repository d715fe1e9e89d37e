//! Live leases, what each holds, and what is remembered of those that ended. They never outlive
//! `until`.

use super::{LimitId, LiveJobId, LiveResourceId, PoolId, Seq};
use tenure_core::job::Outcome;
use tenure_core::lease::Fence;
use tenure_core::names::{RequestId, WorkerId};
use tenure_core::time::{Moment, Span};

/// A resource that a lease holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HeldRes {
    pub pool: PoolId,
    pub resource: LiveResourceId,
}

/// Permits and tokens that a lease holds of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldLimit {
    pub limit: LimitId,
    pub weight: u32,
    /// Tokens booked, 0 if there was no rate.
    pub cost: u32,
}

/// A live lease.
#[derive(Debug)]
pub(crate) struct LeaseState {
    pub fence: Fence,
    /// The job's slot; `None` if needs alone are held.
    pub job: Option<LiveJobId>,
    /// The job's row number; 0 without a job.
    pub seq: Seq,
    pub holder: Option<WorkerId>,
    pub granted_at: Moment,
    pub ttl: Span,
    pub expires_at: Moment,
    pub deadline: Option<Moment>,
    pub limits: Vec<HeldLimit>,
    pub resources: Vec<HeldRes>,
    pub request: Option<RequestId>,
    /// Its holder extended it at least once.
    pub extended: bool,
    /// A repeat of its call was answered with it: an undo of the first answer no longer counts. Not
    /// a row, since whoever undoes dies with the process.
    pub answered_again: bool,
    /// The last sign of life.
    pub seen_at: Moment,
    /// It was granted to the process that had the store open.
    pub local: bool,
    /// Its job had never run before: if nobody receives it, the job still has not.
    pub first: bool,
    /// That process ended with it: set at an opening, and the first tick takes it back.
    pub orphaned: bool,
    /// The run of the holder before was listed at its grant, and is its run. Only in memory: after a start that run counts
    /// as work outside until it must be shown.
    pub goes_on: bool,
}

/// What a request id was granted.
#[derive(Debug)]
pub(crate) struct PastRequest {
    pub fences: Vec<Fence>,
    pub until: Moment,
}

/// A lease without a job, after its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stub {
    pub outcome: Outcome,
    pub until: Moment,
}
