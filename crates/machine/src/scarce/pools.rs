//! Pools: the resources that may be handed out, the pick of one, and its state afterwards.
//!
//! A resource that may be handed out is in the sets of free ones, under its last use; every change
//! of that goes through [`Space::refresh_resource`]. Data is never here.

use crate::mutant::{Mutant, forgets};
use crate::queue::doors::Fit;
use crate::scarce::rates::{rate_fits_at, tokens};
use crate::state::{
    DoorId, HeldNeed, LaneId, LiveResourceId, Pool, PoolId, PoolReservation, Resource, Space, Which,
};
use tenure_core::events::{About, EventType};
use tenure_core::lease::Fence;
use tenure_core::names::{PoolName, ResourceId, Tag};
use tenure_core::settings::ResourceState;
use tenure_core::time::{Moment, Span};

impl Space {
    /// The pool of this name; makes it if necessary. Without settings it is only a name.
    pub(crate) fn pool_for(&mut self, name: &PoolName) -> PoolId {
        if let Some(pool) = self.pool_by_name.get(name) {
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
        self.pool_by_name.insert(name.clone(), pool);
        pool
    }

    pub(crate) fn drop_pool_if_idle(&mut self, pool: PoolId) {
        let p = &self.pools[pool];
        if p.settings.is_some() || p.uses > 0 || !p.doors.is_empty() || !p.resources.is_empty() {
            return;
        }
        if let Some(p) = self.pools.remove(pool) {
            self.pool_by_name.remove(&p.name);
            self.out.dirty_pools.remove(&pool);
        }
    }

    // ---- What is free ----

    fn may_be_handed_out(&self, resource: LiveResourceId, now: Moment) -> bool {
        let r = &self.resources[resource];
        r.state == ResourceState::Available
            && !r.retiring
            && r.kept_for.is_none()
            && (r.holders.len() as u64) < u64::from(r.slots)
            && r.paced_until <= now
            && self.pools[r.pool].settings.is_some()
    }

    /// Sorts a resource into its sets, and marks its wait queues as due if it may be handed out.
    pub(crate) fn refresh_resource(&mut self, resource: LiveResourceId, now: Moment) {
        self.leave_free(resource);
        if self.may_be_handed_out(resource, now) {
            if self.keep_for_reservation(resource) {
                return;
            }
            let pool = self.resources[resource].pool;
            let random = self.pools[pool]
                .settings
                .is_some_and(|s| s.pick == tenure_core::settings::Pick::Random);
            let key = if random { self.draw(pool) } else { self.resources[resource].used };
            let r = &mut self.resources[resource];
            r.free = Some(key);
            let p = &mut self.pools[pool];
            p.free.insert((key, resource));
            for tag in &r.tags {
                p.free_by_tag.entry(tag.clone()).or_default().insert((key, resource));
            }
            let (tags, id) = (r.tags.clone(), r.id.clone());
            self.pool_doors_due(pool, &tags, &id);
        }
        self.arm_resource(resource, now);
    }

    fn leave_free(&mut self, resource: LiveResourceId) {
        let r = &mut self.resources[resource];
        let Some(key) = r.free.take() else { return };
        let p = &mut self.pools[r.pool];
        p.free.remove(&(key, resource));
        for tag in &r.tags {
            if let Some(free) = p.free_by_tag.get_mut(tag) {
                free.remove(&(key, resource));
                if free.is_empty() {
                    p.free_by_tag.remove(tag);
                }
            }
        }
    }

    /// The number need not be unpredictable, only well spread: xorshift64*.
    fn draw(&mut self, pool: PoolId) -> u64 {
        let p = &mut self.pools[pool];
        p.draw ^= p.draw >> 12;
        p.draw ^= p.draw << 25;
        p.draw ^= p.draw >> 27;
        p.draw.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn matches(&self, resource: LiveResourceId, which: &Which) -> bool {
        let r = &self.resources[resource];
        match which {
            Which::Any => true,
            Which::Tag(tag) => r.tags.contains(tag),
            Which::Id(id) => r.id == *id,
        }
    }

    /// Keeps a newly free resource for the lane that reserves, if that lacks one.
    fn keep_for_reservation(&mut self, resource: LiveResourceId) -> bool {
        let pool = self.resources[resource].pool;
        let Some(kept_for) = &self.pools[pool].reservation else { return false };
        if kept_for.kept.len() >= kept_for.count as usize
            || !self.matches(resource, &kept_for.which)
        {
            return false;
        }
        let (lane, which) = (kept_for.lane, kept_for.which.clone());
        self.resources[resource].kept_for = Some(lane);
        if let Some(reservation) = &mut self.pools[pool].reservation {
            reservation.kept.push(resource);
        }
        if let Some(door) = self.pools[pool].doors.get(&which).copied() {
            self.door_due(door);
        }
        true
    }

    /// Keeps free resources for a lane that begins to reserve.
    pub(crate) fn keep_free(&mut self, pool: PoolId, now: Moment) {
        loop {
            let Some(PoolReservation { which, count, kept, .. }) = &self.pools[pool].reservation
            else {
                return;
            };
            if kept.len() >= *count as usize {
                return;
            }
            let Some(resource) = self.first_free(pool, which) else { return };
            self.refresh_resource(resource, now);
        }
    }

    /// Frees resources that were kept for a lane.
    pub(crate) fn unkeep(&mut self, kept: Vec<LiveResourceId>, now: Moment) {
        for resource in kept {
            if let Some(r) = self.resources.get_mut(resource) {
                r.kept_for = None;
                self.refresh_resource(resource, now);
            }
        }
    }

    fn first_free(&self, pool: PoolId, which: &Which) -> Option<LiveResourceId> {
        let p = &self.pools[pool];
        match which {
            Which::Any => p.free.first().map(|first| first.1),
            Which::Tag(tag) => p.free_by_tag.get(tag)?.first().map(|first| first.1),
            Which::Id(id) => {
                p.resources.get(id).copied().filter(|slot| self.resources[*slot].free.is_some())
            }
        }
    }

    fn count_free(&self, pool: PoolId, which: &Which) -> usize {
        let p = &self.pools[pool];
        match which {
            Which::Any => p.free.len(),
            Which::Tag(tag) => p.free_by_tag.get(tag).map_or(0, |free| free.len()),
            Which::Id(_) => usize::from(self.first_free(pool, which).is_some()),
        }
    }

    /// True if a need of a pool can be served now without the reservations of others.
    pub(crate) fn pool_fit(
        &self,
        pool: PoolId,
        which: &Which,
        count: u32,
        lane: Option<LaneId>,
        now: Moment,
    ) -> Fit {
        let p = &self.pools[pool];
        if p.settings.is_none() {
            return Fit::Never;
        }
        if let Some(until) = self.closed_until(now)
            && !forgets(Mutant::RecoveryGrantsPools)
        {
            return Fit::No(Some(until));
        }
        let kept = match &p.reservation {
            Some(own) if Some(own.lane) == lane => own.kept.len(),
            _ => 0,
        };
        // Timers of resources make the wait queues due, so no time is returned here.
        if self.count_free(pool, which) + kept >= count as usize { Fit::Yes } else { Fit::No(None) }
    }

    // ---- Taking and returning ----

    /// Takes resources for a lease; the same step has checked the fit.
    pub(crate) fn take_resources(
        &mut self,
        need: &HeldNeed,
        lane: LaneId,
        fence: Fence,
        now: Moment,
    ) -> Vec<LiveResourceId> {
        let HeldNeed::Pool { pool, which, prefer, count } = need else { return Vec::new() };
        let mut taken: Vec<LiveResourceId> = Vec::with_capacity(*count as usize);
        let preferred = prefer
            .as_ref()
            .and_then(|id| self.pools[*pool].resources.get(id).copied())
            .filter(|slot| {
                let r = &self.resources[*slot];
                (r.free.is_some() || r.kept_for == Some(lane)) && self.matches(*slot, which)
            });
        let kept = match &self.pools[*pool].reservation {
            Some(own) if own.lane == lane => own.kept.clone(),
            _ => Vec::new(),
        };
        for resource in preferred.into_iter().chain(kept) {
            if taken.len() < *count as usize && !taken.contains(&resource) {
                self.take_resource(resource, fence, now);
                taken.push(resource);
            }
        }
        // One lease holds a resource once, even if it has more slots: `count` means different ones.
        let mut put_back = Vec::new();
        while taken.len() < *count as usize {
            let Some(resource) = self.first_free(*pool, which) else { break };
            if taken.contains(&resource) {
                self.leave_free(resource);
                put_back.push(resource);
                continue;
            }
            self.take_resource(resource, fence, now);
            taken.push(resource);
        }
        for resource in put_back {
            self.refresh_resource(resource, now);
        }
        taken
    }

    fn take_resource(&mut self, resource: LiveResourceId, fence: Fence, now: Moment) {
        self.used += 1;
        let used = self.used;
        let pool = self.resources[resource].pool;
        let settings = self.pools[pool].settings.unwrap_or_default();
        let r = &mut self.resources[resource];
        if r.holders.is_empty() {
            self.pools[pool].leased += 1;
        }
        let r2 = r;
        r2.kept_for = None;
        r2.holders.push(fence);
        r2.uses += 1;
        r2.used = used;
        r2.last_used_at = Some(now);
        if let Some(rate) = &settings.rate {
            r2.tat = r2.tat.max(now).plus(tokens(rate, 1));
            r2.paced_until = rate_fits_at(rate, r2.tat, 1, now);
        }
        if settings.max_uses.is_some_and(|most| r2.uses >= u64::from(most)) {
            self.set_resource_state(
                resource,
                ResourceState::Banned,
                Moment::ZERO,
                Span::ZERO,
                Some("max_uses".to_owned()),
            );
        }
        self.out.dirty_resources.insert(resource);
        self.refresh_resource(resource, now);
    }

    /// Removes a lease from a resource; a retiring one goes once it is free.
    pub(crate) fn release_resource(&mut self, resource: LiveResourceId, fence: Fence, now: Moment) {
        let r = &mut self.resources[resource];
        let Some(at) = r.holders.iter().position(|holder| *holder == fence) else { return };
        r.holders.remove(at);
        let (pool, empty, retiring) = (r.pool, r.holders.is_empty(), r.retiring);
        if empty {
            self.pools[pool].leased -= 1;
        }
        self.out.dirty_resources.insert(resource);
        if empty && retiring {
            self.drop_resource(resource, now);
        } else {
            self.refresh_resource(resource, now);
        }
    }

    /// Changes a resource's state, and the pool's sums with it.
    pub(crate) fn set_resource_state(
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
        self.out.dirty_resources.insert(resource);
    }

    /// Lets a resource rest until a time, unless it rests longer or is banned.
    pub(crate) fn cool(
        &mut self,
        resource: LiveResourceId,
        until: Moment,
        reason: Option<String>,
        now: Moment,
    ) {
        let r = &self.resources[resource];
        let longer = r.state == ResourceState::Cooling && r.until >= until;
        if r.state == ResourceState::Banned || longer || until <= now {
            return;
        }
        let (why, ends) = (reason.clone().map(Into::into), Some(until));
        let about = About { until: ends, why, ..About::default() };
        self.resource_happens(resource, EventType::ResourceCooling, about, now);
        self.set_resource_state(resource, ResourceState::Cooling, until, until.since(now), reason);
        self.refresh_resource(resource, now);
    }

    /// Bans a resource, so that it is not handed out again.
    pub(crate) fn ban(&mut self, resource: LiveResourceId, reason: Option<String>, now: Moment) {
        let about = About { why: reason.clone().map(Into::into), ..About::default() };
        self.resource_happens(resource, EventType::ResourceBanned, about, now);
        self.set_resource_state(resource, ResourceState::Banned, Moment::ZERO, Span::ZERO, reason);
        self.lose_kept(resource);
        self.refresh_resource(resource, now);
    }

    /// Ends the hold of a reservation on a resource that may no longer be handed out.
    pub(crate) fn lose_kept(&mut self, resource: LiveResourceId) {
        let Some(_) = self.resources[resource].kept_for.take() else { return };
        let pool = self.resources[resource].pool;
        if let Some(reservation) = &mut self.pools[pool].reservation {
            reservation.kept.retain(|slot| *slot != resource);
        }
    }

    /// Removes a resource without holders.
    pub(crate) fn remove_resource(&mut self, resource: LiveResourceId) {
        self.leave_free(resource);
        self.lose_kept(resource);
        self.set_resource_state(resource, ResourceState::Available, Moment::ZERO, Span::ZERO, None);
        if let Some(timer) = self.resources[resource].timer {
            self.resource_timers.clear(timer, resource);
        }
        let Some(r) = self.resources.remove(resource) else { return };
        let p = &mut self.pools[r.pool];
        p.resources.remove(&r.id);
        for tag in &r.tags {
            untag(p, tag);
        }
        let name = p.name.clone();
        self.out.dirty_resources.remove(&resource);
        self.forget_resource_row(&name, &r.id);
        self.drop_pool_if_idle(r.pool);
    }

    /// Replaces the tags of a resource.
    pub(crate) fn retag(&mut self, resource: LiveResourceId, tags: Vec<Tag>) {
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
    pub(crate) fn add_resource(
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
        self.out.dirty_resources.insert(resource);
        resource
    }

    // ---- Time ----

    fn arm_resource(&mut self, resource: LiveResourceId, now: Moment) {
        let r = &mut self.resources[resource];
        let cooling = (r.state == ResourceState::Cooling).then_some(r.until);
        let paced = (r.paced_until > now).then_some(r.paced_until);
        let next = match (cooling, paced) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if r.timer == next {
            return;
        }
        let old = std::mem::replace(&mut r.timer, next);
        if let Some(old) = old {
            self.resource_timers.clear(old, resource);
        }
        if let Some(next) = next {
            self.resource_timers.set(next, resource);
        }
    }

    /// Ends the timed states of a resource.
    pub(crate) fn tick_resource(&mut self, resource: LiveResourceId, now: Moment) {
        let r = &mut self.resources[resource];
        r.timer = None;
        if r.state == ResourceState::Cooling && r.until <= now {
            self.set_resource_state(
                resource,
                ResourceState::Available,
                Moment::ZERO,
                Span::ZERO,
                None,
            );
        }
        self.refresh_resource(resource, now);
    }

    /// A pool's settings changed: computes all paces again.
    pub(crate) fn pool_changed(&mut self, pool: PoolId, now: Moment) {
        let settings = self.pools[pool].settings;
        let resources: Vec<LiveResourceId> = self.pools[pool].resources.values().copied().collect();
        for resource in resources {
            let r = &mut self.resources[resource];
            r.paced_until = match settings.and_then(|s| s.rate) {
                Some(rate) => {
                    r.tat = r.tat.min(now.plus(tokens(&rate, rate.burst)));
                    rate_fits_at(&rate, r.tat, 1, now)
                }
                None => Moment::ZERO,
            };
            self.out.dirty_resources.insert(resource);
            self.refresh_resource(resource, now);
        }
        let doors: Vec<DoorId> = self.pools[pool].doors.values().copied().collect();
        for door in doors {
            self.retry_misfits(door);
        }
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
