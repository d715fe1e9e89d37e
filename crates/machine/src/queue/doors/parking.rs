//! Places in a wait queue: blocks entries, removes them, and keeps the time since which each head stands.
//!
//! It keeps the order in a wait queue and marks it as due. It never opens a wait queue to serve: `passes` does.

use crate::mutant::{Mutant, forgets};
use crate::queue::order::rank_of;
use crate::state::{
    BundleId, CALLERS, DoorId, DoorKey, DoorLine, Entry, HeadWait, LaneId, Place, Space, TurnId,
};
use tenure_core::events::{About, BlockedOn, EventType};
use tenure_core::time::Moment;

impl Space {
    /// Blocks an entry in the wait queue of a need that its head lacks.
    pub(crate) fn park(&mut self, entry: Entry, key: DoorKey, now: Moment) {
        let door = self.door_for(key);
        let head = self.entry_head(entry).unwrap_or(0);
        self.insert_entry(door, entry, head);
        match entry {
            Entry::Bundle(bundle) => {
                self.place_bundle(bundle, Place::Parked(door));
                self.outs_stand_again(bundle);
            }
            Entry::Lane(lane) => self.place_lane(lane, Place::Parked(door)),
            Entry::Queue(queue) => self.queues[queue].place = Place::Parked(door),
        }
        self.start_wait(entry, head, now);
        self.arm_door(door, self.entry_queue(entry), now);
        self.somebody_stands(door, now);
        self.head_is_blocked(entry, door);
    }

    /// The gauge has a new user, perhaps only because it was not read lately. Unsatisfiable entries count in its line,
    /// too.
    fn somebody_stands(&mut self, door: DoorId, now: Moment) {
        if let DoorKey::Limit(limit) = self.doors[door].key {
            self.order_gauge(limit, now);
        }
    }

    /// Marks an entry as unsatisfiable: under the current settings it can never be served here.
    pub(crate) fn park_misfit(&mut self, entry: Entry, key: DoorKey) {
        let door = self.door_for(key);
        self.doors[door].misfits.insert(entry);
        match entry {
            Entry::Bundle(bundle) => {
                self.place_bundle(bundle, Place::Misfit(door));
                self.outs_stand_again(bundle);
            }
            Entry::Lane(lane) => self.place_lane(lane, Place::Misfit(door)),
            Entry::Queue(queue) => self.queues[queue].place = Place::Misfit(door),
        }
        self.somebody_stands(door, self.last);
        self.head_is_blocked(entry, door);
    }

    /// Lanes that other wait queues opened are blocked with their lane group again, so those wait queues go on. Each
    /// such lane was opened by a step of its own, so this work was already paid for.
    fn outs_stand_again(&mut self, bundle: BundleId) {
        while let Some(lane) = self.bundles[bundle].outs.first().copied() {
            self.clear_out(Entry::Lane(lane));
        }
    }

    /// The job at the head of a lane lacks a need. Emits one event per need since the job became ready.
    fn head_is_blocked(&mut self, entry: Entry, door: DoorId) {
        let Some(lane) = self.entry_lane(entry) else { return };
        let Some((arrival, head)) = self.head(lane) else { return };
        if self.entry_queue(entry) == CALLERS {
            return;
        }
        let on = match &self.doors[door].key {
            DoorKey::Limit(limit) => BlockedOn::Limit(self.limits[*limit].name.clone()),
            DoorKey::Pool(pool, _) => BlockedOn::Pool(self.pools[*pool].name.clone()),
        };
        let told = Some((arrival, on));
        if self.lanes[lane].told == told {
            return;
        }
        let on = told.as_ref().map(|(_, on)| on.clone());
        self.lanes[lane].told = told;
        let about = About { on, ..self.about_job(head.job()) };
        self.happens(EventType::JobBlocked, about, self.last);
    }

    fn insert_entry(&mut self, door: DoorId, entry: Entry, head: u64) {
        let (queue, reserves) = (self.entry_queue(entry), self.reserves(entry));
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].parked_key = head,
            Entry::Lane(lane) => self.lanes[lane].parked_key = head,
            Entry::Queue(_) => self.doors[door].lines.entry(queue).or_default().whole = true,
        }
        let Some(group) = self.entry_group(entry) else { return };
        let g = &self.groups[group];
        let rank = rank_of(g.priority);
        let v = self.queues[queue].priorities.get(&rank).map_or(0, |turns| turns.v);
        let tag = g.own.max(v);
        let line = self.doors[door].lines.entry(queue).or_default();
        if reserves {
            line.reserving.insert((head, entry));
            return;
        }
        let at_door = line.groups.entry(group).or_default();
        // A group's virtual time in a wait queue is that of its last arrival there: grants elsewhere do not move its
        // entries here, because they are no event of this wait queue.
        at_door.tag = at_door.tag.max(tag);
        at_door.entries.insert((head, entry));
        reorder(line, group, rank);
    }

    fn remove_entry(&mut self, door: DoorId, entry: Entry, head: u64) {
        let (queue, group) = (self.entry_queue(entry), self.entry_group(entry));
        let group = group.map(|group| (group, rank_of(self.groups[group].priority)));
        let Some(line) = self.doors[door].lines.get_mut(&queue) else { return };
        let Some((group, rank)) = group else {
            line.whole = false;
            return;
        };
        if !line.reserving.remove(&(head, entry))
            && let Some(at_door) = line.groups.get_mut(&group)
        {
            at_door.entries.remove(&(head, entry));
            reorder(line, group, rank);
        }
    }

    /// Takes an entry from its wait queue and opens it. The wait queue becomes due, because it may have a new first
    /// entry; `tidy` follows when nothing is offered.
    pub(crate) fn unpark(&mut self, entry: Entry) -> Option<DoorId> {
        let (place, head) = match entry {
            Entry::Bundle(bundle) => (self.bundles[bundle].place, self.bundles[bundle].parked_key),
            Entry::Lane(lane) => (self.lanes[lane].place, self.lanes[lane].parked_key),
            Entry::Queue(queue) => (self.queues[queue].place, 0),
        };
        let door = match place {
            Place::Open => return None,
            Place::Parked(door) => {
                self.remove_entry(door, entry, head);
                door
            }
            Place::Misfit(door) => {
                self.doors[door].misfits.remove(&entry);
                self.doors[door].retry.remove(&entry);
                door
            }
        };
        self.stop_wait(entry);
        match entry {
            Entry::Bundle(bundle) => self.place_bundle(bundle, Place::Open),
            Entry::Lane(lane) => self.place_lane(lane, Place::Open),
            Entry::Queue(queue) => {
                self.queues[queue].place = Place::Open;
                self.queues_to_serve.insert(queue);
            }
        }
        Some(door)
    }

    /// Like [`Space::unpark`], for good: the wait queue goes on to the next entry.
    pub(crate) fn leave_door(&mut self, entry: Entry) {
        let queue = self.entry_queue(entry);
        if let Some(door) = self.unpark(entry) {
            if !forgets(Mutant::HeadGoneIsNoEvent) {
                self.door_due(door);
            }
            self.tidy_door(door, queue);
        }
    }

    /// Moves a lane whose head, length or end changed to its right place.
    pub(crate) fn lane_changed(&mut self, lane: LaneId, now: Moment) {
        let head = self.head(lane).map(|head| head.0);
        if self.lanes[lane].reserving
            && self.reservations.get(&lane).map(|reservation| reservation.head) != head
        {
            self.drop_reservation(lane, now);
        }
        match (self.lanes[lane].place, head) {
            (Place::Open, _) => self.order_lane(lane),
            (_, None) => self.leave_door(Entry::Lane(lane)),
            (Place::Parked(door), Some(head)) if head != self.lanes[lane].parked_key => {
                self.rekey(door, Entry::Lane(lane), head, now);
            }
            _ => {}
        }
        if head.is_none() {
            self.clear_out(Entry::Lane(lane));
        }
        self.bundle_changed(self.lanes[lane].bundle, now);
    }

    pub(crate) fn bundle_changed(&mut self, bundle: BundleId, now: Moment) {
        let b = &self.bundles[bundle];
        let head = b.open.first().map(|first| first.0);
        match (b.place, head) {
            (Place::Open, Some(_)) => {}
            (Place::Open, None) => self.clear_out(Entry::Bundle(bundle)),
            (_, None) => self.leave_door(Entry::Bundle(bundle)),
            (Place::Parked(door), Some(head)) if head != b.parked_key => {
                self.rekey(door, Entry::Bundle(bundle), head, now);
            }
            _ => {}
        }
    }

    fn rekey(&mut self, door: DoorId, entry: Entry, head: u64, now: Moment) {
        let old = match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].parked_key,
            Entry::Lane(lane) => self.lanes[lane].parked_key,
            Entry::Queue(_) => return,
        };
        self.remove_entry(door, entry, old);
        self.insert_entry(door, entry, head);
        self.start_wait(entry, head, now);
        self.door_due(door);
    }

    /// An offered entry was tried, or is empty: the wait queue counts its job queue again.
    pub(crate) fn clear_out(&mut self, entry: Entry) {
        let door = match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].offered_by.take(),
            Entry::Lane(lane) => {
                let l = &mut self.lanes[lane];
                self.bundles[l.bundle].outs.remove(&lane);
                l.offered_by.take()
            }
            Entry::Queue(queue) => self.queues[queue].offered_by.take(),
        };
        let Some(door) = door else { return };
        let queue = self.entry_queue(entry);
        if let Some(line) = self.doors[door].lines.get_mut(&queue) {
            line.offered = None;
        }
        if !forgets(Mutant::TriedIsNoEvent) {
            self.door_due(door);
        }
        self.tidy_door(door, queue);
    }

    // ---- Patience ----

    fn start_wait(&mut self, entry: Entry, head: u64, now: Moment) {
        self.stop_wait(entry);
        // The head may have been blocked elsewhere before, alone or with its lane group.
        let known = match entry {
            Entry::Bundle(bundle) => {
                let b = &self.bundles[bundle];
                let first = b.open.first().map(|first| self.lanes[first.1].wait);
                [Some(b.wait), first]
            }
            Entry::Lane(lane) => {
                let l = &self.lanes[lane];
                [Some(l.wait), Some(self.bundles[l.bundle].wait)]
            }
            Entry::Queue(_) => return,
        };
        let since = known
            .into_iter()
            .flatten()
            .find(|wait| wait.head == head && wait.since > Moment::ZERO)
            .map_or(now, |wait| wait.since);
        let try_at = since.plus(self.patience).max(now);
        if let Some(wait) = self.wait_mut(entry) {
            *wait = HeadWait { head, since, try_at: Some(try_at) };
        }
        self.impatient.insert((try_at, entry));
    }

    /// Removes an entry from the list of those that lose patience; the record of its head stays.
    pub(crate) fn stop_wait(&mut self, entry: Entry) {
        if let Some(try_at) = self.wait_mut(entry).and_then(|wait| wait.try_at.take()) {
            self.impatient.remove(&(try_at, entry));
        }
    }

    /// Tries the reservation of an entry again later.
    pub(crate) fn wait_on(&mut self, entry: Entry, try_at: Moment) {
        self.stop_wait(entry);
        if let Some(wait) = self.wait_mut(entry) {
            wait.try_at = Some(try_at);
            self.impatient.insert((try_at, entry));
        }
    }

    /// A reserving lane is first in its wait queue; otherwise it stands in its order again.
    pub(crate) fn move_reserving(&mut self, lane: LaneId, set: impl FnOnce(&mut Self)) {
        let (place, head) = (self.lanes[lane].place, self.lanes[lane].parked_key);
        match place {
            Place::Parked(door) => {
                self.remove_entry(door, Entry::Lane(lane), head);
                set(self);
                self.insert_entry(door, Entry::Lane(lane), head);
                self.door_due(door);
            }
            _ => set(self),
        }
    }
}

/// Sorts a group into a queue's order in a wait queue.
fn reorder(line: &mut DoorLine, group: TurnId, rank: i16) {
    let Some(at_door) = line.groups.get_mut(&group) else { return };
    if let Some((rank, tag, arrival)) = at_door.ordered.take() {
        line.order.remove(&(rank, tag, arrival, group));
    }
    match at_door.entries.first() {
        Some((arrival, _)) => {
            at_door.ordered = Some((rank, at_door.tag, *arrival));
            line.order.insert((rank, at_door.tag, *arrival, group));
        }
        None => {
            line.groups.remove(&group);
        }
    }
}
