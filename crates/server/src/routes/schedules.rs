//! `/v1/schedules`.

use tenure_core::decode;
use tenure_core::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, PatchSchedule, PauseSchedule, PutSchedule,
    ResumeSchedule, RunScheduleNow, SyncSchedules,
};

use super::{Route, Takes, route};

const SCHEDULE: &[(u16, &str)] = &[(200, "Schedule")];
const PUT: &[(u16, &str)] = &[(200, "Schedule"), (201, "Schedule")];

pub(super) static ROUTES: &[Route] = &[
    route!(ListSchedules, "List schedules", |asked| decode::list_schedules(asked.query))
        .query::<ListSchedules>()
        .answers(&[(200, "Schedules")]),
    route!(GetSchedule, "Show a schedule", |asked| Ok(GetSchedule {
        schedule: decode::schedule_path(asked.first())?
    }))
    .answers(SCHEDULE),
    route!(PutSchedule, "Replace all settings of a schedule", |asked| decode::put_schedule(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("ScheduleSettings"))
    .answers(PUT),
    route!(PatchSchedule, "Change settings of a schedule", |asked| decode::patch_schedule(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("SchedulePatch"))
    .answers(SCHEDULE),
    route!(DeleteSchedule, "Forget a schedule; its jobs go on", |asked| Ok(DeleteSchedule {
        schedule: decode::schedule_path(asked.first())?
    })),
    route!(PauseSchedule, "Pause a schedule", |asked| decode::pause_schedule(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Maybe("Later"))
    .answers(SCHEDULE),
    route!(ResumeSchedule, "End a pause of a schedule", |asked| Ok(ResumeSchedule {
        schedule: decode::schedule_path(asked.first())?
    }))
    .answers(SCHEDULE),
    route!(RunScheduleNow, "Make a job of a schedule at once", |asked| decode::run_schedule_now(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Maybe("RunNow"))
    .answers(&[(200, "PushedJob"), (201, "PushedJob")]),
    route!(
        SyncSchedules,
        "Make this the whole set of an owner: an array, or a schedule a line",
        |asked| decode::sync_schedules(asked.query, asked.body)
    )
    .query::<SyncSchedules>()
    .takes(Takes::JsonOrSchedules("ScheduleSet"))
    .answers(&[(200, "SyncedSchedules")]),
];
