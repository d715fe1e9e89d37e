//! Calls about limits over HTTP.

use tenure_core::decode::AsBody;
use tenure_core::requests::{
    DeleteLimit, GetLimit, ListLimits, ObserveLimit, PatchLimit, PauseLimit, PutLimit, ResumeLimit,
};

use super::ask::{Body, OverHttp, Query, Unsendable, json, with_bodies};

impl OverHttp for GetLimit {}
impl OverHttp for DeleteLimit {}
impl OverHttp for ResumeLimit {}

impl OverHttp for ListLimits {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for PutLimit {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(&PatchLimit::from(self)))
    }
}

with_bodies! { PatchLimit PauseLimit ObserveLimit }
