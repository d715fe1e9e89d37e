//! Pools: the fit of a need, the pick of resources, and their state afterwards.

use crate::mutant::{Mutant, forgets};
use crate::queue::doors::Fit;
use crate::state::{
    DoorId, HeldNeed, LaneId, LiveResourceId, PoolId, PoolReservation, Refreshed, Space, Which,
};
use tenure_core::events::{About, EventType};
use tenure_core::lease::Fence;
use tenure_core::settings::ResourceState;
use tenure_core::time::{Moment, Span};

impl Space {
    /// Sorts a resource into its sets, and marks its wait queues as due if it may be handed out.
    pub(crate) fn refresh_resource(&mut self, resource: LiveResourceId, now: Moment) {
        match self.pools.refresh(resource, now) {
            Refreshed::Closed => {}
            Refreshed::Free => {
                let r = &self.pools[resource];
                let (pool, tags, id) = (r.pool, r.tags.clone(), r.id.clone());
                self.pool_doors_due(pool, &tags, &id);
            }
            Refreshed::Kept(door) => {
                if let Some(door) = door {
                    self.lines.door_due(door);
                }
            }
        }
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
            let Some(resource) = self.pools.first_free(pool, which) else { return };
            self.refresh_resource(resource, now);
        }
    }

    /// Frees resources that were kept for a lane.
    pub(crate) fn unkeep(&mut self, kept: Vec<LiveResourceId>, now: Moment) {
        for resource in kept {
            if self.pools.unkeep(resource) {
                self.refresh_resource(resource, now);
            }
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
        if self.pools.count_free(pool, which) + kept >= count as usize {
            Fit::Yes
        } else {
            Fit::No(None)
        }
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
                let r = &self.pools[*slot];
                (r.free.is_some() || r.kept_for == Some(lane)) && self.pools.matches(*slot, which)
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
            let Some(resource) = self.pools.first_free(*pool, which) else { break };
            if taken.contains(&resource) {
                self.pools.leave_free(resource);
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
        self.pools.take(resource, fence, now);
        self.refresh_resource(resource, now);
    }

    /// Removes a lease from a resource; a retiring one goes once it is free.
    pub(crate) fn release_resource(&mut self, resource: LiveResourceId, fence: Fence, now: Moment) {
        match self.pools.release(resource, fence) {
            Some(true) => self.drop_resource(resource, now),
            Some(false) => self.refresh_resource(resource, now),
            None => {}
        }
    }

    /// Lets a resource rest until a time, unless it rests longer or is banned.
    pub(crate) fn cool(
        &mut self,
        resource: LiveResourceId,
        until: Moment,
        reason: Option<String>,
        now: Moment,
    ) {
        let r = &self.pools[resource];
        let longer = r.state == ResourceState::Cooling && r.until >= until;
        if r.state == ResourceState::Banned || longer || until <= now {
            return;
        }
        let (why, ends) = (reason.clone().map(Into::into), Some(until));
        let about = About { until: ends, why, ..About::default() };
        self.resource_happens(resource, EventType::ResourceCooling, about, now);
        self.pools.set_state(resource, ResourceState::Cooling, until, until.since(now), reason);
        self.refresh_resource(resource, now);
    }

    /// Bans a resource, so that it is not handed out again.
    pub(crate) fn ban(&mut self, resource: LiveResourceId, reason: Option<String>, now: Moment) {
        let about = About { why: reason.clone().map(Into::into), ..About::default() };
        self.resource_happens(resource, EventType::ResourceBanned, about, now);
        self.pools.set_state(resource, ResourceState::Banned, Moment::ZERO, Span::ZERO, reason);
        self.pools.lose_kept(resource);
        self.refresh_resource(resource, now);
    }

    /// Removes a resource without holders.
    pub(crate) fn remove_resource(&mut self, resource: LiveResourceId) {
        let Some(r) = self.pools.remove(resource) else { return };
        let name = self.pools[r.pool].name.clone();
        self.forget_resource_row(&name, &r.id);
        self.pools.drop_if_idle(r.pool);
    }

    /// A pool's settings changed: computes all paces again.
    pub(crate) fn pool_changed(&mut self, pool: PoolId, now: Moment) {
        let resources: Vec<LiveResourceId> = self.pools[pool].resources.values().copied().collect();
        for resource in resources {
            self.pools.pace_again(resource, now);
            self.refresh_resource(resource, now);
        }
        let doors: Vec<DoorId> = self.pools[pool].doors.values().copied().collect();
        for door in doors {
            self.lines.retry_misfits(door);
        }
    }
}
