//! A namespace as a whole. It holds the structures and never acts on them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::HashMap;

use super::{
    Bundle, CALLERS, Dependencies, Door, DoorId, Entry, Flows, GroupTurn, Jobs, Lane, LaneId,
    LaneKey, Leases, Limits, Outbox, Pools, Queue, QueueId, Reservation, Schedules, TurnId,
    Waiters, Workers,
};
use crate::state::slots::Slots;
use crate::time::timers::Timers;
use tenure_core::names::{Group, LimitName, Namespace, QueueName};
use tenure_core::time::{Moment, Span};

/// The whole state of one namespace.
#[derive(Debug)]
pub(crate) struct Space {
    pub name: Namespace,
    pub patience: Span,
    /// The last call of any kind except ticks; a start counts as one.
    pub used_at: Moment,
    // Time.
    pub last: Moment,
    pub pulse: Moment,
    pub deaf_at: Moment,
    pub behind: Option<Span>,
    /// Set while the store may have lost answered grants: the end of that time, as far as it is known.
    pub recovers_until: Option<Moment>,
    /// The time at which the last recovery began; zero without any.
    pub recovered_at: Moment,
    // Numbers.
    pub arrival: u64,
    pub jobs: Jobs,
    /// The earliest time at which an archived job may have to go.
    pub purge_at: Option<Moment>,
    // Lines.
    pub queues: Slots<Queue>,
    pub queue_by_name: BTreeMap<QueueName, QueueId>,
    pub queue_pauses: Timers<QueueId>,
    /// The times at which queues are checked for being unused.
    pub queue_ends: Timers<QueueId>,
    /// Queues and negated priorities with more idle groups to forget than one step may: the next tick continues.
    pub void_turns: BTreeSet<(QueueId, i16)>,
    pub groups: Slots<GroupTurn>,
    pub bundles: Slots<Bundle>,
    pub lanes: Slots<Lane>,
    pub lane_by_key: HashMap<LaneKey, LaneId>,
    pub doors: Slots<Door>,
    pub pending: VecDeque<DoorId>,
    pub families: VecDeque<(String, Option<LimitName>)>,
    pub door_timers: Timers<DoorId>,
    /// Queues that may have something to grant now; served before the step ends.
    pub queues_to_serve: BTreeSet<QueueId>,
    pub impatient: BTreeSet<(Moment, Entry)>,
    pub reservations: BTreeMap<LaneId, Reservation>,
    // Scarce things.
    pub limits: Limits,
    pub pools: Pools,
    pub schedules: Schedules,
    pub dependencies: Dependencies,
    pub flows: Flows,
    pub leases: Leases,
    // Waiting calls and workers.
    pub waiters: Waiters,
    pub workers: Workers,
    pub outbox: Outbox,
    // Changed lines.
    pub dirty_turns: BTreeSet<TurnId>,
    pub dirty_queues: BTreeSet<QueueId>,
    pub forgotten_turns: Vec<(QueueName, i16, Option<Group>)>,
}

impl Space {
    /// A namespace without content.
    pub(crate) fn new(name: Namespace, patience: Span) -> Self {
        let mut queues = Slots::default();
        let callers = queues.insert(Queue::new(None, None, Moment::ZERO));
        debug_assert_eq!(callers, CALLERS);
        Space {
            name,
            patience,
            used_at: Moment::ZERO,
            last: Moment::ZERO,
            pulse: Moment::ZERO,
            deaf_at: Moment::ZERO,
            behind: None,
            recovers_until: None,
            recovered_at: Moment::ZERO,
            arrival: 0,
            jobs: Default::default(),
            purge_at: None,
            queues,
            queue_by_name: Default::default(),
            queue_pauses: Default::default(),
            queue_ends: Default::default(),
            void_turns: Default::default(),
            groups: Default::default(),
            bundles: Default::default(),
            lanes: Default::default(),
            lane_by_key: Default::default(),
            doors: Default::default(),
            pending: Default::default(),
            families: Default::default(),
            door_timers: Default::default(),
            queues_to_serve: Default::default(),
            impatient: Default::default(),
            reservations: Default::default(),
            limits: Default::default(),
            pools: Default::default(),
            schedules: Default::default(),
            dependencies: Default::default(),
            flows: Default::default(),
            leases: Default::default(),
            waiters: Default::default(),
            workers: Default::default(),
            outbox: Default::default(),
            dirty_turns: Default::default(),
            dirty_queues: Default::default(),
            forgotten_turns: Default::default(),
        }
    }
}
