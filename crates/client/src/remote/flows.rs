//! Calls about flows over HTTP, and the parents of a pushed job.

use tenure_core::requests::{CancelFlow, GetFlow, ListChildren, ListFlows, ListParents};

use super::ask::{OverHttp, Query};

impl OverHttp for CancelFlow {}

impl OverHttp for ListParents {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
        query.with("full", self.full.then_some("true"));
    }
}

impl OverHttp for ListChildren {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for ListFlows {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for GetFlow {
    fn query(&self, query: &mut Query) {
        query.wait(self.wait);
    }
}
