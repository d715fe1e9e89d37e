//! Audit of lines: it counts all sums again, from the lanes up. It only reads.

use std::collections::{BTreeMap, BTreeSet};

use super::{WaitingLines, rank_of};
use crate::audit::findings::Findings;
use crate::state::{BundleId, DoorId, Entry, LaneId, Place, QueueId, TurnId};

impl WaitingLines {
    /// Compares the sums and the orders of all levels, and each entry with its wait queue.
    pub fn audit(&self, found: &mut Findings) {
        let mut blocked: BTreeMap<QueueId, u64> = BTreeMap::new();
        let mut at_door: BTreeMap<DoorId, u64> = BTreeMap::new();
        let mut in_bundle: BTreeMap<BundleId, (u64, BTreeSet<(u64, LaneId)>)> = BTreeMap::new();
        let mut count = |queue: QueueId, place: Place, n: u64| {
            if let Place::Parked(door) | Place::Misfit(door) = place {
                *blocked.entry(queue).or_default() += n;
                *at_door.entry(door).or_default() += n;
            }
        };
        let mut waiting: BTreeMap<(QueueId, i16), u64> = BTreeMap::new();
        for (slot, lane) in self.lanes.iter() {
            let len = lane.line.len() as u64;
            *waiting.entry((lane.key.queue, rank_of(lane.key.priority))).or_default() += len;
            count(lane.key.queue, lane.place, len);
            if lane.place == Place::Open {
                let bundle = in_bundle.entry(lane.bundle).or_default();
                bundle.0 += len;
                if let Some((arrival, _)) = lane.line.first() {
                    bundle.1.insert((arrival, slot));
                }
            }
            found.check(lane.place == Place::Open || len > 0, || {
                format!("the empty lane {slot} stands at a door")
            });
        }
        let mut in_group: BTreeMap<TurnId, BTreeSet<(u64, BundleId)>> = BTreeMap::new();
        for (slot, bundle) in self.bundles.iter() {
            let (len, open) = in_bundle.remove(&slot).unwrap_or_default();
            found.check(bundle.waiting == len && bundle.open == open, || {
                format!("the bundle {slot} does not hold the lanes that are open")
            });
            count(bundle.queue, bundle.place, len);
            if bundle.place == Place::Open
                && let Some((arrival, _)) = bundle.open.first()
            {
                in_group.entry(bundle.group).or_default().insert((*arrival, slot));
            }
        }
        for (slot, group) in self.groups.iter() {
            let open = in_group.remove(&slot).unwrap_or_default();
            found.check(group.open == open, || {
                format!("the group {slot} does not hold its bundles")
            });
            let turns = self.queues[group.queue].priorities.get(&rank_of(group.priority));
            let key = open.first().map(|first| (group.own, first.0, slot));
            let there = turns.is_some_and(|turns| match key {
                Some(key) => turns.open.contains(&key),
                None => !turns.open.iter().any(|other| other.2 == slot),
            });
            found.check(there, || format!("the group {slot} is not in its order"));
            let most = turns.map_or(0, |turns| turns.top);
            found.check(group.own <= most.max(turns.map_or(0, |turns| turns.v)), || {
                format!("the group {slot} finishes after the highest finish of its priority")
            });
        }
        for (slot, queue) in self.queues.iter() {
            for (rank, turns) in &queue.priorities {
                let n = waiting.remove(&(slot, *rank)).unwrap_or_default();
                found.check(turns.waiting == n && (n > 0 || turns.v >= turns.top), || {
                    format!(
                        "queue {:?}, priority {}: {} wait is cached, {n} do; V is {} of {}",
                        queue.name, -rank, turns.waiting, turns.v, turns.top
                    )
                });
                found.check(!turns.has_void() || self.void_turns.contains(&(slot, *rank)), || {
                    format!("queue {:?}: groups are remembered for nothing", queue.name)
                });
            }
            let n = blocked.remove(&slot).unwrap_or_default();
            found.check(queue.counts.blocked == n, || {
                format!(
                    "queue {:?}: {} blocked is cached, {n} are",
                    queue.name, queue.counts.blocked
                )
            });
        }
        for (slot, door) in self.doors.iter() {
            let n = at_door.remove(&slot).unwrap_or_default();
            found.check(door.waiting == n, || {
                format!("the door {slot}: {} waiting is cached, {n} are", door.waiting)
            });
        }
        self.audit_entries(found);
    }

    /// Compares the wait queues with the entries that stand there or are offered.
    fn audit_entries(&self, found: &mut Findings) {
        let mut timers = 0;
        for (slot, door) in self.doors.iter() {
            found.check(door.pending == self.pending.contains(&slot), || {
                format!("the door {slot} does not know whether it is pending")
            });
            timers += usize::from(door.timer.is_some());
            found.check(door.timer.is_none_or(|at| self.door_timers.has(at, &slot)), || {
                format!("the door {slot} has lost its timer")
            });
            for line in door.lines.values() {
                let entries = line.groups.values().flat_map(|group| group.entries.iter());
                for (key, entry) in entries.chain(&line.reserving) {
                    let at = match entry {
                        Entry::Bundle(b) => self.bundles.get(*b).map(|b| (b.place, b.parked_key)),
                        Entry::Lane(l) => self.lanes.get(*l).map(|l| (l.place, l.parked_key)),
                        Entry::Queue(_) => None,
                    };
                    found.check(at == Some((Place::Parked(slot), *key)), || {
                        format!("{entry:?} under {key} at the door {slot} is {at:?}")
                    });
                }
                found.check(line.offered.is_none_or(|entry| self.is_offered(entry, slot)), || {
                    format!("the door {slot} waits for one that is not offered")
                });
            }
        }
        found.check(self.door_timers.len() == timers, || {
            format!("{timers} doors have timers, and there are {}", self.door_timers.len())
        });
        for slot in &self.pending {
            found.check(self.doors.get(*slot).is_some(), || {
                "a door that is not there is pending".to_owned()
            });
        }
        for (at, lane) in self.lanes.iter() {
            if let Some(door) = lane.offered_by {
                let line = self.doors.get(door).and_then(|d| d.lines.get(&lane.key.queue));
                found.check(line.is_some_and(|line| line.offered == Some(Entry::Lane(at))), || {
                    format!("the lane {at} is offered by a door that does not know it")
                });
            }
            found.check(lane.reserving == self.reservations.contains_key(&at), || {
                format!("the lane {at} does not know whether it reserves")
            });
            found.check(self.lane_by_key.get(&lane.key) == Some(&at), || {
                format!("the lane {at} is not found by its key")
            });
        }
    }

    fn is_offered(&self, entry: Entry, door: DoorId) -> bool {
        match entry {
            Entry::Bundle(bundle) => {
                self.bundles.get(bundle).is_some_and(|b| b.offered_by == Some(door))
            }
            Entry::Lane(lane) => self.lanes.get(lane).is_some_and(|l| l.offered_by == Some(door)),
            Entry::Queue(queue) => {
                self.queues.get(queue).is_some_and(|q| q.offered_by == Some(door))
            }
        }
    }
}
