//! Resources: synced from outside, added, changed, cooled, banned, restored.
//!
//! A sync changes id, data, tags and slots and nothing else. It is one step: others see the old set or the new one.

use crate::answer::{WithoutData, acts};
use crate::rows::DataKey;
use crate::state::{LiveResourceId, PoolId, Space};
use tenure_core::events::{About, EventType};
use tenure_core::names::{PoolName, ResourceId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeleteResource, GetResource, ListResources, Listed,
    Meant, PatchResource, RestoreResource, SyncResources,
};
use tenure_core::sentences::{PoolRefusal, StoredNote};
use tenure_core::settings::{NewResource, ResourceView, Synced};
use tenure_core::time::Moment;

impl Space {
    pub(crate) fn sync_resources(
        &mut self,
        sync: SyncResources,
        same_data: &dyn Fn(&DataKey, &tenure_core::secret::Json) -> bool,
        now: Moment,
    ) -> Result<Synced, Refusal> {
        let old = self.pools.by_name().get(&sync.pool).map(|pool| &self.pools[*pool]);
        let version = old.map_or(0, |pool| pool.version);
        if let Some(given) = sync.version
            && given < version
        {
            let no = Refusal::from(PoolRefusal::OlderVersion { given, last: version });
            return Err(no.at("/query/version"));
        }
        let named: hashbrown::HashSet<&ResourceId> = sync.resources.iter().map(|r| &r.id).collect();
        let (there, retires) = old.map_or((0, 0), |pool| {
            let live = pool.resources.iter().filter(|(_, slot)| !self.pools[**slot].retiring);
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
            if self.pools[resource].retiring {
                done.retiring += 1;
            } else if self.retire(resource, true, now) {
                done.retired += 1;
            } else {
                done.retiring += 1;
            }
        }
        if let Some(version) = sync.version {
            self.pools[pool].version = version;
        }
        self.pools[pool].generation += 1;
        self.pools.mark(pool);
        self.pool_happens(&sync.pool, EventType::PoolSynced, now);
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
        let mut changed = false;
        for resource in add.resources {
            let id = resource.id.clone();
            changed |= self.upsert_resource(pool, resource, same_data, now) != Upserted::Same;
            if let Some(slot) = self.pools[pool].resources.get(&id) {
                slots.push(*slot);
            }
        }
        if changed {
            self.pool_happens(&add.pool, EventType::PoolChanged, now);
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
            let slot = self.pools.add(pool, new.id, new.tags, new.slots);
            self.take_up(slot, now);
            self.outbox.put_data(key, Some(new.data));
            self.refresh_resource(slot, now);
            return Upserted::Added;
        };
        let r = &self.pools[slot];
        let data_stays = match self.outbox.data_of(&key) {
            Some(written) => written.as_ref() == Some(&new.data),
            None => same_data(&key, &new.data),
        };
        if r.tags == new.tags && r.slots == new.slots && data_stays && !r.retiring {
            return Upserted::Same;
        }
        if !data_stays {
            self.outbox.put_data(key, Some(new.data));
        }
        self.pools.retag(slot, new.tags);
        let r = &mut self.pools[slot];
        r.slots = new.slots;
        (r.retiring, r.dropped) = (false, false);
        self.pools.lose_kept(slot);
        self.pools.mark_resource(slot);
        self.refresh_resource(slot, now);
        Upserted::Updated
    }

    /// Stops grants of a resource; `true` if it is gone, `false` if it goes once it is free. If a sync drops it and a
    /// later one names it, its ban returns; a removal by hand is final.
    fn retire(&mut self, resource: LiveResourceId, by_sync: bool, now: Moment) -> bool {
        self.pools[resource].dropped = by_sync;
        if !self.pools[resource].retiring {
            let about = About::default();
            self.resource_happens(resource, EventType::ResourceRetired, about, now);
        }
        if self.pools[resource].holders.is_empty() {
            self.drop_resource(resource, now);
            return true;
        }
        self.pools[resource].retiring = true;
        self.pools.lose_kept(resource);
        self.pools.mark_resource(resource);
        self.refresh_resource(resource, now);
        false
    }

    pub(crate) fn patch_resource(
        &mut self,
        patch: PatchResource,
        now: Moment,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.resource_named(&patch.pool, &patch.resource)?;
        if patch.data.is_named() || patch.tags.is_named() || patch.slots.is_named() {
            self.pool_happens(&patch.pool, EventType::PoolChanged, now);
        }
        if patch.data.is_named() {
            let mut data = tenure_core::secret::Json::null();
            patch.data.apply_or_default(&mut data);
            let key = (self.name.clone(), patch.pool, patch.resource);
            self.outbox.put_data(key, Some(data));
        }
        if patch.tags.is_named() {
            let mut tags = Vec::new();
            patch.tags.apply_or_default(&mut tags);
            self.pools.retag(slot, tags);
        }
        let mut slots = Some(self.pools[slot].slots);
        patch.slots.apply(&mut slots);
        self.pools[slot].slots = slots.unwrap_or(1);
        self.pools.lose_kept(slot);
        self.pools.mark_resource(slot);
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
        self.retire(slot, false, now);
        Ok(())
    }

    pub(crate) fn cool_resource(
        &mut self,
        ask: CoolResource,
        now: Moment,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.resource_named(&ask.pool, &ask.resource)?;
        self.pools.lose_kept(slot);
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

    /// Available again; ends no lease. At `max_uses` its uses start again from 0; otherwise it would be banned at once.
    pub(crate) fn restore_resource(
        &mut self,
        pool: &PoolName,
        id: &ResourceId,
        now: Moment,
    ) -> Result<LiveResourceId, Refusal> {
        let slot = self.resource_named(pool, id)?;
        let most = self.pools[self.pools[slot].pool].settings.and_then(|s| s.max_uses);
        self.pools.make_available(slot);
        self.resource_happens(slot, EventType::ResourceRestored, About::default(), now);
        let r = &mut self.pools[slot];
        if most.is_some_and(|most| r.uses >= u64::from(most)) {
            r.uses = 0;
        }
        self.refresh_resource(slot, now);
        Ok(slot)
    }

    fn shown_resource(&self, resource: LiveResourceId, now: Moment) -> WithoutData<ResourceView> {
        let pool = self.pools[self.pools[resource].pool].name.clone();
        WithoutData { pool, reply: self.resource_view(resource, now) }
    }
}

#[derive(PartialEq, Eq)]
enum Upserted {
    Added,
    Updated,
    Same,
}

acts! {
    SyncResources => Synced, |ask, at| {
        let rest = at.rest;
        at.space.sync_resources(ask, &|key, data| rest.has_data(key, data), at.now)
    };
    AddResources => WithoutData<Vec<ResourceView>>, |ask, at| {
        let (pool, rest, now) = (ask.pool.clone(), at.rest, at.now);
        let added = at.space.add_resources(ask, &|key, data| rest.has_data(key, data), now);
        let reply = added.into_iter().map(|one| at.space.resource_view(one, now)).collect();
        Ok(WithoutData { pool, reply })
    };
    ListResources => WithoutData<Listed<ResourceView>>, |ask, at| {
        let pool = at.space.pool_named(&ask.pool)?;
        let reply = at.space.list_resources(pool, &ask.page, at.now);
        Ok(WithoutData { pool: ask.pool, reply })
    };
    GetResource => WithoutData<ResourceView>, |ask, at| {
        let resource = at.space.resource_named(&ask.pool, &ask.resource)?;
        Ok(at.space.shown_resource(resource, at.now))
    };
    PatchResource => WithoutData<ResourceView>, |ask, at| {
        let resource = at.space.patch_resource(ask, at.now)?;
        Ok(at.space.shown_resource(resource, at.now))
    };
    DeleteResource => (), |ask, at| at.space.delete_resource(&ask.pool, &ask.resource, at.now);
    CoolResource => WithoutData<ResourceView>, |ask, at| {
        let resource = at.space.cool_resource(ask, at.now)?;
        Ok(at.space.shown_resource(resource, at.now))
    };
    BanResource => WithoutData<ResourceView>, |ask, at| {
        let resource = at.space.ban_resource(ask, at.now)?;
        Ok(at.space.shown_resource(resource, at.now))
    };
    RestoreResource => WithoutData<ResourceView>, |ask, at| {
        let resource = at.space.restore_resource(&ask.pool, &ask.resource, at.now)?;
        Ok(at.space.shown_resource(resource, at.now))
    };
}
