//! Lines: queues, the ready order of their lanes, wait queues, and the lanes that reserve.
//!
//! Nothing here knows if a lane may go: what a limit or a pool has to say comes from the namespace.

mod audit;
mod doors;
mod entries;
mod order;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::HashMap;

use super::slots::{Slots, indexed};
use super::sparse::{trim_map, trim_ring};
use super::{
    Bundle, CALLERS, Door, DoorId, Entry, GroupTurn, Lane, LaneId, LaneKey, Queue, QueueId,
    Reservation, TurnId,
};
use crate::time::timers::Timers;
use tenure_core::bounds::FORGET_AGAIN_US;
use tenure_core::names::{Group, QueueName};
use tenure_core::time::{Moment, Span};

pub(crate) use order::rank_of;

/// A group of a queue and a priority, by its names.
pub(crate) type TurnName = (QueueName, i16, Option<Group>);

/// All lines of a namespace.
#[derive(Debug)]
pub(crate) struct WaitingLines {
    queues: Slots<Queue>,
    queue_by_name: BTreeMap<QueueName, QueueId>,
    queue_pauses: Timers<QueueId>,
    /// The times at which queues are checked for being unused.
    queue_ends: Timers<QueueId>,
    /// Queues and negated priorities with more idle groups to forget than one step may: the next tick continues.
    void_turns: BTreeSet<(QueueId, i16)>,
    groups: Slots<GroupTurn>,
    bundles: Slots<Bundle>,
    lanes: Slots<Lane>,
    lane_by_key: HashMap<LaneKey, LaneId>,
    doors: Slots<Door>,
    /// Wait queues that are due, in the order in which they became so.
    pending: VecDeque<DoorId>,
    door_timers: Timers<DoorId>,
    /// Queues that may have something to grant now; served before the step ends.
    queues_to_serve: BTreeSet<QueueId>,
    /// Blocked entries, by the time at which each may reserve.
    impatient: BTreeSet<(Moment, Entry)>,
    reservations: BTreeMap<LaneId, Reservation>,
    /// The last place in the order of arrival.
    arrival: u64,
    /// Queues and groups whose rows the next drain writes, and groups whose rows it deletes.
    changed_queues: BTreeSet<QueueId>,
    changed_turns: BTreeSet<TurnId>,
    forgotten_turns: Vec<TurnName>,
}

indexed!(WaitingLines {
    queues: Queue,
    groups: GroupTurn,
    bundles: Bundle,
    lanes: Lane,
    doors: Door
});

impl WaitingLines {
    /// Those of a namespace without content, which had some before.
    pub fn none_after(arrival: u64) -> Self {
        let mut queues = Slots::default();
        let callers = queues.insert(Queue::new(None, None, Moment::ZERO));
        debug_assert_eq!(callers, CALLERS);
        WaitingLines {
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
            door_timers: Default::default(),
            queues_to_serve: Default::default(),
            impatient: Default::default(),
            reservations: Default::default(),
            arrival,
            changed_queues: Default::default(),
            changed_turns: Default::default(),
            forgotten_turns: Default::default(),
        }
    }

    /// True if no queue is known and no lock waiter stands anywhere.
    pub fn hold_nothing(&self) -> bool {
        self.queue_by_name.is_empty() && self.queues[CALLERS].priorities.is_empty()
    }

    /// True if there is nothing but the queue of lock waiters.
    pub fn are_none(&self) -> bool {
        self.queues.len() == 1
            && self.groups.len() + self.bundles.len() + self.lanes.len() + self.doors.len() == 0
            && self.queues[CALLERS].paused_until.is_none()
    }

    pub fn last_arrival(&self) -> u64 {
        self.arrival
    }

    /// The next arrival number.
    pub fn next_arrival(&mut self) -> u64 {
        self.arrival += 1;
        self.arrival
    }

    /// Restores the last arrival number.
    pub fn restore_arrival(&mut self, arrival: u64) {
        self.arrival = arrival;
    }

    // ---- What there is ----

    pub fn queue(&self, queue: QueueId) -> Option<&Queue> {
        self.queues.get(queue)
    }

    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues.iter()
    }

    pub fn queue_by_name(&self) -> &BTreeMap<QueueName, QueueId> {
        &self.queue_by_name
    }

    pub fn group(&self, group: TurnId) -> Option<&GroupTurn> {
        self.groups.get(group)
    }

    pub fn door(&self, door: DoorId) -> Option<&Door> {
        self.doors.get(door)
    }

    pub fn doors(&self) -> impl Iterator<Item = (DoorId, &Door)> {
        self.doors.iter()
    }

    pub fn lane(&self, lane: LaneId) -> Option<&Lane> {
        self.lanes.get(lane)
    }

    #[cfg(test)]
    pub fn groups(&self) -> impl Iterator<Item = (TurnId, &GroupTurn)> {
        self.groups.iter()
    }

    #[cfg(test)]
    pub fn bundles(&self) -> impl Iterator<Item = (super::BundleId, &Bundle)> {
        self.bundles.iter()
    }

    #[cfg(test)]
    pub fn lanes(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes.iter()
    }

    // ---- Queues ----

    /// Adds a queue whose name is free.
    pub fn add_queue(&mut self, name: QueueName, new: Queue) -> QueueId {
        let look_at = new.look_at;
        let queue = self.queues.insert(new);
        self.queue_ends.set(look_at, queue);
        self.queue_by_name.insert(name, queue);
        self.mark_queue(queue);
        queue
    }

    /// Removes a queue without entries in any line.
    pub fn remove_queue(&mut self, queue: QueueId, name: &QueueName) -> Option<Queue> {
        self.queues_to_serve.remove(&queue);
        self.queue_by_name.remove(name);
        let q = self.queues.remove(queue)?;
        self.queue_ends.clear(q.look_at, queue);
        Some(q)
    }

    /// Marks the row of a queue for a write.
    pub fn mark_queue(&mut self, queue: QueueId) {
        self.changed_queues.insert(queue);
    }

    /// The row of a deleted queue is gone.
    pub fn unmark_queue(&mut self, queue: QueueId) {
        self.changed_queues.remove(&queue);
    }

    /// Notes a use of a queue. Its row has the hour of it, so that few uses cost a write.
    pub fn use_queue(&mut self, queue: QueueId, now: Moment) {
        let q = &mut self.queues[queue];
        q.used_at = q.used_at.max(now);
        if q.used_at.since(q.noted_at) >= Span::from_us(FORGET_AGAIN_US) {
            self.mark_queue(queue);
        }
    }

    /// For calls after a finished job of a queue went, or a call that waited for it. A deleted, unused queue goes with
    /// the next tick; not at once, because the step that freed it may still name it.
    pub fn freed_queue(&mut self, queue: QueueId, now: Moment) {
        if self.queues.get(queue).is_some_and(Queue::is_left_over) {
            self.look_at_queue(queue, now);
        }
    }

    /// Sets the time of the next check that a queue is still needed.
    pub fn look_at_queue(&mut self, queue: QueueId, at: Moment) {
        let old = std::mem::replace(&mut self.queues[queue].look_at, at);
        self.queue_ends.clear(old, queue);
        self.queue_ends.set(at, queue);
    }

    /// The queue whose check is due first.
    pub fn take_queue_to_check(&mut self, now: Moment) -> Option<QueueId> {
        self.queue_ends.take_due(now).map(|(_, queue)| queue)
    }

    /// Pauses a queue, or ends its pause.
    pub fn pause_queue(&mut self, queue: QueueId, until: Option<Moment>) {
        let old = std::mem::replace(&mut self.queues[queue].paused_until, until);
        if let Some(old) = old {
            self.queue_pauses.clear(old, queue);
        }
        if let Some(until) = until.filter(|until| *until < Moment::MAX) {
            self.queue_pauses.set(until, queue);
        }
    }

    /// Ends the pause that is over first.
    pub fn end_pause(&mut self, now: Moment) -> bool {
        let Some(queue) = self.queue_pauses.first_due(now) else { return false };
        self.pause_queue(queue, None);
        self.mark_queue(queue);
        self.serve(queue);
        true
    }

    // ---- Work that is left ----

    /// True if a step must go on with the lines.
    pub fn have_work(&self) -> bool {
        self.have_pending() || !self.queues_to_serve.is_empty() || !self.void_turns.is_empty()
    }

    /// The earliest time at which a queue is checked for being unused.
    pub fn next_check(&self) -> Option<Moment> {
        self.queue_ends.next()
    }

    /// The earliest time at which time alone may open an entry.
    pub fn next_change(&self) -> Option<Moment> {
        self.door_timers.next().into_iter().chain(self.queue_pauses.next()).min()
    }

    /// A queue may have something to grant now.
    pub fn serve(&mut self, queue: QueueId) {
        self.queues_to_serve.insert(queue);
    }

    /// The next queue to serve.
    pub fn next_to_serve(&self) -> Option<QueueId> {
        self.queues_to_serve.first().copied()
    }

    /// A queue is being served.
    pub fn served(&mut self, queue: QueueId) {
        self.queues_to_serve.remove(&queue);
    }

    // ---- Rows ----

    /// Takes the marked queues.
    pub fn take_changed_queues(&mut self) -> BTreeSet<QueueId> {
        std::mem::take(&mut self.changed_queues)
    }

    /// Takes the groups that were booked.
    pub fn take_changed_turns(&mut self) -> BTreeSet<TurnId> {
        std::mem::take(&mut self.changed_turns)
    }

    /// Takes the names of forgotten groups.
    pub fn take_forgotten_turns(&mut self) -> Vec<TurnName> {
        std::mem::take(&mut self.forgotten_turns)
    }

    /// After the last row: no row is to be written.
    pub fn forget_changes(&mut self) {
        self.changed_queues.clear();
        self.changed_turns.clear();
        self.forgotten_turns.clear();
    }

    // ---- Upkeep ----

    pub fn trim(&mut self) {
        trim_map(&mut self.lane_by_key);
        trim_ring(&mut self.pending);
    }

    pub fn shrink_to_fit(&mut self) {
        self.lane_by_key.shrink_to_fit();
        self.pending.shrink_to_fit();
    }
}
