//! Calls about queues over HTTP.

use std::collections::BTreeMap;

use tenure_core::job::{Need, Retry};
use tenure_core::names::Group;
use tenure_core::requests::{
    DeleteQueue, GetQueue, ListQueues, PatchQueue, PauseQueue, PutQueue, ResumeQueue,
};
use tenure_core::time::Span;

use super::ask::{Body, OverHttp, Query, Unsendable, json};
use super::body::{Wait, patch_body};

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
        json(&self.settings)
    }
}

impl OverHttp for PatchQueue {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&QueueChange::from(self))
    }
}

impl OverHttp for PauseQueue {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&Wait::from(self.until))
    }
}

patch_body! {
    /// Changes of a queue.
    QueueChange of PatchQueue {
        needs: Vec<Need>,
        retry: Retry,
        timeout: Span,
        retain: Span,
        max_waiting: u32,
        lost_delay: Span,
        shares: BTreeMap<Group, u32>,
        show_payload: bool,
    }
}
