//! The ready order of a queue: priority, then fair share, then arrival.
//!
//! A queue has priorities, a priority has groups, a group has lane groups (`Bundle`), a lane group
//! has lanes, a lane has jobs. Each level sorts its children by the key of their first; a changed
//! lane is carried up as far as keys change. This module does not decide if a lane may go.

use std::sync::Arc;

use super::WaitingLines;
use crate::queue::line::{InLine, Line};
use crate::state::{
    Bundle, BundleId, HeadWait, HeldNeed, Lane, LaneId, LaneKey, Place, QueueId, TurnId,
};
use tenure_core::bounds::STEPS_MAX;

/// Negated, so that the highest priority is the first.
pub(crate) fn rank_of(priority: i8) -> i16 {
    -i16::from(priority)
}

impl WaitingLines {
    /// The lane of this key; makes it if necessary.
    pub fn lane_for(&mut self, key: &LaneKey) -> LaneId {
        if let Some(lane) = self.lane_by_key.get(key) {
            return *lane;
        }
        let group = self.group_for(key);
        let plain: Arc<[HeldNeed]> = if key.needs.iter().all(HeldNeed::is_plain) {
            key.needs.clone()
        } else {
            key.needs.iter().filter(|need| need.is_plain()).cloned().collect()
        };
        let sort = (plain, key.suspect);
        let bundle = match self.groups[group].bundles.get(&sort) {
            Some(bundle) => *bundle,
            None => {
                let bundle = self.bundles.insert(new_bundle(key.queue, group, sort.clone()));
                self.groups[group].bundles.insert(sort, bundle);
                bundle
            }
        };
        self.bundles[bundle].lanes += 1;
        let lane = self.lanes.insert(Lane {
            key: key.clone(),
            bundle,
            line: Line::default(),
            place: Place::Open,
            offered_by: None,
            ordered: None,
            parked_key: 0,
            wait: HeadWait::default(),
            told: None,
            reserving: false,
            shapes: 0,
        });
        self.lane_by_key.insert(key.clone(), lane);
        lane
    }

    /// Drops an empty lane that no shape points to, and everything above it that becomes empty.
    pub fn drop_lane_if_idle(&mut self, lane: LaneId) {
        let l = &self.lanes[lane];
        if l.shapes > 0 || !l.line.is_empty() || l.offered_by.is_some() || l.place != Place::Open {
            return;
        }
        let bundle = l.bundle;
        if let Some(lane) = self.lanes.remove(lane) {
            self.lane_by_key.remove(&lane.key);
        }
        self.bundles[bundle].lanes -= 1;
        self.drop_bundle_if_idle(bundle);
    }

    fn drop_bundle_if_idle(&mut self, bundle: BundleId) {
        if self.bundles[bundle].lanes > 0 {
            return;
        }
        let group = self.bundles[bundle].group;
        if let Some(gone) = self.bundles.remove(bundle) {
            let bundles = &mut self.groups[group].bundles;
            let sort = (gone.plain, gone.suspect);
            if bundles.get(&sort) == Some(&bundle) {
                bundles.remove(&sort);
            }
        }
        if self.groups[group].bundles.is_empty() {
            let g = &self.groups[group];
            let (queue, rank, own) = (g.queue, rank_of(g.priority), g.own);
            if let Some(turns) = self.queues[queue].priorities.get_mut(&rank) {
                turns.idle.insert((own, group));
            }
            self.forget_idle_groups(queue, rank);
        }
    }

    /// Adds to every sum that includes the lane's length.
    fn add_len(&mut self, lane: LaneId, delta: i64) {
        let l = &self.lanes[lane];
        let (bundle, place) = (l.bundle, l.place);
        let (queue, rank) = (l.key.queue, rank_of(l.key.priority));
        let q = &mut self.queues[queue];
        q.counts.waiting = add(q.counts.waiting, delta);
        let mut emptied = false;
        if let Some(turns) = q.priorities.get_mut(&rank) {
            turns.waiting = add(turns.waiting, delta);
            emptied = turns.waiting == 0;
        }
        match place {
            Place::Open => {
                let b = &mut self.bundles[bundle];
                b.waiting = add(b.waiting, delta);
                let place = b.place;
                self.add_blocked(queue, place, delta);
            }
            place => self.add_blocked(queue, place, delta),
        }
        if emptied {
            self.void_priority(queue, rank);
        }
    }

    /// Puts a job or a lock waiter into a lane's line. The lane has changed then.
    pub fn insert_in_line(&mut self, lane: LaneId, arrival: u64, what: InLine) {
        let l = &mut self.lanes[lane];
        l.line.insert(arrival, what);
        let bundle = l.bundle;
        self.wake_group(self.bundles[bundle].group);
        self.add_len(lane, 1);
    }

    /// Takes a job or a lock waiter out of a lane's line. Returns false if it is not there.
    pub fn remove_from_line(&mut self, lane: LaneId, arrival: u64) -> bool {
        let is_there = self.lanes[lane].line.remove(arrival).is_some();
        if is_there {
            self.add_len(lane, -1);
        }
        is_there
    }

    /// Gives a lane a lane group of its own, because its reservation is kept from the other lanes of its group. Returns
    /// true if the lane is opened for a try and may not stay so.
    pub fn own_bundle(&mut self, lane: LaneId) -> bool {
        let shared = &self.bundles[self.lanes[lane].bundle];
        let sort = (shared.plain.clone(), shared.suspect);
        let own = new_bundle(shared.queue, shared.group, sort);
        let own = self.bundles.insert(own);
        // The shared one may be empty now, and must exist for the way back.
        self.bundles[self.lanes[lane].bundle].lanes += 1;
        self.move_lane(lane, own)
    }

    /// The lane group of a lane that goes back from its own one.
    pub fn shared_bundle(&self, lane: LaneId) -> Option<BundleId> {
        let own = &self.bundles[self.lanes[lane].bundle];
        let sort = (own.plain.clone(), own.suspect);
        self.groups[own.group].bundles.get(&sort).copied()
    }

    /// Moves a lane back to the shared lane group. Returns as [`WaitingLines::own_bundle`] does.
    pub fn leave_own_bundle(&mut self, lane: LaneId, shared: BundleId) -> bool {
        let clears = self.move_lane(lane, shared);
        self.bundles[shared].lanes -= 1;
        clears
    }

    fn move_lane(&mut self, lane: LaneId, to: BundleId) -> bool {
        let mut clears = false;
        let l = &mut self.lanes[lane];
        let (from, queue, len) = (l.bundle, l.key.queue, l.line.len() as i64);
        let open = l.place == Place::Open;
        if open {
            if let Some(key) = l.ordered.take() {
                self.bundles[from].open.remove(&(key, lane));
                self.order_bundle(from);
            }
            let b = &mut self.bundles[from];
            b.outs.remove(&lane);
            b.waiting = add(b.waiting, -len);
            let place = b.place;
            self.add_blocked(queue, place, -len);
        }
        self.lanes[lane].bundle = to;
        self.bundles[to].lanes += 1;
        self.bundles[from].lanes -= 1;
        if open {
            let b = &mut self.bundles[to];
            b.waiting = add(b.waiting, len);
            let place = b.place;
            self.add_blocked(queue, place, len);
            self.order_lane(lane);
            if self.lanes[lane].offered_by.is_some() {
                self.bundles[to].outs.insert(lane);
                clears = place != Place::Open;
            }
        }
        self.drop_bundle_if_idle(from);
        clears
    }

    fn add_blocked(&mut self, queue: QueueId, place: Place, delta: i64) {
        if let Place::Parked(door) | Place::Misfit(door) = place {
            self.queues[queue].counts.blocked = add(self.queues[queue].counts.blocked, delta);
            let door = &mut self.doors[door];
            door.waiting = add(door.waiting, delta);
            let line = door.lines.entry(queue).or_default();
            line.waiting = add(line.waiting, delta);
        }
    }

    /// Moves a lane between open, blocked and unsatisfiable; the sums go with it.
    pub fn place_lane(&mut self, lane: LaneId, place: Place) {
        let l = &mut self.lanes[lane];
        let (old, len, bundle, queue) = (l.place, l.line.len() as i64, l.bundle, l.key.queue);
        l.place = place;
        let b = &mut self.bundles[bundle];
        let through = b.place;
        match (old, place) {
            (Place::Open, Place::Open) => {}
            (Place::Open, _) => {
                b.waiting = add(b.waiting, -len);
                self.add_blocked(queue, through, -len);
                self.add_blocked(queue, place, len);
            }
            (_, Place::Open) => {
                b.waiting = add(b.waiting, len);
                self.add_blocked(queue, old, -len);
                self.add_blocked(queue, through, len);
            }
            (old, place) => {
                self.add_blocked(queue, old, -len);
                self.add_blocked(queue, place, len);
            }
        }
        self.order_lane(lane);
    }

    /// Moves a lane group between open, blocked and unsatisfiable; the sums go with it.
    pub fn place_bundle(&mut self, bundle: BundleId, place: Place) {
        let b = &mut self.bundles[bundle];
        let (old, len, queue) = (b.place, b.waiting as i64, b.queue);
        b.place = place;
        self.add_blocked(queue, old, -len);
        self.add_blocked(queue, place, len);
        self.order_bundle(bundle);
    }

    // ---- Order ----

    /// Carries an open lane's head up into the order.
    pub fn order_lane(&mut self, lane: LaneId) {
        let l = &mut self.lanes[lane];
        let key = match l.place {
            Place::Open => l.line.first().map(|first| first.0),
            _ => None,
        };
        let bundle = l.bundle;
        if l.ordered == key {
            return;
        }
        let old = std::mem::replace(&mut l.ordered, key);
        let open = &mut self.bundles[bundle].open;
        if let Some(old) = old {
            open.remove(&(old, lane));
        }
        if let Some(key) = key {
            open.insert((key, lane));
        }
        self.order_bundle(bundle);
    }

    pub fn order_bundle(&mut self, bundle: BundleId) {
        let b = &mut self.bundles[bundle];
        let key = match b.place {
            Place::Open => b.open.first().map(|first| first.0),
            _ => None,
        };
        let group = b.group;
        if b.ordered == key {
            return;
        }
        let old = std::mem::replace(&mut b.ordered, key);
        let open = &mut self.groups[group].open;
        if let Some(old) = old {
            open.remove(&(old, bundle));
        }
        if let Some(key) = key {
            open.insert((key, bundle));
        }
        self.order_group(group);
    }

    /// The next lane to go; skips suspects unless the worker may take one.
    pub fn next_lane(&self, queue: QueueId, suspects: bool) -> Option<LaneId> {
        let mut looked = 0;
        for turns in self.queues[queue].priorities.values() {
            for (_, _, group) in &turns.open {
                for (_, bundle) in &self.groups[*group].open {
                    for (_, lane) in &self.bundles[*bundle].open {
                        if suspects || !self.lanes[*lane].key.suspect {
                            return Some(*lane);
                        }
                        looked += 1;
                        if looked >= STEPS_MAX {
                            return None;
                        }
                    }
                }
            }
        }
        None
    }

    /// The head of a lane: its arrival and its slot.
    pub fn head(&self, lane: LaneId) -> Option<(u64, InLine)> {
        self.lanes.get(lane)?.line.first()
    }

    /// The group that a lane takes its turns in.
    pub fn group_of(&self, lane: LaneId) -> TurnId {
        self.bundles[self.lanes[lane].bundle].group
    }

    /// True if a waiting job is blocked.
    pub fn is_blocked(&self, lane: LaneId) -> bool {
        let l = &self.lanes[lane];
        l.place != Place::Open
            || self.bundles[l.bundle].place != Place::Open
            || self.queues[l.key.queue].place != Place::Open
    }
}

fn new_bundle(queue: QueueId, group: TurnId, sort: (Arc<[HeldNeed]>, bool)) -> Bundle {
    Bundle {
        queue,
        group,
        plain: sort.0,
        suspect: sort.1,
        open: Default::default(),
        waiting: 0,
        place: Place::Open,
        offered_by: None,
        ordered: None,
        parked_key: 0,
        wait: HeadWait::default(),
        outs: Default::default(),
        lanes: 0,
    }
}

fn add(sum: u64, delta: i64) -> u64 {
    match sum.checked_add_signed(delta) {
        Some(sum) => sum,
        None => panic!("a sum of waiting jobs went below zero"),
    }
}
