//! Audit of pools. It only reads.

use std::collections::{BTreeMap, BTreeSet};

use super::Pools;
use crate::audit::findings::Findings;
use crate::state::{LiveResourceId, PoolId};
use tenure_core::settings::ResourceState;
use tenure_core::time::Moment;

/// Values that a pool caches about its resources.
#[derive(Default)]
struct Sums {
    leased: u64,
    cooling: u64,
    banned: u64,
    free: BTreeSet<(u64, LiveResourceId)>,
}

impl Pools {
    /// Compares the sets of free resources and the sums of each pool with the resources.
    pub fn audit(&self, found: &mut Findings, now: Moment) {
        let mut sums: BTreeMap<PoolId, Sums> = BTreeMap::new();
        let mut timers = 0;
        for (slot, r) in self.resources.iter() {
            let sum = sums.entry(r.pool).or_default();
            sum.leased += u64::from(!r.holders.is_empty());
            sum.cooling += u64::from(r.state == ResourceState::Cooling);
            sum.banned += u64::from(r.state == ResourceState::Banned);
            // A resource with fewer slots than before evicts no holder; it drains.
            found.check(r.holders.len() <= r.slots as usize || r.free.is_none(), || {
                format!("resource \"{}\" has more holders than slots", r.id)
            });
            let free = self.is_open(r);
            let paced = r.paced_until > now || r.timer.is_some_and(|at| at <= now);
            found.check(r.free.is_some() == free || paced, || {
                format!("resource \"{}\" is free: {free}, in the sets: {}", r.id, r.free.is_some())
            });
            if let Some(key) = r.free {
                sum.free.insert((key, slot));
            }
            timers += usize::from(r.timer.is_some());
            found.check(r.timer.is_none_or(|at| self.timers.has(at, &slot)), || {
                format!("resource \"{}\" has lost its timer", r.id)
            });
        }
        found.check(self.timers.len() == timers, || {
            format!("{timers} resources have timers, and there are {}", self.timers.len())
        });
        for (slot, p) in self.pools.iter() {
            let sums = sums.remove(&slot).unwrap_or_default();
            found.check(self.by_name.get(&p.name) == Some(&slot), || {
                format!("pool \"{}\" is not found by its name", p.name)
            });
            found.check(p.dropped.is_whole(), || {
                format!("pool \"{}\": what is remembered of dropped resources differs", p.name)
            });
            let same = (p.leased, p.cooling, p.banned) == (sums.leased, sums.cooling, sums.banned)
                && p.free == sums.free;
            found
                .check(same, || format!("pool \"{}\": its sums differ from its resources", p.name));
        }
    }
}
