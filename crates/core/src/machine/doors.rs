//! Doors: where what lacks a need stands, in order, and how an event opens them.
//!
//! The invariant that the rest depends on: the first entry of a queue at a door cannot be served,
//! or that queue has an entry out for this door, or the door is pending. Every event by which a
//! door may serve more goes through [`Space::door_due`]; nothing else opens a door, and no call
//! does more than a bounded number of steps.

use super::facts::{BlockedOn, Fact};
use super::mutant::{Mutant, forgets};
use super::order::rank_of;
use super::state::{CALLERS, Door, DoorKey, Entry, HeadWait, HeldNeed, Place, Slot, Space, Which};
use crate::time::Moment;

/// Whether a need can be served now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// It can.
    Yes,
    /// It cannot; by time alone it may at this moment, if that can be said.
    No(Option<Moment>),
    /// It never can as the settings are.
    Never,
}

impl Space {
    /// The door of a need.
    pub(crate) fn door_key(need: &HeldNeed) -> DoorKey {
        match need {
            HeldNeed::Limit { limit, .. } => DoorKey::Limit(*limit),
            HeldNeed::Pool { pool, which, .. } => DoorKey::Pool(*pool, which.clone()),
        }
    }

    pub(crate) fn find_door(&self, key: &DoorKey) -> Option<Slot> {
        match key {
            DoorKey::Limit(limit) => self.limits[*limit].door,
            DoorKey::Pool(pool, which) => self.pools[*pool].doors.get(which).copied(),
        }
    }

    fn door_for(&mut self, key: DoorKey) -> Slot {
        if let Some(door) = self.find_door(&key) {
            return door;
        }
        let door = self.doors.insert(Door {
            key: key.clone(),
            lines: Default::default(),
            pass: 0,
            cursor: None,
            pending: false,
            timer: None,
            misfits: Default::default(),
            retry: Default::default(),
            waiting: 0,
        });
        match key {
            DoorKey::Limit(limit) => self.limits[limit].door = Some(door),
            DoorKey::Pool(pool, which) => {
                self.pools[pool].doors.insert(which, door);
            }
        }
        door
    }

    /// Drops what nobody stands at.
    fn tidy_door(&mut self, door: Slot, queue: Slot) {
        let d = &mut self.doors[door];
        if let Some(line) = d.lines.get(&queue)
            && line.is_empty()
            && line.out.is_none()
            && line.waiting == 0
        {
            d.lines.remove(&queue);
        }
        if !d.lines.is_empty() || !d.misfits.is_empty() || !d.retry.is_empty() || d.pending {
            return;
        }
        if let Some(timer) = d.timer {
            self.door_timers.clear(timer, door);
        }
        if let Some(d) = self.doors.remove(door) {
            match d.key {
                DoorKey::Limit(limit) => {
                    self.limits[limit].door = None;
                    self.drop_limit_if_idle(limit);
                }
                DoorKey::Pool(pool, which) => {
                    self.pools[pool].doors.remove(&which);
                    self.drop_pool_if_idle(pool);
                }
            }
        }
    }

    /// This door may serve more than before: lengthens its pass to a whole lap from where it is.
    /// It never starts one again from the front, or the queues behind would be forgotten.
    pub(crate) fn door_due(&mut self, door: Slot) {
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

    // ---- Entries ----

    pub(crate) fn entry_queue(&self, entry: Entry) -> Slot {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].queue,
            Entry::Lane(lane) => self.lanes[lane].key.queue,
            Entry::Queue(queue) => queue,
        }
    }

    /// The lane whose head is the first of an entry.
    pub(crate) fn entry_lane(&self, entry: Entry) -> Option<Slot> {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].open.first().map(|first| first.1),
            Entry::Lane(lane) => Some(lane),
            Entry::Queue(_) => None,
        }
    }

    fn entry_group(&self, entry: Entry) -> Slot {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].group,
            Entry::Lane(lane) => self.group_of(lane),
            Entry::Queue(_) => 0,
        }
    }

    fn entry_head(&self, entry: Entry) -> Option<u64> {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].open.first().map(|first| first.0),
            Entry::Lane(lane) => self.head(lane).map(|head| head.0),
            Entry::Queue(_) => Some(0),
        }
    }

    fn is_marked(&self, entry: Entry) -> bool {
        matches!(entry, Entry::Lane(lane) if self.lanes[lane].marked)
    }

    fn is_suspect(&self, entry: Entry) -> bool {
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

    // ---- Parking ----

    /// Parks an entry at the door of a need that its head lacks.
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
        self.blocked_fact(entry, door);
    }

    /// Puts an entry aside: as the settings are it can never be served here.
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
        self.blocked_fact(entry, door);
    }

    /// Lanes that other doors opened now stand with their bundle: those doors go on. Each such
    /// lane was opened by a step of its own, so this costs what was paid before.
    fn outs_stand_again(&mut self, bundle: Slot) {
        while let Some(lane) = self.bundles[bundle].outs.first().copied() {
            self.clear_out(Entry::Lane(lane));
        }
    }

    fn blocked_fact(&mut self, entry: Entry, door: Slot) {
        let Some((_, slot)) = self.entry_lane(entry).and_then(|lane| self.head(lane)) else {
            return;
        };
        let job = match self.entry_queue(entry) {
            CALLERS => None,
            _ => Some(self.jobs[slot].id.clone()),
        };
        let on = match &self.doors[door].key {
            DoorKey::Limit(limit) => BlockedOn::Limit(self.limits[*limit].name.clone()),
            DoorKey::Pool(pool, _) => BlockedOn::Pool(self.pools[*pool].name.clone()),
        };
        self.out.facts.push(Fact::Blocked { job, on });
    }

    fn insert_entry(&mut self, door: Slot, entry: Entry, head: u64) {
        let (queue, group, marked) =
            (self.entry_queue(entry), self.entry_group(entry), self.is_marked(entry));
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].parked_key = head,
            Entry::Lane(lane) => self.lanes[lane].parked_key = head,
            Entry::Queue(_) => {
                self.doors[door].lines.entry(queue).or_default().whole = true;
                return;
            }
        }
        let g = &self.groups[group];
        let rank = rank_of(g.priority);
        let v = self.queues[queue].priorities.get(&rank).map_or(0, |turns| turns.v);
        let tag = g.own.max(v);
        let line = self.doors[door].lines.entry(queue).or_default();
        if marked {
            line.marked.insert((head, entry));
            return;
        }
        let at_door = line.groups.entry(group).or_default();
        // A group's time at a door is that of its last arrival there: what it is granted
        // elsewhere does not move those who stand, since that would be no event of this door.
        at_door.tag = at_door.tag.max(tag);
        at_door.entries.insert((head, entry));
        reorder(line, group, rank);
    }

    fn remove_entry(&mut self, door: Slot, entry: Entry, head: u64) {
        let (queue, group) = (self.entry_queue(entry), self.entry_group(entry));
        let rank = match entry {
            Entry::Queue(_) => 0,
            _ => rank_of(self.groups[group].priority),
        };
        let Some(line) = self.doors[door].lines.get_mut(&queue) else { return };
        if let Entry::Queue(_) = entry {
            line.whole = false;
        } else if !line.marked.remove(&(head, entry))
            && let Some(at_door) = line.groups.get_mut(&group)
        {
            at_door.entries.remove(&(head, entry));
            reorder(line, group, rank);
        }
    }

    /// Takes an entry away from its door and opens it. The door is due, since its first may be
    /// another now; `tidy` follows when nothing is out.
    pub(crate) fn unpark(&mut self, entry: Entry) -> Option<Slot> {
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
                self.touched.insert(queue);
            }
        }
        Some(door)
    }

    /// As [`Space::unpark`], for good: the door goes on to the next.
    pub(crate) fn leave_door(&mut self, entry: Entry) {
        let queue = self.entry_queue(entry);
        if let Some(door) = self.unpark(entry) {
            if !forgets(Mutant::HeadGoneIsNoEvent) {
                self.door_due(door);
            }
            self.tidy_door(door, queue);
        }
    }

    /// What a lane's new head, new length or end means for where it stands.
    pub(crate) fn lane_changed(&mut self, lane: Slot, now: Moment) {
        let head = self.head(lane).map(|head| head.0);
        if self.lanes[lane].marked && self.marks.get(&lane).map(|mark| mark.head) != head {
            self.drop_mark(lane, now);
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

    pub(crate) fn bundle_changed(&mut self, bundle: Slot, now: Moment) {
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

    fn rekey(&mut self, door: Slot, entry: Entry, head: u64, now: Moment) {
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

    /// An entry that was out is tried, or is empty: its queue stands at the door again.
    pub(crate) fn clear_out(&mut self, entry: Entry) {
        let out = match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].out.take(),
            Entry::Lane(lane) => {
                let l = &mut self.lanes[lane];
                self.bundles[l.bundle].outs.remove(&lane);
                l.out.take()
            }
            Entry::Queue(queue) => self.queues[queue].out.take(),
        };
        let Some(door) = out else { return };
        let queue = self.entry_queue(entry);
        if let Some(line) = self.doors[door].lines.get_mut(&queue) {
            line.out = None;
        }
        if !forgets(Mutant::TriedIsNoEvent) {
            self.door_due(door);
        }
        self.tidy_door(door, queue);
    }

    // ---- Patience ----

    fn start_wait(&mut self, entry: Entry, head: u64, now: Moment) {
        self.stop_wait(entry);
        // The head may have stood elsewhere before, as a lane in a bundle or the other way.
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

    /// Takes an entry out of the list of those who lose patience; what is known of its head stays.
    pub(crate) fn stop_wait(&mut self, entry: Entry) {
        if let Some(try_at) = self.wait_mut(entry).and_then(|wait| wait.try_at.take()) {
            self.impatient.remove(&(try_at, entry));
        }
    }

    /// Tries an entry for a reservation later again.
    pub(crate) fn wait_on(&mut self, entry: Entry, try_at: Moment) {
        self.stop_wait(entry);
        if let Some(wait) = self.wait_mut(entry) {
            wait.try_at = Some(try_at);
            self.impatient.insert((try_at, entry));
        }
    }

    /// A lane that reserves is first at its door; one that does no more stands in its order again.
    pub(crate) fn move_marked(&mut self, lane: Slot, set: impl FnOnce(&mut Self)) {
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

    // ---- Passes ----

    /// The first entry of a queue at a door: one that reserves if it can be served, else the
    /// first in order, since what is beyond a reservation is free for all.
    pub(crate) fn first_entry(&mut self, door: Slot, queue: Slot, now: Moment) -> Option<Entry> {
        let line = self.doors[door].lines.get(&queue)?;
        if line.whole {
            return Some(Entry::Queue(queue));
        }
        let marked = line.marked.first().map(|first| first.1);
        match marked {
            Some(entry) if self.entry_fits(door, entry, now) == Fit::Yes => marked,
            _ => line.first().or(marked),
        }
    }

    /// Whether a lane must stand behind others of its own queue at this door.
    pub(crate) fn must_stand_behind(&mut self, door: Slot, lane: Slot) -> bool {
        if forgets(Mutant::Barging) {
            return false;
        }
        let queue = self.lanes[lane].key.queue;
        let own_group = self.group_of(lane);
        let Some((arrival, _)) = self.head(lane) else { return false };
        // Lanes that reserve protect their demand by their marks, not by the order.
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

    /// Whether the first entry of a queue could be served at this door now.
    pub(crate) fn entry_fits(&self, door: Slot, entry: Entry, now: Moment) -> Fit {
        let key = &self.doors[door].key;
        let Some(lane) = self.entry_lane(entry) else {
            return match key {
                DoorKey::Limit(limit) => self.limit_fit(*limit, 1, 1, None, now),
                DoorKey::Pool(..) => Fit::Yes,
            };
        };
        let needs = &self.lanes[lane].key.needs;
        match needs.iter().find(|need| Space::door_key(need) == *key) {
            Some(need) => self.need_fit(need, lane, now),
            // Cannot be: an entry stands at the door of one of its needs. Trying it says so.
            None => Fit::Yes,
        }
    }

    /// Sets the door's timer to the moment when a queue's first entry, or the one that reserves
    /// beside it, may fit by time alone.
    pub(crate) fn arm_door(&mut self, door: Slot, queue: Slot, now: Moment) {
        let Some(line) = self.doors[door].lines.get(&queue) else { return };
        if line.out.is_some() {
            return;
        }
        let firsts = if line.whole {
            [Some(Entry::Queue(queue)), None]
        } else {
            [line.marked.first().map(|first| first.1), line.first()]
        };
        for first in firsts.into_iter().flatten() {
            match self.entry_fits(door, first, now) {
                Fit::No(Some(at)) => self.arm_door_at(door, at),
                Fit::No(None) => {}
                // It may be served: what made it so has made the door due, or makes it now.
                Fit::Yes | Fit::Never => self.door_due(door),
            }
        }
    }

    fn arm_door_at(&mut self, door: Slot, at: Moment) {
        let d = &mut self.doors[door];
        if d.timer.is_none_or(|timer| at < timer) {
            if let Some(timer) = d.timer.replace(at) {
                self.door_timers.clear(timer, door);
            }
            self.door_timers.set(at, door);
        }
    }

    /// One bounded step of what is pending; `false` if nothing is.
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
        // The next queue behind the cursor, round and round.
        let after = d.cursor.and_then(|cursor| {
            use std::ops::Bound::{Excluded, Unbounded};
            d.lines.range((Excluded(cursor), Unbounded)).next().map(|(queue, _)| *queue)
        });
        let Some(queue) = after.or_else(|| d.lines.keys().next().copied()) else { return true };
        d.cursor = Some(queue);
        if d.lines[&queue].out.is_some() {
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
                        // It lacks a plain need too, and stands there with its bundle: this door
                        // goes on to the next.
                        self.bundle_changed(bundle, now);
                        self.door_due(door);
                        return true;
                    }
                }
                if self.is_suspect(entry) {
                    // Some workers may not have it, so the door does not wait for it to be tried.
                    self.door_due(door);
                    return true;
                }
                if let Entry::Lane(lane) = entry {
                    self.bundles[self.lanes[lane].bundle].outs.insert(lane);
                }
                self.doors[door].lines.entry(queue).or_default().out = Some(entry);
                match entry {
                    Entry::Bundle(bundle) => self.bundles[bundle].out = Some(door),
                    Entry::Lane(lane) => self.lanes[lane].out = Some(door),
                    Entry::Queue(queue) => self.queues[queue].out = Some(door),
                }
                self.touched.insert(queue);
            }
        }
        true
    }

    fn tidy_door_line(&mut self, door: Slot, queue: Slot) {
        if let Some(line) = self.doors[door].lines.get(&queue)
            && line.is_empty()
            && line.out.is_none()
            && line.waiting == 0
        {
            self.doors[door].lines.remove(&queue);
        }
    }

    /// The settings behind a door changed: what could never fit may fit now. They are tried again
    /// one by one, as steps of what is pending.
    pub(crate) fn retry_misfits(&mut self, door: Slot) {
        let d = &mut self.doors[door];
        if d.retry.is_empty() {
            std::mem::swap(&mut d.retry, &mut d.misfits);
        } else {
            let misfits = std::mem::take(&mut d.misfits);
            d.retry.extend(misfits);
        }
        self.door_due(door);
    }

    /// The doors of a pool, those of these tags and ids only if they are named.
    pub(crate) fn pool_doors_due(
        &mut self,
        pool: Slot,
        tags: &[crate::names::Tag],
        id: &crate::names::ResourceId,
    ) {
        let doors = &self.pools[pool].doors;
        let mut due: Vec<Slot> = Vec::with_capacity(2 + tags.len());
        due.extend(doors.get(&Which::Any));
        if doors.len() > due.len() {
            due.extend(tags.iter().filter_map(|tag| doors.get(&Which::Tag(tag.clone()))));
            due.extend(doors.get(&Which::Id(id.clone())));
        }
        for door in due {
            self.door_due(door);
        }
    }
}

/// Puts a group in its place in a queue's order at a door.
fn reorder(line: &mut super::state::DoorLine, group: Slot, rank: i16) {
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
