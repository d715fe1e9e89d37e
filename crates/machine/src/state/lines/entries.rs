//! Entries in wait queues: their order there, the time since which each waits, and reservations.

use super::{WaitingLines, rank_of};
use crate::mutant::{Mutant, forgets};
use crate::state::{
    DoorId, DoorLine, Entry, HeadWait, LaneId, Place, QueueId, Reservation, TurnId,
};
use tenure_core::time::{Moment, Span};

impl WaitingLines {
    // ---- Entries ----

    pub fn entry_queue(&self, entry: Entry) -> QueueId {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].queue,
            Entry::Lane(lane) => self.lanes[lane].key.queue,
            Entry::Queue(queue) => queue,
        }
    }

    /// The lane whose head is the first job of an entry.
    pub fn entry_lane(&self, entry: Entry) -> Option<LaneId> {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].open.first().map(|first| first.1),
            Entry::Lane(lane) => Some(lane),
            Entry::Queue(_) => None,
        }
    }

    /// `None`: a whole queue belongs to no group.
    fn entry_group(&self, entry: Entry) -> Option<TurnId> {
        match entry {
            Entry::Bundle(bundle) => Some(self.bundles[bundle].group),
            Entry::Lane(lane) => Some(self.group_of(lane)),
            Entry::Queue(_) => None,
        }
    }

    pub fn entry_head(&self, entry: Entry) -> Option<u64> {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].open.first().map(|first| first.0),
            Entry::Lane(lane) => self.head(lane).map(|head| head.0),
            Entry::Queue(_) => Some(0),
        }
    }

    fn reserves(&self, entry: Entry) -> bool {
        matches!(entry, Entry::Lane(lane) if self.lanes[lane].reserving)
    }

    pub fn is_suspect(&self, entry: Entry) -> bool {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].suspect,
            Entry::Lane(lane) => self.lanes[lane].key.suspect,
            Entry::Queue(_) => false,
        }
    }

    fn wait_mut(&mut self, entry: Entry) -> Option<&mut HeadWait> {
        match entry {
            Entry::Bundle(bundle) => Some(&mut self.bundles[bundle].wait),
            Entry::Lane(lane) => Some(&mut self.lanes[lane].wait),
            Entry::Queue(_) => None,
        }
    }

    /// The place of an entry, and its key in a wait queue.
    pub fn entry_place(&self, entry: Entry) -> (Place, u64) {
        match entry {
            Entry::Bundle(bundle) => (self.bundles[bundle].place, self.bundles[bundle].parked_key),
            Entry::Lane(lane) => (self.lanes[lane].place, self.lanes[lane].parked_key),
            Entry::Queue(queue) => (self.queues[queue].place, 0),
        }
    }

    /// Moves an entry between open, blocked and unsatisfiable.
    pub fn place_entry(&mut self, entry: Entry, place: Place) {
        match entry {
            Entry::Bundle(bundle) => self.place_bundle(bundle, place),
            Entry::Lane(lane) => self.place_lane(lane, place),
            Entry::Queue(queue) => self.queues[queue].place = place,
        }
    }

    /// Sorts an entry into a wait queue, by the arrival of its head.
    pub fn insert_entry(&mut self, door: DoorId, entry: Entry, head: u64) {
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
    pub fn unpark(&mut self, entry: Entry) -> Option<DoorId> {
        let (place, head) = self.entry_place(entry);
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
        self.place_entry(entry, Place::Open);
        if let Entry::Queue(queue) = entry {
            self.serve(queue);
        }
        Some(door)
    }

    /// Like [`WaitingLines::unpark`], for good: the wait queue goes on to the next entry. Returns it, to be tidied.
    pub fn leave_door(&mut self, entry: Entry) -> Option<DoorId> {
        let door = self.unpark(entry)?;
        if !forgets(Mutant::HeadGoneIsNoEvent) {
            self.door_due(door);
        }
        Some(door)
    }

    /// Moves a blocked entry to the place of its new head.
    pub fn rekey(&mut self, door: DoorId, entry: Entry, head: u64, patience: Span, now: Moment) {
        let (_, old) = self.entry_place(entry);
        self.remove_entry(door, entry, old);
        self.insert_entry(door, entry, head);
        self.start_wait(entry, head, patience, now);
        self.door_due(door);
    }

    // ---- Patience ----

    pub fn start_wait(&mut self, entry: Entry, head: u64, patience: Span, now: Moment) {
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
        let try_at = since.plus(patience).max(now);
        if let Some(wait) = self.wait_mut(entry) {
            *wait = HeadWait { head, since, try_at: Some(try_at) };
        }
        self.impatient.insert((try_at, entry));
    }

    /// Removes an entry from the list of those that lose patience; the record of its head stays.
    fn stop_wait(&mut self, entry: Entry) {
        if let Some(try_at) = self.wait_mut(entry).and_then(|wait| wait.try_at.take()) {
            self.impatient.remove(&(try_at, entry));
        }
    }

    /// Tries the reservation of an entry again later.
    pub fn wait_on(&mut self, entry: Entry, try_at: Moment) {
        self.stop_wait(entry);
        if let Some(wait) = self.wait_mut(entry) {
            wait.try_at = Some(try_at);
            self.impatient.insert((try_at, entry));
        }
    }

    /// The entry that lost its patience first.
    pub fn first_impatient(&self, now: Moment) -> Option<Entry> {
        self.impatient.first().filter(|(try_at, _)| *try_at <= now).map(|(_, entry)| *entry)
    }

    // ---- Reservations ----

    /// The time of the next check of the lanes that reserve or may: those that do, once a second.
    pub fn reservations_due(&self, last: Moment) -> Option<Moment> {
        let first = self.impatient.first().map(|first| first.0);
        let check = (!self.reservations.is_empty()).then(|| last.plus(Span::from_s(1)));
        first.into_iter().chain(check).min()
    }

    pub fn reservation(&self, lane: LaneId) -> Option<&Reservation> {
        self.reservations.get(&lane)
    }

    /// The lanes that reserve.
    pub fn reserving(&self) -> impl Iterator<Item = LaneId> {
        self.reservations.keys().copied()
    }

    pub fn reserve(&mut self, reservation: Reservation) {
        self.reservations.insert(reservation.lane, reservation);
    }

    /// Ends the reservation of a lane. Returns false if it had none.
    pub fn unreserve(&mut self, lane: LaneId) -> bool {
        self.reservations.remove(&lane).is_some()
    }

    /// A reserving lane is first in its wait queue; otherwise it stands in its order again.
    pub fn set_reserving(&mut self, lane: LaneId, reserving: bool) {
        let (place, head) = self.entry_place(Entry::Lane(lane));
        let Place::Parked(door) = place else {
            self.lanes[lane].reserving = reserving;
            return;
        };
        self.remove_entry(door, Entry::Lane(lane), head);
        self.lanes[lane].reserving = reserving;
        self.insert_entry(door, Entry::Lane(lane), head);
        self.door_due(door);
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
