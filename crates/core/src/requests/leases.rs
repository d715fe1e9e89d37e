//! Requests about leases: to get, keep, end and list them. They never contain what a lease grants.

use super::{Answer, Effect, Page};
use crate::bounded::unbounded;
use crate::bounds::TTL_US_DEFAULT;
use crate::job::Need;
use crate::lease::{ExtendItem, Leased, SettleItem, SettledLease, Worker};
use crate::names::{LimitName, PoolName, QueueName, RequestId};
use crate::time::Span;

/// The goods that a lease call asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Jobs from the first of these queues that has one that may run.
    Jobs {
        /// 1 to 32 queues, tried in this order.
        queues: Vec<QueueName>,
        /// At most this many jobs, 1 to 1,000.
        max: usize,
    },
    /// Limits and pools without a job, 1 to 16.
    Needs(Vec<Need>),
}

/// Asks for a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    pub ask: Ask,
    /// How long to wait for the first grant, at most a minute.
    pub wait: Span,
    /// How long a lease lives without an extend, 1 s to 1 h; 30 s by default. Zero takes tokens of needs that are only
    /// rates, and leaves no lease.
    pub ttl: Span,
    pub worker: Worker,
    /// For repeating the call: the same id gets the same leases, and never a second grant.
    pub request_id: Option<RequestId>,
    /// The `request_id` of an earlier call of the same wait, whose place in line this call keeps.
    pub place: Option<RequestId>,
    /// True if the caller is in the process that has the store open, and dies with it: the next opening takes its
    /// leases back at once. False for a call over a connection. A store that belongs to no single process ignores it.
    pub local: bool,
}

impl Lease {
    /// Asks for up to `max` jobs of these queues, without a wait.
    pub fn jobs(queues: Vec<QueueName>, max: usize) -> Self {
        Lease::asking(Ask::Jobs { queues, max })
    }
    /// Asks for needs alone, without a wait.
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
            local: false,
        }
    }
}

impl Lease {
    /// The engine recognises a repeat only by its request id.
    pub(super) fn effect(&self) -> Effect {
        match self.request_id {
            Some(_) => Effect::Sets,
            None => Effect::Adds,
        }
    }
}

/// Extends leases: the heartbeat of their holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extend {
    /// At most 1,000 leases.
    pub leases: Vec<ExtendItem>,
    /// A new ttl for all of them, 1 s to 1 h; `None` keeps each lease's own.
    pub ttl: Option<Span>,
}

/// Ends leases, and may ask for the next ones in the same call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settle {
    /// At most 1,000 leases, ended in this order.
    pub settle: Vec<SettleItem>,
    /// A lease call that is made right after the settles, in the same step. If it is refused, the settles still stand.
    pub lease: Option<Box<Lease>>,
}

impl Settle {
    /// Ends these leases, and asks for no new ones.
    pub fn of(settle: Vec<SettleItem>) -> Self {
        Settle { settle, lease: None }
    }

    /// The engine recognises the lease call in it only by its request id, and the settles by their leases.
    pub(super) fn effect(&self) -> Effect {
        self.lease.as_ref().map_or(Effect::Sets, |lease| lease.effect())
    }
}

/// The answer to a settle call, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// One for each lease of the call.
    pub settled: Vec<SettledLease>,
    /// The answer to the lease call in it; `None` if it had none. A refusal concerns only that call, and its pointer
    /// begins with `/lease`: the settles are done.
    pub lease: Option<Answer<Leased>>,
}

/// Lists live leases, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListLeases {
    /// Leases of jobs of this queue.
    pub queue: Option<QueueName>,
    /// Leases that hold this limit.
    pub limit: Option<LimitName>,
    /// Leases that hold a resource of this pool.
    pub pool: Option<PoolName>,
    /// Leases of this worker, by its id.
    pub worker: Option<String>,
    pub page: Page,
}

/// Takes a lease back by force, like a reap, but without counting it in `lost`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForceLease {
    pub lease: String,
}

unbounded! { ForceLease }
