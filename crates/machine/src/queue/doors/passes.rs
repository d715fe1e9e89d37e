//! Passes: a due wait queue tries the first entry of each queue, one bounded step at a time.
//!
//! It opens entries that may be served, and never grants: the ready order decides their tries.

use super::Fit;
use crate::state::{CALLERS, DoorId, DoorKey, Entry, Place, QueueId, Space};
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
        let line = self.lines[door].lines.get(&queue)?;
        if line.whole {
            return Some(Entry::Queue(queue));
        }
        let reserving = line.reserving.first().map(|first| first.1);
        match reserving {
            Some(entry) if self.entry_fits(door, entry, now) == Fit::Yes => reserving,
            _ => line.first().or(reserving),
        }
    }

    /// The answer of this wait queue to the first entry of a queue, now.
    pub(crate) fn entry_fits(&self, door: DoorId, entry: Entry, now: Moment) -> Fit {
        let key = &self.lines[door].key;
        let Some(lane) = self.lines.entry_lane(entry) else {
            return match key {
                // Its own limit is no longer set: the queue is open.
                DoorKey::Limit(limit) if !self.limits.is_set(*limit) => Fit::Yes,
                DoorKey::Limit(limit) => self.limit_fit(*limit, 1, 1, None, now),
                DoorKey::Pool(..) => Fit::Yes,
            };
        };
        let needs = &self.lines[lane].key.needs;
        match needs.iter().find(|need| Space::door_key(need) == *key) {
            Some(need) => self.need_fit(need, lane, now),
            // Impossible: an entry stands in the wait queue of one of its needs. A try shows that.
            None => Fit::Yes,
        }
    }

    /// Sets the wait queue's timer to the time when a queue's first entry, or a reserving one
    /// beside it, may fit by time alone.
    pub(crate) fn arm_door(&mut self, door: DoorId, queue: QueueId, now: Moment) {
        let Some(line) = self.lines[door].lines.get(&queue) else { return };
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
                Fit::No(Some(at)) => self.lines.arm_door_at(door, at),
                Fit::No(None) => {}
                // It may be served: the event behind that made the wait queue due, or this does.
                Fit::Yes | Fit::Never => self.lines.door_due(door),
            }
        }
    }

    /// True if a wait queue is due, or a changed template has limits that do not know it.
    pub(crate) fn has_pending(&self) -> bool {
        self.lines.have_pending() || self.limits.have_changed_templates()
    }

    /// One bounded pending step; `false` if nothing is pending.
    pub(crate) fn step_pending(&mut self, now: Moment) -> bool {
        let Some(door) = self.lines.first_pending() else { return self.step_family() };
        if let Some(entry) = self.lines[door].retry.first().copied() {
            let key = self.lines[door].key.clone();
            self.lines.unpark(entry);
            self.park(entry, key, now);
            return true;
        }
        let Some(queue) = self.lines.next_of_pass(door) else {
            self.tidy_door(door, CALLERS);
            return true;
        };
        if self.lines[door].lines[&queue].offered.is_some() {
            return true;
        }
        let Some(entry) = self.first_entry(door, queue, now) else {
            self.lines.tidy_door_line(door, queue);
            return true;
        };
        match self.entry_fits(door, entry, now) {
            Fit::No(_) => self.arm_door(door, queue, now),
            Fit::Never => {
                let key = self.lines[door].key.clone();
                self.lines.unpark(entry);
                self.park_misfit(entry, key);
                self.lines.door_due(door);
            }
            Fit::Yes => {
                self.lines.unpark(entry);
                if let Entry::Lane(lane) = entry {
                    let bundle = self.lines[lane].bundle;
                    if self.lines[bundle].place != Place::Open {
                        // It lacks a plain need too, and is blocked there with its lane group: this
                        // wait queue goes on to the next.
                        self.bundle_changed(bundle, now);
                        self.lines.door_due(door);
                        return true;
                    }
                }
                if self.lines.is_suspect(entry) {
                    // Some workers may not take it, so the pass does not wait for a try.
                    self.lines.door_due(door);
                    return true;
                }
                self.lines.offer(door, entry);
            }
        }
        true
    }
}
