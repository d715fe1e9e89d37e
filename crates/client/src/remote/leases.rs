//! Calls about leases over HTTP.

use tenure_core::requests::{Extend, ForceLease, Lease, ListLeases, Settle};

use super::ask::{OverHttp, Query, with_bodies};

impl OverHttp for ForceLease {}

impl OverHttp for ListLeases {
    fn query(&self, query: &mut Query) {
        query.with("queue", self.queue.as_ref().map(|name| name.as_str()));
        query.with("limit", self.limit.as_ref().map(|name| name.as_str()));
        query.with("pool", self.pool.as_ref().map(|name| name.as_str()));
        query.with("worker", self.worker.as_deref());
        query.page(&self.page);
    }
}

with_bodies! { Lease Extend Settle }
