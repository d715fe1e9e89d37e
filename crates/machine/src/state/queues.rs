//! Queues, their priorities and the turns of their groups: the ready order. They never say why
//! something is blocked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::{BundleId, DoorId, HeldNeed, LimitId, Place, QueueId, TakerId, TurnId};
use tenure_core::bounds::FORGET_US;
use tenure_core::names::{Group, QueueName};
use tenure_core::settings::QueueSettings;
use tenure_core::time::{Moment, Span};

/// Who shares the turns of a queue and a priority.
#[derive(Debug)]
pub(crate) struct GroupTurn {
    pub queue: QueueId,
    pub priority: i8,
    pub name: Option<Group>,
    /// Virtual time; see SEMANTICS 2.
    pub own: u64,
    pub open: BTreeSet<(u64, BundleId)>,
    /// Its key in the priority's order, while it is in it.
    pub ordered: Option<(u64, u64)>,
    /// Suspects have bundles of their own: who may have none must not try their bundle.
    pub bundles: HashMap<(Arc<[HeldNeed]>, bool), BundleId>,
}

/// One priority of a queue.
#[derive(Debug, Default)]
pub(crate) struct PriorityTurns {
    /// V: the virtual time of the last grant, or the highest finish since the priority was empty.
    pub v: u64,
    /// The highest finish (`own`) that was ever booked here: V rises to it when nobody waits.
    pub top: u64,
    /// Jobs in its lanes, wherever these stand.
    pub waiting: u64,
    pub groups: BTreeMap<Option<Group>, TurnId>,
    /// Groups with an open lane: virtual time, arrival of the head, group.
    pub open: BTreeSet<(u64, u64, TurnId)>,
    /// Groups without a lane, by virtual time: forgotten once it is not above `v`.
    pub idle: BTreeSet<(u64, TurnId)>,
    /// A group with a name was here: the times have rows.
    pub grouped: bool,
}

impl PriorityTurns {
    /// Whether there is an idle group whose time is not above V.
    pub(crate) fn has_void(&self) -> bool {
        self.idle.first().is_some_and(|(own, _)| *own <= self.v)
    }
}

/// Live jobs of a queue; what of `waiting` is blocked.
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

/// A named line of jobs.
#[derive(Debug)]
pub(crate) struct Queue {
    /// `None`: the queue of callers.
    pub name: Option<QueueName>,
    pub settings: QueueSettings,
    /// `Some(Moment::MAX)`: until it is resumed.
    pub paused_until: Option<Moment>,
    /// By negated priority, so that the first is the highest.
    pub priorities: BTreeMap<i16, PriorityTurns>,
    pub counts: Counts,
    /// Waiting lease calls that name it, in order.
    pub takers: BTreeSet<TakerId>,
    /// When it was last asked for.
    pub asked_at: Option<Moment>,
    /// The limit `queue:NAME`, if such a name can be.
    pub limit: Option<LimitId>,
    /// `Parked`: its own limit is taken; it stands at that door as a whole.
    pub place: Place,
    pub offered_by: Option<DoorId>,
    /// It was deleted, and only finished jobs or who waits for it keep it here.
    pub hidden: bool,
    /// Moments of schedules that were skipped since it is there.
    pub skipped: u64,
    /// When it was first used.
    pub since: Moment,
    /// The last push, lease call, end of a job or change of it.
    pub used_at: Moment,
    /// `used_at` as its row has it; written again when it is an hour old.
    pub noted_at: Moment,
    /// Its timer in `queue_ends`: when it is looked at whether anybody still needs it.
    pub look_at: Moment,
}

impl Queue {
    /// A queue without settings, jobs or takers; the queue of callers has no name and is hidden.
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

    /// Whether it holds nothing: no job (a finished one that is kept counts), no caller that waits
    /// for it, no group whose time is still remembered.
    pub(crate) fn is_idle(&self) -> bool {
        let c = &self.counts;
        c.waiting + c.scheduled + c.running + c.succeeded + c.failed + c.cancelled == 0
            && self.takers.is_empty()
            && self.priorities.is_empty()
    }

    /// Whether it was deleted and nobody needs it any more. (The queue of callers has no name and stays.)
    pub(crate) fn is_left_over(&self) -> bool {
        self.hidden && self.name.is_some() && self.is_idle()
    }
}
