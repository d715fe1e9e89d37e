//! Pools: sets of resources with settings, and the lookup of a path.

use crate::answer::acts;
use crate::rows::Kind;
use crate::state::{DoorId, LiveResourceId, PoolId, Space};
use tenure_core::events::{About, EventType};
use tenure_core::names::{PoolName, ResourceId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{DeletePool, GetPool, ListPools, Listed, PatchPool, Put, PutPool};
use tenure_core::sentences::PoolRefusal;
use tenure_core::settings::{PoolSettings, PoolView};
use tenure_core::time::Moment;

pub(crate) fn pool_not_found(pool: &PoolName) -> Refusal {
    PoolRefusal::NotFound { pool: pool.clone() }.into()
}

fn resource_not_found(pool: &PoolName, id: &ResourceId) -> Refusal {
    PoolRefusal::ResourceNotFound { pool: pool.clone(), resource: id.clone() }.into()
}

impl Space {
    pub(crate) fn pool_named(&self, name: &PoolName) -> Result<PoolId, Refusal> {
        let pool = self.pools.by_name().get(name).copied();
        pool.filter(|pool| self.pools[*pool].settings.is_some()).ok_or_else(|| pool_not_found(name))
    }

    pub(crate) fn resource_named(
        &self,
        pool: &PoolName,
        id: &ResourceId,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.pool_named(pool)?;
        let resource = self.pools[slot].resources.get(id).copied();
        resource.ok_or_else(|| resource_not_found(pool, id))
    }

    pub(crate) fn pool_happens(&mut self, name: &PoolName, kind: EventType, now: Moment) {
        self.happens(kind, About { pool: Some(name.clone()), ..About::default() }, now);
    }

    pub(crate) fn put_pool(&mut self, put: PutPool, now: Moment) -> (PoolId, bool) {
        let pool = self.pools.named(&put.pool);
        let old = self.pools[pool].settings.replace(put.settings);
        if old != Some(put.settings) {
            self.pools.mark(pool);
            self.pool_happens(&put.pool, EventType::PoolChanged, now);
            self.pool_changed(pool, now);
        }
        (pool, old.is_none())
    }

    pub(crate) fn patch_pool(
        &mut self,
        patch: PatchPool,
        now: Moment,
    ) -> Result<(PoolId, bool), Refusal> {
        let pool = self.pool_named(&patch.pool)?;
        let mut settings = self.pools[pool].settings.unwrap_or_default();
        patch.quarantine.apply_or_default(&mut settings.quarantine);
        patch.cooldown.apply_or_default(&mut settings.cooldown);
        patch.rate.apply(&mut settings.rate);
        patch.max_uses.apply(&mut settings.max_uses);
        patch.pick.apply_or_default(&mut settings.pick);
        Ok(self.put_pool(PutPool { pool: patch.pool, settings }, now))
    }

    pub(crate) fn delete_pool(&mut self, name: &PoolName, now: Moment) -> Result<(), Refusal> {
        let pool = self.pool_named(name)?;
        let held = self.pools[pool].leased;
        if held > 0 {
            return Err(PoolRefusal::Held { pool: name.clone(), held }.into());
        }
        let resources: Vec<LiveResourceId> = self.pools[pool].resources.values().copied().collect();
        self.pool_happens(name, EventType::PoolDeleted, now);
        // Its jobs wait with `never_fits` until the pool is back.
        self.pools[pool].settings = None;
        self.put(Kind::Pool, name.as_str(), None);
        self.pools.unmark(pool);
        self.pools[pool].uses += 1;
        for resource in resources {
            self.remove_resource(resource);
        }
        self.forget_dropped(pool);
        self.pools[pool].uses -= 1;
        let doors: Vec<DoorId> = self.pools[pool].doors.values().copied().collect();
        for door in doors {
            self.lines.door_due(door);
        }
        if let Some(lane) = self.pools[pool].reservation.as_ref().map(|own| own.lane) {
            self.drop_reservation(lane, now);
        }
        self.pools.drop_if_idle(pool);
        Ok(())
    }

    /// The pool of a sync or an add; makes it if necessary.
    pub(super) fn pool_made(&mut self, name: &PoolName, now: Moment) -> PoolId {
        let pool = self.pools.named(name);
        if self.pools[pool].settings.is_none() {
            self.put_pool(PutPool { pool: name.clone(), settings: PoolSettings::default() }, now);
        }
        pool
    }
}

acts! {
    ListPools => Listed<PoolView>, |ask, at| Ok(at.space.list_pools(&ask.page));
    GetPool => PoolView, |ask, at| {
        let pool = at.space.pool_named(&ask.pool)?;
        Ok(at.space.pool_view(pool))
    };
    PutPool => Put<PoolView>, |ask, at| {
        let (pool, created) = at.space.put_pool(ask, at.now);
        Ok(Put { view: at.space.pool_view(pool), created })
    };
    PatchPool => Put<PoolView>, |ask, at| {
        let (pool, created) = at.space.patch_pool(ask, at.now)?;
        Ok(Put { view: at.space.pool_view(pool), created })
    };
    DeletePool => (), |ask, at| at.space.delete_pool(&ask.pool, at.now);
}
