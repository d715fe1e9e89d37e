//! One program on two engines: each step becomes a request, and both must answer it alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use data_encoding::BASE64URL_NOPAD;
use proptest::prelude::TestCaseError;
use tenure_core::bounds::PATIENCE_US_DEFAULT;
use tenure_core::events::{EventType, Happened};
use tenure_core::job::{self, JobState, JobView, NewJob, OnConflict, Retry, Unique, Until, When};
use tenure_core::lease::{
    Ending, ExtendItem, Fence, Later, Leased, LimitVerdict, ResourceVerdict, SettleItem,
    SettledLease, Verdict, Worker,
};
use tenure_core::names::{
    Group, JobId, JobRef, LimitName, Namespace, Owner, PoolName, QueueName, RequestId, ResourceId,
    ScheduleId, Tag, UniqueKey, WorkerId,
};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource, PoolSettings, QueueSettings, Rate};
use tenure_core::time::Span;
use tenure_engine::{CallError, Clock, Engine, EngineExt};
use tenure_engine_embedded::{Durability, Embedded, Location};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_machine::{Config, NO_JOB, Seq};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer};
use tokio::runtime::Runtime;

use crate::awaiting::{Pair, Started, until};
use crate::events::Reader;
use crate::gauges::{self, Gauges};
use crate::step::{Call, Change, End, Filter, JOBS, Job, KEYED, LimitSet, Need, ScheduleSet, Step};

/// The server of all programs, and the engine on it.
pub struct Server {
    runtime: Runtime,
    redis: RedisEngine,
    patience: Span,
    programs: AtomicU64,
    _server: RedisServer,
}

/// Names of limits: plain ones, keyed ones of a family, a lock, and the template of the family.
const LIMITS: [&str; 9] =
    ["a", "b", "site:x", "site:y", "lock:z", "c", "site:*", "site:v", "site:w"];

pub(crate) fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}
fn limit(n: u8) -> LimitName {
    LimitName::parse(LIMITS[usize::from(n)]).expect("a name")
}
fn pool(n: u8) -> PoolName {
    PoolName::parse(&format!("p{n}")).expect("a name")
}
fn resource(n: u8) -> ResourceId {
    ResourceId::parse(&format!("r{n}")).expect("a name")
}
fn tag(n: u8) -> Tag {
    Tag::parse(&format!("t{n}")).expect("a name")
}
pub(crate) fn queue(n: u8) -> QueueName {
    QueueName::parse(&format!("q{n}")).expect("a name")
}
fn group(n: u8) -> Group {
    Group::parse(&format!("g{n}")).expect("a name")
}
pub(crate) fn id(n: u8) -> JobId {
    JobId::parse(&format!("j{n}")).expect("an id")
}
pub(crate) fn the(n: u8) -> JobRef {
    JobRef::Id(id(n))
}
fn worker(n: u8) -> Worker {
    Worker { id: WorkerId::parse(&format!("w{n}")).ok(), ..Worker::default() }
}

fn need(need: &Need) -> job::Need {
    match need {
        Need::Limit { limit: n, weight, cost } => {
            job::Need::Limit { limit: limit(*n), weight: *weight, cost: *cost }
        }
        Need::Any { pool: n, count } => {
            job::Need::Pool { pool: pool(*n), tag: None, prefer: None, id: None, count: *count }
        }
        Need::Tag { pool: n, tag: t } => {
            job::Need::Pool { pool: pool(*n), tag: Some(tag(*t)), prefer: None, id: None, count: 1 }
        }
        Need::Id { pool: n, resource: r } => job::Need::Pool {
            pool: pool(*n),
            tag: None,
            prefer: None,
            id: Some(resource(*r)),
            count: 1,
        },
    }
}

fn schedule(n: u8) -> ScheduleId {
    ScheduleId::parse(&format!("s{n}")).expect("an id")
}
fn owner() -> Owner {
    Owner::parse("o").expect("a name")
}

fn overlap(n: u8) -> Overlap {
    match n {
        0 => Overlap::Skip,
        1 => Overlap::Queue,
        _ => Overlap::Allow,
    }
}

/// Needs that name everything once.
fn needs(all: &[Need]) -> Vec<job::Need> {
    let mut distinct: Vec<job::Need> = Vec::new();
    for one in all.iter().map(need) {
        let same = |other: &job::Need| match (&one, other) {
            (job::Need::Limit { limit: a, .. }, job::Need::Limit { limit: b, .. }) => a == b,
            (job::Need::Pool { pool: a, .. }, job::Need::Pool { pool: b, .. }) => a == b,
            _ => false,
        };
        if !distinct.iter().any(same) {
            distinct.push(one);
        }
    }
    distinct
}

impl Server {
    pub fn start() -> Self {
        Self::patient(Span::from_us(PATIENCE_US_DEFAULT))
    }

    /// With another patience of all namespaces. (Of lanes that lose it in one moment each engine tries another first.)
    pub fn patient(patience: Span) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let server = RedisServer::start(Aof::Off, &[]);
        let address = Address::parse(&server.url()).expect("an address");
        let options = Options { patience: Some(patience), ..Options::testing(address) };
        let redis = runtime.block_on(async { RedisEngine::open(options).expect("an engine") });
        Server { runtime, redis, patience, programs: AtomicU64::new(0), _server: server }
    }

    /// Plays one program; an error says where the two differ.
    pub fn play(&self, steps: &[Step]) -> Result<(), TestCaseError> {
        self.runtime.block_on(async {
            let number = self.programs.fetch_add(1, Ordering::Relaxed);
            let namespace = Namespace::parse(&format!("n{number}")).expect("a name");
            let clock = Arc::new(TestClock::default());
            let options = tenure_engine_embedded::Options {
                clock: clock.clone(),
                durability: Durability::Everysec,
                config: Config { patience: self.patience, ..Config::default() },
                ..tenure_engine_embedded::Options::new(Location::Memory)
            };
            let machine = Embedded::open(options).expect("an engine");
            let gauges = Gauges::of(&machine, &self.redis);
            let mut program = Program {
                server: self,
                machine,
                clock,
                namespace,
                leases: Vec::new(),
                ids: Mutex::default(),
                fences: Mutex::default(),
                there: Default::default(),
                pushed: Vec::new(),
                awaiting: Vec::new(),
                events: Default::default(),
                gauges,
                ready_differ: false,
                crowded: false,
                order_differs: false,
            };
            program.settle_time().await?;
            for (at, step) in steps.iter().enumerate() {
                program
                    .step(step)
                    .await
                    .map_err(|why| TestCaseError::fail(format!("step {at}, {step:?}:\n{why}")))?;
                program
                    .compare_answered()
                    .await
                    .map_err(|why| TestCaseError::fail(format!("after {at}, {step:?}:\n{why}")))?;
            }
            program.end().await
        })
    }
}

pub(crate) struct Program<'a> {
    server: &'a Server,
    machine: Embedded,
    clock: Arc<TestClock>,
    namespace: Namespace,
    /// What was granted, the last 16 of it.
    leases: Vec<tenure_core::lease::LeaseView>,
    /// Ids of leases on Redis, by what they are on the state machine: a lease has one, wherever it is shown.
    ids: Mutex<BTreeMap<String, String>>,
    /// Ids of leases on the state machine, by fence. Their rows have other numbers on Redis, where rows of jobs
    /// that are pushed together begin a new hash.
    fences: Mutex<BTreeMap<Fence, String>>,
    /// Resources of each pool.
    there: [BTreeSet<u8>; 2],
    /// The last pushes.
    pub(crate) pushed: Vec<Push>,
    /// Calls that wait for results.
    awaiting: Vec<Pair>,
    /// How far the events of both were read.
    events: [Reader; 2],
    /// What both have claimed to be read.
    gauges: Gauges,
    /// The last step may have made other jobs ready on the one than on the other, which are gone by now.
    pub(crate) ready_differ: bool,
    /// A parent may have more children than one step tells.
    pub(crate) crowded: bool,
    /// In the last step things of different jobs may have happened in another order on the one than on the other.
    order_differs: bool,
}

impl Program<'_> {
    async fn settle_time(&self) -> Result<(), TestCaseError> {
        let set = self
            .server
            .redis
            .testing_set_clock(&*self.clock, std::slice::from_ref(&self.namespace))
            .await;
        set.map_err(|why| TestCaseError::fail(format!("the clock: {why}")))?;
        self.machine.settled().await;
        Ok(())
    }

    /// Asks both, and compares what they answer.
    pub(crate) async fn ask(
        &self,
        request: impl Into<Request>,
    ) -> Result<Option<Reply>, TestCaseError> {
        let request = request.into();
        let model = self.machine.call(&self.namespace, request.clone()).await;
        let redis = self.server.redis.call(&self.namespace, self.on_redis(&request)).await;
        self.machine.settled().await;
        let settled = self.server.redis.testing_settle(&self.namespace).await;
        settled.map_err(|why| TestCaseError::fail(format!("time: {why}")))?;
        let comparable = |answer| comparable(&request, answer, self.crowded);
        let (model, redis) = (comparable(model), comparable(redis));
        let expected = told(&model);
        self.note_fences(&expected);
        let got = self.as_of_the_machine(&told(&redis))?;
        // A job that goes with the end that the call itself gives it can be shown by Redis alone, which reads
        // in the very step.
        let gone = redis.is_ok() && expected.contains("was forgotten while it was read");
        if expected != got && !gone {
            return Err(TestCaseError::fail(format!(
                "{request:?}\nthe state machine: {expected}\nredis:             {got}"
            )));
        }
        Ok(model.ok())
    }

    /// Asks both for one thing after the other; what time does by itself is waited for only then.
    pub(crate) async fn ask_together<const N: usize>(
        &self,
        requests: [Request; N],
    ) -> Result<(), TestCaseError> {
        let mut told_of = [String::new(), String::new()];
        for request in &requests {
            let machine = self.machine.call(&self.namespace, request.clone()).await;
            told_of[0] += &told(&comparable(request, machine, self.crowded));
        }
        self.note_fences(&told_of[0]);
        for request in &requests {
            let redis = self.server.redis.call(&self.namespace, self.on_redis(request)).await;
            told_of[1] += &told(&comparable(request, redis, self.crowded));
        }
        self.machine.settled().await;
        let settled = self.server.redis.testing_settle(&self.namespace).await;
        settled.map_err(|why| TestCaseError::fail(format!("time: {why}")))?;
        let [expected, got] = told_of;
        let got = self.as_of_the_machine(&got)?;
        if expected != got {
            return Err(TestCaseError::fail(format!(
                "{requests:?}\nthe state machine: {expected}\nredis:             {got}"
            )));
        }
        Ok(())
    }

    /// The same request, with the ids that leases have on Redis.
    fn on_redis(&self, request: &Request) -> Request {
        let ids = self.ids.lock().expect("nobody panics with it");
        let id = |lease: &mut String| {
            if let Some(id) = ids.get(lease) {
                lease.clone_from(id);
            }
        };
        let mut request = request.clone();
        match &mut request {
            Request::Extend(extend) => extend.leases.iter_mut().for_each(|one| id(&mut one.lease)),
            Request::Settle(settle) => settle.settle.iter_mut().for_each(|one| id(&mut one.lease)),
            Request::ForceLease(force) => id(&mut force.lease),
            _ => {}
        }
        request
    }

    /// Which leases the state machine told of.
    fn note_fences(&self, told: &str) {
        let mut fences = self.fences.lock().expect("nobody panics with it");
        for text in told.split(['"', '\\']) {
            if let Some((fence, _)) = tenure_machine::parse_lease_id(text) {
                fences.insert(fence, text.to_owned());
            }
        }
    }

    /// What Redis told, with the ids that leases have on the state machine.
    fn as_of_the_machine(&self, told: &str) -> Result<String, TestCaseError> {
        let mut ids = self.ids.lock().expect("nobody panics with it");
        let mut said = String::new();
        // An id stands between quotation marks, be they escaped.
        for part in told.split_inclusive(['"', '\\']) {
            let text = part.trim_end_matches(['"', '\\']);
            let Some((fence, row)) = fence_and_row(text) else {
                said.push_str(part);
                continue;
            };
            let of_machine = match self.fences.lock().expect("nobody panics with it").get(&fence) {
                // With a job or without one, as there.
                Some(id) if id.ends_with("-0") == (row == NO_JOB) => id.clone(),
                _ => tenure_machine::lease_id(fence, row),
            };
            let known = ids.entry(of_machine.clone()).or_insert_with(|| text.to_owned());
            if known != text {
                let why = format!("one lease has two ids, {known} and {text}");
                return Err(TestCaseError::fail(why));
            }
            said.push_str(&of_machine);
            said.push_str(&part[text.len()..]);
        }
        Ok(said)
    }

    async fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Push { jobs } => {
                // What is answered by ids alone may be stored the short way.
                let whole = jobs.first().is_some_and(|job| job.id.is_multiple_of(2));
                let answer = if whole { PushAnswer::Whole } else { PushAnswer::Ids };
                let jobs = jobs.iter().map(|job| self.job(job)).collect();
                self.push(Push { jobs, answer }).await?;
            }
            Step::Replace { job, key, start, hold_ms, delay_ms, retain_ms } => {
                let unique = (*key, *start, *hold_ms, 1);
                let said = Job { unique: Some(unique), ..Job::plain(*job, key % 2) };
                let said = Job { delay_ms: *delay_ms, retain_ms: *retain_ms, ..said };
                let payload = Json::from(i64::try_from(self.pushed.len()).unwrap_or(0));
                let jobs = vec![NewJob { payload, ..self.job(&said) }];
                self.push(Push { jobs, answer: PushAnswer::Whole }).await?;
            }
            Step::Repeat { push, twice } => self.repeat(*push, *twice).await?,
            Step::Bulk { first, many, queue: q, retain_ms } => {
                let job = |n| NewJob {
                    id: Some(id((first + n) % JOBS)),
                    retain: retain_ms.map(ms),
                    ..NewJob::new(queue(*q))
                };
                let jobs = (0..*many).map(job).collect();
                self.ask(Push { jobs, answer: PushAnswer::Ids }).await?;
            }
            Step::Keyed { first, many, queue: q, from, weight, retain_ms } => {
                let job = |n| {
                    let key = KEYED[usize::from(from + n) % KEYED.len()];
                    NewJob {
                        id: Some(id((first + n) % JOBS)),
                        needs: Some(vec![need(&Need::Limit {
                            limit: key,
                            weight: *weight,
                            cost: 1,
                        })]),
                        retain: retain_ms.map(ms),
                        ..NewJob::new(queue(*q))
                    }
                };
                let jobs = (0..*many).map(job).collect();
                self.ask(Push { jobs, answer: PushAnswer::Ids }).await?;
            }
            Step::Alike { cap, first, many, queue: q, limits, weight, retain_ms } => {
                for limit in limits.iter().filter(|_| cap.is_some()) {
                    let cap = LimitSet::Cap(cap.unwrap_or_default());
                    self.set(&Step::Limit { limit: *limit, set: cap }).await?;
                }
                let all = limits
                    .iter()
                    .map(|limit| need(&Need::Limit { limit: *limit, weight: *weight, cost: 1 }));
                let all: Vec<_> = all.collect();
                let job = |n| NewJob {
                    id: Some(id((first + n) % JOBS)),
                    needs: Some(all.clone()),
                    retain: retain_ms.map(ms),
                    ..NewJob::new(queue(*q))
                };
                let jobs = (0..*many).map(job).collect();
                self.ask(Push { jobs, answer: PushAnswer::Whole }).await?;
            }
            Step::Lease { queues, max, ttl_s, worker: w, request } => {
                let lease = Lease {
                    ttl: Span::from_s(*ttl_s),
                    worker: worker(*w),
                    request_id: request
                        .map(|n| RequestId::parse(&format!("rq{n}")).expect("an id")),
                    ..Lease::jobs(queues.iter().map(|n| queue(*n)).collect(), *max)
                };
                self.lease(lease).await?;
            }
            Step::Hold { needs: all, ttl_s, worker: w, request } => {
                let lease = Lease {
                    ttl: Span::from_s(*ttl_s),
                    worker: worker(*w),
                    request_id: request
                        .map(|n| RequestId::parse(&format!("rh{n}")).expect("an id")),
                    ..Lease::needs(needs(all))
                };
                self.lease(lease).await?;
            }
            Step::Extend { leases, ttl_s } => {
                let item = |n: &u8| {
                    let lease = self.named(*n)?;
                    Some(ExtendItem {
                        lease,
                        progress: n.is_multiple_of(2).then(|| Json::from(i64::from(*n))),
                    })
                };
                let leases = leases.iter().filter_map(item).collect();
                self.ask(Extend { leases, ttl: ttl_s.map(Span::from_s) }).await?;
            }
            Step::Settle { leases } => {
                let pushes = End::pushes;
                // What pushes comes last: a job that was there already and ends after it in the same call is
                // shown by the one engine as it was and by the other as it ended.
                let (last, first): (Vec<_>, Vec<_>) =
                    leases.iter().partition(|(_, end)| pushes(end));
                let all = first.into_iter().chain(last.into_iter().take(1));
                let settle = all.filter_map(|(n, end)| self.settling(*n, end)).collect();
                self.ask(Settle::of(settle)).await?;
            }
            Step::Undo { lease } => {
                if let Some(lease) = self.named(*lease) {
                    let on_redis = self.id_on_redis(&lease);
                    self.machine.undo(&self.namespace, vec![lease]);
                    self.server.redis.undo(&self.namespace, on_redis.into_iter().collect());
                    self.machine.settled().await;
                    let settled = self.server.redis.testing_settle(&self.namespace).await;
                    settled.map_err(|why| TestCaseError::fail(format!("time: {why}")))?;
                }
            }
            // A worker that asks again and never extends: what it holds was perhaps never delivered.
            Step::Asks { worker: w } => {
                let lease = Lease { worker: worker(*w), ..Lease::jobs(vec![queue(9)], 1) };
                self.lease(lease).await?;
            }
            Step::Finish { first, many } => {
                let item = |n| {
                    let ending = Ending::Succeeded { result: None };
                    Some(SettleItem { ending, ..self.settling(n, &End::Succeeded)? })
                };
                let of_those = (*first..first + many).filter_map(item).collect();
                self.ask(Settle::of(of_those)).await?;
            }
            Step::SettleAndLease { leases, first, many, call, twice } => {
                let pushes = End::pushes;
                let (last, first_of): (Vec<_>, Vec<_>) =
                    leases.iter().partition(|(_, end)| pushes(end));
                let plain = |n| {
                    let ending = Ending::Succeeded { result: None };
                    Some(SettleItem { ending, ..self.settling(n, &End::Succeeded)? })
                };
                let mut settle: Vec<_> = (*first..first + many).filter_map(plain).collect();
                let all = first_of.into_iter().chain(last.into_iter().take(1));
                settle.extend(all.filter_map(|(n, end)| self.settling(*n, end)));
                let lease = Some(Box::new(self.call(call))).filter(|_| !self.crowded);
                for _ in 0..1 + usize::from(*twice) {
                    let lease = lease.clone();
                    let answer = self.ask(Settle { settle: settle.clone(), lease }).await?;
                    if let Some(Reply::Settle(Settled { lease: Some(Ok(leased)), .. })) = answer {
                        self.granted(leased);
                    }
                }
            }
            Step::Force { lease } => {
                if let Some(lease) = self.named(*lease) {
                    self.ask(ForceLease { lease }).await?;
                }
            }
            Step::Cancel { job } => drop(self.ask(CancelJob { job: the(*job) }).await?),
            Step::Delete { job } => drop(self.ask(DeleteJob { job: the(*job) }).await?),
            Step::Retry { job } => {
                self.ask(RetryJob { job: the(*job), finished_at: None }).await?;
            }
            Step::RunNow { job } => drop(self.ask(RunJobNow { job: the(*job) }).await?),
            Step::Patch { job, what } => {
                let mut patch = PatchJob::new(the(*job));
                match what {
                    Change::Priority(to) => patch.priority = Patch::Set(*to),
                    Change::Needs(to) => patch.needs = Patch::Set(needs(to)),
                    Change::Delay(to) => patch.when = Patch::Set(When::In(ms(*to))),
                    Change::Payload => patch.payload = Patch::Set(Json::from("new")),
                    Change::Group(Some(to)) => patch.group = Patch::Set(group(*to)),
                    Change::Group(None) => patch.group = Patch::Reset,
                }
                self.ask(patch).await?;
            }
            Step::Many { what, which, max } => {
                let (filter, max, cursor) = (self.filter(which), *max, None);
                match what {
                    0 => drop(self.ask(CancelJobs { filter, max, cursor }).await?),
                    1 => drop(self.ask(RetryJobs { filter, max, cursor }).await?),
                    _ => drop(self.ask(DeleteJobs { filter, max, cursor }).await?),
                }
            }
            Step::Look { job } => {
                self.ask(GetJob { job: the(*job) }).await?;
                self.ask(ExplainJob { job: the(*job) }).await?;
            }
            Step::Await { of, by_key, wait_ms } => {
                let key = || UniqueKey::parse(&format!("k{}", of % 3)).expect("a key");
                let job = if *by_key { JobRef::Key(key()) } else { the(*of) };
                self.start_waiting(GetResult { job, wait: ms(*wait_ms) }).await?;
            }
            Step::GiveUp { call } => {
                if let Some(at) = usize::from(*call).checked_rem(self.awaiting.len()) {
                    self.awaiting.swap_remove(at).abort().await;
                    self.as_many_wait().await?;
                }
            }
            Step::Lists => self.look_around().await?,
            Step::Pass { ms: span } => self.pass(*span).await?,
            Step::WallLeap { ms: span } => {
                self.clock.leap(ms(*span));
                self.settle_time().await?;
                self.order_differs = true;
            }
            Step::Flow(step) => self.flow(step).await?,
            step => self.schedules(step).await?,
        }
        Ok(())
    }

    pub(crate) async fn start_waiting(
        &mut self,
        asked: impl Into<Request>,
    ) -> Result<(), TestCaseError> {
        let asked = asked.into();
        let call = |engine: &dyn Engine| engine.call(&self.namespace, asked.clone());
        let machine = Started::new(call(&self.machine)).await;
        self.machine.settled().await;
        let redis = Started::new(call(&self.server.redis)).await;
        let pair = Pair { asked, machine, redis };
        if !pair.is_answered() {
            self.as_many_wait().await?;
        }
        self.awaiting.push(pair);
        Ok(())
    }

    /// As many calls wait for results on both.
    async fn as_many_wait(&self) -> Result<(), TestCaseError> {
        let waiting = async |engine: &dyn Engine| match engine.run(&self.namespace, GetStats).await
        {
            Ok(stats) => stats.result_waiters,
            Err(why) => panic!("stats: {why}"),
        };
        until("as many calls wait on Redis as on the state machine", async || {
            waiting(&self.machine).await == waiting(&self.server.redis).await
        })
        .await
    }

    /// A call that one has answered is answered by the other too, and alike.
    async fn compare_answered(&mut self) -> Result<(), TestCaseError> {
        for pair in self.awaiting.extract_if(.., |pair| pair.is_answered()).collect::<Vec<_>>() {
            let Pair { asked, machine, redis } = pair;
            let answers = (machine.answer().await?, redis.answer().await?);
            let (expected, got) = (told(&answers.0), told(&answers.1));
            // A wait that is over sees a flow of a crowd while it is told, and how far that is differs.
            let differs = self.crowded && matches!(asked, Request::GetFlow(_));
            if expected != got && !differs {
                return Err(TestCaseError::fail(format!(
                    "{asked:?}\nthe state machine: {expected}\nredis:             {got}"
                )));
            }
        }
        self.compare_events().await?;
        self.gauges.compare(&self.namespace).map_err(TestCaseError::fail)?;
        self.as_many_wait().await
    }

    /// The same happened on both, in the same order.
    async fn compare_events(&mut self) -> Result<(), TestCaseError> {
        let [machine, redis] = &mut self.events;
        let failed = |why: CallError| TestCaseError::fail(format!("events: {why}"));
        let expected = machine.read(&self.machine, &self.namespace).await.map_err(failed)?;
        let got = redis.read(&self.server.redis, &self.namespace).await.map_err(failed)?;
        let (mut expected, mut got) = (expected, got);
        if std::mem::take(&mut self.ready_differ) {
            let is_compared = |happened: &Happened| happened.kind != EventType::JobReady;
            expected.retain(is_compared);
            got.retain(is_compared);
        }
        if std::mem::take(&mut self.order_differs) || self.crowded {
            // What a step leaves to be told comes before or after what else the same call does. And on Redis moments are
            // decided before leases are taken back, where the clock leapt: it is looked at again first.
            expected.sort_by_cached_key(|happened| format!("{:?}", happened.about.job));
            got.sort_by_cached_key(|happened| format!("{:?}", happened.about.job));
        }
        let (expected, got) = (format!("{expected:#?}"), format!("{got:#?}"));
        self.note_fences(&expected);
        let got = self.as_of_the_machine(&got)?;
        if expected != got {
            let differs = expected.lines().zip(got.lines()).find(|(a, b)| a != b);
            return Err(TestCaseError::fail(format!(
                "events, at {differs:?}\nthe state machine: {}\nredis:             {}",
                short(&expected),
                short(&got)
            )));
        }
        Ok(())
    }

    async fn lease(&mut self, lease: Lease) -> Result<(), TestCaseError> {
        if let Some(Reply::Lease(leased)) = self.ask(lease).await? {
            self.granted(leased);
        }
        Ok(())
    }

    pub(crate) fn granted(&mut self, leased: Leased) {
        for granted in leased.leases {
            if self.leases.len() == 16 {
                self.leases.remove(0);
            }
            self.leases.push(granted);
        }
    }

    pub(crate) fn call(&self, call: &Call) -> Lease {
        let Call { queues, max, needs: alone, ttl_s, worker: w, request } = call;
        let (lease, kind) = match alone {
            Some(alone) => (Lease::needs(needs(alone)), "rh"),
            None => (Lease::jobs(queues.iter().map(|n| queue(*n)).collect(), *max), "rq"),
        };
        Lease {
            ttl: Span::from_s(*ttl_s),
            worker: worker(*w),
            request_id: request.map(|n| RequestId::parse(&format!("{kind}{n}")).expect("an id")),
            ..lease
        }
    }

    fn schedule(&self, set: &ScheduleSet) -> ScheduleSettings {
        let now = self.clock.now();
        let at = |ms: i64| match u64::try_from(ms) {
            Ok(ahead) => now.plus(Span::from_ms(ahead)),
            Err(_) => now.minus(Span::from_ms(ms.unsigned_abs())),
        };
        let cron = set.every_s.is_none();
        let mut job = ScheduledJob::new(queue(set.queue));
        job.needs = set.needs.as_deref().map(needs);
        job.expires_in = set.expires_ms.map(ms);
        job.retain = set.retain_ms.map(ms);
        ScheduleSettings {
            owner: set.owned.then(owner),
            timing: TimingSpec {
                cron: cron.then(|| "*/3 * * * * *".to_owned()),
                zone: cron.then(|| "Europe/Berlin".to_owned()),
                every: set.every_s.map(Span::from_s),
                starts_at: set.start_ms.map(at),
                ends_at: set.end_ms.map(|ms| at(ms as i64)),
                jitter: ms(set.jitter_ms),
            },
            overlap: overlap(set.overlap),
            catch_up: match set.catch_up {
                0 => CatchUp::None,
                1 => CatchUp::Last,
                _ => CatchUp::All,
            },
            catch_up_max: set.most,
            job,
        }
    }

    async fn schedules(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Schedule { schedule: n, set } => {
                let settings = self.schedule(set);
                self.ask(PutSchedule {
                    schedule: schedule(*n),
                    settings: Box::new(settings),
                    plan: None,
                })
                .await?;
            }
            Step::PatchSchedule { schedule: n, overlap: way } => {
                let overlap = Patch::Set(overlap(*way));
                self.ask(PatchSchedule { overlap, ..PatchSchedule::new(schedule(*n)) }).await?;
            }
            Step::DropSchedule { schedule: n } => {
                self.ask(DeleteSchedule { schedule: schedule(*n) }).await?;
            }
            Step::PauseSchedule { schedule: n, ms: span } => {
                let until = span.map(|span| Later::For(ms(span)));
                self.ask(PauseSchedule { schedule: schedule(*n), until }).await?;
            }
            Step::ResumeSchedule { schedule: n } => {
                self.ask(ResumeSchedule { schedule: schedule(*n) }).await?;
            }
            Step::RunSchedule { schedule: n, job } => {
                let run = RunScheduleNow { schedule: schedule(*n), id: Some(id(*job)) };
                self.ask(run).await?;
            }
            Step::SyncSchedules { schedules, meant } => {
                let one = |(n, set): &(u8, ScheduleSet)| {
                    (schedule(*n), ScheduleSettings { owner: Some(owner()), ..self.schedule(set) })
                };
                let meant = if *meant { Meant::Yes } else { Meant::Ask };
                let schedules = schedules.iter().map(one).collect();
                let sync = SyncSchedules { owner: owner(), schedules, meant, version: None };
                self.ask(sync).await?;
            }
            Step::LookAtSchedule { schedule: n } => {
                self.ask(GetSchedule { schedule: schedule(*n) }).await?;
                self.compare_schedule_stats().await?;
            }
            Step::Gauge { limit: n, cap, how } => {
                let settings =
                    LimitSettings { concurrency: Some(*cap), ..LimitSettings::default() };
                let gauge = Some(Box::new(gauges::gauge(*how)));
                self.ask(PutLimit { limit: limit(*n), settings, gauge }).await?;
            }
            Step::Read { claim, what } => self.read(*claim, *what).await?,
            other => return self.set(other).await,
        }
        Ok(())
    }

    /// Both are brought the same answer to a claim, which may be over.
    async fn read(&self, claim: u8, what: u8) -> Result<(), TestCaseError> {
        let Some(reading) = self.gauges.reading(claim, what) else { return Ok(()) };
        let engines: [&dyn Engine; 2] = [&self.machine, &self.server.redis];
        for engine in engines {
            let answered = engine.answer_gauge(&self.namespace, reading.clone()).await;
            answered.map_err(|why| TestCaseError::fail(format!("{reading:?}: {why}")))?;
        }
        self.settle_time().await?;
        // What it showed, in all views of limits.
        self.ask(ListLimits::default()).await.map(drop)
    }

    /// As many schedules are there, are paused and are due on both, and since the same moment.
    async fn compare_schedule_stats(&self) -> Result<(), TestCaseError> {
        let told = async |engine: &dyn Engine| match engine.run(&self.namespace, GetStats).await {
            Ok(stats) => stats.schedules,
            Err(why) => panic!("stats: {why}"),
        };
        let (expected, got) = (told(&self.machine).await, told(&self.server.redis).await);
        if expected == got {
            return Ok(());
        }
        Err(TestCaseError::fail(format!("the state machine: {expected:?}\nredis: {got:?}")))
    }

    async fn set(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Limit { limit: n, set } => {
                let settings = match set {
                    LimitSet::Cap(cap) => {
                        LimitSettings { concurrency: Some(*cap), ..LimitSettings::default() }
                    }
                    LimitSet::Rate { count, per_ms, burst } => LimitSettings {
                        rate: Some(Rate { count: *count, per: ms(*per_ms), burst: *burst }),
                        ..LimitSettings::default()
                    },
                    LimitSet::Both { cap, count } => LimitSettings {
                        concurrency: Some(*cap),
                        rate: Some(Rate { count: *count, per: ms(1_000), burst: 2 }),
                        ..LimitSettings::default()
                    },
                    LimitSet::Rests { cap, gap_ms, quarantine_ms } => LimitSettings {
                        concurrency: Some(*cap),
                        gap: gap_ms.map(ms),
                        quarantine: ms(*quarantine_ms),
                        ..LimitSettings::default()
                    },
                };
                self.ask(PutLimit { limit: limit(*n), settings, gauge: None }).await?;
            }
            Step::DropLimit { limit: n } => drop(self.ask(DeleteLimit { limit: limit(*n) }).await?),
            Step::PauseLimit { limit: n, ms: span } => {
                self.ask(PauseLimit { limit: limit(*n), until: Later::For(ms(*span)) }).await?;
            }
            Step::ResumeLimit { limit: n } => {
                drop(self.ask(ResumeLimit { limit: limit(*n) }).await?)
            }
            Step::Observe { limit: n, external, ms: span } => {
                let hold = Some(ms(*span));
                self.ask(ObserveLimit { limit: limit(*n), external: *external, hold }).await?;
            }
            Step::Pool { pool: n, cooldown_ms, quarantine_ms, max_uses, rate } => {
                let settings = PoolSettings {
                    cooldown: ms(*cooldown_ms),
                    quarantine: ms(*quarantine_ms),
                    max_uses: *max_uses,
                    rate: rate.then(|| Rate { count: 1, per: ms(700), burst: 1 }),
                    ..PoolSettings::default()
                };
                self.ask(PutPool { pool: pool(*n), settings }).await?;
            }
            Step::Sync { pool: n, resources, slots } => {
                let new = |r: &u8| NewResource {
                    id: resource(*r),
                    data: Json::from(format!("secret {r}").as_str()),
                    tags: vec![tag(r % 2)],
                    slots: *slots,
                };
                // What is there stays: which of several unused resources is handed out first is
                // by their slots in the state machine, which are given in the order of adding and used again.
                let there = &mut self.there[usize::from(*n)];
                there.extend(resources.iter().flat_map(|most| 0..=*most));
                let resources = there.iter().map(new).collect();
                let sync =
                    SyncResources { pool: pool(*n), resources, meant: Meant::Yes, version: None };
                self.ask(sync).await?;
            }
            Step::Retag { pool: n, resource: r, tags } => {
                let tags = tags.iter().map(|t| tag(*t)).collect();
                self.ask(PatchResource {
                    pool: pool(*n),
                    resource: resource(*r),
                    data: Patch::Keep,
                    tags: Patch::Set(tags),
                    slots: Patch::Keep,
                })
                .await?;
            }
            Step::Cool { pool: n, resource: r, ms: span } => {
                let until = Later::For(ms(*span));
                self.ask(CoolResource { pool: pool(*n), resource: resource(*r), until }).await?;
            }
            Step::Ban { pool: n, resource: r } => {
                self.ask(BanResource { pool: pool(*n), resource: resource(*r), reason: None })
                    .await?;
            }
            Step::Restore { pool: n, resource: r } => {
                self.ask(RestoreResource { pool: pool(*n), resource: resource(*r) }).await?;
            }
            Step::Queue { queue: n, needs: all, max_waiting, lost_delay_ms, share } => {
                let settings = QueueSettings {
                    needs: needs(all),
                    max_waiting: *max_waiting,
                    lost_delay: lost_delay_ms.map(ms),
                    shares: share.map(|share| (group(0), share)).into_iter().collect(),
                    ..QueueSettings::default()
                };
                self.ask(PutQueue { queue: queue(*n), settings }).await?;
            }
            Step::PauseQueue { queue: n, ms: span } => {
                let until = span.map(|span| Later::For(ms(span)));
                self.ask(PauseQueue { queue: queue(*n), until }).await?;
            }
            Step::ResumeQueue { queue: n } => {
                drop(self.ask(ResumeQueue { queue: queue(*n) }).await?)
            }
            other => return Err(TestCaseError::fail(format!("no setting: {other:?}"))),
        }
        Ok(())
    }

    /// Time goes by as it does: both tick at least once a second, unless the step is a leap.
    async fn pass(&self, span: u64) -> Result<(), TestCaseError> {
        let mut left = span;
        while left > 0 {
            let step = left.min(1_000);
            self.clock.advance(ms(step));
            self.settle_time().await?;
            left -= step;
        }
        Ok(())
    }

    async fn look_around(&self) -> Result<(), TestCaseError> {
        self.ask(ListJobs { full: true, ..ListJobs::default() }).await?;
        self.ask(ListFailures::default()).await?;
        self.ask(ListLeases::default()).await?;
        self.ask(ListQueues::default()).await?;
        self.ask(ListLimits::default()).await?;
        self.ask(ListPools::default()).await?;
        self.ask(ListSchedules { full: true, ..ListSchedules::default() }).await?;
        for n in 0..4 {
            self.ask(GetSchedule { schedule: schedule(n) }).await?;
        }
        for n in 0..2 {
            self.ask(ListResources { pool: pool(n), page: Page::default() }).await?;
        }
        for n in 0..6 {
            self.ask(GetLimit { limit: limit(n) }).await?;
        }
        Ok(())
    }

    /// All that can be seen is the same, and what is cached agrees with the leases.
    async fn end(&mut self) -> Result<(), TestCaseError> {
        for pair in std::mem::take(&mut self.awaiting) {
            pair.abort().await;
        }
        self.as_many_wait().await?;
        self.look_around().await?;
        for job in 0..JOBS {
            self.ask(ExplainJob { job: the(job) }).await?;
        }
        let audit = self.server.redis.call(&self.namespace, Audit::default().into()).await;
        match audit {
            Ok(Reply::Audit(audit)) if audit.ok => Ok(()),
            other => Err(TestCaseError::fail(format!("audit: {other:?}"))),
        }
    }

    fn id_on_redis(&self, lease: &str) -> Option<String> {
        self.ids.lock().expect("nobody panics with it").get(lease).cloned()
    }

    fn named(&self, n: u8) -> Option<String> {
        let at = usize::from(n).checked_rem(self.leases.len())?;
        self.leases[at].lease.clone()
    }

    /// The place of a lease of those that were granted, counted from the newest.
    pub(crate) fn newest(&self, n: u8) -> Option<u8> {
        let back = usize::from(n).checked_rem(self.leases.len())?;
        u8::try_from(self.leases.len() - 1 - back).ok()
    }

    /// The job of a lease of those that were granted.
    pub(crate) fn held_job(&self, n: u8) -> Option<JobId> {
        let at = usize::from(n).checked_rem(self.leases.len())?;
        self.leases[at].job.as_ref().map(|job| job.id.clone())
    }

    pub(crate) fn settling(&self, n: u8, end: &End) -> Option<SettleItem> {
        let lease = &self.leases[usize::from(n).checked_rem(self.leases.len())?];
        let mut item = SettleItem::new(
            lease.lease.clone()?,
            Ending::Succeeded { result: Some(Json::from(i64::from(n))) },
        );
        match end {
            End::Succeeded => {}
            End::Failed { last } => {
                item.ending =
                    Ending::Failed { error: "no".to_owned(), retry_in: None, last: *last };
            }
            End::Snoozed { ms: span, reset } => {
                item.ending = Ending::Snoozed { later: Later::For(ms(*span)), reset: *reset };
            }
            End::Next { s, done } => {
                item.next_in = Some(Span::from_s(*s));
                if !done {
                    item.ending = Ending::Snoozed { later: Later::For(ms(700)), reset: false };
                }
            }
            End::Reporting { done } => {
                item.progress = Some(Json::from(i64::from(n) + 100));
                if !done {
                    item.ending = Ending::Released;
                }
            }
            End::Released => item.ending = Ending::Released,
            End::Cooling { ms: span } => {
                item.resources = lease
                    .resources
                    .iter()
                    .map(|held| ResourceVerdict {
                        pool: held.pool.clone(),
                        id: held.id.clone(),
                        verdict: Verdict::Cool(Later::For(ms(*span))),
                    })
                    .collect();
            }
            End::Pausing { limit: n, ms: span } => {
                item.limits =
                    vec![LimitVerdict { limit: limit(*n), pause: Some(ms(*span)), spent: None }];
            }
            End::Spent { limit: n, cost } => {
                item.limits =
                    vec![LimitVerdict { limit: limit(*n), pause: None, spent: Some(*cost) }];
            }
            End::Pushing { job } => {
                item.push = vec![NewJob { id: Some(id(*job)), ..NewJob::new(queue(0)) }];
            }
            End::Repeating { push } => {
                item.push = self.pushed_before(*push).map(|push| push.jobs).unwrap_or_default();
            }
            End::Again => {
                let own = lease.job.as_ref().map(|job| job.id.clone()).unwrap_or(id(0));
                let again = NewJob { id: Some(own), ..NewJob::new(queue(1)) };
                let other = NewJob { id: Some(id(n % JOBS)), ..again.clone() };
                item.push = vec![NewJob { retain: Some(ms(0)), ..again }, other];
            }
        }
        Some(item)
    }

    pub(crate) fn filter(&self, which: &Filter) -> JobFilter {
        let state = |n: &u8| job::JobState::ALL[usize::from(*n)];
        JobFilter {
            queue: which.queue.map(queue),
            states: which.states.iter().map(state).collect(),
            kind: which.kind.then(String::new),
            label: None,
            error: which.error.then(|| "no".to_owned()),
            finished_after: which.ended_ms.map(|span| self.clock.now().minus(ms(span))),
            finished_before: None,
            flow: None,
            schedule: None,
        }
    }

    pub(crate) fn job(&self, job: &Job) -> NewJob {
        NewJob {
            id: Some(id(job.id)),
            priority: job.priority,
            group: job.group.map(group),
            needs: job.needs.as_deref().map(needs),
            when: if job.delay_ms > 0 { When::In(ms(job.delay_ms)) } else { When::Now },
            timeout: job.timeout_ms.map(ms),
            expires_at: job.expires_ms.map(|span| self.clock.now().plus(ms(span))),
            unique: job.unique.map(|(key, start, hold, on_conflict)| Unique {
                key: UniqueKey::parse(&format!("k{key}")).expect("a key"),
                until: if start { Until::Start } else { Until::End },
                hold: hold.map(ms),
                on_conflict: match on_conflict {
                    0 => OnConflict::Keep,
                    1 => OnConflict::Replace,
                    _ => OnConflict::Reject,
                },
                within: job.within_ms.map(ms),
            }),
            retry: Some(Retry { max_attempts: job.attempts, ..Retry::default() }),
            retain: job.retain_ms.map(ms),
            ..NewJob::new(queue(job.queue))
        }
    }
}

/// Rows have other numbers on the two engines: of a cursor only that there is one is compared. Nor that, once a call has
/// changed as many jobs as it may: whether older ones are looked for is the engine's own, and the next call then finds none.
fn comparable(
    request: &Request,
    mut answer: Result<Reply, CallError>,
    crowded: bool,
) -> Result<Reply, CallError> {
    without_child(request, &mut answer);
    let max = match request {
        Request::CancelJobs(asked) => asked.max,
        Request::RetryJobs(asked) => asked.max,
        Request::DeleteJobs(asked) => asked.max,
        _ => 0,
    };
    // A duplicate that the call itself ends is shown by the one engine as it was, if it goes at once, and by the other as
    // it ended. A follow-up behind more children than one step tells is shown by the one engine as the step left it, and by
    // the other as the next steps did.
    let is_shown_apart = |one: &job::PushedJob| one.duplicate || crowded && one.job.parents > 0;
    if let Ok(Reply::Settle(settled)) = &mut answer {
        let pushed = settled.settled.iter_mut().flat_map(|one| &mut one.pushed);
        for one in pushed.filter(|one| is_shown_apart(one)) {
            let JobView { id, queue, created_at, .. } = one.job.clone();
            one.job = JobView::bare(id, queue, JobState::Ready, created_at);
        }
    }
    let next = match &mut answer {
        Ok(Reply::ListJobs(listed)) => Some(&mut listed.next),
        Ok(Reply::ListChildren(listed)) => Some(&mut listed.next),
        _ => None,
    };
    if let Some(next @ Some(_)) = next {
        *next = Some(String::new());
    }
    if let Ok(Reply::CancelJobs(done) | Reply::RetryJobs(done) | Reply::DeleteJobs(done)) =
        &mut answer
    {
        done.next = done.next.take().map(|_| String::new());
        if done.done == max as u64 {
            *done = DoneMany::all(done.done);
        }
    }
    answer
}

/// The fence and the row of a lease by its id on Redis, which begins with its form and these two, seven bits a
/// byte, in the letters of base64url.
fn fence_and_row(id: &str) -> Option<(Fence, Seq)> {
    if id.len() < 40 || !id.starts_with('A') {
        return None;
    }
    let mut bytes = BASE64URL_NOPAD.decode(id.as_bytes()).ok()?.into_iter().skip(1);
    let mut number = || {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = bytes.next()?;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Some(number);
            }
        }
    };
    Some((Fence::new(number()?), Seq::new(number()?)))
}

/// Any unfinished child may be named by the refusal of a deletion, or none: the state machine forgets a child of an
/// earlier turn, which Redis still knows among those that were told.
fn without_child(request: &Request, answer: &mut Result<Reply, CallError>) {
    if let (Request::DeleteJob(_), Err(CallError::Refused(no))) = (request, answer)
        && no.code == Code::InUse
    {
        (no.job, no.detail) = (None, String::new());
    }
}

/// What a call was answered, as text to compare.
fn told(answer: &Result<Reply, CallError>) -> String {
    match answer {
        // A follow-up that is granted in the same call is shown by the one engine as it was pushed and by the other as
        // it runs.
        Ok(Reply::Settle(Settled { settled, lease: Some(lease) })) => {
            let settled = settled.iter().map(|one| {
                let one = SettledLease { pushed: Vec::new(), ..one.clone() };
                format!("{one:?}")
            });
            let lease = match lease {
                Ok(leased) => format!("{leased:?}"),
                Err(no) => told(&Err(no.clone().into())),
            };
            format!("{} and {lease}", settled.collect::<String>())
        }
        Ok(reply) => format!("{reply:?}"),
        Err(CallError::Refused(no)) => format!(
            "refused: {} {:?} at {:?} index {:?} job {:?} retry {:?}",
            no.code, no.detail, no.pointer, no.index, no.job, no.retry_after_s
        ),
        Err(CallError::Fault(fault)) => format!("fault: {fault:?}"),
    }
}

/// Events without what they do not say.
fn short(events: &str) -> String {
    let lines = events.lines().map(str::trim).filter(|line| !line.ends_with(": None,"));
    lines.collect::<Vec<_>>().join(" ")
}
