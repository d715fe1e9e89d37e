//! The steps of a history and their calls to the machine. The expected answers are in `checks`.

use super::World;
use super::things::{LIMITS, flow_name, gauge, needs, queue, resource};
use crate::{ChangeMany, Command, Done, Known, PushedOne, ResultOutcome, ResultWait, TakerId};
use tenure_core::job::{OnConflict, Unique, Until, When};
use tenure_core::lease::{Ending, ExtendItem, Fence, Later, SettleItem};
use tenure_core::names::{Group, LimitName, PoolName, RequestId, ResourceId, UniqueKey};
use tenure_core::requests::{
    AddResources, Ask, BanResource, BulkChange, CancelFlow, CancelJob, CoolResource, DeleteJob,
    DeleteLimit, DeleteQueue, DeleteResource, Extend, ForceLease, JobFilter, Lease, Meant,
    ObserveLimit, Patch, PatchJob, PauseLimit, PauseQueue, Push, PushAnswer, PutPool,
    RestoreResource, ResumeLimit, ResumeQueue, RetryJob, RunJobNow, Settle, SyncResources,
};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, PoolSettings, Rate};
use tenure_core::time::Span;

/// One step; its numbers choose among a few names.
#[derive(Clone, Debug)]
pub(in crate::histories) enum Step {
    Push {
        queue: u8,
        priority: u8,
        group: u8,
        needs: u8,
        n: u8,
    },
    Delay {
        queue: u8,
        needs: u8,
        delay: u32,
    },
    Unique {
        queue: u8,
        key: u8,
        policy: u8,
        needs: u8,
    },
    /// A few jobs that wait for each other, for an existing one, or for a flow.
    PushKin {
        queue: u8,
        n: u8,
        what: u8,
        parent: u8,
        flow: u8,
    },
    CancelFlow {
        flow: u8,
    },
    /// A settle that pushes jobs which wait for the settled one.
    SettleAndPush {
        lease: u8,
        how: u8,
        what: u8,
        parent: u8,
        flow: u8,
    },
    Lease {
        queue: u8,
        more: u8,
        max: u8,
        worker: u8,
    },
    Wait {
        queue: u8,
        max: u8,
        wait: u32,
    },
    Call {
        needs: u8,
        wait: u32,
        place: bool,
    },
    Settle {
        lease: u8,
        how: u8,
    },
    /// Both in one call, sent twice.
    SettleAndLease {
        lease: u8,
        how: u8,
        queue: u8,
        max: u8,
        wait: u32,
    },
    Extend {
        lease: u8,
    },
    Force {
        lease: u8,
    },
    Undo {
        lease: u8,
    },
    DropWait {
        taker: u8,
    },
    /// A call waits for the end of a job.
    WaitForResult {
        job: u8,
        wait: u32,
    },
    Cancel {
        job: u8,
    },
    Delete {
        job: u8,
    },
    Retry {
        job: u8,
    },
    RunNow {
        job: u8,
    },
    /// Cancels, retries or deletes jobs of a queue, newest first, without the first `skip`.
    Many {
        what: u8,
        queue: u8,
        max: u8,
        skip: u8,
    },
    Patch {
        job: u8,
        priority: u8,
        needs: u8,
    },
    PutLimit {
        limit: u8,
        cap: u8,
        rate: u8,
    },
    /// Gives a limit a gauge.
    PutGauge {
        limit: u8,
        cap: u8,
        how: u8,
    },
    /// Claims due gauges, and answers a claim, which may be over.
    ReadGauge {
        claim: u8,
        what: u8,
    },
    DeleteLimit {
        limit: u8,
    },
    PauseLimit {
        limit: u8,
        pause: u32,
    },
    ResumeLimit {
        limit: u8,
    },
    Observe {
        limit: u8,
        external: u8,
        hold: u32,
    },
    PauseQueue {
        queue: u8,
        forever: bool,
        pause: u32,
    },
    ResumeQueue {
        queue: u8,
    },
    DeleteQueue {
        queue: u8,
    },
    AddResource {
        resource: u8,
        tags: u8,
        slots: u8,
    },
    DeleteResource {
        resource: u8,
    },
    Cool {
        resource: u8,
        cool: u32,
    },
    Ban {
        resource: u8,
    },
    Restore {
        resource: u8,
    },
    Sync {
        set: u8,
    },
    PutPool {
        quarantine: u8,
        rate: u8,
    },
    Pass {
        ms: u32,
    },
    /// No tick comes for this long.
    Leap {
        s: u32,
    },
    /// The wall clock alone leaps ahead.
    WallLeap {
        ms: u32,
    },
    Back {
        ms: u32,
    },
    Reopen,
}

impl World {
    /// The result of the only job of a push; `None` if it was refused.
    fn pushed_alone(&mut self, push: Push) -> Option<PushedOne> {
        match self.request(push.into()) {
            Ok(Done::Request(Known::Push(mut pushed))) => pushed.pop(),
            _ => None,
        }
    }

    pub(super) fn step(&mut self, step: &Step) -> Result<(), String> {
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
                    within: (policy & 64 > 0).then(|| Span::from_s(2)),
                });
                let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
                let first = self.pushed_alone(push.clone());
                if let Some(first) = first.filter(|one| !one.duplicate || one.replaced) {
                    let again = self.pushed_alone(push);
                    let same = |one: &PushedOne| {
                        one.seq == first.seq && one.id == first.id && one.duplicate && !one.replaced
                    };
                    if !again.as_ref().is_some_and(same) {
                        return Err(format!("{first:?} was repeated as {again:?}"));
                    }
                }
            }
            Step::PushKin { queue, n, what, parent, flow } => {
                let jobs = self.kin(queue, 1 + n % 4, what, parent, flow);
                let _ = self.request(Push { jobs, answer: PushAnswer::Ids }.into());
            }
            Step::CancelFlow { flow } => {
                let _ = self.request(CancelFlow { flow: flow_name(flow) }.into());
            }
            Step::SettleAndPush { lease, how, what, parent, flow } => {
                let Some(id) = self.lease_id(lease) else { return Ok(()) };
                let mut item = SettleItem::new(id.clone(), ending(how));
                item.push = self.kin(how, 1 + what % 3, what, parent, flow);
                if self.request(Settle::of(vec![item]).into()).is_ok() {
                    self.leases.retain(|other| *other != id);
                }
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
                self.settle(&lease, how);
            }
            Step::SettleAndLease { lease, how, queue: q, max, wait } => {
                let Some(lease) = self.lease_id(lease) else { return Ok(()) };
                let queues = vec![queue(q)];
                let mut call = self.new_lease(Ask::Jobs { queues, max: usize::from(max) }, how);
                call.wait = Span::from_ms(u64::from(wait));
                self.settle(&lease, how);
                self.ask(call.clone());
                let granted = self.granted_under(&call);
                // A repeat: settled leases get the same answers as before, and nothing is granted
                // twice.
                self.settle(&lease, how);
                self.ask(call.clone());
                let again = self.granted_under(&call);
                if !granted.is_empty() && granted != again {
                    return Err(format!("{granted:?} were granted, and {again:?} to the repeat"));
                }
            }
            Step::Extend { lease } => {
                let progress = if lease % 2 == 0 { Json::parse("[1]") } else { None };
                let Some(lease) = self.lease_id(lease) else { return Ok(()) };
                self.signs.of_life(&lease);
                let leases = vec![ExtendItem { lease, progress }];
                let _ = self.request(Extend { leases, ttl: None }.into());
            }
            Step::Force { lease } => {
                let Some(lease) = self.lease_id(lease) else { return Ok(()) };
                if let Some((fence, _)) = crate::parse_lease_id(&lease) {
                    self.signs.forget(fence);
                }
                let _ = self.request(ForceLease { lease }.into());
            }
            Step::Undo { lease } => {
                let Some((fence, _)) =
                    self.lease_id(lease).and_then(|id| crate::parse_lease_id(&id))
                else {
                    return Ok(());
                };
                let _ = self.apply(Command::Undo(vec![fence]));
            }
            Step::DropWait { taker } => {
                let at = usize::from(taker) % self.takers.len().max(1);
                if let Some(taker) = self.takers.get(at).copied() {
                    self.awaiting.retain(|other| *other != taker);
                    let _ = self.apply(Command::DropWait(taker));
                }
            }
            Step::WaitForResult { job, wait } => {
                let Some(job) = self.job(job) else { return Ok(()) };
                self.next += 1;
                let taker = TakerId::new(self.next);
                let until = Later::For(Span::from_ms(u64::from(wait)));
                let progress = wait % 2 == 1;
                let wait = ResultWait { job, row: None, taker, until, progress };
                if let Ok(Done::Result(ResultOutcome::Waits { .. })) =
                    self.apply(Command::WaitForResult(Box::new(wait)))
                {
                    self.awaiting.push(taker);
                    self.takers.push(taker);
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
            Step::Many { what, queue: q, max, skip } => {
                let change = [BulkChange::Cancel, BulkChange::Retry, BulkChange::Delete]
                    [usize::from(what % 3)];
                // Some ask for a kind: then rows are compared by their number of edits.
                let kind = (what & 4 > 0).then(String::new);
                let filter = JobFilter { queue: Some(queue(q)), kind, ..JobFilter::default() };
                let seen = self.store.seen(usize::from(skip % 8), usize::from(max % 8));
                let many = seen.len() as u64;
                let change = ChangeMany { change, filter, seen };
                let Ok(Done::Many(done)) = self.apply(Command::ChangeMany(change)) else {
                    return Err("a change of many is never refused".to_owned());
                };
                if done.done > many || done.stopped_at.is_some() {
                    return Err(format!("{done:?} of {many} whose rows are as they were"));
                }
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
                    quarantine: match (rate % 6, cap % 8) {
                        (1 | 4, 1..) => Span::from_ms(u64::from(rate) * 5),
                        _ => Span::ZERO,
                    },
                };
                self.put_limit(name, settings);
            }
            Step::PutGauge { limit, cap, how } => {
                let name = LIMITS[usize::from(limit) % LIMITS.len()];
                let settings = LimitSettings {
                    concurrency: Some(u32::from(cap % 4)),
                    gap: (how % 5 == 1).then(|| Span::from_ms(u64::from(how) * 4)),
                    quarantine: Span::from_ms(u64::from(how % 3) * 500),
                    ..LimitSettings::default()
                };
                self.put_gauge(name, settings, gauge(how));
            }
            Step::ReadGauge { claim, what } => self.read_gauge(claim, what),
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
            Step::DeleteQueue { queue: q } => {
                let _ = self.request(DeleteQueue { queue: queue(q) }.into());
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
                        tenure_core::settings::Pick::Random
                    } else {
                        tenure_core::settings::Pick::Lru
                    },
                };
                let put = PutPool { pool: PoolName::parse("p").unwrap(), settings };
                let _ = self.request(put.into());
            }
            Step::Pass { ms } => return self.pass(Span::from_ms(u64::from(ms))),
            Step::Leap { s } => {
                self.go_on(self.clock.plus(Span::from_s(u64::from(s))));
                self.tick();
            }
            Step::WallLeap { ms } => {
                let leapt = Span::from_ms(u64::from(ms));
                self.clock = self.clock.plus(leapt);
                self.leapt = Span::from_us(self.leapt.us() + leapt.us());
                self.tick();
            }
            Step::Back { ms } => {
                self.clock = self.clock.minus(Span::from_ms(u64::from(ms)));
                self.tick();
            }
            Step::Reopen => return self.reopen(),
        }
        Ok(())
    }

    fn settle(&mut self, lease: &str, how: u8) {
        let item = SettleItem::new(lease.to_owned(), ending(how));
        if self.request(Settle::of(vec![item]).into()).is_ok() {
            self.leases.retain(|other| other != lease);
        }
    }

    /// The grants of a call that are remembered for its repeats.
    fn granted_under(&self, call: &Lease) -> Vec<Fence> {
        let space = self.machine.spaces.get(&self.namespace);
        let past =
            space.zip(call.request_id.as_ref()).and_then(|(s, id)| s.leases.requests.get(id));
        past.map_or_else(Vec::new, |past| past.fences.clone())
    }

    pub(super) fn resource(&self, n: u8) -> (PoolName, ResourceId) {
        let id = ResourceId::parse(&format!("r{}", n % 5)).unwrap();
        (PoolName::parse("p").unwrap(), id)
    }
}

fn ending(how: u8) -> Ending {
    match how % 8 {
        0..=2 => Ending::Succeeded { result: None },
        3 => Ending::Failed { error: "no".to_owned(), retry_in: None, last: false },
        4 => {
            Ending::Failed { error: "no".to_owned(), retry_in: Some(Span::ZERO), last: how & 8 > 0 }
        }
        5 => Ending::Snoozed { later: Later::For(Span::from_ms(150)), reset: how & 8 > 0 },
        _ => Ending::Released,
    }
}
