//! A live lease with its contents, and the record of an ended one. Data without actions.

use crate::state::remembered::Ends;
use crate::state::{LimitId, LiveJobId, LiveResourceId, PoolId, Seq};
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

/// Permits and tokens of a limit that a lease holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldLimit {
    pub limit: LimitId,
    pub weight: u32,
    /// Booked tokens; 0 if there was no rate.
    pub cost: u32,
}

/// A lease that has not ended; its fence is its key.
#[derive(Debug)]
pub(crate) struct LeaseState {
    pub fence: Fence,
    /// The job's slot; `None` for needs alone.
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
    /// True if its holder extended it at least once.
    pub extended: bool,
    /// True if a repeat of its call was answered with it: an undo of the first answer no longer counts. Not in a row,
    /// because a caller of undo dies with the process.
    pub answered_again: bool,
    /// The time of the last sign of life.
    pub seen_at: Moment,
    /// True if its holder is in the process that had the store open.
    pub local: bool,
    /// True for the first run of its job: if the grant never arrives, the job has not started.
    pub first: bool,
    /// True if that process ended with it: set at an opening; the first tick takes the lease back.
    pub orphaned: bool,
    /// True if the run of the former holder was listed at its grant, and became its run. Only in memory: after a start
    /// that run counts as outside work until it must be shown.
    pub goes_on: bool,
}

impl LeaseState {
    /// The end of a ttl that begins now. A run with a deadline keeps its lease a quarter of the ttl longer at most.
    pub fn end_of_ttl(&self, now: Moment) -> Moment {
        let latest = self.deadline.map(|at| at.plus(Span::from_us(self.ttl.us() / 4)));
        now.plus(self.ttl).min(latest.unwrap_or(Moment::MAX))
    }
}

/// The grants of a request id.
#[derive(Debug)]
pub(crate) struct PastRequest {
    pub fences: Vec<Fence>,
    pub until: Moment,
}

/// A tombstone: a lease without a job, after its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone {
    pub outcome: Outcome,
    pub until: Moment,
}

impl Ends for PastRequest {
    fn ends_at(&self) -> Option<Moment> {
        Some(self.until)
    }
}

impl Ends for Tombstone {
    fn ends_at(&self) -> Option<Moment> {
        Some(self.until)
    }
}

/// Numbers of a holder's jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Holding {
    pub leases: u64,
    /// Suspects among these; at most one at a time.
    pub suspects: u64,
}
