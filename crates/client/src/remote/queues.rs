//! Calls about queues over HTTP.

use tenure_core::decode::AsBody;
use tenure_core::requests::{
    DeleteQueue, GetQueue, ListQueues, PatchQueue, PauseQueue, PutQueue, ResumeQueue,
};

use super::ask::{Body, OverHttp, Query, Unsendable, json, with_bodies};

impl OverHttp for GetQueue {}
impl OverHttp for DeleteQueue {}
impl OverHttp for ResumeQueue {}

impl OverHttp for ListQueues {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for PutQueue {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(&PatchQueue::from(self)))
    }
}

with_bodies! { PatchQueue PauseQueue }
