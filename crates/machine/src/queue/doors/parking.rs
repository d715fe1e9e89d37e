//! Places of lanes: jobs come and go, and entries are blocked in wait queues or leave them.
//!
//! It never opens a wait queue to serve: `passes` does.

use crate::queue::line::InLine;
use crate::state::{BundleId, CALLERS, DoorId, DoorKey, Entry, LaneId, Place, Space};
use tenure_core::events::{About, BlockedOn, EventType};
use tenure_core::time::Moment;

impl Space {
    /// Blocks an entry in the wait queue of a need that its head lacks.
    pub(crate) fn park(&mut self, entry: Entry, key: DoorKey, now: Moment) {
        let door = self.door_for(key);
        let head = self.lines.entry_head(entry).unwrap_or(0);
        self.lines.insert_entry(door, entry, head);
        self.place_entry(entry, Place::Parked(door));
        self.lines.start_wait(entry, head, self.patience, now);
        self.arm_door(door, self.lines.entry_queue(entry), now);
        self.somebody_stands(door, now);
        self.head_is_blocked(entry, door);
    }

    /// The gauge has a new user, perhaps only because it was not read lately. Unsatisfiable entries count in its line,
    /// too.
    fn somebody_stands(&mut self, door: DoorId, now: Moment) {
        if let DoorKey::Limit(limit) = self.lines[door].key {
            self.order_gauge(limit, now);
        }
    }

    /// Marks an entry as unsatisfiable: under the current settings it can never be served here.
    pub(crate) fn park_misfit(&mut self, entry: Entry, key: DoorKey) {
        let door = self.door_for(key);
        self.lines[door].misfits.insert(entry);
        self.place_entry(entry, Place::Misfit(door));
        self.somebody_stands(door, self.last);
        self.head_is_blocked(entry, door);
    }

    /// Lanes that other wait queues opened are blocked with their lane group again, so those wait queues go on. Each
    /// such lane was opened by a step of its own, so this work was already paid for.
    fn place_entry(&mut self, entry: Entry, place: Place) {
        self.lines.place_entry(entry, place);
        let Entry::Bundle(bundle) = entry else { return };
        while let Some(lane) = self.lines[bundle].outs.first().copied() {
            self.clear_out(Entry::Lane(lane));
        }
    }

    /// The job at the head of a lane lacks a need. Emits one event per need since the job became ready.
    fn head_is_blocked(&mut self, entry: Entry, door: DoorId) {
        let Some(lane) = self.lines.entry_lane(entry) else { return };
        let Some((arrival, head)) = self.lines.head(lane) else { return };
        if self.lines.entry_queue(entry) == CALLERS {
            return;
        }
        let on = match &self.lines[door].key {
            DoorKey::Limit(limit) => BlockedOn::Limit(self.limits[*limit].name.clone()),
            DoorKey::Pool(pool, _) => BlockedOn::Pool(self.pools[*pool].name.clone()),
        };
        let told = Some((arrival, on));
        if self.lines[lane].told == told {
            return;
        }
        let on = told.as_ref().map(|(_, on)| on.clone());
        self.lines[lane].told = told;
        let about = About { on, ..self.about_job(head.job()) };
        self.happens(EventType::JobBlocked, about, self.last);
    }

    // ---- Changes of a lane ----

    /// Puts a job or a lock waiter into a lane.
    pub(crate) fn enter_lane(&mut self, lane: LaneId, arrival: u64, what: InLine, now: Moment) {
        self.lines.insert_in_line(lane, arrival, what);
        self.lane_changed(lane, now);
    }

    /// Takes a job or a lock waiter out of its lane.
    pub(crate) fn leave_lane(&mut self, lane: LaneId, arrival: u64, now: Moment) {
        if self.lines.remove_from_line(lane, arrival) {
            self.lane_changed(lane, now);
            self.lines.drop_lane_if_idle(lane);
        }
    }

    /// An entry leaves its wait queue for good, which goes on to the next.
    pub(crate) fn leave_door(&mut self, entry: Entry) {
        let queue = self.lines.entry_queue(entry);
        if let Some(door) = self.lines.leave_door(entry) {
            self.tidy_door(door, queue);
        }
    }

    /// Moves a lane whose head, length or end changed to its right place.
    pub(crate) fn lane_changed(&mut self, lane: LaneId, now: Moment) {
        let head = self.lines.head(lane).map(|head| head.0);
        if self.lines[lane].reserving
            && self.lines.reservation(lane).map(|reservation| reservation.head) != head
        {
            self.drop_reservation(lane, now);
        }
        match (self.lines[lane].place, head) {
            (Place::Open, _) => self.lines.order_lane(lane),
            (_, None) => self.leave_door(Entry::Lane(lane)),
            (Place::Parked(door), Some(head)) if head != self.lines[lane].parked_key => {
                self.lines.rekey(door, Entry::Lane(lane), head, self.patience, now);
            }
            _ => {}
        }
        if head.is_none() {
            self.clear_out(Entry::Lane(lane));
        }
        self.bundle_changed(self.lines[lane].bundle, now);
    }

    pub(crate) fn bundle_changed(&mut self, bundle: BundleId, now: Moment) {
        let b = &self.lines[bundle];
        let head = b.open.first().map(|first| first.0);
        match (b.place, head) {
            (Place::Open, Some(_)) => {}
            (Place::Open, None) => self.clear_out(Entry::Bundle(bundle)),
            (_, None) => self.leave_door(Entry::Bundle(bundle)),
            (Place::Parked(door), Some(head)) if head != b.parked_key => {
                self.lines.rekey(door, Entry::Bundle(bundle), head, self.patience, now);
            }
            _ => {}
        }
    }

    /// An offered entry was tried, or is empty: the wait queue counts its job queue again.
    pub(crate) fn clear_out(&mut self, entry: Entry) {
        if let Some(door) = self.lines.clear_out(entry) {
            self.tidy_door(door, self.lines.entry_queue(entry));
        }
    }
}
