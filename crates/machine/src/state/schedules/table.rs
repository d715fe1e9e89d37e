//! The table of schedules, which keeps resting ones packed.
//!
//! An open schedule has room for every value and takes some 700 bytes; nearly all of a million rest. A packed one is a
//! single text, little longer than its id, its settings and its job. A step that changes a schedule opens it, and the
//! next drain packs it again; a step that changes many packs each of them at once.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::{LiveScheduleId, Schedule};
use crate::state::slots::Slots;

/// A schedule as text, in its state at the last packing. Its id never changes.
#[derive(Debug)]
pub(crate) struct PackedSchedule(Box<str>);

/// All schedules of a namespace, and the shells of deleted ones.
#[derive(Debug, Default)]
pub(crate) struct ScheduleTable {
    slots: Slots<PackedSchedule>,
    /// Schedules that a step opened and no drain has packed yet; their texts are out of date meanwhile.
    open: HashMap<LiveScheduleId, Box<Schedule>>,
}

impl PackedSchedule {
    fn of(schedule: &Schedule) -> Self {
        PackedSchedule(schedule.packed())
    }

    /// Panics on an unreadable text. This process wrote it, and it never left the process: an unreadable one is a bug
    /// that must not reach a disk, so it ends the process, like a broken link to an entry.
    fn read(&self) -> Schedule {
        match Schedule::unpacked(&self.0) {
            Some(schedule) => schedule,
            None => panic!("a schedule that was packed cannot be read"),
        }
    }
}

impl ScheduleTable {
    pub(crate) fn insert(&mut self, schedule: &Schedule) -> LiveScheduleId {
        self.slots.insert(PackedSchedule::of(schedule))
    }

    pub(crate) fn remove(&mut self, slot: LiveScheduleId) -> Option<Schedule> {
        let packed = self.slots.remove(slot)?;
        Some(self.open.remove(&slot).map_or_else(|| packed.read(), |schedule| *schedule))
    }

    /// The present state of a schedule, for reading.
    pub(crate) fn read(&self, slot: LiveScheduleId) -> Cow<'_, Schedule> {
        self.seen(slot, &self.slots[slot])
    }

    pub(crate) fn get(&self, slot: LiveScheduleId) -> Option<Cow<'_, Schedule>> {
        Some(self.seen(slot, self.slots.get(slot)?))
    }

    fn seen(&self, slot: LiveScheduleId, packed: &PackedSchedule) -> Cow<'_, Schedule> {
        match self.open.get(&slot) {
            Some(schedule) => Cow::Borrowed(schedule),
            None => Cow::Owned(packed.read()),
        }
    }

    /// The present state of a schedule, for a change.
    pub(crate) fn open(&mut self, slot: LiveScheduleId) -> &mut Schedule {
        let ScheduleTable { slots, open } = self;
        open.entry(slot).or_insert_with(|| Box::new(slots[slot].read()))
    }

    /// The same, if there is such a schedule.
    pub(crate) fn get_open(&mut self, slot: LiveScheduleId) -> Option<&mut Schedule> {
        self.slots.get(slot)?;
        Some(self.open(slot))
    }

    /// Packs a schedule that the step has finished with. A later change in the same step opens it again.
    pub(crate) fn pack(&mut self, slot: LiveScheduleId) {
        if let Some(schedule) = self.open.remove(&slot) {
            self.slots[slot] = PackedSchedule::of(&schedule);
        }
    }

    /// Packs all open schedules at the end of a step.
    pub(crate) fn pack_all(&mut self) {
        for (slot, schedule) in std::mem::take(&mut self.open) {
            self.slots[slot] = PackedSchedule::of(&schedule);
        }
    }

    /// The id of a schedule, read without the rest of it.
    pub(crate) fn id_of(&self, slot: LiveScheduleId) -> &str {
        Schedule::id_of_packed(&self.slots[slot].0).unwrap_or_default()
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = LiveScheduleId> {
        self.slots.iter().map(|(slot, _)| slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LiveScheduleId, Cow<'_, Schedule>)> {
        self.slots.iter().map(|(slot, packed)| (slot, self.seen(slot, packed)))
    }
}
