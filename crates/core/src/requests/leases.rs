//! Requests about leases: to get, keep, end and list them. They never hold what a lease grants.

use super::{Answer, Effect, Page};
use crate::at::At;
use crate::bounded::leases::{lease, progress, settle_item};
use crate::bounded::{Bounded, Spans, bounded_pages, unbounded};
use crate::bounds::{ITEMS_MAX, TTL_US_DEFAULT};
use crate::job::Need;
use crate::lease::{ExtendItem, Leased, SettleItem, SettledLease, Worker};
use crate::names::{LimitName, PoolName, QueueName, RequestId};
use crate::refusal::Refusal;
use crate::time::Span;

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
    /// The caller is in the process that has the store open, and dies with it: what it holds then is
    /// taken back at the next opening, at once. False for a call that came over a connection; a store
    /// that is no process's own does not look at it.
    pub local: bool,
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
            local: false,
        }
    }
}

impl Lease {
    /// The engine knows a repeat by its request id alone.
    pub(super) fn effect(&self) -> Effect {
        match self.request_id {
            Some(_) => Effect::Sets,
            None => Effect::Adds,
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

/// Ends leases, and may ask for the next ones in the same call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settle {
    /// At most 1,000.
    pub settle: Vec<SettleItem>,
    /// A lease call that is made right after the settles, in the same step. Whatever becomes of it, the settles stand.
    pub lease: Option<Box<Lease>>,
}

impl Settle {
    /// Ends these leases, and asks for none.
    pub fn of(settle: Vec<SettleItem>) -> Self {
        Settle { settle, lease: None }
    }

    /// The lease call in it is known by its request id alone; the settles are known by their leases.
    pub(super) fn effect(&self) -> Effect {
        self.lease.as_ref().map_or(Effect::Sets, |lease| lease.effect())
    }
}

/// The answer of a settle call, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// One for each lease that was to be settled.
    pub settled: Vec<SettledLease>,
    /// What the lease call in it was answered; `None` if there was none. A refusal is of that call alone, and its
    /// pointer begins with `/lease`: the settles are done.
    pub lease: Option<Answer<Leased>>,
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

impl Bounded for Lease {
    fn within_bounds(&self) -> Result<(), Refusal> {
        lease(self, At::Body)
    }
}

impl Bounded for Extend {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        let at = At::Member(&body, "leases");
        at.items(self.leases.len(), 0..=ITEMS_MAX)?;
        for (index, item) in self.leases.iter().enumerate() {
            progress(item.progress.as_ref(), &At::Item(&at, index)).map_err(|no| no.item(index))?;
        }
        self.ttl.map_or(Ok(()), |ttl| At::Member(&body, "ttl").span(ttl, Spans::TTL))
    }
}

impl Bounded for Settle {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        let at = At::Member(&body, "settle");
        at.items(self.settle.len(), 0..=ITEMS_MAX)?;
        for (index, item) in self.settle.iter().enumerate() {
            settle_item(item, At::Item(&at, index)).map_err(|no| no.item(index))?;
        }
        let at = At::Member(&body, "lease");
        self.lease.as_ref().map_or(Ok(()), |call| lease(call, at))
    }
}

unbounded! { ForceLease }

bounded_pages! { ListLeases }
