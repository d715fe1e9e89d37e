//! What an operator says of a namespace reaches all who use it: how patient it is, and how many bytes its
//! finished jobs may take. And what an engine leaves behind when it is closed: nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::{JobState, Need, NewJob};
use tenure_core::lease::{Ending, LeaseView, ReasonKind, SettleItem};
use tenure_core::names::{JobId, JobRef, LimitName, Namespace, QueueName, WorkerId};
use tenure_core::requests::{
    Audit, ExplainJob, GetQueue, GetStats, Lease, ListWorkers, Operation, Page, Push, PushAnswer,
    PutLimit, Settle,
};
use tenure_core::secret::Json;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;
use tenure_engine::EngineExt;
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine, Time};
use tenure_testkit::redis::{Aof, RedisServer, wanted};

/// No wait of a test is longer, and it is shorter than the patience of who was told nothing.
const PROMPT: Duration = Duration::from_secs(8);
const JOBS: usize = 40;
const PAYLOAD: usize = 4_000;

fn ns() -> Namespace {
    Namespace::main()
}
fn options(server: &RedisServer) -> Options {
    Options::new(Address::parse(&server.url()).expect("the address of the fixture is one"))
}
fn open(options: Options) -> Arc<RedisEngine> {
    Arc::new(RedisEngine::open(options).expect("an engine can be opened"))
}
async fn ok<O: Operation>(engine: &RedisEngine, request: O) -> O::Reply {
    engine.run(&ns(), request).await.unwrap_or_else(|why| panic!("{}: {why}", O::NAME))
}
async fn eventually(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !so().await {
        assert!(begin.elapsed() < PROMPT, "this never was so: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
fn queue(name: &str) -> QueueName {
    QueueName::parse(name).expect("a name")
}
fn needs(weight: u32) -> Option<Vec<Need>> {
    let limit = LimitName::parse("two").expect("a name");
    Some(vec![Need::Limit { limit, weight, cost: 1 }])
}
fn asks(from: &str, worker: &str, max: usize) -> Lease {
    let mut lease = Lease::jobs(vec![queue(from)], max);
    lease.worker.id = Some(WorkerId::parse(worker).expect("an id"));
    lease
}
fn settles(lease: &LeaseView) -> SettleItem {
    SettleItem::new(lease.lease.clone().expect("it has an id"), Ending::Succeeded { result: None })
}
fn job(from: &str, id: &str) -> NewJob {
    NewJob { id: Some(JobId::parse(id).expect("an id")), ..NewJob::new(queue(from)) }
}
async fn push(engine: &RedisEngine, jobs: Vec<NewJob>) {
    ok(engine, Push { jobs, answer: PushAnswer::Ids }).await;
}

/// Jobs with a payload that run and succeed.
async fn many_succeed(engine: &RedisEngine) {
    let payload = Json::from("x".repeat(PAYLOAD).as_str());
    let one = || NewJob { payload: payload.clone(), ..NewJob::new(queue("q")) };
    push(engine, (0..JOBS).map(|_| one()).collect()).await;
    let leased = ok(engine, asks("q", "w", JOBS)).await.leases;
    assert_eq!(leased.len(), JOBS);
    ok(engine, Settle::of(leased.iter().map(settles).collect())).await;
}
async fn kept(engine: &RedisEngine) -> usize {
    let stats = ok(engine, GetStats).await;
    usize::try_from(stats.jobs[&JobState::Succeeded]).expect("few jobs")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_it_last_sets_what_finished_jobs_may_take() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let few = Some(10 * PAYLOAD as u64);
    let says = open(Options { retain_bytes: few, ..options(&server) });
    // Half of it is for failures, if there are any.
    many_succeed(&says).await;
    eventually("what is too much is gone", async || kept(&says).await <= 10).await;
    // Who says nothing leaves it as it is.
    let silent = open(options(&server));
    many_succeed(&silent).await;
    eventually("what is too much is gone again", async || kept(&silent).await <= 10).await;
    drop(silent);
    let other = open(Options { retain_bytes: Some(1 << 30), ..options(&server) });
    kept(&other).await;
    let begin = Instant::now();
    eventually("the other says it", async || {
        many_succeed(&other).await;
        kept(&other).await > 2 * JOBS
    })
    .await;
    assert!(begin.elapsed() < PROMPT);
    // Who said it first does not say it again.
    many_succeed(&says).await;
    assert!(kept(&says).await > 3 * JOBS);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_says_holds_for_the_first_job() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    // Nobody ticks unless it is told to.
    let by_hand = || Options { time: Time::TestingByHand, ..options(&server) };
    let few = Some(10 * PAYLOAD as u64);
    let says = open(Options { retain_bytes: few, ..by_hand() });
    let silent = open(by_hand());
    let rest = async || {
        while silent.testing_tick(&ns()).await.expect("it ticks") {}
        kept(&silent).await
    };
    for _ in 0..2 {
        server.must(&["SET", "tenure:{default}now", "1800000000000000"]);
        // A call that is refused changes nothing, also of what it carries.
        let unknown = NewJob { needs: needs(1), ..job("q", "no") };
        let push = Push { jobs: vec![unknown], answer: PushAnswer::Ids };
        assert!(says.run(&ns(), push).await.is_err(), "there is no such limit");
        many_succeed(&says).await;
        assert!(rest().await <= 10, "another process ticks by what was said");
        // A store that lost all is told again, by the very call that makes the namespace anew.
        server.must(&["FLUSHALL"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patience_is_what_the_operator_says() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(Options { patience: Some(Span::from_s(1)), ..options(&server) });
    let limit = LimitName::parse("two").expect("a name");
    let settings = LimitSettings { concurrency: Some(2), ..LimitSettings::default() };
    ok(&engine, PutLimit { limit, settings, gauge: None }).await;
    let small = |id: &str| NewJob { needs: needs(1), ..job("small", id) };
    push(&engine, vec![small("a"), small("b"), small("c")]).await;
    assert_eq!(ok(&engine, asks("small", "w", 1)).await.leases.len(), 1);
    push(&engine, vec![NewJob { needs: needs(2), ..job("big", "big") }]).await;
    let begin = Instant::now();
    let mut last = "c".to_owned();
    let mut pushed = 0;
    eventually("what is left is kept for the big one", async || {
        // Only a queue that somebody asks for may keep anything.
        ok(&engine, asks("big", "w", 1)).await;
        let leased = ok(&engine, asks("small", "w", 1)).await.leases;
        if !leased.is_empty() {
            ok(&engine, Settle::of(leased.iter().map(settles).collect())).await;
            pushed += 1;
            last = format!("small{pushed}");
            push(&engine, vec![small(&last)]).await;
            return false;
        }
        let job = JobRef::parse(&last).expect("an id");
        let told = ok(&engine, ExplainJob { job }).await;
        told.reasons.iter().any(|why| why.kind == ReasonKind::Reserved)
    })
    .await;
    assert!(begin.elapsed() >= Duration::from_millis(900), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_closed_leaves_nobody_waiting() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let waiters = || server.must(&["KEYS", "tenure:{default}t[kq]:*"]).list().len();
    let engine = open(options(&server));
    let waits = || Lease { wait: Span::from_s(60), ..asks("q", "w", 1) };
    let (stays, gone) = (engine.run(&ns(), waits()), engine.run(&ns(), waits()));
    let (stays, gone) = (tokio::spawn(stays), tokio::spawn(gone));
    eventually("both wait", async || waiters() > 0).await;
    // One caller goes away in the same moment.
    gone.abort();
    engine.close(Duration::from_secs(5)).await;
    assert_eq!(waiters(), 0);
    let answer = stays.await.expect("it is answered").expect("it is no fault");
    assert!(answer.leases.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_although_redis_is_gone() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Off, &[]);
    let engine = open(options(&server));
    let waits = Lease { wait: Span::from_s(60), ..asks("q", "w", 1) };
    let call = tokio::spawn(engine.run(&ns(), waits));
    eventually("it waits", async || server.must(&["EXISTS", "tenure:{default}pr"]).text() == "1")
        .await;
    server.kill();
    let begin = Instant::now();
    engine.close(Duration::from_secs(2)).await;
    assert!(begin.elapsed() < PROMPT, "{:?}", begin.elapsed());
    call.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_takes_the_bytes_that_its_server_says() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(options(&server));
    let before = ok(&engine, GetStats).await.store.bytes;
    let payload = Json::from("x".repeat(200_000).as_str());
    push(
        &engine,
        (0..20).map(|_| NewJob { payload: payload.clone(), ..NewJob::new(queue("q")) }).collect(),
    )
    .await;
    let after = ok(&engine, GetStats).await.store.bytes;
    assert!(before > 0 && after > before + 20 * 200_000, "{before} {after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_only_asks_makes_no_namespace() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let address = Address::parse(&server.url()).expect("the address of the fixture is one");
    let engine = open(Options::testing(address));
    ok(&engine, GetStats).await;
    let get = GetQueue { queue: queue("nowhere") };
    assert!(engine.run(&ns(), get).await.is_err());
    for _ in 0..3 {
        assert!(!engine.testing_tick(&ns()).await.expect("it ticks"), "nothing is due");
    }
    assert_eq!(server.must(&["EXISTS", "tenure:{default}m"]).text(), "0");
    push(&engine, vec![job("q", "a")]).await;
    engine.testing_tick(&ns()).await.expect("it ticks");
    assert_eq!(server.must(&["EXISTS", "tenure:{default}m"]).text(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_knows_the_processes_that_may_be_sent_parcels() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(options(&server));
    let worker = tenure_core::lease::Worker { id: WorkerId::parse("w").ok(), ..Default::default() };
    let lease = Lease { worker, wait: Span::from_s(30), ..Lease::jobs(vec![queue("q")], 1) };
    let waits = tokio::spawn(engine.run(&ns(), lease));
    eventually("its process may be sent parcels", async || {
        let page = Page { max: 10, cursor: None };
        ok(&engine, ListWorkers { page }).await.items.len() == 1
            && server.must(&["HLEN", "tenure:{default}pg"]).text() == "1"
    })
    .await;
    assert!(ok(&engine, Audit::default()).await.ok);
    // It does not tick, and has read one more than it was sent.
    server.must(&["HSET", "tenure:{default}pg", "ghost", "000000000001"]);
    let audit = ok(&engine, Audit::default()).await;
    let told = audit.faults.join("\n");
    for fault in ["the process \"ghost\" is in no list", "the process \"ghost\" has read"] {
        assert!(!audit.ok && told.contains(fault), "{told}");
    }
    waits.abort();
}
