//! Schedules: the table of all, and the orders that they stand in.
//!
//! Only the table has the ids; an index holds numbers of its entries, and the table compares them.

mod audit;
mod orders;
mod schedule;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{LiveScheduleId, Origin, Ranked};
use tenure_core::job::JobState;
use tenure_core::names::{JobId, Owner, ScheduleId};
use tenure_core::schedule::LastEnded;
use tenure_core::time::Moment;

pub(crate) use schedule::Schedule;
pub(crate) use table::{PackedSchedule, ScheduleTable};

/// All schedules of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    table: ScheduleTable,
    /// All schedules and shells, sorted by their ids.
    by_id: Ranked<LiveScheduleId>,
    /// Number of shells among them; views show all others.
    shells: usize,
    /// The schedules of each owner, sorted by their ids.
    by_owner: BTreeMap<Owner, Ranked<LiveScheduleId>>,
    /// Versions of the synced sets.
    synced_sets: BTreeMap<Owner, u64>,
    /// The firing order: by place, then by id.
    firing: Ranked<(Moment, LiveScheduleId)>,
    /// Schedules that want a plan, by the time of their request.
    planning: BTreeSet<(Moment, ScheduleId)>,
    /// Schedules with a due occurrence that waits for their own jobs or for a plan, by that occurrence.
    waiting: BTreeSet<(Moment, ScheduleId)>,
    /// Schedules that were paused at their last change, by the end of the pause: an expired pause stays until the
    /// schedule changes, because its end is no step.
    paused: BTreeSet<(Moment, ScheduleId)>,
    /// Schedules whose rows the next drain writes.
    changed: BTreeSet<LiveScheduleId>,
}

impl Schedules {
    /// True if there is neither a schedule nor the version of a set.
    pub fn are_none(&self) -> bool {
        self.by_id.is_empty() && self.synced_sets.is_empty()
    }

    /// The present state of a schedule, for reading.
    pub fn read(&self, slot: LiveScheduleId) -> Cow<'_, Schedule> {
        self.table.read(slot)
    }

    /// The present state of a schedule, for a change. One that moves it in an order stands between [`Schedules::leave_orders`]
    /// and [`Schedules::order`].
    pub fn open(&mut self, slot: LiveScheduleId) -> &mut Schedule {
        self.table.open(slot)
    }

    pub fn id_of(&self, slot: LiveScheduleId) -> &str {
        self.table.id_of(slot)
    }

    /// Packs a schedule that a step of many has finished with.
    pub fn pack(&mut self, slot: LiveScheduleId) {
        self.table.pack(slot);
    }

    /// The next drain writes its row.
    pub fn mark(&mut self, slot: LiveScheduleId) {
        self.changed.insert(slot);
    }

    /// Packs all open schedules at the end of a step.
    pub fn pack_all(&mut self) {
        self.table.pack_all();
    }

    /// Takes the changed schedules.
    pub fn take_changed(&mut self) -> BTreeSet<LiveScheduleId> {
        std::mem::take(&mut self.changed)
    }

    /// The schedule with this id, or its shell.
    pub fn with_id(&self, id: &str) -> Option<LiveScheduleId> {
        self.by_id.find(|there| self.table.id_of(there).cmp(id))
    }

    /// The schedule with this id, or a shell that counts its unfinished jobs.
    pub fn or_shell(&mut self, id: &ScheduleId) -> LiveScheduleId {
        if let Some(slot) = self.with_id(id.as_str()) {
            return slot;
        }
        self.shells += 1;
        self.add(&Schedule::shell(id.clone()))
    }

    /// Adds a schedule whose id is free.
    fn add(&mut self, schedule: &Schedule) -> LiveScheduleId {
        let slot = self.table.insert(schedule);
        let Schedules { table, by_id, .. } = self;
        by_id.insert(slot, |there| table.id_of(there).cmp(schedule.id.as_str()));
        slot
    }

    /// A shell becomes a schedule, or a new one is no shell any more.
    pub fn begin(&mut self, slot: LiveScheduleId, now: Moment) {
        let s = self.table.open(slot);
        self.shells -= usize::from(s.shell);
        *s = Schedule { shell: false, created_at: now, ..s.emptied() };
    }

    /// Deletes a schedule. It stays as a shell while a job of it has not ended.
    pub fn delete(&mut self, slot: LiveScheduleId) {
        self.leave_orders(slot);
        self.set_owner(slot, None);
        let s = self.table.open(slot);
        if s.unfinished == 0 {
            return self.forget(slot);
        }
        *s = s.emptied();
        self.shells += 1;
        self.changed.remove(&slot);
    }

    /// Removes a schedule from the index; nothing points to it.
    fn forget(&mut self, slot: LiveScheduleId) {
        self.leave_orders(slot);
        self.changed.remove(&slot);
        let Schedules { table, by_id, .. } = self;
        if table.get(slot).is_none() {
            return;
        }
        let id = table.id_of(slot);
        by_id.remove(|there| table.id_of(there).cmp(id));
        if let Some(schedule) = table.remove(slot) {
            self.shells -= usize::from(schedule.shell);
        }
    }

    /// The schedules behind an id, of all or of one owner, in the order of their ids.
    pub fn behind<'a>(
        &'a self,
        owner: Option<&Owner>,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = LiveScheduleId> + use<'a> {
        let ranked = match owner {
            Some(owner) => self.by_owner.get(owner),
            None => Some(&self.by_id),
        };
        let before = move |slot| after.is_some_and(|after| self.table.id_of(slot) <= after);
        ranked.map(|ranked| ranked.from(before)).into_iter().flatten()
    }

    /// Gives a schedule to an owner, or takes it from its present one.
    pub fn set_owner(&mut self, slot: LiveScheduleId, owner: Option<Owner>) {
        let s = self.table.open(slot);
        if s.owner == owner {
            return;
        }
        let old = std::mem::replace(&mut s.owner, owner.clone());
        let Schedules { table, by_owner, .. } = self;
        let id = table.id_of(slot);
        if let Some(old) = old
            && let Some(owned) = by_owner.get_mut(&old)
        {
            owned.remove(|there| table.id_of(there).cmp(id));
            if owned.is_empty() {
                by_owner.remove(&old);
            }
        }
        if let Some(owner) = owner {
            let owned = by_owner.entry(owner).or_default();
            owned.insert(slot, |there| table.id_of(there).cmp(id));
        }
    }

    // ---- The jobs of a schedule ----

    /// A job of a schedule was made, or lives again.
    pub fn job_lives(&mut self, origin: &Origin, job: &JobId) {
        let slot = self.or_shell(&origin.by.id);
        let s = self.table.open(slot);
        s.unfinished += 1;
        s.last_made = Some(job.clone());
        self.changed.insert(slot);
    }

    /// A job of a schedule ended in this state; `None`: it was deleted.
    pub fn job_ended(
        &mut self,
        origin: &Origin,
        job: &JobId,
        state: Option<JobState>,
        now: Moment,
    ) {
        let Some(slot) = self.with_id(origin.by.id.as_str()) else { return };
        let s = self.table.open(slot);
        s.unfinished = s.unfinished.saturating_sub(1);
        if let Some(state) = state {
            // Many may end in one call, in no meaningful order: the greatest id is shown.
            let earlier = s
                .last_ended
                .as_ref()
                .is_some_and(|last| last.finished_at == now && last.job > *job);
            if !earlier {
                s.last_ended = Some(LastEnded { job: job.clone(), state, finished_at: now });
            }
            if state == JobState::Succeeded {
                s.last_succeeded_at = Some(now);
            }
        }
        self.changed.insert(slot);
        if s.unfinished > 0 {
            return;
        }
        if s.shell {
            self.forget(slot);
        } else if s.awaits_job {
            self.stop_awaiting(slot, now);
        }
    }

    /// A due occurrence no longer waits for the schedule's own jobs.
    fn stop_awaiting(&mut self, slot: LiveScheduleId, now: Moment) {
        if self.table.read(slot).awaits_job {
            self.leave_orders(slot);
            self.table.open(slot).awaits_job = false;
            self.order(slot, Some(now), now);
        }
    }

    // ---- Synced sets ----

    /// The version of an owner's set; 0 before the first.
    pub fn version_of_set(&self, owner: &Owner) -> u64 {
        self.synced_sets.get(owner).copied().unwrap_or(0)
    }

    pub fn set_version_of_set(&mut self, owner: Owner, version: u64) {
        self.synced_sets.insert(owner, version);
    }

    // ---- A start ----

    /// Counts a live job at its schedule, even if that is gone. Then no row has the last job that it made: the newest
    /// remaining one counts.
    pub fn restore_job(&mut self, origin: &Origin, job: &JobId) {
        let slot = self.or_shell(&origin.by.id);
        let s = self.table.open(slot);
        s.unfinished += 1;
        if s.shell || s.last_made.is_none() {
            s.last_made = Some(job.clone());
        }
    }

    /// Restores a schedule from its row; `None` if its id is taken. At a start it is packed once, with its place in the
    /// firing order if that does not depend on a clock.
    pub fn restore(&mut self, mut schedule: Schedule) -> Option<()> {
        if self.with_id(schedule.id.as_str()).is_some() {
            return None;
        }
        let cursor = schedule.cursor;
        schedule.begin_after(cursor);
        let needs_clock = schedule.is_cron() || schedule.paused_until.is_some();
        schedule.place = match schedule.next_known() {
            Some(next) if !needs_clock => Some(next.due),
            _ => None,
        };
        let slot = self.add(&schedule);
        let Schedule { id, owner, place, .. } = schedule;
        if let Some(place) = place {
            self.firing.push((place, slot));
        } else if needs_clock {
            self.changed.insert(slot);
        }
        if let Some(owner) = owner {
            let Schedules { table, by_owner, .. } = self;
            let owned = by_owner.entry(owner).or_default();
            owned.insert(slot, |there| table.id_of(there).cmp(id.as_str()));
        }
        Some(())
    }

    /// Sorts all schedules after the last row.
    pub fn restored(&mut self, now: Moment) {
        let Schedules { table, firing, .. } = self;
        firing.sort(|(one, slot), (other, beside)| {
            one.cmp(&other).then_with(|| table.id_of(slot).cmp(table.id_of(beside)))
        });
        for slot in std::mem::take(&mut self.changed) {
            self.order(slot, None, now);
            self.table.pack(slot);
        }
        self.table.pack_all();
    }

    /// Puts a schedule into the firing order. The schedule must remember its place.
    pub fn enter_firing(&mut self, place: Moment, slot: LiveScheduleId) {
        let Schedules { table, firing, .. } = self;
        let key = (place, table.id_of(slot));
        firing.insert((place, slot), |(at, there)| {
            // Few share one time, so few ids are looked up.
            at.cmp(&key.0).then_with(|| table.id_of(there).cmp(key.1))
        });
    }

    /// Removes a schedule from the firing order.
    pub fn leave_firing(&mut self, place: Moment, slot: LiveScheduleId) {
        let Schedules { table, firing, .. } = self;
        let key = (place, table.id_of(slot));
        firing.remove(|(at, there)| at.cmp(&key.0).then_with(|| table.id_of(there).cmp(key.1)));
    }
}
