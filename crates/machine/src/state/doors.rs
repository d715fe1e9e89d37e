//! Wait queues (`Door`): entries that lack a need stand here, and lanes reserve capacity. They never open by
//! themselves.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::{BundleId, LaneId, LimitId, PoolId, QueueId, TurnId, Which};
use tenure_core::time::Moment;

/// An entry in a wait queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Entry {
    Bundle(BundleId),
    Lane(LaneId),
    Queue(QueueId),
}

/// The need that a wait queue belongs to.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum DoorKey {
    Limit(LimitId),
    Pool(PoolId, Which),
}

/// Entries of one group in a wait queue, by arrival.
#[derive(Debug, Default)]
pub(crate) struct DoorGroup {
    /// Key in the order: negated priority, virtual time, first arrival.
    pub ordered: Option<(i16, u64, u64)>,
    pub tag: u64,
    pub entries: BTreeSet<(u64, Entry)>,
}

/// Entries of one queue in a wait queue.
#[derive(Debug, Default)]
pub(crate) struct DoorLine {
    /// True if the whole queue is blocked here, on its own limit.
    pub whole: bool,
    /// Reserving lanes, which go first.
    pub reserving: BTreeSet<(u64, Entry)>,
    pub order: BTreeSet<(i16, u64, u64, TurnId)>,
    pub groups: HashMap<TurnId, DoorGroup>,
    /// The entry that was opened and not tried yet.
    pub offered: Option<Entry>,
    /// Number of jobs or lock waiters in it.
    pub waiting: u64,
}

impl DoorLine {
    /// The first in order.
    pub(crate) fn first(&self) -> Option<Entry> {
        let group = self.order.first()?.3;
        self.groups.get(&group)?.entries.first().map(|entry| entry.1)
    }
    pub(crate) fn is_empty(&self) -> bool {
        !self.whole && self.reserving.is_empty() && self.order.is_empty()
    }
}

/// The wait queue of one need.
#[derive(Debug)]
pub(crate) struct Door {
    pub key: DoorKey,
    pub lines: BTreeMap<QueueId, DoorLine>,
    /// Queues that the running pass still looks at. The cursor stays after a pass, so that the next pass continues
    /// behind the queue that was opened last.
    pub pass: usize,
    pub cursor: Option<QueueId>,
    /// True while the wait queue is in `pending`.
    pub pending: bool,
    /// The time at which its first lanes may fit by time alone.
    pub timer: Option<Moment>,
    /// Entries that are unsatisfiable under the current settings.
    pub misfits: BTreeSet<Entry>,
    /// Unsatisfiable entries that are tried again after a changed setting.
    pub retry: BTreeSet<Entry>,
    /// Number of jobs and lock waiters here, including unsatisfiable ones.
    pub waiting: u64,
}

/// A reserving lane: from the reservation of all its needs until its head is granted, or until another head or a
/// changed setting ends it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reservation {
    pub lane: LaneId,
    /// The arrival of the head for which it reserves.
    pub head: u64,
    pub since: Moment,
}
