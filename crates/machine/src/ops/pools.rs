//! pools: sets of resources, synced from outside, cooled, banned, restored.
//!
//! A sync changes id, data, tags and slots and nothing else. It is one step: others see the old set
//! or the new one.

use crate::rows::DataKey;
use crate::state::{DoorId, LiveResourceId, PoolId, Space};
use tenure_core::names::{PoolName, ResourceId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, Meant, PatchPool, PatchResource, PutPool,
    SyncResources,
};
use tenure_core::sentences::{PoolRefusal, StoredNote};
use tenure_core::settings::{NewResource, PoolSettings, ResourceState, Synced};
use tenure_core::time::{Moment, Span};

pub(crate) fn pool_not_found(pool: &PoolName) -> Refusal {
    PoolRefusal::NotFound { pool: pool.clone() }.into()
}

fn resource_not_found(pool: &PoolName, id: &ResourceId) -> Refusal {
    PoolRefusal::ResourceNotFound { pool: pool.clone(), resource: id.clone() }.into()
}

impl Space {
    pub(crate) fn pool_named(&self, name: &PoolName) -> Result<PoolId, Refusal> {
        let pool = self.pool_by_name.get(name).copied();
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

    pub(crate) fn put_pool(&mut self, put: PutPool, now: Moment) -> (PoolId, bool) {
        let pool = self.pool_for(&put.pool);
        let old = self.pools[pool].settings.replace(put.settings);
        if old != Some(put.settings) {
            self.out.dirty_pools.insert(pool);
            self.pool_changed(pool, now);
        }
        (pool, old.is_none())
    }

    pub(crate) fn patch_pool(&mut self, patch: PatchPool, now: Moment) -> (PoolId, bool) {
        let old = self.pool_by_name.get(&patch.pool).and_then(|pool| self.pools[*pool].settings);
        let mut settings: PoolSettings = old.unwrap_or_default();
        patch.quarantine.apply_or_default(&mut settings.quarantine);
        patch.cooldown.apply_or_default(&mut settings.cooldown);
        patch.rate.apply(&mut settings.rate);
        patch.max_uses.apply(&mut settings.max_uses);
        patch.pick.apply_or_default(&mut settings.pick);
        self.put_pool(PutPool { pool: patch.pool, settings }, now)
    }

    pub(crate) fn delete_pool(&mut self, name: &PoolName, now: Moment) -> Result<(), Refusal> {
        let pool = self.pool_named(name)?;
        let held = self.pools[pool].leased;
        if held > 0 {
            return Err(PoolRefusal::Held { pool: name.clone(), held }.into());
        }
        let resources: Vec<LiveResourceId> = self.pools[pool].resources.values().copied().collect();
        // Its jobs wait with `never_fits` until it is there again.
        self.pools[pool].settings = None;
        self.forget_pool_row(name);
        self.out.dirty_pools.remove(&pool);
        self.pools[pool].uses += 1;
        for resource in resources {
            self.remove_resource(resource);
        }
        self.pools[pool].uses -= 1;
        let doors: Vec<DoorId> = self.pools[pool].doors.values().copied().collect();
        for door in doors {
            self.door_due(door);
        }
        if let Some(lane) = self.pools[pool].reservation.as_ref().map(|own| own.lane) {
            self.drop_reservation(lane, now);
        }
        self.drop_pool_if_idle(pool);
        Ok(())
    }

    /// The pool of a sync or an add, made if it is not there.
    fn pool_made(&mut self, name: &PoolName, now: Moment) -> PoolId {
        let pool = self.pool_for(name);
        if self.pools[pool].settings.is_none() {
            self.put_pool(PutPool { pool: name.clone(), settings: PoolSettings::default() }, now);
        }
        pool
    }

    pub(crate) fn sync_resources(
        &mut self,
        sync: SyncResources,
        same_data: &dyn Fn(&DataKey, &tenure_core::secret::Json) -> bool,
        now: Moment,
    ) -> Result<Synced, Refusal> {
        let old = self.pool_by_name.get(&sync.pool).map(|pool| &self.pools[*pool]);
        let version = old.map_or(0, |pool| pool.version);
        if let Some(given) = sync.version
            && given < version
        {
            let no = Refusal::from(PoolRefusal::OlderVersion { given, last: version });
            return Err(no.at("/query/version"));
        }
        let named: hashbrown::HashSet<&ResourceId> = sync.resources.iter().map(|r| &r.id).collect();
        let (there, retires) = old.map_or((0, 0), |pool| {
            let live = pool.resources.iter().filter(|(_, slot)| !self.resources[**slot].retiring);
            let ids: Vec<&ResourceId> = live.map(|(id, _)| id).collect();
            (ids.len(), ids.iter().filter(|id| !named.contains(**id)).count())
        });
        if sync.meant == Meant::Ask {
            if sync.resources.is_empty() {
                let pool = sync.pool.clone();
                return Err(Refusal::from(PoolRefusal::EmptySet { pool }).at(""));
            }
            if retires * 2 > there {
                let (retires, there) = (retires as u64, there as u64);
                return Err(Refusal::from(PoolRefusal::RetiresMost { retires, there }).at(""));
            }
        }
        let absent: Vec<LiveResourceId> = old.map_or_else(Vec::new, |pool| {
            let gone = pool.resources.iter().filter(|(id, _)| !named.contains(id));
            gone.map(|(_, slot)| *slot).collect()
        });
        drop(named);
        let pool = self.pool_made(&sync.pool, now);
        let mut done = Synced::default();
        for resource in sync.resources {
            match self.upsert_resource(pool, resource, same_data, now) {
                Upserted::Added => done.added += 1,
                Upserted::Updated => done.updated += 1,
                Upserted::Same => done.unchanged += 1,
            }
        }
        for resource in absent {
            if self.resources[resource].retiring {
                done.retiring += 1;
            } else if self.retire(resource, now) {
                done.retired += 1;
            } else {
                done.retiring += 1;
            }
        }
        if let Some(version) = sync.version {
            self.pools[pool].version = version;
        }
        self.pools[pool].generation += 1;
        self.out.dirty_pools.insert(pool);
        Ok(done)
    }

    pub(crate) fn add_resources(
        &mut self,
        add: AddResources,
        same_data: &dyn Fn(&DataKey, &tenure_core::secret::Json) -> bool,
        now: Moment,
    ) -> Vec<LiveResourceId> {
        let pool = self.pool_made(&add.pool, now);
        let mut slots = Vec::with_capacity(add.resources.len());
        for resource in add.resources {
            let id = resource.id.clone();
            self.upsert_resource(pool, resource, same_data, now);
            if let Some(slot) = self.pools[pool].resources.get(&id) {
                slots.push(*slot);
            }
        }
        slots
    }

    fn upsert_resource(
        &mut self,
        pool: PoolId,
        new: NewResource,
        same_data: &dyn Fn(&DataKey, &tenure_core::secret::Json) -> bool,
        now: Moment,
    ) -> Upserted {
        let key = (self.name.clone(), self.pools[pool].name.clone(), new.id.clone());
        let Some(slot) = self.pools[pool].resources.get(&new.id).copied() else {
            let slot = self.add_resource(pool, new.id, new.tags, new.slots);
            self.out.rows.data.insert(key, Some(new.data));
            self.refresh_resource(slot, now);
            return Upserted::Added;
        };
        let r = &self.resources[slot];
        let data_stays = match self.out.rows.data.get(&key) {
            Some(written) => written.as_ref() == Some(&new.data),
            None => same_data(&key, &new.data),
        };
        if r.tags == new.tags && r.slots == new.slots && data_stays && !r.retiring {
            return Upserted::Same;
        }
        if !data_stays {
            self.out.rows.data.insert(key, Some(new.data));
        }
        self.retag(slot, new.tags);
        let r = &mut self.resources[slot];
        r.slots = new.slots;
        r.retiring = false;
        self.lose_kept(slot);
        self.out.dirty_resources.insert(slot);
        self.refresh_resource(slot, now);
        Upserted::Updated
    }

    /// Hands it out no more; `true` if it is gone, `false` if it goes when it is free.
    fn retire(&mut self, resource: LiveResourceId, now: Moment) -> bool {
        if self.resources[resource].holders.is_empty() {
            self.remove_resource(resource);
            return true;
        }
        self.resources[resource].retiring = true;
        self.lose_kept(resource);
        self.out.dirty_resources.insert(resource);
        self.refresh_resource(resource, now);
        false
    }

    pub(crate) fn patch_resource(
        &mut self,
        patch: PatchResource,
        now: Moment,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.resource_named(&patch.pool, &patch.resource)?;
        if patch.data.is_named() {
            let mut data = tenure_core::secret::Json::null();
            patch.data.apply_or_default(&mut data);
            let key = (self.name.clone(), patch.pool, patch.resource);
            self.out.rows.data.insert(key, Some(data));
        }
        if patch.tags.is_named() {
            let mut tags = Vec::new();
            patch.tags.apply_or_default(&mut tags);
            self.retag(slot, tags);
        }
        let mut slots = Some(self.resources[slot].slots);
        patch.slots.apply(&mut slots);
        self.resources[slot].slots = slots.unwrap_or(1);
        self.lose_kept(slot);
        self.out.dirty_resources.insert(slot);
        self.refresh_resource(slot, now);
        Ok(slot)
    }

    pub(crate) fn delete_resource(
        &mut self,
        pool: &PoolName,
        id: &ResourceId,
        now: Moment,
    ) -> Result<(), Refusal> {
        let slot = self.resource_named(pool, id)?;
        self.retire(slot, now);
        Ok(())
    }

    pub(crate) fn cool_resource(
        &mut self,
        ask: CoolResource,
        now: Moment,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.resource_named(&ask.pool, &ask.resource)?;
        self.lose_kept(slot);
        self.cool(slot, ask.until.moment(now), Some(StoredNote::CooledByHand.to_string()), now);
        self.refresh_resource(slot, now);
        Ok(slot)
    }

    pub(crate) fn ban_resource(
        &mut self,
        ask: BanResource,
        now: Moment,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.resource_named(&ask.pool, &ask.resource)?;
        self.ban(slot, ask.reason, now);
        Ok(slot)
    }

    /// Available again; ends no lease. Its uses count anew, or `max_uses` would ban it at once.
    pub(crate) fn restore_resource(
        &mut self,
        pool: &PoolName,
        id: &ResourceId,
        now: Moment,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.resource_named(pool, id)?;
        let most = self.pools[self.resources[slot].pool].settings.and_then(|s| s.max_uses);
        self.set_resource_state(slot, ResourceState::Available, Moment::ZERO, Span::ZERO, None);
        let r = &mut self.resources[slot];
        if most.is_some_and(|most| r.uses >= u64::from(most)) {
            r.uses = 0;
        }
        self.refresh_resource(slot, now);
        Ok(slot)
    }
}

enum Upserted {
    Added,
    Updated,
    Same,
}
