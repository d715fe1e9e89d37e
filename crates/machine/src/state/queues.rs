//! Queues, their priorities and the turns of their groups: the ready order. They never have the reason of a block.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::{BundleId, DoorId, HeldNeed, LimitId, Place, QueueId, TakerId, TurnId};
use tenure_core::bounds::FORGET_US;
use tenure_core::names::{Group, QueueName};
use tenure_core::settings::QueueSettings;
use tenure_core::time::{Moment, Span};

/// A group that shares the turns of a queue and a priority.
#[derive(Debug)]
pub(crate) struct GroupTurn {
    pub queue: QueueId,
    pub priority: i8,
    pub name: Option<Group>,
    /// Virtual time, `v` of its priority at first. A grant begins at this or at `v`, whichever is later, and moves it
    /// `SHARE_UNIT` / shares beyond that. The group with the least goes first.
    pub own: u64,
    pub open: BTreeSet<(u64, BundleId)>,
    /// Its key in the priority's order, while it is in it.
    pub ordered: Option<(u64, u64)>,
    /// Suspects have lane groups of their own: a worker that may take no suspect must not try theirs.
    pub bundles: HashMap<(Arc<[HeldNeed]>, bool), BundleId>,
}

/// One priority of a queue.
#[derive(Debug, Default)]
pub(crate) struct PriorityTurns {
    /// V: the virtual time of the last grant, or the highest finish since the priority was empty.
    pub v: u64,
    /// The highest finish (`own`) ever booked here: V rises to it when the priority is empty.
    pub top: u64,
    /// Number of jobs in its lanes, in any place.
    pub waiting: u64,
    pub groups: BTreeMap<Option<Group>, TurnId>,
    /// Groups with an open lane: virtual time, arrival of the head, group.
    pub open: BTreeSet<(u64, u64, TurnId)>,
    /// Groups without a lane, by virtual time: forgotten once it is not above `v`.
    pub idle: BTreeSet<(u64, TurnId)>,
    /// True once a group with a name was here: then the times have rows.
    pub grouped: bool,
}

impl PriorityTurns {
    /// True if there is an idle group whose time is not above V.
    pub(crate) fn has_void(&self) -> bool {
        self.idle.first().is_some_and(|(own, _)| *own <= self.v)
    }
}

/// Numbers of live jobs of a queue, and of blocked ones among `waiting`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub dependent: u64,
    pub scheduled: u64,
    pub waiting: u64,
    pub blocked: u64,
    pub running: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
}

impl Counts {
    /// Jobs that have not ended.
    pub(crate) fn unfinished(&self) -> u64 {
        self.dependent + self.scheduled + self.waiting + self.running
    }
}

/// A named line of jobs.
#[derive(Debug)]
pub(crate) struct Queue {
    /// `None`: the queue of lock waiters.
    pub name: Option<QueueName>,
    pub settings: QueueSettings,
    /// `Some(Moment::MAX)`: until it is resumed.
    pub paused_until: Option<Moment>,
    /// By negated priority, so that the first is the highest.
    pub priorities: BTreeMap<i16, PriorityTurns>,
    pub counts: Counts,
    /// Waiting lease calls that name it, in order.
    pub takers: BTreeSet<TakerId>,
    /// The time of the last lease call that named it.
    pub asked_at: Option<Moment>,
    /// The limit `queue:NAME`, if that is a valid name.
    pub limit: Option<LimitId>,
    /// `Parked`: its own limit is taken, and it is blocked in that wait queue as a whole.
    pub place: Place,
    pub offered_by: Option<DoorId>,
    /// True if it was deleted, and only finished jobs or waiting calls keep it here.
    pub hidden: bool,
    /// Occurrences of schedules that were skipped since it exists.
    pub skipped: u64,
    /// The time of its first use.
    pub since: Moment,
    /// The last push, lease call, end of a job or change of it.
    pub used_at: Moment,
    /// `used_at` in its row, which is written again an hour later.
    pub noted_at: Moment,
    /// Its timer in `queue_ends`: the time of the next check that it is still needed.
    pub look_at: Moment,
}

impl Queue {
    /// A queue without settings, jobs or job waiters; the queue of lock waiters has no name and is hidden.
    pub(crate) fn new(name: Option<QueueName>, limit: Option<LimitId>, since: Moment) -> Self {
        Queue {
            hidden: name.is_none(),
            skipped: 0,
            name,
            settings: QueueSettings::default(),
            paused_until: None,
            priorities: BTreeMap::default(),
            counts: Counts::default(),
            takers: BTreeSet::default(),
            asked_at: None,
            limit,
            place: Place::Open,
            offered_by: None,
            since,
            used_at: since,
            noted_at: since,
            look_at: since.plus(Span::from_us(FORGET_US)),
        }
    }

    /// True if it holds nothing: no job (finished ones that are kept count), no waiting call, no group whose time is
    /// remembered.
    pub(crate) fn is_idle(&self) -> bool {
        let c = &self.counts;
        c.unfinished() + c.succeeded + c.failed + c.cancelled == 0
            && self.takers.is_empty()
            && self.priorities.is_empty()
    }

    /// True if it was deleted and is unused. (The queue of lock waiters has no name and stays.)
    pub(crate) fn is_left_over(&self) -> bool {
        self.hidden && self.name.is_some() && self.is_idle()
    }
}
