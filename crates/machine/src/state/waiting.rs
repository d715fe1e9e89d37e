//! Waiting calls and workers: calls, places in line, holders. Grants are never here; they are
//! leases.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::remembered::Ends;
use super::{HeldNeed, LaneId, QueueId, Seq, TakerId};
use tenure_core::bounds::WORKER_US;
use tenure_core::names::{FlowName, RequestId, WorkerId};
use tenure_core::time::{Moment, Span};

/// A job waiter: a waiting lease call for jobs.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub queues: Vec<QueueId>,
    pub max: usize,
    pub asker: Asker,
    pub until: Moment,
}

/// The caller of a lease call, and the ttl that it wants.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub worker: Option<WorkerId>,
    pub ttl: Span,
    pub request: Option<RequestId>,
    /// True if it is in the process that has the store open.
    pub local: bool,
}

/// A lock waiter: a waiting lease call for needs alone, in a lane of [`CALLERS`].
#[derive(Debug)]
pub(crate) struct Caller {
    pub taker: TakerId,
    pub lane: LaneId,
    pub arrival: u64,
    pub asker: Asker,
    /// The request id that its place is kept under.
    pub place: Option<RequestId>,
    pub since: Moment,
    pub until: Moment,
}

/// The thing whose end a call waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Awaited {
    /// The unfinished job of this row.
    Job(Seq),
    /// This flow, which has an unfinished member.
    Flow(FlowName),
}

/// A call that waits for an end.
#[derive(Clone, Debug)]
pub(crate) struct AwaitingCall {
    pub on: Awaited,
    pub until: Moment,
    /// True if it also looks at each progress report.
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

impl Ends for KeptPlace {
    fn ends_at(&self) -> Option<Moment> {
        Some(self.until)
    }
}

/// True if a call at that time still shows that its caller is there.
pub(crate) fn is_recent(at: Moment, now: Moment) -> bool {
    at.plus(Span::from_us(WORKER_US)) > now
}

/// A worker that called within the last minute.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    pub host: Option<String>,
    pub pid: Option<u32>,
    pub version: Option<String>,
    pub queues: BTreeMap<QueueId, Moment>,
    pub seen_at: Moment,
    /// Number of its lease calls that wait now.
    pub waiting: u32,
}

impl WorkerState {
    /// The queues that it asked for recently.
    pub(crate) fn asked_lately(&self, now: Moment) -> impl Iterator<Item = QueueId> + use<'_> {
        let lately = self.queues.iter().filter(move |(_, at)| is_recent(**at, now));
        lately.map(|(queue, _)| *queue)
    }
}
