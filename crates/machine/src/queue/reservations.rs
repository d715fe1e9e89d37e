//! Reservations: a lane whose head was blocked past the namespace's patience keeps capacity that frees.
//!
//! A lane reserves all its needs in one step, or none, and a limit or a pool is reserved for at most one lane. A
//! reservation keeps exactly the lane's own demand; capacity beyond it is free for all. This ends the starvation of a
//! heavy head among light ones, and of a head with many needs. One tick makes at most `MARKS_MAX` reservations.

use crate::facts::Fact;
use crate::scarce::rates::rate_fits_at;
use crate::state::{
    CALLERS, DoorId, DoorKey, Entry, HeldNeed, LaneId, LimitId, LimitReservation, LiveResourceId,
    Place, PoolReservation, QueueId, Reservation, Space, Which,
};
use tenure_core::bounds::{ASKED_US, MARKS_MAX, RESERVE_RETRY_US};
use tenure_core::settings::ResourceState;
use tenure_core::time::{Moment, Span};

impl Space {
    /// Tries the longest-waiting entries, at most 8; the others at the next tick.
    pub(crate) fn tick_reservations(&mut self, now: Moment) {
        let fallen = self.lines.reserving().filter(|lane| !self.may_reserve(*lane, now));
        let fallen: Vec<LaneId> = fallen.collect();
        for lane in fallen {
            self.drop_reservation(lane, now);
        }
        for _ in 0..MARKS_MAX {
            let Some(entry) = self.lines.first_impatient(now) else { return };
            self.lines.wait_on(entry, now.plus(Span::from_us(RESERVE_RETRY_US)));
            if let Some(lane) = self.lines.entry_lane(entry)
                && !self.lines[lane].reserving
                && self.may_reserve(lane, now)
                && self.none_is_reserved(lane)
            {
                self.reserve(lane, now);
            }
        }
    }

    /// True if no need is closed by time, banned, unknown or unsatisfiable, and the queue's workers ask.
    fn may_reserve(&self, lane: LaneId, now: Moment) -> bool {
        let l = &self.lines[lane];
        let q = &self.lines[l.key.queue];
        let asked = q.asked_at.is_some_and(|at| at.plus(Span::from_us(ASKED_US)) >= now);
        if q.paused_until.is_some() || !(asked || l.key.queue == CALLERS || !q.takers.is_empty()) {
            return false;
        }
        l.key.needs.iter().all(|need| match need {
            HeldNeed::Limit { limit, weight, cost, .. } => {
                let name = &self.limits[*limit].name;
                let Some((settings, _)) = self.limits.setting_of(name) else { return false };
                let l = &self.limits[*limit];
                // A gauge that is being read, or is unreadable, also closes its limit by time.
                let readable = l.gauge.as_ref().is_none_or(|gauge| gauge.may_be_used(now));
                let open = readable && l.paused_until.is_none_or(|until| until <= now);
                // If resting permits alone leave no room, only time frees some, so there is nothing to keep.
                let room = |cap: u32| l.resting_sum + u64::from(*weight) <= u64::from(cap);
                let cap = settings.concurrency.is_none_or(|cap| *weight <= cap && room(cap));
                let rate = settings.rate.as_ref().is_none_or(|rate| {
                    *cost <= rate.burst
                        && (*cost == 0 || rate_fits_at(rate, l.tat, *cost, now) <= now)
                });
                let closes = settings.concurrency.is_some() && self.closed_until(now).is_some();
                open && cap && rate && !closes
            }
            HeldNeed::Pool { pool, which, count, .. } => {
                let p = &self.pools[*pool];
                if p.settings.is_none() || self.closed_until(now).is_some() {
                    return false;
                }
                let usable = |slot: &LiveResourceId| {
                    let r = &self.pools[*slot];
                    r.state == ResourceState::Available && !r.retiring && r.paced_until <= now
                };
                match which {
                    Which::Id(id) => p.resources.get(id).is_some_and(usable),
                    // Resources that are not banned or cooling may come: an exact count would scan the pool.
                    Which::Any => {
                        p.resources.len() as u64 >= p.banned + p.cooling + u64::from(*count)
                    }
                    Which::Tag(tag) => p.tagged.get(tag).copied().unwrap_or(0) >= u64::from(*count),
                }
            }
        })
    }

    fn none_is_reserved(&self, lane: LaneId) -> bool {
        self.lines[lane].key.needs.iter().all(|need| match need {
            HeldNeed::Limit { limit, .. } => self.limits[*limit].reservation.is_none(),
            HeldNeed::Pool { pool, .. } => self.pools[*pool].reservation.is_none(),
        })
    }

    fn reserve(&mut self, lane: LaneId, now: Moment) {
        let Some((head, slot)) = self.lines.head(lane) else { return };
        // A lane that was blocked with its lane group stands for itself from now on.
        let bundle = self.lines[lane].bundle;
        if self.lines[lane].place == Place::Open {
            let Place::Parked(door) = self.lines[bundle].place else { return };
            let key = self.lines[door].key.clone();
            self.lines[lane].reserving = true;
            self.park(Entry::Lane(lane), key, now);
            self.bundle_changed(bundle, now);
        } else {
            self.lines.set_reserving(lane, true);
        }
        self.own_bundle(lane);
        self.lines.reserve(Reservation { lane, head, since: now });
        let needs = self.lines[lane].key.needs.clone();
        for need in needs.iter() {
            match need {
                HeldNeed::Limit { limit, weight, cost, .. } => {
                    let (weight, cost) = (*weight, *cost);
                    let reservation = LimitReservation { lane, weight, cost };
                    self.limits[*limit].reservation = Some(reservation);
                }
                HeldNeed::Pool { pool, which, count, .. } => {
                    let (which, count, kept) = (which.clone(), *count, Vec::new());
                    let reservation = PoolReservation { lane, which, count, kept };
                    self.pools[*pool].reservation = Some(reservation);
                    self.keep_free(*pool, now);
                }
            }
        }
        self.need_doors_due(&needs);
        let is_job = self.lines[lane].key.queue != CALLERS;
        let job = is_job.then(|| self.jobs[slot.job()].id.clone());
        self.outbox.facts.push(Fact::Reserved { job });
    }

    /// Ends a reservation: its capacity is free for all, so its wait queues are due.
    pub(crate) fn drop_reservation(&mut self, lane: LaneId, now: Moment) {
        if !self.lines.unreserve(lane) {
            return;
        }
        let needs = self.lines[lane].key.needs.clone();
        for need in needs.iter() {
            match need {
                HeldNeed::Limit { limit, .. } => self.limits[*limit].reservation = None,
                HeldNeed::Pool { pool, .. } => {
                    if let Some(reservation) = self.pools[*pool].reservation.take() {
                        self.unkeep(reservation.kept, now);
                    }
                }
            }
        }
        self.lines.set_reserving(lane, false);
        self.shared_bundle(lane, now);
        self.need_doors_due(&needs);
        self.outbox.facts.push(Fact::ReservationFell);
    }

    /// A reserving lane gets a lane group of its own; afterwards it goes back.
    fn own_bundle(&mut self, lane: LaneId) {
        if self.lines.own_bundle(lane) {
            self.clear_out(Entry::Lane(lane));
        }
    }

    /// Moves a lane back from its own lane group to the shared one.
    fn shared_bundle(&mut self, lane: LaneId, now: Moment) {
        let Some(shared) = self.lines.shared_bundle(lane) else { return };
        if self.lines.leave_own_bundle(lane, shared) {
            self.clear_out(Entry::Lane(lane));
        }
        self.bundle_changed(shared, now);
    }

    fn need_doors_due(&mut self, needs: &[HeldNeed]) {
        for need in needs {
            match need {
                HeldNeed::Limit { limit, .. } => self.limit_due(*limit),
                HeldNeed::Pool { pool, .. } => {
                    let doors: Vec<DoorId> = self.pools[*pool].doors.values().copied().collect();
                    for door in doors {
                        self.lines.door_due(door);
                    }
                }
            }
        }
    }

    /// A changed setting may end the condition of a reservation.
    pub(crate) fn recheck_reservations_of(&mut self, limit: LimitId, now: Moment) {
        if let Some(LimitReservation { lane, .. }) = self.limits[limit].reservation
            && !self.may_reserve(lane, now)
        {
            self.drop_reservation(lane, now);
        }
    }

    /// A paused queue reserves nothing.
    pub(crate) fn drop_reservations_of_queue(&mut self, queue: QueueId, now: Moment) {
        let of_queue = self.lines.reserving().filter(|lane| self.lines[*lane].key.queue == queue);
        let lanes: Vec<LaneId> = of_queue.collect();
        for lane in lanes {
            self.drop_reservation(lane, now);
        }
    }

    /// The fit of a need for a lane, now.
    pub(crate) fn need_fit(
        &self,
        need: &HeldNeed,
        lane: LaneId,
        now: Moment,
    ) -> crate::queue::doors::Fit {
        match need {
            HeldNeed::Limit { limit, weight, cost, .. } => {
                self.limit_fit(*limit, *weight, *cost, Some(lane), now)
            }
            HeldNeed::Pool { pool, which, count, .. } => {
                self.pool_fit(*pool, which, *count, Some(lane), now)
            }
        }
    }

    /// The existing wait queue of a need, for a check of it.
    pub(crate) fn door_of(&self, need: &HeldNeed) -> Option<DoorId> {
        self.find_door(&Space::door_key(need) as &DoorKey)
    }
}
