//! Audit: computes all cached values again from the primary data, and compares them. It only reads.

pub(crate) mod findings;

use std::collections::{BTreeMap, BTreeSet};

use crate::audit::findings::Findings;
use crate::queue::doors::Fit;
use crate::state::{
    Awaited, CALLERS, DoorKey, Entry, LimitId, LiveResourceId, QueueId, Seq, Space, Stand,
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
        self.lines.audit(&mut found);
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
                        .lines
                        .lane(lane)
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
        for (slot, queue) in self.lines.queues() {
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
        found.check(counts.is_empty(), || "a job is in a queue that is not there".to_owned());
    }

    /// Compares the edges, the flows and the counts of dependents with the jobs.
    fn audit_kin(&self, found: &mut Findings) {
        let lives = |seq| self.jobs.by_seq(seq).is_some();
        let waits = |child, turn| self.waits_in_turn(child, turn);
        self.dependencies.audit_edges(found, lives, waits, |parent| self.has_ended(parent));
        self.dependencies.audit_followed(found, self.count_followers(), lives);
        let mut open = self.count_open_edges();
        let mut members: BTreeMap<_, BTreeSet<Seq>> = BTreeMap::new();
        for (slot, job) in self.jobs.iter() {
            let cached = self.waiting_on(slot);
            let counted = open.remove(&job.seq).unwrap_or_default();
            found.check(
                cached == counted && (cached > 0) == (job.stand == Stand::Dependent),
                || {
                    format!(
                        "job \"{}\": {cached} open edges are cached, {counted} are there",
                        job.id
                    )
                },
            );
            if let Some(flow) = job.flow() {
                members.entry(flow).or_default().insert(job.seq);
            }
        }
        self.flows.audit(found, members);
    }

    /// The invariant of rule 5: the first entry of a wait queue cannot be served, or its queue has one offered, or the
    /// wait queue is pending.
    fn audit_doors(&self, found: &mut Findings, now: Moment) {
        for (slot, door) in self.lines.doors() {
            let name = self.door_name(&door.key);
            let busy = door.pending && (door.pass > 0 || !door.retry.is_empty());
            if busy || self.limits.has_changed_template(&name) {
                continue;
            }
            for (queue, line) in door.lines.iter().filter(|(_, line)| line.offered.is_none()) {
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
    }

    fn limit_timer_due(&self, key: &DoorKey, now: Moment) -> bool {
        match key {
            DoorKey::Limit(limit) => self.limits[*limit].timer.is_some_and(|at| at <= now),
            DoorKey::Pool(..) => false,
        }
    }
}
