//! Wait queues: due ones, their passes, and the entries that they open for a try.
//!
//! It marks a wait queue as due, and never decides if an entry may be served: the passes of the namespace do.

use super::{WaitingLines, rank_of};
use crate::mutant::{Mutant, forgets};
use crate::state::{Door, DoorId, DoorKey, Entry, LaneId, QueueId};
use tenure_core::time::Moment;

impl WaitingLines {
    // ---- Wait queues ----

    /// Adds a wait queue to a need that has none.
    pub fn add_door(&mut self, key: DoorKey) -> DoorId {
        self.doors.insert(Door {
            key,
            lines: Default::default(),
            pass: 0,
            cursor: None,
            pending: false,
            timer: None,
            misfits: Default::default(),
            retry: Default::default(),
            waiting: 0,
        })
    }

    /// Drops the parts of a wait queue that hold no entry. Returns the need if the whole wait queue is gone.
    pub fn tidy_door(&mut self, door: DoorId, queue: QueueId) -> Option<DoorKey> {
        self.tidy_door_line(door, queue);
        let d = &self.doors[door];
        if !d.lines.is_empty() || !d.misfits.is_empty() || !d.retry.is_empty() || d.pending {
            return None;
        }
        if let Some(timer) = d.timer {
            self.door_timers.clear(timer, door);
        }
        self.doors.remove(door).map(|d| d.key)
    }

    pub fn tidy_door_line(&mut self, door: DoorId, queue: QueueId) {
        let d = &mut self.doors[door];
        if let Some(line) = d.lines.get(&queue)
            && line.is_empty()
            && line.offered.is_none()
            && line.waiting == 0
        {
            d.lines.remove(&queue);
        }
    }

    /// This wait queue may serve more than before: extends its pass to a whole lap from its current place. It never
    /// restarts at the front, because the queues behind would starve.
    pub fn door_due(&mut self, door: DoorId) {
        let d = &mut self.doors[door];
        if d.lines.is_empty() && d.retry.is_empty() {
            return;
        }
        d.pass = d.lines.len();
        if forgets(Mutant::PassStartsAgain) {
            d.cursor = None;
        }
        if !d.pending {
            d.pending = true;
            self.pending.push_back(door);
        }
    }

    /// The settings behind a wait queue changed: unsatisfiable entries may fit now. They are tried again one by one, as
    /// pending steps.
    pub fn retry_misfits(&mut self, door: DoorId) {
        let d = &mut self.doors[door];
        if d.retry.is_empty() {
            std::mem::swap(&mut d.retry, &mut d.misfits);
        } else {
            let misfits = std::mem::take(&mut d.misfits);
            d.retry.extend(misfits);
        }
        self.door_due(door);
    }

    // ---- Passes ----

    pub fn have_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The wait queue whose pass goes on next.
    pub fn first_pending(&self) -> Option<DoorId> {
        self.pending.front().copied()
    }

    /// The next queue of the pass of the first pending wait queue, behind its cursor in a circle; `None` ends the pass.
    pub fn next_of_pass(&mut self, door: DoorId) -> Option<QueueId> {
        let d = &mut self.doors[door];
        let after = d.cursor.and_then(|cursor| {
            use std::ops::Bound::{Excluded, Unbounded};
            d.lines.range((Excluded(cursor), Unbounded)).next().map(|(queue, _)| *queue)
        });
        let next = after.or_else(|| d.lines.keys().next().copied());
        let Some(queue) = next.filter(|_| d.pass > 0) else {
            d.pending = false;
            self.pending.pop_front();
            return None;
        };
        d.pass -= 1;
        d.cursor = Some(queue);
        Some(queue)
    }

    /// Opens an entry for a try.
    pub fn offer(&mut self, door: DoorId, entry: Entry) {
        let queue = self.entry_queue(entry);
        self.doors[door].lines.entry(queue).or_default().offered = Some(entry);
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].offered_by = Some(door),
            Entry::Lane(lane) => {
                let l = &mut self.lanes[lane];
                l.offered_by = Some(door);
                self.bundles[l.bundle].outs.insert(lane);
            }
            Entry::Queue(queue) => self.queues[queue].offered_by = Some(door),
        }
        self.serve(queue);
    }

    /// An offered entry was tried, or is empty: the wait queue counts its job queue again. Returns the wait queue, to be
    /// tidied.
    pub fn clear_out(&mut self, entry: Entry) -> Option<DoorId> {
        let door = match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].offered_by.take(),
            Entry::Lane(lane) => {
                let l = &mut self.lanes[lane];
                self.bundles[l.bundle].outs.remove(&lane);
                l.offered_by.take()
            }
            Entry::Queue(queue) => self.queues[queue].offered_by.take(),
        }?;
        let queue = self.entry_queue(entry);
        if let Some(line) = self.doors[door].lines.get_mut(&queue) {
            line.offered = None;
        }
        if !forgets(Mutant::TriedIsNoEvent) {
            self.door_due(door);
        }
        Some(door)
    }

    /// True if a lane must stand behind others of its own queue in this wait queue.
    pub fn must_stand_behind(&self, door: DoorId, lane: LaneId) -> bool {
        if forgets(Mutant::Barging) {
            return false;
        }
        let queue = self.lanes[lane].key.queue;
        let own_group = self.group_of(lane);
        let Some((arrival, _)) = self.head(lane) else { return false };
        // Lanes that reserve protect their demand by their reservations, not by the order.
        let Some(line) = self.doors[door].lines.get(&queue) else { return false };
        let Some(first) = line.order.first() else { return false };
        let of_own_group = line.groups.get(&own_group).and_then(|at_door| at_door.entries.first());
        if of_own_group.is_some_and(|entry| entry.0 < arrival) {
            return true;
        }
        let g = &self.groups[own_group];
        let rank = rank_of(g.priority);
        let v = self.queues[queue].priorities.get(&rank).map_or(0, |turns| turns.v);
        first.3 != own_group && (first.0, first.1, first.2) < (rank, g.own.max(v), arrival)
    }

    // ---- Timers of wait queues ----

    /// The wait queue may be served at this time by time alone.
    pub fn arm_door_at(&mut self, door: DoorId, at: Moment) {
        let d = &mut self.doors[door];
        if d.timer.is_none_or(|timer| at < timer) {
            if let Some(timer) = d.timer.replace(at) {
                self.door_timers.clear(timer, door);
            }
            self.door_timers.set(at, door);
        }
    }

    /// Makes the wait queue due whose time came first.
    pub fn end_door_timer(&mut self, now: Moment) -> bool {
        let Some((_, door)) = self.door_timers.take_due(now) else { return false };
        self.doors[door].timer = None;
        self.door_due(door);
        true
    }

    /// The next tick at this time or later checks the wait queues with timers.
    pub fn move_door_timers(&mut self, to: Moment) {
        for (at, door) in self.door_timers.drain() {
            self.door_timers.set(at.min(to), door);
            self.doors[door].timer = Some(at.min(to));
        }
    }
}
