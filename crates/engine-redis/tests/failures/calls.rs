//! Calls as the tests make them. Who is refused as unavailable, or is told that the outcome is unknown,
//! repeats the same call with the same ids, as clients do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::{JobView, Need, NewJob};
use tenure_core::lease::{Ending, ExtendItem, Extended, LeaseView, SettleItem, SettledLease};
use tenure_core::names::{JobId, JobRef, LimitName, Namespace, QueueName, RequestId, WorkerId};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    Audit, Extend, GetJob, Lease, Operation, Push, PushAnswer, PutLimit, Settle,
};
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt, Fault};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::redis::RedisServer;

/// No wait of a test is longer.
pub const PROMPT: Duration = Duration::from_secs(30);

pub fn ns() -> Namespace {
    Namespace::main()
}
pub fn open(url: &str) -> Arc<RedisEngine> {
    let address = Address::parse(url).expect("the address of the fixture is one");
    Arc::new(RedisEngine::open(Options::new(address)).expect("an engine can be opened"))
}
pub async fn eventually(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !so().await {
        assert!(begin.elapsed() < PROMPT, "this never was so: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a command by hand, whose second word is a key of the namespace without its beginning.
pub fn damage(server: &RedisServer, namespace: &str, words: &[&str]) {
    let key = format!("tenure:{{{namespace}}}{}", words[1]);
    let words: Vec<&str> = [&[words[0], key.as_str()], &words[2..]].concat();
    server.must(&words);
}

/// The audit finds nothing in the namespace.
pub async fn nothing_is_found(engine: &RedisEngine, ns: &Namespace) {
    let audit = engine.run(ns, Audit::default()).await.expect("an audit");
    assert!(audit.ok, "{:?}", audit.faults);
}

/// The audit tells this of the namespace. One between whose steps somebody ticks compares no sums; the next one does.
pub async fn audit_tells(engine: &RedisEngine, ns: &Namespace, told: &str) {
    eventually(told, async || {
        let audit = engine.run(ns, Audit::default()).await.expect("an audit");
        !audit.ok && audit.faults.join("\n").contains(told)
    })
    .await;
}

/// One call, repeated until there is an answer.
pub async fn answered<O: Operation + Clone>(
    engine: &RedisEngine,
    request: O,
) -> Result<O::Reply, CallError> {
    let begin = Instant::now();
    loop {
        match engine.run(&ns(), request.clone()).await {
            Err(CallError::Fault(why @ (Fault::Unavailable(_) | Fault::Unknown(_)))) => {
                assert!(begin.elapsed() < PROMPT, "{} was never answered: {why}", O::NAME);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            answer => return answer,
        }
    }
}
pub async fn ok<O: Operation + Clone>(engine: &RedisEngine, request: O) -> O::Reply {
    let answer = answered(engine, request).await;
    answer.unwrap_or_else(|why| panic!("{} was refused: {why}", O::NAME))
}

/// A job of a queue.
pub fn job(queue: &str, id: &str) -> NewJob {
    let queue = QueueName::parse(queue).expect("a name");
    NewJob { id: Some(JobId::parse(id).expect("an id")), ..NewJob::new(queue) }
}
pub fn pushes(job: NewJob) -> Push {
    Push { jobs: vec![job], answer: PushAnswer::Ids }
}
pub async fn push(engine: &RedisEngine, job: NewJob) {
    ok(engine, pushes(job)).await;
}
pub fn needs(limit: &str) -> Vec<Need> {
    let limit = LimitName::parse(limit).expect("a name");
    vec![Need::Limit { limit, weight: 1, cost: 1 }]
}
pub async fn cap_of_one(engine: &RedisEngine, limit: &str) {
    let limit = LimitName::parse(limit).expect("a name");
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    ok(engine, PutLimit { limit, settings, gauge: None }).await;
}

fn by(lease: Lease, worker: &str, ttl: Span) -> Lease {
    let mut lease = Lease { ttl, ..lease };
    lease.worker.id = Some(WorkerId::parse(worker).expect("an id"));
    lease.request_id = Some(RequestId::parse(&format!("{worker}-{ttl}")).expect("an id"));
    lease
}
/// Asks for one job of a queue. Who asks again asks as another worker: the worker is the request.
pub fn asks(queue: &str, worker: &str, ttl: Span) -> Lease {
    by(Lease::jobs(vec![QueueName::parse(queue).expect("a name")], 1), worker, ttl)
}
/// Asks for a limit alone.
pub fn locks(limit: &str, worker: &str, ttl: Span) -> Lease {
    by(Lease::needs(needs(limit)), worker, ttl)
}
pub async fn take(engine: &RedisEngine, lease: Lease) -> Option<LeaseView> {
    ok(engine, lease).await.leases.pop()
}
pub fn name(lease: &LeaseView) -> String {
    lease.lease.clone().expect("a lease of a job or a lock has an id")
}

pub fn extends(lease: &LeaseView) -> Extend {
    Extend { leases: vec![ExtendItem { lease: name(lease), progress: None }], ttl: None }
}
/// Whether the lease lives.
pub async fn lives(engine: &RedisEngine, lease: &LeaseView) -> bool {
    let Extended { extended, lost, .. } = ok(engine, extends(lease)).await;
    assert_eq!(extended.len() + lost.len(), 1);
    lost.is_empty()
}
pub fn settles(lease: &LeaseView) -> Settle {
    let item = SettleItem::new(name(lease), Ending::Succeeded { result: None });
    Settle::of(vec![item])
}
pub async fn settle(engine: &RedisEngine, lease: &LeaseView) -> SettledLease {
    ok(engine, settles(lease)).await.settled.remove(0)
}

/// The job, or nothing if there is none.
pub async fn find(engine: &RedisEngine, id: &str) -> Option<Box<JobView>> {
    match answered(engine, GetJob { job: JobRef::parse(id).expect("an id") }).await {
        Ok(job) => Some(job),
        Err(why) if why.code() == Some(Code::JobNotFound) => None,
        Err(why) => panic!("job {id} cannot be seen: {why}"),
    }
}
pub async fn see(engine: &RedisEngine, id: &str) -> Box<JobView> {
    find(engine, id).await.unwrap_or_else(|| panic!("job {id} is gone"))
}
pub async fn is_whole(engine: &RedisEngine) {
    let audit = ok(engine, Audit::default()).await;
    assert!(audit.ok && audit.faults.is_empty(), "{:?}", audit.faults);
}
