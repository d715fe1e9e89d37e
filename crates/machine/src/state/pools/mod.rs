//! Pools and their resources, and the sets of free ones. The data of a resource is never here: it is in a row.
//!
//! A resource that may be handed out is in the sets of free ones, under its last use; every change of that goes through
//! [`Pools::refresh`].

mod audit;
mod free;
mod pool;

use std::collections::{BTreeMap, BTreeSet};

use super::slots::{Slots, indexed};
use super::{LiveResourceId, PoolId};
use crate::scarce::rates::{rate_fits_at, tokens};
use crate::time::timers::Timers;
use tenure_core::lease::Fence;
use tenure_core::names::{PoolName, ResourceId, Tag};
use tenure_core::settings::ResourceState;
use tenure_core::time::{Moment, Span};

pub(crate) use free::Refreshed;
pub(crate) use pool::{Pool, PoolReservation, Resource};

/// All pools of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pools: Slots<Pool>,
    by_name: BTreeMap<PoolName, PoolId>,
    resources: Slots<Resource>,
    timers: Timers<LiveResourceId>,
    /// Number of times that any resource was taken.
    used: u64,
    /// Those whose rows the next drain writes.
    changed: BTreeSet<PoolId>,
    changed_resources: BTreeSet<LiveResourceId>,
}

indexed!(Pools { pools: Pool, resources: Resource });

impl Pools {
    /// Those of a namespace without content, which had some before.
    pub fn none_after(used: u64) -> Self {
        Pools { used, ..Pools::default() }
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    /// Restores the number of uses.
    pub fn restore_used(&mut self, used: u64) {
        self.used = used;
    }

    pub fn by_name(&self) -> &BTreeMap<PoolName, PoolId> {
        &self.by_name
    }

    /// The pool of this name; makes it if necessary. Without settings it is only a name.
    pub fn named(&mut self, name: &PoolName) -> PoolId {
        if let Some(pool) = self.by_name.get(name) {
            return *pool;
        }
        let pool = self.pools.insert(Pool {
            name: name.clone(),
            settings: None,
            uses: 0,
            resources: Default::default(),
            dropped: Default::default(),
            free: Default::default(),
            free_by_tag: Default::default(),
            tagged: Default::default(),
            doors: Default::default(),
            reservation: None,
            version: 0,
            generation: 0,
            leased: 0,
            cooling: 0,
            banned: 0,
            draw: 0x9E37_79B9_7F4A_7C15,
        });
        self.by_name.insert(name.clone(), pool);
        pool
    }

    pub fn drop_if_idle(&mut self, pool: PoolId) {
        let p = &self.pools[pool];
        if p.settings.is_some() || p.uses > 0 || !p.doors.is_empty() || !p.resources.is_empty() {
            return;
        }
        if let Some(p) = self.pools.remove(pool) {
            self.by_name.remove(&p.name);
            self.changed.remove(&pool);
        }
    }

    /// All resources of all pools.
    pub fn resources(&self) -> impl Iterator<Item = (LiveResourceId, &Resource)> {
        self.resources.iter()
    }

    // ---- Rows ----

    /// Marks the row of a pool for a write.
    pub fn mark(&mut self, pool: PoolId) {
        self.changed.insert(pool);
    }

    /// The row of a deleted pool is gone.
    pub fn unmark(&mut self, pool: PoolId) {
        self.changed.remove(&pool);
    }

    /// Marks the row of a resource for a write.
    pub fn mark_resource(&mut self, resource: LiveResourceId) {
        self.changed_resources.insert(resource);
    }

    /// Takes the marked pools; all exist.
    pub fn take_changed(&mut self) -> BTreeSet<PoolId> {
        std::mem::take(&mut self.changed)
    }

    /// Takes the marked resources; all exist.
    pub fn take_changed_resources(&mut self) -> BTreeSet<LiveResourceId> {
        std::mem::take(&mut self.changed_resources)
    }

    // ---- Changes of a resource; a refresh must follow ----

    /// Gives a resource to a lease.
    pub fn take(&mut self, resource: LiveResourceId, fence: Fence, now: Moment) {
        self.used += 1;
        self.hold(resource, fence);
        let r = &mut self.resources[resource];
        let settings = self.pools[r.pool].settings.unwrap_or_default();
        r.kept_for = None;
        r.uses += 1;
        r.used = self.used;
        r.last_used_at = Some(now);
        if let Some(rate) = &settings.rate {
            r.tat = r.tat.max(now).plus(tokens(rate, 1));
            r.paced_until = rate_fits_at(rate, r.tat, 1, now);
        }
        if settings.max_uses.is_some_and(|most| r.uses >= u64::from(most)) {
            self.set_state(
                resource,
                ResourceState::Banned,
                Moment::ZERO,
                Span::ZERO,
                Some("max_uses".to_owned()),
            );
        }
        self.mark_resource(resource);
    }

    /// Notes a holder of a resource; a start restores it so.
    pub fn hold(&mut self, resource: LiveResourceId, fence: Fence) {
        let r = &mut self.resources[resource];
        if r.holders.is_empty() {
            self.pools[r.pool].leased += 1;
        }
        r.holders.push(fence);
    }

    /// Removes a lease from a resource. Returns true if the resource is retiring and free now, so that it goes; `None` if
    /// the lease did not hold it.
    pub fn release(&mut self, resource: LiveResourceId, fence: Fence) -> Option<bool> {
        let r = &mut self.resources[resource];
        let at = r.holders.iter().position(|holder| *holder == fence)?;
        r.holders.remove(at);
        let is_empty = r.holders.is_empty();
        if is_empty {
            self.pools[r.pool].leased -= 1;
        }
        let goes = is_empty && r.retiring;
        self.mark_resource(resource);
        Some(goes)
    }

    /// Changes a resource's state, and the pool's sums with it.
    pub fn set_state(
        &mut self,
        resource: LiveResourceId,
        state: ResourceState,
        until: Moment,
        rest: Span,
        reason: Option<String>,
    ) {
        let r = &mut self.resources[resource];
        let old = std::mem::replace(&mut r.state, state);
        (r.until, r.rest, r.reason) = (until, rest, reason);
        let p = &mut self.pools[r.pool];
        let sum = |state, p: &mut Pool, by: i64| match state {
            ResourceState::Cooling => p.cooling = p.cooling.wrapping_add_signed(by),
            ResourceState::Banned => p.banned = p.banned.wrapping_add_signed(by),
            ResourceState::Available => {}
        };
        sum(old, p, -1);
        sum(state, p, 1);
        self.mark_resource(resource);
    }

    /// A resource that neither rests nor is banned.
    pub fn make_available(&mut self, resource: LiveResourceId) {
        self.set_state(resource, ResourceState::Available, Moment::ZERO, Span::ZERO, None);
    }

    /// Replaces the tags of a resource.
    pub fn retag(&mut self, resource: LiveResourceId, tags: Vec<Tag>) {
        self.leave_free(resource);
        let r = &mut self.resources[resource];
        let p = &mut self.pools[r.pool];
        for tag in &r.tags {
            untag(p, tag);
        }
        for tag in &tags {
            *p.tagged.entry(tag.clone()).or_default() += 1;
        }
        r.tags = tags;
    }

    /// Adds a new resource.
    pub fn add(
        &mut self,
        pool: PoolId,
        id: ResourceId,
        tags: Vec<Tag>,
        slots: u32,
    ) -> LiveResourceId {
        let resource = self.resources.insert(Resource {
            pool,
            id: id.clone(),
            tags: Vec::new(),
            slots,
            state: ResourceState::Available,
            until: Moment::ZERO,
            rest: Span::ZERO,
            reason: None,
            holders: Vec::new(),
            uses: 0,
            used: 0,
            last_used_at: None,
            tat: Moment::ZERO,
            paced_until: Moment::ZERO,
            retiring: false,
            dropped: false,
            generation: 0,
            kept_for: None,
            free: None,
            timer: None,
        });
        self.pools[pool].resources.insert(id, resource);
        self.retag(resource, tags);
        self.mark_resource(resource);
        resource
    }

    /// Removes a resource without holders.
    pub fn remove(&mut self, resource: LiveResourceId) -> Option<Resource> {
        self.leave_free(resource);
        self.lose_kept(resource);
        self.make_available(resource);
        if let Some(timer) = self.resources[resource].timer {
            self.timers.clear(timer, resource);
        }
        let r = self.resources.remove(resource)?;
        let p = &mut self.pools[r.pool];
        p.resources.remove(&r.id);
        for tag in &r.tags {
            untag(p, tag);
        }
        self.changed_resources.remove(&resource);
        Some(r)
    }

    // ---- Time ----

    pub fn next_change(&self) -> Option<Moment> {
        self.timers.next()
    }

    fn arm(&mut self, resource: LiveResourceId, now: Moment) {
        let r = &mut self.resources[resource];
        let cooling = (r.state == ResourceState::Cooling).then_some(r.until);
        let paced = (r.paced_until > now).then_some(r.paced_until);
        let next = cooling.into_iter().chain(paced).min();
        if r.timer == next {
            return;
        }
        let old = std::mem::replace(&mut r.timer, next);
        if let Some(old) = old {
            self.timers.clear(old, resource);
        }
        if let Some(next) = next {
            self.timers.set(next, resource);
        }
    }

    /// Ends the timed states of the resource whose time came first. Returns it for a refresh.
    pub fn tick(&mut self, now: Moment) -> Option<LiveResourceId> {
        let (_, resource) = self.timers.take_due(now)?;
        let r = &mut self.resources[resource];
        r.timer = None;
        if r.state == ResourceState::Cooling && r.until <= now {
            self.make_available(resource);
        }
        Some(resource)
    }

    /// Computes the pace of a resource again, after a start.
    pub fn pace(&mut self, resource: LiveResourceId, now: Moment) {
        let r = &mut self.resources[resource];
        let rate = self.pools[r.pool].settings.and_then(|settings| settings.rate);
        r.paced_until = rate.map_or(Moment::ZERO, |rate| rate_fits_at(&rate, r.tat, 1, now));
    }

    /// The same after a change of the rate or the clock: a debt beyond the burst is cut.
    pub fn pace_again(&mut self, resource: LiveResourceId, now: Moment) {
        let r = &mut self.resources[resource];
        if let Some(rate) = self.pools[r.pool].settings.and_then(|settings| settings.rate) {
            r.tat = r.tat.min(now.plus(tokens(&rate, rate.burst)));
        }
        self.pace(resource, now);
        self.mark_resource(resource);
    }
}

fn untag(pool: &mut Pool, tag: &Tag) {
    if let Some(n) = pool.tagged.get_mut(tag) {
        *n -= 1;
        if *n == 0 {
            pool.tagged.remove(tag);
        }
    }
}
