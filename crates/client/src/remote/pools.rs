//! Calls about pools over HTTP.

use tenure_core::requests::{DeletePool, GetPool, ListPools, PatchPool, PutPool};
use tenure_core::settings::{Pick, Rate};
use tenure_core::time::Span;

use super::ask::{Body, OverHttp, Query, Unsendable, json};
use super::body::patch_body;

impl OverHttp for GetPool {}
impl OverHttp for DeletePool {}

impl OverHttp for ListPools {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for PutPool {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&self.settings)
    }
}

impl OverHttp for PatchPool {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&PoolChange::from(self))
    }
}

patch_body! {
    /// Changes of a pool.
    PoolChange of PatchPool {
        quarantine: Span,
        cooldown: Span,
        rate: Rate,
        max_uses: u32,
        pick: Pick,
    }
}
