//! `/v1/schedules`.

use tenure_core::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, PatchSchedule, PauseSchedule, PutSchedule,
    ResumeSchedule, RunScheduleNow, SyncSchedules,
};

use super::{LineItem, Route, route};

pub(super) static ROUTES: &[Route] = &[
    route!(ListSchedules, "List schedules", 200 "Schedules"),
    route!(GetSchedule, "Show a schedule", 200 "Schedule"),
    route!(PutSchedule, "Replace all settings of a schedule", 200 "Schedule", 201 "Schedule"),
    route!(PatchSchedule, "Change settings of a schedule", 200 "Schedule"),
    route!(DeleteSchedule, "Forget a schedule; its jobs go on", 204 ""),
    route!(PauseSchedule, "Pause a schedule", 200 "Schedule"),
    route!(ResumeSchedule, "End a pause of a schedule", 200 "Schedule"),
    route!(RunScheduleNow, "Make a job of a schedule at once", 200 "PushedJob", 201 "PushedJob"),
    route!(
        SyncSchedules,
        "Make this the whole set of an owner: an array, or a schedule a line",
        200 "SyncedSchedules"
    )
    .lines_of(LineItem::Schedule),
];
