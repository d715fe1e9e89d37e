//! Calls about the resources of a pool over HTTP.

use tenure_core::decode::AsBody;
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeleteResource, GetResource, ListResources,
    PatchResource, RestoreResource, SyncResources,
};

use super::ask::{Body, OverHttp, Query, Unsendable, json, set, with_bodies};

impl OverHttp for GetResource {}
impl OverHttp for DeleteResource {}
impl OverHttp for RestoreResource {}

impl OverHttp for SyncResources {
    fn query(&self, query: &mut Query) {
        query.set(self.meant, self.version);
    }
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let rows: Vec<_> = self.resources.iter().map(AsBody).collect();
        set(&rows, usize::MAX)
    }
}

impl OverHttp for AddResources {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&AsBody(self.resources.as_slice()))
    }
}

impl OverHttp for ListResources {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

with_bodies! { PatchResource CoolResource BanResource }
