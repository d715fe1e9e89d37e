//! Calls about schedules over HTTP. A plan is never sent: the server computes its own.

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::decode::AsBody;
use tenure_core::names::Owner;
use tenure_core::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, PatchSchedule, PauseSchedule, PutSchedule,
    ResumeSchedule, RunScheduleNow, SyncSchedules,
};

use super::ask::{Body, OverHttp, Query, Unsendable, json, set, with_bodies};

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
        json(&AsBody(self.settings.as_ref()))
    }
}

impl OverHttp for SyncSchedules {
    fn query(&self, query: &mut Query) {
        query.with("owner", Some(self.owner.as_str()));
        query.set(self.meant, self.version);
    }
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let rows: Vec<_> = self.schedules.iter().map(AsBody).collect();
        set(&rows, ITEMS_MAX)
    }
}

with_bodies! { PatchSchedule PauseSchedule RunScheduleNow }
