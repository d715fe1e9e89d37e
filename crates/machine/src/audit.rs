//! Audit: computes all cached values again from the primary data, and compares them. It only reads.

pub(crate) mod findings;
mod kin;

use std::collections::{BTreeMap, BTreeSet};

use crate::audit::findings::Findings;
use crate::queue::doors::Fit;
use crate::queue::order::rank_of;
use crate::state::{
    Awaited, BundleId, CALLERS, DoorId, DoorKey, Entry, LaneId, LimitId, LiveResourceId, Place,
    QueueId, Space, Stand, TurnId,
};
use tenure_core::lease::Fence;
use tenure_core::names::ScheduleId;
use tenure_core::requests::Audited;
use tenure_core::time::Moment;

impl Space {
    /// Compares all cached values with the primary data.
    pub fn audit(&self, now: Moment) -> Audited {
        let mut found = Findings::default();
        self.audit_leases(&mut found);
        self.audit_jobs(&mut found);
        self.audit_lanes(&mut found);
        self.audit_doors(&mut found, now);
        self.limits.audit(&mut found);
        self.pools.audit(&mut found, now);
        self.waiters.audit(&mut found, |on: &Awaited| match on {
            Awaited::Job(seq) => self.jobs.by_seq(*seq).is_some(),
            Awaited::Flow(flow) => self.flows.is_open(flow),
        });
        self.workers.audit(&mut found);
        self.audit_kin(&mut found);
        self.audit_replacing(&mut found);
        self.jobs.audit(&mut found);
        let mut made: BTreeMap<&ScheduleId, u64> = BTreeMap::new();
        for origin in self.jobs.iter().filter_map(|(_, job)| job.origin.as_ref()) {
            *made.entry(&origin.by.id).or_default() += 1;
        }
        self.schedules.audit(&mut found, made, now);
        found.done()
    }

    fn audit_leases(&self, found: &mut Findings) {
        let mut in_use: BTreeMap<LimitId, (u64, BTreeSet<Fence>)> = BTreeMap::new();
        let mut held: BTreeMap<LiveResourceId, Vec<Fence>> = BTreeMap::new();
        self.leases.audit(found, |slot| self.jobs[slot].lost > 0);
        for lease in self.leases.iter() {
            let fence = lease.fence;
            for limit in &lease.limits {
                let sum = in_use.entry(limit.limit).or_default();
                sum.0 += u64::from(limit.weight);
                sum.1.insert(fence);
            }
            for resource in &lease.resources {
                held.entry(resource.resource).or_default().push(fence);
            }
            if let Some(slot) = lease.job {
                let job = self.jobs.get(slot);
                found.check(job.is_some_and(|job| job.stand == Stand::Running(fence)), || {
                    format!("the lease {fence} holds a job that does not run under it")
                });
            }
        }
        for (slot, limit) in self.limits.iter() {
            let (sum, holders) = in_use.remove(&slot).unwrap_or_default();
            found.check(limit.in_use == sum && limit.holders == holders, || {
                format!(
                    "limit \"{}\": {} in use is cached, {sum} is held",
                    limit.name, limit.in_use
                )
            });
            let due = limit.gauge.as_ref().and_then(|gauge| gauge.due);
            found.check(due.is_some() || self.next_attempt(slot, self.last).is_none(), || {
                format!("limit \"{}\": its gauge is wanted and never read", limit.name)
            });
        }
        found.check(in_use.is_empty(), || "a lease holds a limit that is not there".to_owned());
        for (slot, resource) in self.pools.resources() {
            let mut holders = resource.holders.clone();
            holders.sort_unstable();
            let held = held.remove(&slot).unwrap_or_default();
            found.check(holders == held, || {
                format!("resource \"{}\": holders and leases differ", resource.id)
            });
        }
        found.check(held.is_empty(), || "a lease holds a resource that is not there".to_owned());
    }

    fn audit_jobs(&self, found: &mut Findings) {
        let mut counts: BTreeMap<QueueId, (u64, u64, u64)> = BTreeMap::new();
        let mut dependents: BTreeMap<QueueId, u64> = BTreeMap::new();
        for (slot, job) in self.jobs.iter() {
            let c = counts.entry(self.jobs.shape(job.shape).queue).or_default();
            match job.stand {
                Stand::Dependent => {
                    *dependents.entry(self.jobs.shape(job.shape).queue).or_default() += 1
                }
                Stand::Scheduled => c.0 += 1,
                Stand::Waiting(lane) => {
                    c.1 += 1;
                    let there = self
                        .lanes
                        .get(lane)
                        .is_some_and(|lane| lane.line.get(job.arrival) == Some(slot.into()));
                    found.check(there, || format!("job \"{}\" is in no line", job.id));
                }
                Stand::Running(fence) => {
                    c.2 += 1;
                    let lease = self.leases.get(fence);
                    found.check(lease.is_some_and(|lease| lease.job == Some(slot)), || {
                        format!("job \"{}\" runs under no lease", job.id)
                    });
                }
            }
        }
        for (slot, queue) in self.queues.iter() {
            if slot == CALLERS {
                continue;
            }
            let (scheduled, waiting, running) = counts.remove(&slot).unwrap_or_default();
            let dependent = dependents.remove(&slot).unwrap_or_default();
            let c = &queue.counts;
            let cached = (c.dependent, c.scheduled, c.waiting, c.running);
            found.check(cached == (dependent, scheduled, waiting, running), || {
                format!(
                    "queue {:?}: counts {c:?} differ from {dependent} dependent, {scheduled} scheduled, \
                     {waiting} waiting, {running} running",
                    queue.name
                )
            });
        }
    }

    fn audit_lanes(&self, found: &mut Findings) {
        let mut blocked: BTreeMap<QueueId, u64> = BTreeMap::new();
        let mut at_door: BTreeMap<DoorId, u64> = BTreeMap::new();
        let mut in_bundle: BTreeMap<BundleId, (u64, BTreeSet<(u64, LaneId)>)> = BTreeMap::new();
        let mut count = |queue: QueueId, place: Place, n: u64| {
            if let Place::Parked(door) | Place::Misfit(door) = place {
                *blocked.entry(queue).or_default() += n;
                *at_door.entry(door).or_default() += n;
            }
        };
        let mut waiting: BTreeMap<(QueueId, i16), u64> = BTreeMap::new();
        for (slot, lane) in self.lanes.iter() {
            let len = lane.line.len() as u64;
            *waiting.entry((lane.key.queue, rank_of(lane.key.priority))).or_default() += len;
            count(lane.key.queue, lane.place, len);
            if lane.place == Place::Open {
                let bundle = in_bundle.entry(lane.bundle).or_default();
                bundle.0 += len;
                if let Some((arrival, _)) = lane.line.first() {
                    bundle.1.insert((arrival, slot));
                }
            }
            found.check(lane.place == Place::Open || len > 0, || {
                format!("the empty lane {slot} stands at a door")
            });
        }
        let mut in_group: BTreeMap<TurnId, BTreeSet<(u64, BundleId)>> = BTreeMap::new();
        for (slot, bundle) in self.bundles.iter() {
            let (len, open) = in_bundle.remove(&slot).unwrap_or_default();
            found.check(bundle.waiting == len && bundle.open == open, || {
                format!("the bundle {slot} does not hold the lanes that are open")
            });
            count(bundle.queue, bundle.place, len);
            if bundle.place == Place::Open
                && let Some((arrival, _)) = bundle.open.first()
            {
                in_group.entry(bundle.group).or_default().insert((*arrival, slot));
            }
        }
        for (slot, group) in self.groups.iter() {
            let open = in_group.remove(&slot).unwrap_or_default();
            found.check(group.open == open, || {
                format!("the group {slot} does not hold its bundles")
            });
            let turns = self.queues[group.queue].priorities.get(&rank_of(group.priority));
            let key = open.first().map(|first| (group.own, first.0, slot));
            let there = turns.is_some_and(|turns| match key {
                Some(key) => turns.open.contains(&key),
                None => !turns.open.iter().any(|other| other.2 == slot),
            });
            found.check(there, || format!("the group {slot} is not in its order"));
            let most = turns.map_or(0, |turns| turns.top);
            found.check(group.own <= most.max(turns.map_or(0, |turns| turns.v)), || {
                format!("the group {slot} finishes after the highest finish of its priority")
            });
        }
        for (slot, queue) in self.queues.iter() {
            for (rank, turns) in &queue.priorities {
                let n = waiting.remove(&(slot, *rank)).unwrap_or_default();
                found.check(turns.waiting == n && (n > 0 || turns.v >= turns.top), || {
                    format!(
                        "queue {:?}, priority {}: {} wait is cached, {n} do; V is {} of {}",
                        queue.name, -rank, turns.waiting, turns.v, turns.top
                    )
                });
                found.check(!turns.has_void() || self.void_turns.contains(&(slot, *rank)), || {
                    format!("queue {:?}: groups are remembered for nothing", queue.name)
                });
            }
            let n = blocked.remove(&slot).unwrap_or_default();
            found.check(queue.counts.blocked == n, || {
                format!(
                    "queue {:?}: {} blocked is cached, {n} are",
                    queue.name, queue.counts.blocked
                )
            });
        }
        for (slot, door) in self.doors.iter() {
            let n = at_door.remove(&slot).unwrap_or_default();
            found.check(door.waiting == n, || {
                format!("the door {slot}: {} waiting is cached, {n} are", door.waiting)
            });
        }
    }

    /// The invariant of rule 5: the first entry of a wait queue cannot be served, or its queue has one offered, or the
    /// wait queue is pending.
    fn audit_doors(&self, found: &mut Findings, now: Moment) {
        for (slot, door) in self.doors.iter() {
            let name = self.door_name(&door.key);
            let busy = door.pending && (door.pass > 0 || !door.retry.is_empty());
            found.check(door.pending == self.pending.contains(&slot), || {
                format!("the door of \"{name}\" does not know whether it is pending")
            });
            for (queue, line) in &door.lines {
                let entries = line.groups.values().flat_map(|group| group.entries.iter());
                for (key, entry) in entries.chain(&line.reserving) {
                    let at = match entry {
                        Entry::Bundle(b) => self.bundles.get(*b).map(|b| (b.place, b.parked_key)),
                        Entry::Lane(l) => self.lanes.get(*l).map(|l| (l.place, l.parked_key)),
                        Entry::Queue(_) => None,
                    };
                    found.check(at == Some((Place::Parked(slot), *key)), || {
                        format!("{entry:?} under {key} at the door of \"{name}\" is {at:?}")
                    });
                }
                if let Some(offered) = line.offered {
                    found.check(self.is_offered(offered, slot), || {
                        format!("the door of \"{name}\" waits for one that is not offered")
                    });
                    continue;
                }
                if busy || self.families.iter().any(|(family, _)| name.starts_with(family.as_str()))
                {
                    continue;
                }
                let whole = line.whole.then_some(Entry::Queue(*queue));
                let reserving = line.reserving.first().map(|first| first.1);
                let first = line.first();
                for entry in whole.into_iter().chain(reserving).chain(first) {
                    let fit = self.entry_fits(slot, entry, now);
                    // Time opens a wait queue by its timer, at the next tick.
                    let by_timer = door.timer.is_some_and(|at| at <= now)
                        || self.limit_timer_due(&door.key, now);
                    found.check(!matches!(fit, Fit::Yes) || by_timer, || {
                        format!(
                            "{entry:?} stands at the door of \"{name}\", which could serve it; timer \
                             {:?}, now {now:?}, {} steps left of its pass",
                            door.timer, door.pass
                        )
                    });
                }
            }
        }
        for slot in &self.pending {
            found.check(self.doors.get(*slot).is_some(), || {
                "a door that is not there is pending".to_owned()
            });
        }
        for (at, lane) in self.lanes.iter() {
            if let Some(door) = lane.offered_by {
                let line = self.doors.get(door).and_then(|d| d.lines.get(&lane.key.queue));
                found.check(line.is_some_and(|line| line.offered == Some(Entry::Lane(at))), || {
                    format!("the lane {at} is offered by a door that does not know it")
                });
            }
        }
    }

    fn limit_timer_due(&self, key: &DoorKey, now: Moment) -> bool {
        match key {
            DoorKey::Limit(limit) => self.limits[*limit].timer.is_some_and(|at| at <= now),
            DoorKey::Pool(..) => false,
        }
    }

    fn is_offered(&self, entry: Entry, door: DoorId) -> bool {
        match entry {
            Entry::Bundle(bundle) => {
                self.bundles.get(bundle).is_some_and(|b| b.offered_by == Some(door))
            }
            Entry::Lane(lane) => self.lanes.get(lane).is_some_and(|l| l.offered_by == Some(door)),
            Entry::Queue(queue) => {
                self.queues.get(queue).is_some_and(|q| q.offered_by == Some(door))
            }
        }
    }
}
