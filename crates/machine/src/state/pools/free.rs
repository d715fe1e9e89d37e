//! The sets of free resources, and those that are kept for a reserving lane.

use super::{Pool, Pools, Resource};
use crate::state::{DoorId, LiveResourceId, PoolId, Which};
use tenure_core::settings::{Pick, ResourceState};
use tenure_core::time::Moment;

/// The place of a resource after a change.
pub(crate) enum Refreshed {
    /// It may not be handed out now.
    Closed,
    /// It is in the sets of free ones.
    Free,
    /// It is kept for the reserving lane in this wait queue.
    Kept(Option<DoorId>),
}

impl Pools {
    fn may_be_handed_out(&self, resource: LiveResourceId, now: Moment) -> bool {
        let r = &self.resources[resource];
        self.is_open(r) && r.paced_until <= now
    }

    /// True if nothing but the pace of its pool keeps a resource from being handed out.
    pub(super) fn is_open(&self, r: &Resource) -> bool {
        r.state == ResourceState::Available
            && !r.retiring
            && r.kept_for.is_none()
            && (r.holders.len() as u64) < u64::from(r.slots)
            && self.pools[r.pool].settings.is_some()
    }

    /// Sorts a resource into its sets after any change.
    pub fn refresh(&mut self, resource: LiveResourceId, now: Moment) -> Refreshed {
        self.leave_free(resource);
        let is_free = self.may_be_handed_out(resource, now);
        if is_free {
            if let Some(door) = self.keep_for_reservation(resource) {
                return Refreshed::Kept(door);
            }
            self.enter_free(resource);
        }
        self.arm(resource, now);
        if is_free { Refreshed::Free } else { Refreshed::Closed }
    }

    fn enter_free(&mut self, resource: LiveResourceId) {
        let r = &mut self.resources[resource];
        let p = &mut self.pools[r.pool];
        let random = p.settings.is_some_and(|s| s.pick == Pick::Random);
        let key = if random { draw(p) } else { r.used };
        r.free = Some(key);
        p.free.insert((key, resource));
        for tag in &r.tags {
            p.free_by_tag.entry(tag.clone()).or_default().insert((key, resource));
        }
    }

    /// Takes a resource out of the sets until it is refreshed.
    pub fn leave_free(&mut self, resource: LiveResourceId) {
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

    pub fn matches(&self, resource: LiveResourceId, which: &Which) -> bool {
        let r = &self.resources[resource];
        match which {
            Which::Any => true,
            Which::Tag(tag) => r.tags.contains(tag),
            Which::Id(id) => r.id == *id,
        }
    }

    pub fn first_free(&self, pool: PoolId, which: &Which) -> Option<LiveResourceId> {
        let p = &self.pools[pool];
        match which {
            Which::Any => p.free.first().map(|first| first.1),
            Which::Tag(tag) => p.free_by_tag.get(tag)?.first().map(|first| first.1),
            Which::Id(id) => {
                p.resources.get(id).copied().filter(|slot| self.resources[*slot].free.is_some())
            }
        }
    }

    pub fn count_free(&self, pool: PoolId, which: &Which) -> usize {
        let p = &self.pools[pool];
        match which {
            Which::Any => p.free.len(),
            Which::Tag(tag) => p.free_by_tag.get(tag).map_or(0, |free| free.len()),
            Which::Id(_) => usize::from(self.first_free(pool, which).is_some()),
        }
    }

    /// Keeps a newly free resource for the lane that reserves, if that lacks one. Returns the wait queue of that lane.
    fn keep_for_reservation(&mut self, resource: LiveResourceId) -> Option<Option<DoorId>> {
        let pool = self.resources[resource].pool;
        let own = self.pools[pool].reservation.as_ref()?;
        if own.kept.len() >= own.count as usize || !self.matches(resource, &own.which) {
            return None;
        }
        let p = &mut self.pools[pool];
        let own = p.reservation.as_mut()?;
        own.kept.push(resource);
        self.resources[resource].kept_for = Some(own.lane);
        Some(p.doors.get(&own.which).copied())
    }

    /// Ends the hold of a reservation on a resource. Returns false if the resource is gone.
    pub fn unkeep(&mut self, resource: LiveResourceId) -> bool {
        let there = self.resources.get_mut(resource);
        there.is_some_and(|r| {
            r.kept_for = None;
            true
        })
    }

    /// Ends the hold of a reservation on a resource that may no longer be handed out.
    pub fn lose_kept(&mut self, resource: LiveResourceId) {
        let r = &mut self.resources[resource];
        let Some(_) = r.kept_for.take() else { return };
        if let Some(reservation) = &mut self.pools[r.pool].reservation {
            reservation.kept.retain(|slot| *slot != resource);
        }
    }
}

/// The number need not be unpredictable, only well spread: xorshift64*.
fn draw(pool: &mut Pool) -> u64 {
    pool.draw ^= pool.draw >> 12;
    pool.draw ^= pool.draw << 25;
    pool.draw ^= pool.draw >> 27;
    pool.draw.wrapping_mul(0x2545_F491_4F6C_DD1D)
}
