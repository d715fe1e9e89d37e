//! One history: plays steps on a machine and checks what must hold after each.

use std::collections::BTreeMap;

use super::store::Store;
use crate::job::{Need, NewJob, OnConflict, Unique, Until, When};
use crate::lease::{Ending, ExtendItem, Fence, Later, LeaseView, SettleItem, Worker};
use crate::machine::facts::{Fact, Granted};
use crate::machine::state::{LaneKey, Place};
use crate::machine::{Command, Config, Done, LeaseOutcome, Machine, PushedOne, TakerId};
use crate::names::{
    Group, JobId, JobRef, LimitName, Namespace, PoolName, QueueName, RequestId, ResourceId, Tag,
    UniqueKey, WorkerId,
};
use crate::refusal::{Code, Refusal};
use crate::requests::*;
use crate::secret::Json;
use crate::settings::{LimitSettings, NewResource, PoolSettings, Rate};
use crate::time::{Moment, Span};

/// One step; its numbers choose among the few names there are.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Push { queue: u8, priority: u8, group: u8, needs: u8, n: u8 },
    Delay { queue: u8, needs: u8, delay: u32 },
    Unique { queue: u8, key: u8, policy: u8, needs: u8 },
    Lease { queue: u8, more: u8, max: u8, worker: u8 },
    Wait { queue: u8, max: u8, wait: u32 },
    Call { needs: u8, wait: u32, place: bool },
    Settle { lease: u8, how: u8 },
    Extend { lease: u8 },
    Force { lease: u8 },
    Undo { lease: u8 },
    DropWait { taker: u8 },
    Cancel { job: u8 },
    Delete { job: u8 },
    Retry { job: u8 },
    RunNow { job: u8 },
    Patch { job: u8, priority: u8, needs: u8 },
    PutLimit { limit: u8, cap: u8, rate: u8 },
    DeleteLimit { limit: u8 },
    PauseLimit { limit: u8, pause: u32 },
    ResumeLimit { limit: u8 },
    Observe { limit: u8, external: u8, hold: u32 },
    PauseQueue { queue: u8, forever: bool, pause: u32 },
    ResumeQueue { queue: u8 },
    AddResource { resource: u8, tags: u8, slots: u8 },
    DeleteResource { resource: u8 },
    Cool { resource: u8, cool: u32 },
    Ban { resource: u8 },
    Restore { resource: u8 },
    Sync { set: u8 },
    PutPool { quarantine: u8, rate: u8 },
    Pass { ms: u32 },
    Leap { s: u32 },
    Back { ms: u32 },
    Reopen,
}

const LIMITS: [&str; 7] = ["a", "b", "s:x", "s:y", "s:*", "queue:q0", "lock:l"];

/// A rate, and what was granted under it: when, how many.
type Tokens = (Option<Rate>, Vec<(u64, u64)>);

pub(super) struct World {
    machine: Machine,
    store: Store,
    now: Moment,
    /// The clock of the engine, which may be behind `now`.
    clock: Moment,
    namespace: Namespace,
    jobs: Vec<JobId>,
    leases: Vec<String>,
    takers: Vec<TakerId>,
    next: u64,
    fence: Fence,
    /// Tokens of each limit since its setting changed last: when, how many.
    tokens: BTreeMap<String, Tokens>,
    /// Heads that reserved: they are exempt from the order.
    reserved: std::collections::BTreeSet<JobId>,
}

impl Default for World {
    fn default() -> Self {
        let config = Config { patience: Span::from_s(3), retain_bytes: 40_000 };
        let now = Moment::from_us(1_700_000_000_000_000);
        let mut world = World {
            machine: Machine::new(config),
            store: Store::default(),
            now,
            clock: now,
            namespace: Namespace::main(),
            jobs: Vec::new(),
            leases: Vec::new(),
            takers: Vec::new(),
            next: 0,
            fence: 0,
            tokens: BTreeMap::new(),
            reserved: Default::default(),
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

fn limit(name: &str, weight: u32) -> Need {
    Need::Limit { limit: LimitName::parse(name).unwrap(), weight, cost: 1 }
}

fn pool(tag: Option<&str>, id: Option<&str>, count: u32) -> Need {
    Need::Pool {
        pool: PoolName::parse("p").unwrap(),
        tag: tag.map(|tag| Tag::parse(tag).unwrap()),
        prefer: None,
        id: id.map(|id| ResourceId::parse(id).unwrap()),
        count,
    }
}

fn resource(n: u8, tags: u8, slots: u8) -> NewResource {
    let tags = [("t", 1), ("u", 2)].into_iter().filter(|(_, bit)| tags & bit > 0);
    NewResource {
        id: ResourceId::parse(&format!("r{}", n % 5)).unwrap(),
        data: Json::of(&u32::from(n % 5)),
        tags: tags.map(|(tag, _)| Tag::parse(tag).unwrap()).collect(),
        slots: u32::from(slots % 2) + 1,
    }
}

fn needs(n: u8) -> Vec<Need> {
    match n % 16 {
        0..=3 => Vec::new(),
        4 => vec![limit("a", 1)],
        5 => vec![limit("b", 1)],
        6 => vec![limit("b", 2)],
        7 => vec![limit("a", 1), limit("b", 1)],
        8 => vec![limit("s:x", 1)],
        9 => vec![limit("s:y", 1), limit("b", 1)],
        10 => vec![limit("a", 1), limit("s:x", 1)],
        11 => vec![pool(None, None, 1)],
        12 => vec![pool(Some("t"), None, 1)],
        13 => vec![limit("b", 1), pool(None, Some("r1"), 1)],
        14 => vec![limit("lock:l", 1)],
        _ => vec![limit("s:y", 1), pool(Some("u"), None, 2)],
    }
}

fn queue(n: u8) -> QueueName {
    QueueName::parse(&format!("q{}", n % 3)).unwrap()
}

impl World {
    /// Plays a history to its end; the first thing that does not hold ends it.
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
        if let Ok(Done::Pushed(pushed)) = &done {
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

    fn put_limit(&mut self, name: &str, settings: LimitSettings) {
        let limit = LimitName::parse(name).unwrap();
        let put = PutLimit { limit, settings };
        self.request(put.into()).unwrap();
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
        space.setting_of(&LimitName::parse(name).ok()?)?.0.rate
    }

    fn job(&self, n: u8) -> Option<JobRef> {
        let at = usize::from(n) % self.jobs.len().max(1);
        // The youngest are the most telling.
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
        job.retry = Some(crate::job::Retry { max_attempts: 3, ..Default::default() });
        job.retain = Some(Span::from_s(20));
        job
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
        lease
    }

    fn ask(&mut self, lease: Lease) {
        self.next += 1;
        let taker = self.next;
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

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Push { queue, priority, group, needs, n } => {
                let jobs = (0..n)
                    .map(|_| {
                        let mut job = self.new_job(queue, needs);
                        job.priority = [0, 0, 0, 1, -1][usize::from(priority % 5)];
                        job.group = (group % 4 > 1)
                            .then(|| Group::parse(&format!("g{}", group % 4)).unwrap());
                        if group % 32 == 31 {
                            job.timeout = Some(Span::from_s(2));
                        }
                        if group % 32 == 30 {
                            job.expires_at = Some(self.now.plus(Span::from_s(5)));
                        }
                        job
                    })
                    .collect();
                let _ = self.request(Push { jobs, answer: PushAnswer::Ids }.into());
            }
            Step::Delay { queue, needs, delay } => {
                let mut job = self.new_job(queue, needs);
                job.when = When::In(Span::from_ms(u64::from(delay)));
                let _ = self.request(Push { jobs: vec![job], answer: PushAnswer::Ids }.into());
            }
            Step::Unique { queue, key, policy, needs } => {
                let mut job = self.new_job(queue, needs);
                job.unique = Some(Unique {
                    key: UniqueKey::parse(&format!("k{}", key % 3)).unwrap(),
                    until: if policy & 1 > 0 { Until::Start } else { Until::End },
                    hold: (policy & 2 > 0).then(|| Span::from_s(4)),
                    on_conflict: [OnConflict::Keep, OnConflict::Replace, OnConflict::Reject]
                        [usize::from(policy / 4 % 3)],
                });
                let _ = self.request(Push { jobs: vec![job], answer: PushAnswer::Ids }.into());
            }
            Step::Lease { queue: q, more, max, worker } => {
                let queues = vec![queue(q), queue(more)];
                let lease = self.new_lease(Ask::Jobs { queues, max: usize::from(max) }, worker);
                self.ask(lease);
            }
            Step::Wait { queue: q, max, wait } => {
                let mut lease = self
                    .new_lease(Ask::Jobs { queues: vec![queue(q)], max: usize::from(max) }, max);
                lease.wait = Span::from_ms(u64::from(wait));
                self.ask(lease);
            }
            Step::Call { needs: n, wait, place } => {
                let asked = needs(4 + n % 12);
                let mut lease = self.new_lease(Ask::Needs(asked), n);
                lease.wait = Span::from_ms(u64::from(wait));
                lease.place = place.then(|| RequestId::parse(&format!("place{}", n % 3)).unwrap());
                self.ask(lease);
            }
            Step::Settle { lease, how } => {
                let Some(lease) = self.lease_id(lease) else { return Ok(()) };
                let ending = match how % 8 {
                    0..=2 => Ending::Succeeded { result: None },
                    3 => Ending::Failed { error: "no".to_owned(), retry_in: None, last: false },
                    4 => Ending::Failed {
                        error: "no".to_owned(),
                        retry_in: Some(Span::ZERO),
                        last: how & 8 > 0,
                    },
                    5 => Ending::Snoozed { later: Later::For(Span::from_ms(150)) },
                    _ => Ending::Released,
                };
                let item = SettleItem {
                    lease: lease.clone(),
                    ending,
                    resources: vec![],
                    limits: vec![],
                    push: vec![],
                };
                if self.request(Settle { settle: vec![item] }.into()).is_ok() {
                    self.leases.retain(|other| *other != lease);
                }
            }
            Step::Extend { lease } => {
                let Some(lease) = self.lease_id(lease) else { return Ok(()) };
                let leases = vec![ExtendItem { lease, progress: None }];
                let _ = self.request(Extend { leases, ttl: None }.into());
            }
            Step::Force { lease } => {
                let Some(lease) = self.lease_id(lease) else { return Ok(()) };
                let _ = self.request(ForceLease { lease }.into());
            }
            Step::Undo { lease } => {
                let Some((fence, _)) =
                    self.lease_id(lease).and_then(|id| crate::machine::parse_lease_id(&id))
                else {
                    return Ok(());
                };
                let _ = self.apply(Command::Undo(vec![fence]));
            }
            Step::DropWait { taker } => {
                let at = usize::from(taker) % self.takers.len().max(1);
                if let Some(taker) = self.takers.get(at).copied() {
                    let _ = self.apply(Command::DropWait(taker));
                }
            }
            Step::Cancel { job } => {
                let Some(job) = self.job(job) else { return Ok(()) };
                let _ = self.request(CancelJob { job }.into());
            }
            Step::Delete { job } => {
                let Some(job) = self.job(job) else { return Ok(()) };
                let _ = self.request(DeleteJob { job }.into());
            }
            Step::Retry { job } => {
                let Some(job) = self.job(job) else { return Ok(()) };
                let _ = self.request(RetryJob { job, finished_at: None }.into());
            }
            Step::RunNow { job } => {
                let Some(job) = self.job(job) else { return Ok(()) };
                let _ = self.request(RunJobNow { job }.into());
            }
            Step::Patch { job, priority, needs: n } => {
                let Some(job) = self.job(job) else { return Ok(()) };
                let mut patch = PatchJob::new(job);
                patch.priority = Patch::Set((priority % 3) as i8 - 1);
                if n & 16 > 0 {
                    patch.needs = Patch::Set(needs(n));
                }
                let _ = self.request(patch.into());
            }
            Step::PutLimit { limit, cap, rate } => {
                let name = LIMITS[usize::from(limit) % LIMITS.len()];
                let settings = LimitSettings {
                    concurrency: (cap % 8 > 0).then(|| u32::from(cap % 8) - 1),
                    rate: (rate % 4 == 0 || cap % 8 == 0).then(|| Rate {
                        count: 1 + u32::from(rate % 3),
                        per: Span::from_ms(200 * u64::from(1 + rate % 7)),
                        burst: 1 + u32::from(rate % 2),
                    }),
                    gap: (rate % 5 == 1 && cap % 8 > 0).then(|| Span::from_ms(u64::from(rate) * 4)),
                };
                self.put_limit(name, settings);
            }
            Step::DeleteLimit { limit } => {
                let limit = LimitName::parse(LIMITS[usize::from(limit) % LIMITS.len()]).unwrap();
                let _ = self.request(DeleteLimit { limit }.into());
                for seen in self.tokens.values_mut() {
                    *seen = (None, Vec::new());
                }
                for name in LIMITS {
                    let rate = self.rate_of(name);
                    self.tokens.insert(name.to_owned(), (rate, Vec::new()));
                }
            }
            Step::PauseLimit { limit, pause } => {
                let limit = LimitName::parse(LIMITS[usize::from(limit) % LIMITS.len()]).unwrap();
                let until = Later::For(Span::from_ms(u64::from(pause)));
                let _ = self.request(PauseLimit { limit, until }.into());
            }
            Step::ResumeLimit { limit } => {
                let limit = LimitName::parse(LIMITS[usize::from(limit) % LIMITS.len()]).unwrap();
                let _ = self.request(ResumeLimit { limit }.into());
            }
            Step::Observe { limit, external, hold } => {
                let limit = LimitName::parse(LIMITS[usize::from(limit) % LIMITS.len()]).unwrap();
                let hold = Some(Span::from_ms(u64::from(hold)));
                let _ = self.request(
                    ObserveLimit { limit, external: u32::from(external % 4), hold }.into(),
                );
            }
            Step::PauseQueue { queue: q, forever, pause } => {
                let until = (!forever).then(|| Later::For(Span::from_ms(u64::from(pause))));
                let _ = self.request(PauseQueue { queue: queue(q), until }.into());
            }
            Step::ResumeQueue { queue: q } => {
                let _ = self.request(ResumeQueue { queue: queue(q) }.into());
            }
            Step::AddResource { resource: n, tags, slots } => {
                let resources = vec![resource(n, tags, slots)];
                let _ = self.request(
                    AddResources { pool: PoolName::parse("p").unwrap(), resources }.into(),
                );
            }
            Step::DeleteResource { resource } => {
                let (pool, resource) = self.resource(resource);
                let _ = self.request(DeleteResource { pool, resource }.into());
            }
            Step::Cool { resource, cool } => {
                let (pool, resource) = self.resource(resource);
                let until = Later::For(Span::from_ms(u64::from(cool)));
                let _ = self.request(CoolResource { pool, resource, until }.into());
            }
            Step::Ban { resource } => {
                let (pool, resource) = self.resource(resource);
                let _ = self.request(BanResource { pool, resource, reason: None }.into());
            }
            Step::Restore { resource } => {
                let (pool, resource) = self.resource(resource);
                let _ = self.request(RestoreResource { pool, resource }.into());
            }
            Step::Sync { set } => {
                let resources = (0..5)
                    .filter(|n| set & (1 << n) > 0)
                    .map(|n| resource(n, set / 32, set))
                    .collect();
                let sync = SyncResources {
                    pool: PoolName::parse("p").unwrap(),
                    resources,
                    meant: Meant::Yes,
                    version: None,
                };
                let _ = self.request(sync.into());
            }
            Step::PutPool { quarantine, rate } => {
                let settings = PoolSettings {
                    quarantine: Span::from_ms(u64::from(quarantine % 4) * 300),
                    cooldown: Span::from_ms(u64::from(quarantine % 3) * 40),
                    rate: (rate % 3 == 0).then(|| Rate {
                        count: 1,
                        per: Span::from_ms(300),
                        burst: 1 + u32::from(rate % 2),
                    }),
                    max_uses: (rate % 7 == 1).then_some(3),
                    pick: if rate & 1 > 0 {
                        crate::settings::Pick::Random
                    } else {
                        crate::settings::Pick::Lru
                    },
                };
                let put = PutPool { pool: PoolName::parse("p").unwrap(), settings };
                let _ = self.request(put.into());
            }
            Step::Pass { ms } => return self.pass(Span::from_ms(u64::from(ms))),
            Step::Leap { s } => {
                self.clock = self.clock.plus(Span::from_s(u64::from(s)));
                self.tick();
            }
            Step::Back { ms } => {
                self.clock = self.clock.minus(Span::from_ms(u64::from(ms)));
                // What was granted before the step is measured by another clock.
                self.tokens.values_mut().for_each(|seen| seen.1.clear());
                self.tick();
            }
            Step::Reopen => return self.reopen(),
        }
        Ok(())
    }

    fn resource(&self, n: u8) -> (PoolName, ResourceId) {
        let id = ResourceId::parse(&format!("r{}", n % 5)).unwrap();
        (PoolName::parse("p").unwrap(), id)
    }

    fn tick(&mut self) {
        self.machine.tick(self.clock, &self.store);
    }

    /// Time passes, and the engine ticks whenever something is due.
    fn pass(&mut self, span: Span) -> Result<(), String> {
        let end = self.clock.plus(span);
        for _ in 0..1_000 {
            self.check()?;
            match self.machine.next_due() {
                Some(due) if due <= end => {
                    self.clock = self.clock.max(due);
                    self.tick();
                }
                _ => {
                    self.clock = end;
                    return Ok(());
                }
            }
        }
        Err(format!("due work does not end: {:?}", self.machine.next_due()))
    }

    /// A crash at this point: all that was drained is on disk, and the machine is made from it.
    fn reopen(&mut self) -> Result<(), String> {
        self.check()?;
        let now =
            self.machine.spaces.values().map(|s| s.last).max().unwrap_or_default().max(self.clock);
        let before = self.machine.durable(now);
        self.machine = self.store.open(self.machine.config, self.clock);
        let after = self.machine.durable(now);
        self.takers.clear();
        match before.iter().zip(&after).find(|(a, b)| a != b) {
            Some((a, b)) => Err(format!("before a crash: {a}\nafter it: {b}")),
            None if before.len() != after.len() => {
                Err(format!("{} rows before a crash, {} after", before.len(), after.len()))
            }
            None => Ok(()),
        }
    }

    fn collect(&mut self) -> Vec<Fact> {
        let effects = self.machine.drain();
        self.store.write(effects.rows);
        for (_, delivery) in effects.deliveries {
            self.takers.retain(|taker| *taker != delivery.taker);
            self.take(delivery.granted);
        }
        effects.facts.into_iter().map(|(_, fact)| fact).collect()
    }

    fn check(&mut self) -> Result<(), String> {
        let facts = self.collect();
        let mut granted = Vec::new();
        for fact in &facts {
            match fact {
                Fact::Granted { fence, job, arrival, .. } => {
                    if *fence <= self.fence {
                        return Err(format!("fence {fence} follows {}", self.fence));
                    }
                    self.fence = *fence;
                    granted.push((*fence, job.clone(), *arrival));
                }
                Fact::Reserved { job: Some(job) } => {
                    self.reserved.insert(job.clone());
                }
                _ => {}
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

    fn check_caps(&mut self, granted: &[(Fence, Option<JobId>, u64)]) -> Result<(), String> {
        let Some(space) = self.machine.spaces.get(&self.namespace) else { return Ok(()) };
        let now = space.last;
        for (fence, _, _) in granted {
            let Some(lease) = space.leases.get(fence) else { continue };
            for held in &lease.limits {
                let l = &space.limits[held.limit];
                let Some((settings, _)) = space.setting_of(&l.name) else {
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
                let r = &space.resources[held.resource];
                if r.holders.len() > r.slots as usize {
                    return Err(format!("{} holders of \"{}\"", r.holders.len(), r.id));
                }
            }
        }
        Ok(())
    }

    /// No barging: of jobs of one queue, priority and group that need one and the same limit alone,
    /// none is granted while one that came before still waits in line.
    fn check_order(&self, granted: &[(Fence, Option<JobId>, u64)]) -> Result<(), String> {
        let Some(space) = self.machine.spaces.get(&self.namespace) else { return Ok(()) };
        // The head of this lane went in the same step, and had reserved until then.
        let reserved_until_now = |key: &LaneKey| {
            granted.iter().filter_map(|(_, id, _)| id.as_ref()).any(|id| {
                let slot = space.job_by_id(id.as_str()).filter(|_| self.reserved.contains(id));
                slot.is_some_and(|slot| {
                    let shape = &space.shapes[space.jobs[slot].shape];
                    shape.queue == key.queue
                        && shape.priority == key.priority
                        && shape.group == key.group
                        && shape.held == key.needs
                })
            })
        };
        for (_, id, arrival) in granted {
            let Some(slot) = id.as_ref().and_then(|id| space.job_by_id(id.as_str())) else {
                continue;
            };
            let job = &space.jobs[slot];
            let shape = &space.shapes[job.shape];
            let [crate::machine::state::HeldNeed::Limit { limit, .. }] = shape.held.as_ref() else {
                continue;
            };
            if job.lost > 0 || self.reserved.contains(&job.id) {
                continue;
            }
            for (_, lane) in space.lanes.iter() {
                let key = &lane.key;
                let [crate::machine::state::HeldNeed::Limit { limit: other, .. }] =
                    key.needs.as_ref()
                else {
                    continue;
                };
                let same = key.queue == shape.queue
                    && key.priority == shape.priority
                    && key.group == shape.group
                    && !key.suspect
                    && other == limit
                    // A lane that reserves is kept what it needs; what is beyond is free for all.
                    && !lane.marked
                    && !reserved_until_now(key)
                    // What can never fit stands aside.
                    && !matches!(lane.place, Place::Misfit(_))
                    && !matches!(space.bundles[lane.bundle].place, Place::Misfit(_));
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

    /// Everything is set free: each job must come to its end by events alone.
    fn everything_ends(&mut self) -> Result<(), String> {
        self.clock =
            self.clock.max(self.machine.spaces.values().map(|s| s.last).max().unwrap_or_default());
        self.tick();
        self.check()?;
        self.takers.clear();
        // Who waits, waits: at least one taker for all queues, and it asks only once it was served.
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
            if unfinished == 0 {
                return Ok(());
            }
            while let Some(lease) = self.leases.pop() {
                let ending = Ending::Succeeded { result: None };
                let item =
                    SettleItem { lease, ending, resources: vec![], limits: vec![], push: vec![] };
                self.request(Settle { settle: vec![item] }.into()).map_err(|no| no.to_string())?;
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
                self.clock = self.clock.max(due);
                self.tick();
                self.check()?;
            }
        }
        let space = self.machine.spaces.get(&self.namespace);
        let left: Vec<String> = space.map_or_else(Vec::new, |space| {
            space
                .jobs
                .iter()
                .map(|(slot, _)| format!("{:?}", space.explain(slot, self.clock).summary))
                .collect()
        });
        Err(format!("{} jobs never end: {left:?}", left.len()))
    }
}

fn check_rate(rate: &Rate, tokens: &[(u64, u64)]) -> Result<(), String> {
    let Some((to, _)) = tokens.last() else { return Ok(()) };
    let mut sum = 0u128;
    // What was granted before the clock was set back is measured by another clock.
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
