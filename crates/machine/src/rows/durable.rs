//! State of a machine that survives a crash, as lines of text, to compare two machines.
//!
//! It only reads, and is not a format: a store keeps rows, see `drain`.

use std::collections::BTreeMap;

use crate::state::{LiveJobId, Seq, Space, Stand};
use tenure_core::names::JobId;
use tenure_core::time::Moment;

impl Space {
    /// The durable rows as lines of text, each kind in a fixed order.
    pub(crate) fn durable(&self, now: Moment) -> Vec<String> {
        let mut all = Vec::new();
        let mut jobs: Vec<(JobId, String)> = self
            .jobs
            .iter()
            .map(|(slot, job)| {
                let mut life = self.life_of(slot);
                // The end of a lease is not in its row.
                life.bytes = 0;
                (job.id.clone(), format!("{} {:?} {life:?}", self.name, self.state_name(slot)))
            })
            .collect();
        jobs.sort();
        all.extend(jobs.into_iter().map(|(id, text)| format!("{id} {text}")));
        for lease in self.leases.iter() {
            let (fence, seq) = (lease.fence, lease.seq);
            all.push(format!("lease {fence} {seq:?} {:?}", self.stored_lease(fence)));
        }
        for (name, settings) in self.limits.settings() {
            all.push(format!("setting {name} {settings:?}"));
        }
        for (name, slot) in self.limits.by_name() {
            let l = &self.limits[*slot];
            if let Some(g) = &l.gauge {
                let claimed_at = g.claim.as_ref().map(|claim| claim.asked_at);
                all.push(format!(
                    "gauge {name} {:?} {:?} {:?} {} {:?} {claimed_at:?} {:?}",
                    g.gauge, g.reading, g.failure, g.number, g.asked_at, g.rests
                ));
            }
            if l.in_use > 0
                || l.resting_sum > 0
                || l.external > 0
                || l.paused_until.is_some()
                || l.tat > now
            {
                let tat = l.tat.max(now);
                all.push(format!(
                    "limit {name} {} {:?} {} {:?} {tat} {:?}",
                    l.in_use, l.resting, l.external, l.external_until, l.paused_until
                ));
            }
        }
        for (name, slot) in self.lines.queue_by_name() {
            let q = &self.lines[*slot];
            if !q.hidden {
                let c = &q.counts;
                all.push(format!(
                    "queue {name} {:?} {:?} {:?}",
                    q.settings,
                    q.paused_until,
                    (
                        c.dependent,
                        c.scheduled,
                        c.waiting,
                        c.running,
                        c.succeeded,
                        c.failed,
                        c.cancelled
                    )
                ));
            }
        }
        for (name, slot) in self.pools.by_name() {
            let p = &self.pools[*slot];
            let Some(settings) = &p.settings else { continue };
            all.push(format!("pool {name} {settings:?} {} {}", p.version, p.generation));
            for (id, slot) in &p.resources {
                let r = &self.pools[*slot];
                let mut holders = r.holders.clone();
                holders.sort_unstable();
                all.push(format!(
                    "resource {id} {:?} {} {:?} {:?} {holders:?} {} {} {:?} {}",
                    r.tags, r.slots, r.state, r.reason, r.uses, r.used, r.last_used_at, r.retiring
                ));
            }
        }
        for (name, slot) in self.pools.by_name() {
            let dropped = self.pools[*slot].dropped.iter();
            all.extend(dropped.map(|(id, dropped)| format!("dropped {name} {id} {dropped:?}")));
        }
        let mut keys: Vec<String> =
            self.jobs.keys.iter().map(|(key, holder)| format!("key {key} {holder:?}")).collect();
        keys.sort();
        all.extend(keys);
        for (name, flow) in self.flows.named() {
            all.push(format!("flow {name} {flow:?}"));
        }
        let mut edges: Vec<String> = self
            .dependencies
            .edges()
            .iter()
            .filter_map(|(parent, edges)| {
                // An ended job that has not let its parents go is not notified again: a start does not know it.
                let is_live = |(child, _): &(&Seq, &u32)| self.jobs.by_seq(**child).is_some();
                let told: BTreeMap<_, _> = edges.told.iter().filter(is_live).collect();
                let is_none = edges.open.is_empty() && told.is_empty();
                (!is_none).then(|| format!("edges {parent:?} {:?} {told:?}", edges.open))
            })
            .collect();
        let followed =
            self.dependencies.followed().iter().map(|(seq, one)| format!("followed {seq} {one:?}"));
        edges.extend(followed);
        edges.sort();
        all.extend(edges);
        let fence = self.leases.last_fence();
        all.push(format!("numbers {fence} {} {}", self.lines.last_arrival(), self.pools.used()));
        all
    }

    fn state_name(&self, slot: LiveJobId) -> &'static str {
        match self.jobs[slot].stand {
            Stand::Scheduled => "scheduled",
            Stand::Dependent => "dependent",
            Stand::Waiting(_) => "waiting",
            Stand::Running(_) => "running",
        }
    }
}
