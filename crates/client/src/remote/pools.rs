//! Calls about pools over HTTP.

use tenure_core::decode::AsBody;
use tenure_core::requests::{DeletePool, GetPool, ListPools, PatchPool, PutPool};

use super::ask::{Body, OverHttp, Query, Unsendable, json, with_bodies};

impl OverHttp for GetPool {}
impl OverHttp for DeletePool {}

impl OverHttp for ListPools {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for PutPool {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(&PatchPool::from(self)))
    }
}

with_bodies! { PatchPool }
