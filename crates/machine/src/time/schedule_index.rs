//! Indexes of schedules: by id, by owner, and in firing order. Only the table has the ids; an index holds numbers of
//! its entries, and the table compares them.

use crate::state::{LiveScheduleId, Schedule, Space};
use tenure_core::names::{Owner, ScheduleId};
use tenure_core::time::Moment;

impl Space {
    /// The schedule with this id, or its shell.
    pub(crate) fn schedule_with_id(&self, id: &str) -> Option<LiveScheduleId> {
        self.schedule_by_id.find(|there| self.schedules.id_of(there).cmp(id))
    }

    /// The schedule with this id, or a shell that counts its unfinished jobs.
    pub(crate) fn schedule_or_shell(&mut self, id: &ScheduleId) -> LiveScheduleId {
        if let Some(slot) = self.schedule_with_id(id.as_str()) {
            return slot;
        }
        self.shells += 1;
        self.add_schedule(&Schedule::shell(id.clone()))
    }

    /// Adds a schedule whose id is free.
    fn add_schedule(&mut self, schedule: &Schedule) -> LiveScheduleId {
        let slot = self.schedules.insert(schedule);
        let Space { schedules, schedule_by_id, .. } = self;
        schedule_by_id.insert(slot, |there| schedules.id_of(there).cmp(schedule.id.as_str()));
        slot
    }

    /// Removes a schedule from the index; nothing points to it.
    pub(crate) fn drop_schedule(&mut self, slot: LiveScheduleId) {
        self.leave_orders(slot);
        self.out.dirty_schedules.remove(&slot);
        let Space { schedules, schedule_by_id, .. } = self;
        if schedules.get(slot).is_none() {
            return;
        }
        let id = schedules.id_of(slot);
        schedule_by_id.remove(|there| schedules.id_of(there).cmp(id));
        if let Some(schedule) = schedules.remove(slot) {
            self.shells -= usize::from(schedule.shell);
        }
    }

    /// The schedules behind an id, of all or of one owner, in the order of their ids.
    pub(crate) fn schedules_behind<'a>(
        &'a self,
        owner: Option<&Owner>,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = LiveScheduleId> + use<'a> {
        let ranked = match owner {
            Some(owner) => self.schedules_by_owner.get(owner),
            None => Some(&self.schedule_by_id),
        };
        let before = move |slot| after.is_some_and(|after| self.schedules.id_of(slot) <= after);
        ranked.map(|ranked| ranked.from(before)).into_iter().flatten()
    }

    /// Gives a schedule to an owner, or takes it from its present one.
    pub(crate) fn set_owner(&mut self, slot: LiveScheduleId, owner: Option<Owner>) {
        let s = self.schedules.open(slot);
        if s.owner == owner {
            return;
        }
        let old = std::mem::replace(&mut s.owner, owner.clone());
        let Space { schedules, schedules_by_owner, .. } = self;
        let id = schedules.id_of(slot);
        if let Some(old) = old
            && let Some(owned) = schedules_by_owner.get_mut(&old)
        {
            owned.remove(|there| schedules.id_of(there).cmp(id));
            if owned.is_empty() {
                schedules_by_owner.remove(&old);
            }
        }
        if let Some(owner) = owner {
            let owned = schedules_by_owner.entry(owner).or_default();
            owned.insert(slot, |there| schedules.id_of(there).cmp(id));
        }
    }

    // ---- A start ----

    /// Restores a schedule from its row; `None` if its id is taken. At a start it is packed once, with its place in the
    /// firing order if that does not depend on a clock.
    pub(crate) fn restore_schedule(&mut self, mut schedule: Schedule) -> Option<()> {
        if self.schedule_with_id(schedule.id.as_str()).is_some() {
            return None;
        }
        let cursor = schedule.cursor;
        schedule.begin_after(cursor);
        let needs_clock = schedule.is_cron() || schedule.paused_until.is_some();
        schedule.place = match schedule.next_known() {
            Some(next) if !needs_clock => Some(next.due),
            _ => None,
        };
        let slot = self.add_schedule(&schedule);
        let Schedule { id, owner, place, .. } = schedule;
        if let Some(place) = place {
            self.firing.push((place, slot));
        } else if needs_clock {
            self.out.dirty_schedules.insert(slot);
        }
        if let Some(owner) = owner {
            let Space { schedules, schedules_by_owner, .. } = self;
            let owned = schedules_by_owner.entry(owner).or_default();
            owned.insert(slot, |there| schedules.id_of(there).cmp(id.as_str()));
        }
        Some(())
    }

    /// Sorts all schedules after the last row.
    pub(crate) fn restored_schedules(&mut self, now: Moment) {
        let Space { schedules, firing, .. } = self;
        firing.sort(|(one, slot), (other, beside)| {
            one.cmp(&other).then_with(|| schedules.id_of(slot).cmp(schedules.id_of(beside)))
        });
        for slot in std::mem::take(&mut self.out.dirty_schedules) {
            self.order_schedule(slot, None, now);
            self.schedules.pack(slot);
        }
        self.schedules.pack_all();
    }

    /// Puts a schedule into the firing order. The schedule must remember its place.
    pub(crate) fn enter_firing(&mut self, place: Moment, slot: LiveScheduleId) {
        let Space { schedules, firing, .. } = self;
        let key = (place, schedules.id_of(slot));
        firing.insert((place, slot), |(at, there)| {
            // Few share one time, so few ids are looked up.
            at.cmp(&key.0).then_with(|| schedules.id_of(there).cmp(key.1))
        });
    }

    /// Removes a schedule from the firing order.
    pub(crate) fn leave_firing(&mut self, place: Moment, slot: LiveScheduleId) {
        let Space { schedules, firing, .. } = self;
        let key = (place, schedules.id_of(slot));
        firing.remove(|(at, there)| at.cmp(&key.0).then_with(|| schedules.id_of(there).cmp(key.1)));
    }
}
