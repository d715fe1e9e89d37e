//! Doors: where those stand who lack a need, and what a lane keeps for itself. They never open by
//! themselves.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::{BundleId, LaneId, LimitId, PoolId, QueueId, TurnId, Which};
use tenure_core::time::Moment;

/// What stands at a door.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Entry {
    Bundle(BundleId),
    Lane(LaneId),
    Queue(QueueId),
}

/// Where the waiters of one need stand.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum DoorKey {
    Limit(LimitId),
    Pool(PoolId, Which),
}

/// Entries of one group at a door, by arrival.
#[derive(Debug, Default)]
pub(crate) struct DoorGroup {
    /// Key in the order: negated priority, virtual time, first arrival.
    pub ordered: Option<(i16, u64, u64)>,
    pub tag: u64,
    pub entries: BTreeSet<(u64, Entry)>,
}

/// Entries of one queue at a door.
#[derive(Debug, Default)]
pub(crate) struct DoorLine {
    /// The queue as a whole, whose own limit this is.
    pub whole: bool,
    /// Lanes that reserve are first.
    pub reserving: BTreeSet<(u64, Entry)>,
    pub order: BTreeSet<(i16, u64, u64, TurnId)>,
    pub groups: HashMap<TurnId, DoorGroup>,
    /// The entry that was opened and is not yet tried.
    pub offered: Option<Entry>,
    /// Callers or jobs in it.
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

/// See [`DoorKey`].
#[derive(Debug)]
pub(crate) struct Door {
    pub key: DoorKey,
    pub lines: BTreeMap<QueueId, DoorLine>,
    /// A pass that runs: how many queues it still looks at. The cursor is kept when it ends, so
    /// that the next pass goes on behind the queue that was opened last.
    pub pass: usize,
    pub cursor: Option<QueueId>,
    /// Set while the door is in `pending`.
    pub pending: bool,
    /// When its first lanes may fit by time alone.
    pub timer: Option<Moment>,
    /// What can never fit as the settings are.
    pub misfits: BTreeSet<Entry>,
    /// Misfits that are tried again, since a setting changed.
    pub retry: BTreeSet<Entry>,
    /// Jobs and callers that stand here, misfits too.
    pub waiting: u64,
}

/// A lane that reserves: from when all its needs were reserved for it until its head is granted, or another head or a
/// changed setting ends it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reservation {
    pub lane: LaneId,
    /// Arrival of the head for which it reserves.
    pub head: u64,
    pub since: Moment,
}
