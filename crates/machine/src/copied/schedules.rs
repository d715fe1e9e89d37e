//! Schedules between rows and a copy.

use super::CopiedRows;
use crate::drain::{ScheduleRow, moment};
use crate::rows::Kind;
use crate::state::Origin;
use tenure_core::copy::{CopiedOrigin, CopiedSchedule, CopiedSet, Item};
use tenure_core::names::{Owner, ScheduleId};
use tenure_core::schedule::{ScheduleSettings, ScheduledJob};
use tenure_core::time::Moment;

/// A schedule's row, and that of the job which it makes, as a thing.
pub fn schedule(id: &str, value: &str, job: &str) -> Option<Item> {
    let row: ScheduleRow = serde_json::from_str(value).ok()?;
    let job: ScheduledJob = serde_json::from_str(job).ok()?;
    Some(Item::Schedule(Box::new(CopiedSchedule {
        id: ScheduleId::parse(id).ok()?,
        settings: ScheduleSettings {
            owner: row.owner,
            timing: row.timing,
            overlap: row.overlap,
            catch_up: row.catch_up,
            catch_up_max: row.catch_up_max,
            job,
        },
        version: row.version,
        era: row.era,
        cursor: moment(row.cursor),
        decided: moment(row.decided),
        moved: row.moved.map(moment),
        paused_until: row.paused_until.map(moment),
        last_made: row.last_made,
        last: row.last,
        last_ended: row.last_ended,
        last_succeeded_at: row.last_succeeded_at.map(moment),
        fired: row.fired,
        skipped: row.skipped,
        missed: row.missed,
        created_at: moment(row.created_at),
        changed_at: moment(row.changed_at),
    })))
}

/// The row of an owner's last version as a thing.
pub(super) fn set(owner: &str, value: &str) -> Option<Item> {
    let (owner, version) = (Owner::parse(owner).ok()?, value.parse().ok()?);
    Some(Item::Set(CopiedSet { owner, version }))
}

pub(super) fn origin_of(origin: Origin) -> CopiedOrigin {
    let Origin { by, era } = origin;
    CopiedOrigin { by, era }
}

pub(super) fn origin(origin: CopiedOrigin) -> Box<Origin> {
    let CopiedOrigin { by, era } = origin;
    Box::new(Origin { by, era })
}

impl CopiedRows<'_> {
    pub(super) fn schedule(&mut self, schedule: CopiedSchedule) {
        let ScheduleSettings { owner, timing, overlap, catch_up, catch_up_max, job } =
            schedule.settings;
        let row = ScheduleRow {
            owner,
            timing,
            overlap,
            catch_up,
            catch_up_max,
            version: schedule.version,
            era: schedule.era,
            cursor: schedule.cursor.us(),
            decided: schedule.decided.us(),
            moved: schedule.moved.map(Moment::us),
            paused_until: schedule.paused_until.map(Moment::us),
            last_made: schedule.last_made,
            last: schedule.last,
            last_ended: schedule.last_ended,
            last_succeeded_at: schedule.last_succeeded_at.map(Moment::us),
            fired: schedule.fired,
            skipped: schedule.skipped,
            missed: schedule.missed,
            created_at: schedule.created_at.us(),
            changed_at: schedule.changed_at.us(),
        };
        self.put(Kind::Schedule, schedule.id.as_str(), &row);
        self.put(Kind::ScheduledJob, schedule.id.as_str(), &job);
    }

    pub(super) fn set(&mut self, set: &CopiedSet) {
        self.put(Kind::SyncedSet, set.owner.as_str(), &set.version);
    }
}
