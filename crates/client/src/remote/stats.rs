//! Calls about a namespace as a whole over HTTP.

use tenure_core::requests::{Audit, GetStats, ListWorkers};

use super::ask::{OverHttp, Query};

impl OverHttp for GetStats {}

impl OverHttp for ListWorkers {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for Audit {
    fn query(&self, query: &mut Query) {
        query.with("deep", self.deep.then_some("true"));
    }
}
