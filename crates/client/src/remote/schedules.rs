//! Calls about schedules over HTTP. A plan is never sent: the server computes its own.

use serde::Serialize;
use tenure_core::bounds::ITEMS_MAX;
use tenure_core::names::{JobId, Owner, ScheduleId};
use tenure_core::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, PatchSchedule, PauseSchedule, PutSchedule,
    ResumeSchedule, RunScheduleNow, SyncSchedules,
};
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob};
use tenure_core::time::{Moment, Span};

use super::ask::{Body, OverHttp, Query, Unsendable, json, set};
use super::body::{Wait, patch_body};

impl OverHttp for GetSchedule {}
impl OverHttp for DeleteSchedule {}
impl OverHttp for ResumeSchedule {}

impl OverHttp for ListSchedules {
    fn query(&self, query: &mut Query) {
        query.with("owner", self.owner.as_ref().map(Owner::as_str));
        query.with("full", self.full.then_some("true"));
        query.page(&self.page);
    }
}

impl OverHttp for PutSchedule {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&self.settings)
    }
}

impl OverHttp for PatchSchedule {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&ScheduleChange::from(self))
    }
}

impl OverHttp for PauseSchedule {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&Wait::from(self.until))
    }
}

impl OverHttp for RunScheduleNow {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&RunNow { id: self.id.as_ref() })
    }
}

impl OverHttp for SyncSchedules {
    fn query(&self, query: &mut Query) {
        query.with("owner", Some(self.owner.as_str()));
        query.set(self.meant, self.version);
    }
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let rows: Vec<SetEntry<'_>> =
            self.schedules.iter().map(|(id, settings)| SetEntry { id, settings }).collect();
        set(&rows, ITEMS_MAX)
    }
}

patch_body! {
    /// Changes of a schedule.
    ScheduleChange of PatchSchedule {
        owner: Owner,
        cron: String,
        zone: String,
        every: Span,
        starts_at: Moment,
        ends_at: Moment,
        jitter: Span,
        overlap: Overlap,
        catch_up: CatchUp,
        catch_up_max: u32,
        job: Box<ScheduledJob>,
    }
}

#[derive(Serialize)]
struct RunNow<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a JobId>,
}

/// A schedule of a set.
#[derive(Serialize)]
struct SetEntry<'a> {
    id: &'a ScheduleId,
    #[serde(flatten)]
    settings: &'a ScheduleSettings,
}
