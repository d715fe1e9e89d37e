//! Passes: a due wait queue tries the first entry of each queue, one bounded step at a time.
//!
//! It opens entries that may be served, and never grants: the ready order decides their tries.

use super::Fit;
use crate::mutant::{Mutant, forgets};
use crate::queue::order::rank_of;
use crate::state::{CALLERS, DoorId, DoorKey, Entry, LaneId, Place, QueueId, Space};
use tenure_core::time::Moment;

impl Space {
    /// The first entry of a queue in a wait queue: a reserving one if it can be served, otherwise
    /// the first in order, because capacity beyond a reservation is free for all.
    pub(crate) fn first_entry(
        &mut self,
        door: DoorId,
        queue: QueueId,
        now: Moment,
    ) -> Option<Entry> {
        let line = self.doors[door].lines.get(&queue)?;
        if line.whole {
            return Some(Entry::Queue(queue));
        }
        let reserving = line.reserving.first().map(|first| first.1);
        match reserving {
            Some(entry) if self.entry_fits(door, entry, now) == Fit::Yes => reserving,
            _ => line.first().or(reserving),
        }
    }

    /// True if a lane must stand behind others of its own queue in this wait queue.
    pub(crate) fn must_stand_behind(&mut self, door: DoorId, lane: LaneId) -> bool {
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

    /// The answer of this wait queue to the first entry of a queue, now.
    pub(crate) fn entry_fits(&self, door: DoorId, entry: Entry, now: Moment) -> Fit {
        let key = &self.doors[door].key;
        let Some(lane) = self.entry_lane(entry) else {
            return match key {
                // Its own limit is no longer set: the queue is open.
                DoorKey::Limit(limit) if !self.limits.is_set(*limit) => Fit::Yes,
                DoorKey::Limit(limit) => self.limit_fit(*limit, 1, 1, None, now),
                DoorKey::Pool(..) => Fit::Yes,
            };
        };
        let needs = &self.lanes[lane].key.needs;
        match needs.iter().find(|need| Space::door_key(need) == *key) {
            Some(need) => self.need_fit(need, lane, now),
            // Impossible: an entry stands in the wait queue of one of its needs. A try shows that.
            None => Fit::Yes,
        }
    }

    /// Sets the wait queue's timer to the time when a queue's first entry, or a reserving one
    /// beside it, may fit by time alone.
    pub(crate) fn arm_door(&mut self, door: DoorId, queue: QueueId, now: Moment) {
        let Some(line) = self.doors[door].lines.get(&queue) else { return };
        if line.offered.is_some() {
            return;
        }
        let firsts = if line.whole {
            [Some(Entry::Queue(queue)), None]
        } else {
            [line.reserving.first().map(|first| first.1), line.first()]
        };
        for first in firsts.into_iter().flatten() {
            match self.entry_fits(door, first, now) {
                Fit::No(Some(at)) => self.arm_door_at(door, at),
                Fit::No(None) => {}
                // It may be served: the event behind that made the wait queue due, or this does.
                Fit::Yes | Fit::Never => self.door_due(door),
            }
        }
    }

    fn arm_door_at(&mut self, door: DoorId, at: Moment) {
        let d = &mut self.doors[door];
        if d.timer.is_none_or(|timer| at < timer) {
            if let Some(timer) = d.timer.replace(at) {
                self.door_timers.clear(timer, door);
            }
            self.door_timers.set(at, door);
        }
    }

    /// One bounded pending step; `false` if nothing is pending.
    pub(crate) fn step_pending(&mut self, now: Moment) -> bool {
        let Some(door) = self.pending.front().copied() else { return self.step_family() };
        if let Some(entry) = self.doors[door].retry.first().copied() {
            let key = self.doors[door].key.clone();
            self.unpark(entry);
            self.park(entry, key, now);
            return true;
        }
        let d = &mut self.doors[door];
        if d.pass == 0 || d.lines.is_empty() {
            d.pending = false;
            self.pending.pop_front();
            self.tidy_door(door, CALLERS);
            return true;
        }
        d.pass -= 1;
        // The next queue behind the cursor, in a circle.
        let after = d.cursor.and_then(|cursor| {
            use std::ops::Bound::{Excluded, Unbounded};
            d.lines.range((Excluded(cursor), Unbounded)).next().map(|(queue, _)| *queue)
        });
        let Some(queue) = after.or_else(|| d.lines.keys().next().copied()) else { return true };
        d.cursor = Some(queue);
        if d.lines[&queue].offered.is_some() {
            return true;
        }
        let Some(entry) = self.first_entry(door, queue, now) else {
            self.tidy_door_line(door, queue);
            return true;
        };
        match self.entry_fits(door, entry, now) {
            Fit::No(_) => self.arm_door(door, queue, now),
            Fit::Never => {
                let key = self.doors[door].key.clone();
                self.unpark(entry);
                self.park_misfit(entry, key);
                self.door_due(door);
            }
            Fit::Yes => {
                self.unpark(entry);
                if let Entry::Lane(lane) = entry {
                    let bundle = self.lanes[lane].bundle;
                    if self.bundles[bundle].place != Place::Open {
                        // It lacks a plain need too, and is blocked there with its lane group: this
                        // wait queue goes on to the next.
                        self.bundle_changed(bundle, now);
                        self.door_due(door);
                        return true;
                    }
                }
                if self.is_suspect(entry) {
                    // Some workers may not take it, so the pass does not wait for a try.
                    self.door_due(door);
                    return true;
                }
                if let Entry::Lane(lane) = entry {
                    self.bundles[self.lanes[lane].bundle].outs.insert(lane);
                }
                self.doors[door].lines.entry(queue).or_default().offered = Some(entry);
                match entry {
                    Entry::Bundle(bundle) => self.bundles[bundle].offered_by = Some(door),
                    Entry::Lane(lane) => self.lanes[lane].offered_by = Some(door),
                    Entry::Queue(queue) => self.queues[queue].offered_by = Some(door),
                }
                self.queues_to_serve.insert(queue);
            }
        }
        true
    }

    fn tidy_door_line(&mut self, door: DoorId, queue: QueueId) {
        if let Some(line) = self.doors[door].lines.get(&queue)
            && line.is_empty()
            && line.offered.is_none()
            && line.waiting == 0
        {
            self.doors[door].lines.remove(&queue);
        }
    }
}
