//! Memory of dropped resources: a sync that names a resource again restores its ban or rest, because a list that lacked
//! it for an hour must not hand out a banned account.
//!
//! The row stays, with the time of the drop. It is deleted when its time is over and its pool drops another resource,
//! so no timer is needed.

use crate::state::{Dropped, LiveResourceId, PoolId, Resource, Space};
use tenure_core::names::ResourceId;
use tenure_core::settings::ResourceState;
use tenure_core::time::{Moment, Span};

/// The record of a dropped resource; `None` unless a sync dropped it, and it was banned or resting.
fn remembered(r: &Resource, now: Moment) -> Option<Dropped> {
    let rests =
        r.state == ResourceState::Banned || r.state == ResourceState::Cooling && r.until > now;
    (r.dropped && rests).then(|| Dropped {
        state: r.state,
        until: r.until,
        rest: r.rest,
        reason: r.reason.clone(),
        uses: r.uses,
        used: r.used,
        last_used_at: r.last_used_at,
        tat: r.tat,
        dropped_at: now,
    })
}

impl Space {
    /// Removes a free resource from its pool, and remembers it if a sync may name it again.
    pub(crate) fn drop_resource(&mut self, resource: LiveResourceId, now: Moment) {
        let r = &self.pools[resource];
        let (pool, id) = (r.pool, r.id.clone());
        let dropped = remembered(r, now);
        self.remove_resource(resource);
        let Some(dropped) = dropped else { return };
        self.dropped_row(pool, &id, Some(&dropped));
        self.pools[pool].dropped.insert(id, dropped);
        while let Some(over) = self.pools[pool].dropped.forget(now) {
            self.dropped_row(pool, &over, None);
        }
    }

    /// Restores a resource that is back: its ban, or the remaining time of its rest.
    pub(crate) fn take_up(&mut self, resource: LiveResourceId, now: Moment) {
        let r = &self.pools[resource];
        let (pool, id) = (r.pool, r.id.clone());
        let Some(dropped) = self.pools[pool].dropped.take(&id) else { return };
        let until = dropped.until.min(now.plus(dropped.rest));
        let r = &mut self.pools[resource];
        (r.uses, r.used, r.last_used_at) = (dropped.uses, dropped.used, dropped.last_used_at);
        r.tat = dropped.tat;
        match dropped.state {
            ResourceState::Banned if dropped.is_remembered(now) => {
                let (state, reason) = (ResourceState::Banned, dropped.reason);
                self.pools.set_state(resource, state, Moment::ZERO, Span::ZERO, reason);
            }
            ResourceState::Cooling if until > now => {
                let (state, reason) = (ResourceState::Cooling, dropped.reason);
                self.pools.set_state(resource, state, until, dropped.rest, reason);
            }
            _ => {}
        }
    }

    /// Deletes all records of a pool that goes.
    pub(crate) fn forget_dropped(&mut self, pool: PoolId) {
        let dropped = std::mem::take(&mut self.pools[pool].dropped);
        for (id, _) in dropped.iter() {
            self.dropped_row(pool, id, None);
        }
    }

    fn dropped_row(&mut self, pool: PoolId, id: &ResourceId, dropped: Option<&Dropped>) {
        let name = self.pools[pool].name.clone();
        self.put_dropped_row(&name, id, dropped);
    }
}
