//! One history: plays steps on a machine and checks the invariants after each. It never chooses a step: the history has
//! them all.

mod checks;
mod signs;
mod steps;
mod things;

use std::collections::BTreeMap;

use super::store::Store;
use crate::facts::{Fact, Granted, Notified};
use crate::rows::Archive;
use crate::rows::stored::StoredLife;
use crate::{Command, Config, Done, Known, LeaseOutcome, Look, Machine, PushedOne, TakerId};
use signs::Signs;
pub(super) use steps::Step;
use tenure_core::bounds::AWAITED_US;
use tenure_core::events::Happened;
use tenure_core::flow::{After, OnParentFailure, Parent};
use tenure_core::gauge::{Gauge, GaugeClaim, GaugeResult, GaugeSource};
use tenure_core::job::NewJob;
use tenure_core::lease::{Fence, LeaseView, Worker};
use tenure_core::names::{JobId, JobRef, LimitName, Namespace, PoolName, Ref, RequestId, WorkerId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Ask, Lease, Meant, PutLimit, Request, SyncResources};
use tenure_core::settings::{LimitSettings, Rate};
use tenure_core::time::{Moment, Span};
use things::{LIMITS, flow_name, needs, queue, resource};

/// A rate, and its grants: time and number.
type Tokens = (Option<Rate>, Vec<(u64, u64)>);

pub(super) struct World {
    machine: Machine,
    store: Store,
    now: Moment,
    /// The clock of the engine, which may be behind `now`.
    clock: Moment,
    /// The leap of the clock since the last tick.
    leapt: Span,
    /// Signs of life of all holders, by a clock that never leaps.
    signs: Signs,
    namespace: Namespace,
    jobs: Vec<JobId>,
    leases: Vec<String>,
    takers: Vec<TakerId>,
    /// Calls that wait for the end of a job.
    awaiting: Vec<TakerId>,
    next: u64,
    fence: Fence,
    /// Granted tokens of each limit since the last change of its setting: time and number.
    tokens: BTreeMap<String, Tokens>,
    /// Heads that reserved: they are exempt from the order.
    reserved: std::collections::BTreeSet<JobId>,
    /// Claims of gauges, answered or not.
    claims: Vec<GaugeClaim>,
}

impl Default for World {
    fn default() -> Self {
        let config =
            Config { patience: Span::from_s(3), retain_bytes: 40_000, ..Config::default() };
        let now = Moment::from_us(1_700_000_000_000_000);
        let mut world = World {
            machine: Machine::new(config),
            store: Store::default(),
            now,
            clock: now,
            leapt: Span::ZERO,
            signs: Signs::default(),
            namespace: Namespace::main(),
            jobs: Vec::new(),
            leases: Vec::new(),
            takers: Vec::new(),
            awaiting: Vec::new(),
            next: 0,
            fence: Fence::default(),
            tokens: BTreeMap::new(),
            reserved: Default::default(),
            claims: Vec::new(),
        };
        for (name, cap) in [("a", 1), ("b", 3), ("s:*", 1)] {
            world.put_limit(name, LimitSettings { concurrency: Some(cap), ..Default::default() });
        }
        let pool = SyncResources {
            pool: PoolName::parse("p").unwrap(),
            resources: (0..3).map(|n| resource(n, n, 1)).collect(),
            meant: Meant::Ask,
            version: None,
        };
        world.request(pool.into()).unwrap();
        world
    }
}

impl World {
    /// Plays a history to its end; the first broken check ends it.
    pub(super) fn play(mut self, steps: &[Step]) -> Result<(), String> {
        for (n, step) in steps.iter().enumerate() {
            self.step(step)
                .and_then(|()| self.check())
                .map_err(|why| format!("after step {n} ({step:?}): {why}"))?;
        }
        self.everything_ends()
    }

    fn request(&mut self, request: Request) -> Result<Done, Refusal> {
        self.apply(Command::Request(request))
    }

    fn apply(&mut self, command: Command) -> Result<Done, Refusal> {
        let name = self.namespace.clone();
        let done = self.machine.apply(&name, command, self.clock, &self.store);
        if let Ok(Done::Lease(LeaseOutcome::Now(granted))) = &done {
            self.take(granted.clone());
        }
        if let Ok(Done::Request(Known::Push(pushed))) = &done {
            self.jobs.extend(pushed.iter().map(|one: &PushedOne| one.id.clone()));
        }
        done
    }

    fn take(&mut self, granted: Granted) {
        for grant in granted.grants {
            let LeaseView { lease: Some(id), .. } = grant.lease else { continue };
            if !self.leases.contains(&id) {
                self.leases.push(id);
            }
        }
    }

    /// A refusal changes nothing: a template has no gauge.
    fn put_gauge(&mut self, name: &str, settings: LimitSettings, gauge: Gauge) {
        let limit = LimitName::parse(name).unwrap();
        let of_template = limit.is_template();
        let put = PutLimit { limit, settings, gauge: Some(Box::new(gauge)) };
        assert_eq!(self.request(put.into()).is_err(), of_template);
        self.forget_tokens();
    }

    fn read_gauge(&mut self, claim: u8, what: u8) {
        let (reader, other) = (format!("r{}", what % 2), format!("r{}", 1 - what % 2));
        let others = if what & 2 > 0 { vec![other] } else { Vec::new() };
        if let Ok(Done::Claimed(claims)) = self.apply(Command::ClaimGauges { reader, others }) {
            self.claims.extend(claims);
        }
        let youngest = self.claims.iter().rev().nth(usize::from(claim % 3));
        let Some(claim) = youngest.cloned() else { return };
        let result = match (&claim.gauge.source, what % 8) {
            (_, 0) => GaugeResult::failed("no"),
            // A value of the wrong kind for the gauge.
            (_, 1) => GaugeResult::Ids(vec!["x".to_owned()]),
            (GaugeSource::Count { .. }, _) => GaugeResult::Sum(u64::from(what / 8)),
            (GaugeSource::Scrapyd { .. }, _) => {
                let ids = self.jobs.iter().rev().take(usize::from(what / 16));
                GaugeResult::Ids(ids.map(JobId::to_string).collect())
            }
        };
        let _ = self.apply(Command::TakeReading(claim.answered(result)));
    }

    fn put_limit(&mut self, name: &str, settings: LimitSettings) {
        let limit = LimitName::parse(name).unwrap();
        let put = PutLimit { limit, settings, gauge: None };
        self.request(put.into()).unwrap();
        self.forget_tokens();
    }

    /// Tokens count again from zero after a change of the rate.
    fn forget_tokens(&mut self) {
        for name in LIMITS {
            let rate = self.rate_of(name);
            let seen = self.tokens.entry(name.to_owned()).or_default();
            if seen.0 != rate {
                *seen = (rate, Vec::new());
            }
        }
    }

    fn rate_of(&self, name: &str) -> Option<Rate> {
        let space = self.machine.spaces.get(&self.namespace)?;
        space.limits.setting_of(&LimitName::parse(name).ok()?)?.0.rate
    }

    fn job(&self, n: u8) -> Option<JobRef> {
        let at = usize::from(n) % self.jobs.len().max(1);
        // The youngest are the most revealing.
        self.jobs.iter().rev().nth(at).cloned().map(JobRef::Id)
    }

    fn lease_id(&self, n: u8) -> Option<String> {
        self.leases.get(usize::from(n) % self.leases.len().max(1)).cloned()
    }

    fn new_job(&mut self, q: u8, n: u8) -> NewJob {
        self.next += 1;
        let mut job = NewJob::new(queue(q));
        job.id = Some(JobId::parse(&format!("j{}", self.next)).unwrap());
        job.needs = Some(needs(n));
        job.retry = Some(tenure_core::job::Retry { max_attempts: 3, ..Default::default() });
        job.retain = Some(Span::from_s(20));
        job
    }

    /// A few jobs that depend on each other, on an existing one, or on a flow.
    fn kin(&mut self, q: u8, count: u8, what: u8, parent: u8, flow: u8) -> Vec<NewJob> {
        let there = self.job(parent);
        let name = |n: u8| Ref::parse(&format!("r{n}")).unwrap();
        let one = |n: u8| {
            let mut job = self.new_job(q, 0);
            job.reference = Some(name(n));
            job.flow = (what & 1 > 0 && n.is_multiple_of(2)).then(|| flow_name(flow));
            let mut after = Vec::new();
            match what.wrapping_add(n.wrapping_mul(3)) / 2 % 5 {
                0 if n > 0 => after.push(Parent::Item(name(n - 1))),
                1 if n + 1 < count => after.push(Parent::Item(name(count - 1))),
                2 => after.extend(there.clone().map(Parent::Job)),
                3 => {
                    after.push(Parent::Flow(flow_name(flow / 2)));
                    job.flow = None;
                }
                _ => {}
            }
            let gone_is_done = what & 32 > 0;
            job.after = after.into_iter().map(|parent| After { parent, gone_is_done }).collect();
            if what & 64 > 0 {
                job.on_parent_failure = OnParentFailure::Run;
            }
            if what & 128 > 0 {
                job.retain = Some(Span::ZERO);
            }
            job
        };
        (0..count).map(one).collect()
    }

    fn new_lease(&mut self, ask: Ask, worker: u8) -> Lease {
        self.next += 1;
        let mut lease = Lease::jobs(vec![queue(0)], 1);
        lease.ask = ask;
        lease.ttl = Span::from_s(1 + u64::from(worker % 4) * 3);
        let id = (!worker.is_multiple_of(3))
            .then(|| WorkerId::parse(&format!("w{}", worker % 3)).unwrap());
        lease.worker = Worker { id, ..Worker::default() };
        lease.request_id = Some(RequestId::parse(&format!("rq{}", self.next)).unwrap());
        lease.local = worker % 5 == 1;
        lease
    }

    fn ask(&mut self, lease: Lease) {
        self.next += 1;
        let taker = TakerId::new(self.next);
        for _ in 0..50 {
            let command = Command::Lease(Box::new(lease.clone()), taker);
            match self.apply(command) {
                Ok(Done::Lease(LeaseOutcome::Again)) => continue,
                Ok(Done::Lease(LeaseOutcome::Waits)) => self.takers.push(taker),
                _ => {}
            }
            return;
        }
        panic!("a lease call does not end");
    }

    fn tick(&mut self) {
        let leapt = std::mem::take(&mut self.leapt);
        let last = |machine: &Machine| machine.last_in(&self.namespace);
        let before = last(&self.machine);
        self.machine.tick(self.clock, leapt, &self.store);
        // It has accepted a clock that was set back: earlier grants are measured by another clock.
        if last(&self.machine) < before {
            self.tokens.values_mut().for_each(|seen| seen.1.clear());
        }
    }

    /// Moves time on to a time of the engine's clock.
    fn go_on(&mut self, to: Moment) {
        self.signs.go_on(to.since(self.clock));
        self.clock = to;
    }

    /// Time passes, and the engine ticks whenever something is due.
    fn pass(&mut self, span: Span) -> Result<(), String> {
        let end = self.clock.plus(span);
        for _ in 0..1_000 {
            self.check()?;
            match self.machine.next_due() {
                Some(due) if due <= end => {
                    self.go_on(self.clock.max(due));
                    self.tick();
                }
                _ => {
                    self.go_on(end);
                    return Ok(());
                }
            }
        }
        Err(format!("due work does not end: {:?}", self.machine.next_due()))
    }

    /// A crash at this point: all drained rows are on disk, and a new machine is made from these.
    fn reopen(&mut self) -> Result<(), String> {
        self.check()?;
        let now = self.machine.last_in(&self.namespace).unwrap_or_default().max(self.clock);
        let before = self.machine.durable(now);
        self.machine = self.store.open(self.machine.config, self.clock);
        for lease in self.machine.spaces.values().flat_map(|space| space.leases.iter()) {
            if lease.orphaned {
                self.signs.forget(lease.fence);
            }
        }
        let after = self.machine.durable(now);
        self.takers.clear();
        self.awaiting.clear();
        match before.iter().zip(&after).find(|(a, b)| a != b) {
            Some((a, b)) => Err(format!("before a crash: {a}\nafter it: {b}")),
            None if before.len() != after.len() => {
                Err(format!("{} rows before a crash, {} after", before.len(), after.len()))
            }
            None => Ok(()),
        }
    }

    fn collect(&mut self) -> Result<(Vec<Happened>, Vec<Fact>), String> {
        let effects = self.machine.drain();
        self.store.write(effects.rows);
        for (_, delivery) in effects.deliveries {
            self.takers.retain(|taker| *taker != delivery.taker);
            self.take(delivery.granted);
        }
        for Notified { taker, look, over } in effects.notified {
            self.takers.retain(|other| *other != taker);
            let waited = self.awaiting.len();
            self.awaiting.retain(|other| *other != taker);
            if self.awaiting.len() + 1 != waited {
                return Err(format!("call {taker} is notified and does not wait"));
            }
            let Look::Job(stands) = look else { continue };
            // Its end can be read for a while, unless the job was deleted or lives again.
            let ended = self.store.by_seq(&self.namespace, stands.seq).filter(|_| !over);
            let life = ended.as_ref().and_then(|job| StoredLife::decode(&job.life));
            let finished_at = life.and_then(|life| life.finished_at);
            if let (Some(job), Some(at)) = (ended, finished_at)
                && job.until < at.plus(Span::from_us(AWAITED_US))
            {
                return Err(format!(
                    "{:?} was waited for, and is kept until {}",
                    job.id, job.until
                ));
            }
        }
        let events = effects.events.into_iter().flat_map(|(_, events)| events).collect();
        Ok((events, effects.facts.into_iter().map(|(_, fact)| fact).collect()))
    }
}
