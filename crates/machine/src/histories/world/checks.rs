//! Checks after each step and at the end of a history. They read the machine, and change it only to
//! set everything free.

use super::World;
use super::things::{LIMITS, queue, resource};
use crate::facts::Fact;
use crate::parse_lease_id;
use crate::state::{LaneKey, Place};
use tenure_core::events::{EventType, Happened};
use tenure_core::job::Outcome;
use tenure_core::lease::{Ending, Fence, SettleItem};
use tenure_core::names::{JobId, LimitName, PoolName};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    AddResources, Ask, ObserveLimit, PutPool, RestoreResource, ResumeLimit, ResumeQueue, Settle,
};
use tenure_core::settings::{LimitSettings, PoolSettings, Rate};
use tenure_core::time::Span;

/// A grant: its fence, its job, and the job's arrival in line.
type Granted = (Fence, Option<JobId>, u64);

impl World {
    pub(super) fn check(&mut self) -> Result<(), String> {
        let (events, facts) = self.collect()?;
        let mut granted = Vec::new();
        for event in &events {
            self.check_event(event, &mut granted)?;
        }
        for fact in &facts {
            if let Fact::Reserved { job: Some(job) } = fact {
                self.reserved.insert(job.clone());
            }
        }
        self.check_caps(&granted)?;
        self.check_order(&granted)?;
        let audit = self.machine.audit(self.clock);
        if !audit.ok {
            return Err(audit.faults.join("\n"));
        }
        Ok(())
    }

    fn check_event(&mut self, event: &Happened, granted: &mut Vec<Granted>) -> Result<(), String> {
        let about = &event.about;
        let odd = about.fields().find(|field| !event.kind.fields().contains(field));
        if let Some(field) = odd {
            return Err(format!("{} has {}", event.kind, field.name()));
        }
        let lease = about.lease.as_deref().and_then(parse_lease_id);
        let Some((fence, _)) = lease else { return Ok(()) };
        match event.kind {
            EventType::JobGranted | EventType::LeaseGranted => {
                if fence <= self.fence {
                    return Err(format!("fence {fence} follows {}", self.fence));
                }
                self.fence = fence;
                let space = self.machine.spaces.get(&self.namespace);
                let Some(space) = space else { return Ok(()) };
                if let Some(lease) = space.leases.get(fence) {
                    self.signs.granted(fence, lease.ttl);
                }
                let slot = about.job.as_ref().and_then(|job| space.jobs.by_id(job.as_str()));
                let arrival = slot.map_or(0, |slot| space.jobs[slot].arrival);
                granted.push((fence, about.job.clone(), arrival));
            }
            EventType::JobLost => self.signs.ended(fence, true)?,
            EventType::LeaseEnded => {
                self.signs.ended(fence, about.outcome == Some(Outcome::Lost))?;
            }
            EventType::JobCancelRequested => {}
            _ => self.signs.ended(fence, false)?,
        }
        Ok(())
    }

    fn check_caps(&mut self, granted: &[Granted]) -> Result<(), String> {
        let Some(space) = self.machine.spaces.get(&self.namespace) else { return Ok(()) };
        let now = space.last;
        for (fence, _, _) in granted {
            let Some(lease) = space.leases.get(*fence) else { continue };
            for held in &lease.limits {
                let l = &space.limits[held.limit];
                let Some((settings, _)) = space.limits.setting_of(&l.name) else {
                    return Err(format!("granted \"{}\", which is not set", l.name));
                };
                let used = l.in_use + l.resting_sum + u64::from(l.external);
                if let Some(cap) = settings.concurrency
                    && used > u64::from(cap)
                {
                    return Err(format!("{used} of {cap} permits of \"{}\" after a grant", l.name));
                }
                if let Some(rate) = settings.rate
                    && let Some((seen, tokens)) = self.tokens.get_mut(l.name.as_str())
                    && *seen == Some(rate)
                {
                    tokens.push((now.us(), u64::from(held.cost)));
                    check_rate(&rate, tokens).map_err(|why| format!("\"{}\": {why}", l.name))?;
                }
            }
            for held in &lease.resources {
                let r = &space.pools[held.resource];
                if r.holders.len() > r.slots as usize {
                    return Err(format!("{} holders of \"{}\"", r.holders.len(), r.id));
                }
            }
        }
        Ok(())
    }

    /// No barging: of jobs of one queue, priority and group that need one and the same limit alone,
    /// no job is granted while an earlier one still waits in line.
    fn check_order(&self, granted: &[Granted]) -> Result<(), String> {
        let Some(space) = self.machine.spaces.get(&self.namespace) else { return Ok(()) };
        // The head of this lane went in the same step, and had reserved until then.
        let reserved_until_now = |key: &LaneKey| {
            granted.iter().filter_map(|(_, id, _)| id.as_ref()).any(|id| {
                let slot = space.jobs.by_id(id.as_str()).filter(|_| self.reserved.contains(id));
                slot.is_some_and(|slot| {
                    let shape = space.jobs.shape_of(slot);
                    shape.queue == key.queue
                        && shape.priority == key.priority
                        && shape.group == key.group
                        && shape.held == key.needs
                })
            })
        };
        for (_, id, arrival) in granted {
            let Some(slot) = id.as_ref().and_then(|id| space.jobs.by_id(id.as_str())) else {
                continue;
            };
            let job = &space.jobs[slot];
            let shape = space.jobs.shape(job.shape);
            let [crate::state::HeldNeed::Limit { limit, .. }] = shape.held.as_ref() else {
                continue;
            };
            if job.lost > 0 || self.reserved.contains(&job.id) {
                continue;
            }
            for (_, lane) in space.lines.lanes() {
                let key = &lane.key;
                let [crate::state::HeldNeed::Limit { limit: other, .. }] = key.needs.as_ref()
                else {
                    continue;
                };
                let same = key.queue == shape.queue
                    && key.priority == shape.priority
                    && key.group == shape.group
                    && !key.suspect
                    && other == limit
                    // A reserving lane keeps its own needs; capacity beyond is free for all.
                    && !lane.reserving
                    && !reserved_until_now(key)
                    // Unsatisfiable entries stand aside.
                    && !matches!(lane.place, Place::Misfit(_))
                    && !matches!(space.lines[lane.bundle].place, Place::Misfit(_));
                if let Some((first, _)) = lane.line.first()
                    && same
                    && first < *arrival
                {
                    return Err(format!("{id:?} (arrival {arrival}) was granted before {first}"));
                }
            }
        }
        Ok(())
    }

    /// Sets everything free: each job must come to its end by events alone.
    pub(super) fn everything_ends(&mut self) -> Result<(), String> {
        let last = self.machine.last_in(&self.namespace).unwrap_or_default();
        self.go_on(self.clock.max(last));
        self.tick();
        self.check()?;
        self.takers.clear();
        // Waiting calls go on: at least one job waiter for all queues; it asks again only after an
        // answer.
        for name in LIMITS.into_iter().filter(|name| !name.contains('*')) {
            let limit = LimitName::parse(name).unwrap();
            let _ = self.request(ResumeLimit { limit: limit.clone() }.into());
            let _ = self.request(ObserveLimit { limit, external: 0, hold: None }.into());
            self.check()?;
        }
        for name in LIMITS {
            self.put_limit(name, LimitSettings { concurrency: Some(4), ..Default::default() });
            self.check()?;
        }
        let put =
            PutPool { pool: PoolName::parse("p").unwrap(), settings: PoolSettings::default() };
        self.request(put.into()).unwrap();
        for n in 0..5 {
            let resources = vec![resource(n, 3, 1)];
            let add = AddResources { pool: PoolName::parse("p").unwrap(), resources };
            self.request(add.into()).unwrap();
            let (pool, resource) = self.resource(n);
            self.request(RestoreResource { pool, resource }.into()).unwrap();
        }
        for q in 0..3 {
            match self.request(ResumeQueue { queue: queue(q) }.into()) {
                Ok(_) => {}
                Err(no) if no.code == Code::QueueNotFound => {}
                Err(no) => return Err(no.to_string()),
            }
        }
        self.check()?;
        for round in 0..4_000 {
            let unfinished =
                self.machine.spaces.get(&self.namespace).map_or(0, |s| s.jobs.iter().count());
            if unfinished == 0 && !self.awaiting.is_empty() {
                return Err(format!("{:?} still wait for the end of jobs", self.awaiting));
            }
            if unfinished == 0 {
                return Ok(());
            }
            while let Some(lease) = self.leases.pop() {
                let ending = Ending::Succeeded { result: None };
                let item = SettleItem::new(lease, ending);
                self.request(Settle::of(vec![item]).into()).map_err(|no| no.to_string())?;
                self.check()?;
            }
            if self.takers.is_empty() {
                let queues = (0..3).map(queue).collect();
                let mut lease = self.new_lease(Ask::Jobs { queues, max: 1 }, (round % 3) as u8);
                lease.wait = Span::from_s(60);
                self.ask(lease);
                self.check()?;
            }
            if self.leases.is_empty() {
                // Only time can help now.
                let Some(due) = self.machine.next_due() else { break };
                self.go_on(self.clock.max(due));
                self.tick();
                self.check()?;
            }
        }
        let space = self.machine.spaces.get(&self.namespace);
        let left: Vec<String> = space.map_or_else(Vec::new, |space| {
            space
                .jobs
                .iter()
                .map(|(slot, _)| format!("{:?}", space.explain_job(slot, self.clock).summary))
                .collect()
        });
        Err(format!("{} jobs never end: {left:?}", left.len()))
    }
}

fn check_rate(rate: &Rate, tokens: &[(u64, u64)]) -> Result<(), String> {
    let Some((to, _)) = tokens.last() else { return Ok(()) };
    let mut sum = 0u128;
    // Grants from before the clock was set back are measured by another clock.
    for (from, cost) in tokens.iter().rev().take_while(|(from, _)| from <= to) {
        sum += u128::from(*cost);
        let w = u128::from(to - from + 1);
        let most = u128::from(rate.burst)
            + (w * u128::from(rate.count)).div_ceil(u128::from(rate.per.us()))
            - 1;
        if sum > most {
            return Err(format!("{sum} tokens in {w} us, {most} allowed by {rate:?}"));
        }
    }
    Ok(())
}
