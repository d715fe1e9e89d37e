//! Who waits and who works: calls, places in line, holders. What they are granted is never here, it
//! is a lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{HeldNeed, LaneId, QueueId, Seq, TakerId};
use tenure_core::bounds::WORKER_US;
use tenure_core::names::{FlowName, RequestId, WorkerId};
use tenure_core::time::{Moment, Span};

/// A waiting lease call for jobs.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub queues: Vec<QueueId>,
    pub max: usize,
    pub asker: Asker,
    pub until: Moment,
}

/// Who asks, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub worker: Option<WorkerId>,
    pub ttl: Span,
    pub request: Option<RequestId>,
    /// It is in the process that has the store open.
    pub local: bool,
}

/// A waiting lease call for needs alone; it stands in a lane of [`CALLERS`].
#[derive(Debug)]
pub(crate) struct Caller {
    pub taker: TakerId,
    pub lane: LaneId,
    pub arrival: u64,
    pub asker: Asker,
    /// The id that its place is kept under.
    pub place: Option<RequestId>,
    pub since: Moment,
    pub until: Moment,
}

/// What a call waits for the end of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Awaited {
    /// The job of this row; it is not finished.
    Job(Seq),
    /// This flow; a member of it is unfinished.
    Flow(FlowName),
}

/// A call that waits for an end.
#[derive(Clone, Debug)]
pub(crate) struct AwaitingCall {
    pub on: Awaited,
    pub until: Moment,
    /// It looks when a holder reports progress, too.
    pub progress: bool,
}

/// A place in line whose caller's connection broke or whose wait ended.
#[derive(Clone, Debug)]
pub(crate) struct KeptPlace {
    pub arrival: u64,
    pub since: Moment,
    pub needs: Arc<[HeldNeed]>,
    pub until: Moment,
}

/// What a holder holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Holding {
    pub leases: u64,
    /// Of these, jobs that are suspects; at most one at a time.
    pub suspects: u64,
}

/// Whether a call of then still says that its caller is there.
pub(crate) fn is_recent(at: Moment, now: Moment) -> bool {
    at.plus(Span::from_us(WORKER_US)) > now
}

/// Who called within the last minute.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    pub host: Option<String>,
    pub pid: Option<u32>,
    pub version: Option<String>,
    pub queues: BTreeMap<QueueId, Moment>,
    pub seen_at: Moment,
    /// Lease calls that wait now.
    pub waiting: u32,
}

impl WorkerState {
    /// The queues that it asked for lately.
    pub(crate) fn asked_lately(&self, now: Moment) -> impl Iterator<Item = QueueId> + use<'_> {
        let lately = self.queues.iter().filter(move |(_, at)| is_recent(**at, now));
        lately.map(|(queue, _)| *queue)
    }
}
