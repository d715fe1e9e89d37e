//! A user of Redis who may not publish, or not listen: every call works as it does otherwise, and what waits is
//! found a little later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::NewJob;
use tenure_core::lease::Leased;
use tenure_core::names::{JobId, Namespace, QueueName, WorkerId};
use tenure_core::requests::{Lease, Push, PushAnswer};
use tenure_core::time::Span;
use tenure_engine::{CallError, Engine, EngineExt};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::redis::{Aof, RedisCluster, RedisServer, wanted};
use tokio::task::JoinHandle;

/// No wait of a test is longer.
const PROMPT: Duration = Duration::from_secs(30);
/// How late a waiting call may find new work without a notification; the promise is about a second, and the
/// machine may be slow. Its own wait is far longer.
const LATE: Duration = Duration::from_secs(10);

fn ns() -> Namespace {
    Namespace::main()
}

fn open(url: &str) -> Arc<RedisEngine> {
    let address = Address::parse(url).expect("an address");
    Arc::new(RedisEngine::open(Options::new(address)).expect("an engine can be opened"))
}

/// Somebody who may do everything that these rules permit.
fn user(server: &RedisServer, name: &str, rules: &[&str]) -> String {
    let words = ["ACL", "SETUSER", name, "reset", "on", ">pw", "~*", "+@all"];
    server.must(&[&words[..], rules].concat());
    format!("redis://{name}:pw@127.0.0.1:{}", server.port())
}

async fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < PROMPT, "this never was so: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn push(engine: &RedisEngine, id: &str) {
    let id = JobId::parse(id).expect("an id");
    let job = NewJob { id: Some(id), ..NewJob::new(QueueName::parse("q").expect("a name")) };
    let pushed = engine.run(&ns(), Push { jobs: vec![job], answer: PushAnswer::Ids }).await;
    pushed.expect("what is stored is answered so");
}

/// A call that waits, once the store knows it.
async fn waits(
    server: &RedisServer,
    engine: &RedisEngine,
) -> JoinHandle<Result<Leased, CallError>> {
    let mut lease = Lease::jobs(vec![QueueName::parse("q").expect("a name")], 1);
    lease.worker.id = Some(WorkerId::parse("w").expect("an id"));
    lease.wait = Span::from_s(60);
    let call = tokio::spawn(engine.run(&ns(), lease));
    let waiters = || server.must(&["KEYS", "tenure:{default}t[kq]:*"]).list().len();
    eventually("it waits", || waiters() > 0).await;
    call
}

/// The job that a waiting call is granted, soon after it was pushed.
async fn granted(call: JoinHandle<Result<Leased, CallError>>) -> String {
    let begin = Instant::now();
    let leased = call.await.expect("it ends").expect("it is answered").leases;
    assert!(begin.elapsed() < LATE, "{:?}", begin.elapsed());
    leased[0].job.as_ref().expect("a job").id.to_string()
}

/// A server alone, and a cluster of one node: what the commands begin with by which it publishes and listens.
async fn each(test: impl AsyncFn(&RedisServer, &str)) {
    if wanted() {
        test(&RedisServer::start(Aof::Off, &[]), "").await;
        test(RedisCluster::start(1).server(0), "s").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_that_is_denied_fails_no_call() {
    each(async |server, s| {
        let free = open(&server.url());
        let (mute, right) = (format!("-{s}publish"), format!("+{s}publish"));
        for (name, rules, mended) in
            [("nowhere", &["resetchannels"][..], "&*"), ("mute", &["&*", &mute], right.as_str())]
        {
            let quiet = open(&user(server, name, rules));
            let call = waits(server, &free).await;
            push(&quiet, name).await;
            assert_eq!(granted(call).await, name);
            // It is told with the channel, before and after the first call that met it.
            let is_told = |why: String| why.contains("tenure:{default}") && why.contains(&right);
            eventually("it is told", || quiet.notice().is_some_and(is_told)).await;
            assert!(quiet.health().degraded.is_none(), "it works");
            assert_eq!(free.notice(), None, "this one is permitted");
            server.must(&["ACL", "SETUSER", name, mended, "&*"]);
            eventually("it is permitted", || quiet.notice().is_none()).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_listen_finds_its_jobs_all_the_same() {
    each(async |server, s| {
        let free = open(&server.url());
        let deaf = open(&user(server, "deaf", &["&*", &format!("-{s}subscribe")]));
        let call = waits(server, &deaf).await;
        push(&free, "job").await;
        assert_eq!(granted(call).await, "job");
        let right = format!("+{s}subscribe");
        eventually("it is told", || deaf.notice().is_some_and(|why| why.contains(&right))).await;
    })
    .await;
}
