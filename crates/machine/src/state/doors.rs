//! Doors: where those stand who lack a need, and what a lane keeps for itself. They never open by
//! themselves.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::{Slot, Which};
use tenure_core::time::Moment;

/// What stands at a door.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Entry {
    Bundle(Slot),
    Lane(Slot),
    Queue(Slot),
}

/// Where the waiters of one need stand.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum DoorKey {
    Limit(Slot),
    Pool(Slot, Which),
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
    pub marked: BTreeSet<(u64, Entry)>,
    pub order: BTreeSet<(i16, u64, u64, Slot)>,
    pub groups: HashMap<Slot, DoorGroup>,
    /// The entry that was opened and is not yet tried.
    pub out: Option<Entry>,
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
        !self.whole && self.marked.is_empty() && self.order.is_empty()
    }
}

/// See [`DoorKey`].
#[derive(Debug)]
pub(crate) struct Door {
    pub key: DoorKey,
    pub lines: BTreeMap<Slot, DoorLine>,
    /// A pass that runs: how many queues it still looks at. The cursor is kept when it ends, so
    /// that the next pass goes on behind the queue that was opened last.
    pub pass: usize,
    pub cursor: Option<Slot>,
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

/// What a lane keeps for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub lane: Slot,
    pub head: u64,
    pub since: Moment,
}
