//! Schedules between rows and a copy.

use super::CopiedRows;
use crate::rows::Kind;
use crate::schedule_text::{ReadRow, job_of_text, job_text};
use crate::state::{Origin, Schedule};
use tenure_core::copy::{CopiedOrigin, CopiedSchedule, CopiedSet, Item};
use tenure_core::names::{Owner, ScheduleId};
use tenure_core::schedule::ScheduleSettings;

/// A schedule's row as a thing; `job` reads the row of the job that it makes, where that has one. `Ok(None)`: a row is not
/// of this format.
pub fn schedule<E>(
    id: &str,
    value: &str,
    job: impl FnOnce() -> Result<String, E>,
) -> Result<Option<Item>, E> {
    let read = ScheduleId::known(id).ok().and_then(|id| Schedule::of_row(id, value));
    let Some(ReadRow { schedule: s, is_without_job }) = read else { return Ok(None) };
    let job = if is_without_job { job_of_text(&job()?) } else { s.scheduled_job() };
    let Some(job) = job else { return Ok(None) };
    Ok(Some(Item::Schedule(Box::new(CopiedSchedule {
        id: s.id,
        settings: ScheduleSettings {
            owner: s.owner,
            timing: s.timing,
            overlap: s.overlap,
            catch_up: s.catch_up,
            catch_up_max: s.catch_up_max,
            job,
        },
        version: s.version,
        era: s.era,
        cursor: s.cursor,
        decided: s.decided,
        moved: s.moved,
        paused_until: s.paused_until,
        last_made: s.last_made,
        last: s.last,
        last_ended: s.last_ended,
        last_succeeded_at: s.last_succeeded_at,
        fired: s.fired,
        skipped: s.skipped,
        missed: s.missed,
        created_at: s.created_at,
        changed_at: s.changed_at,
    }))))
}

/// The row of an owner's last version as a thing.
pub(super) fn set(owner: &str, value: &str) -> Option<Item> {
    let (owner, version) = (Owner::known(owner).ok()?, value.parse().ok()?);
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
        let s = Schedule {
            shell: false,
            owner,
            timing,
            overlap,
            catch_up,
            catch_up_max,
            job: job_text(&job),
            version: schedule.version,
            era: schedule.era,
            cursor: schedule.cursor,
            decided: schedule.decided,
            moved: schedule.moved,
            paused_until: schedule.paused_until,
            last_made: schedule.last_made,
            last: schedule.last,
            last_ended: schedule.last_ended,
            last_succeeded_at: schedule.last_succeeded_at,
            fired: schedule.fired,
            skipped: schedule.skipped,
            missed: schedule.missed,
            created_at: schedule.created_at,
            changed_at: schedule.changed_at,
            ..Schedule::shell(schedule.id)
        };
        self.put_text(Kind::Schedule, s.id.as_str(), s.row());
        if s.has_job_row() {
            self.put_text(Kind::ScheduledJob, s.id.as_str(), s.job.into_string());
        }
    }

    pub(super) fn set(&mut self, set: &CopiedSet) {
        self.put(Kind::SyncedSet, set.owner.as_str(), &set.version);
    }
}
