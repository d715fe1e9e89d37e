//! Calls that wait, by the clock of the server: what wakes them, how soon, and how few ask in vain.

#[path = "failures/listening.rs"]
mod listening;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::{JobState, Need, NewJob, When};
use tenure_core::lease::{Ending, Leased, SettleItem};
use tenure_core::names::{JobId, JobRef, LimitName, Namespace, QueueName, WorkerId};
use tenure_core::requests::{
    Ask, GetJob, Lease, ListWorkers, Page, Push, PushAnswer, Pushed, PutLimit, Settle,
};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, Rate};
use tenure_core::time::Span;
use tenure_engine::{CallError, Engine, EngineExt};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tokio::task::JoinHandle;

use crate::listening::{Store, listening, sent};

/// No wait of a test is longer.
const PROMPT: Duration = Duration::from_secs(20);

fn ns() -> Namespace {
    Namespace::main()
}
fn open(server: &RedisServer) -> Arc<RedisEngine> {
    open_at(&server.url())
}
fn open_at(url: &str) -> Arc<RedisEngine> {
    let address = Address::parse(url).expect("the address of the fixture is one");
    Arc::new(RedisEngine::open(Options::new(address)).expect("an engine can be opened"))
}
fn job(id: &str) -> NewJob {
    let queue = QueueName::parse("q").expect("a name");
    NewJob { id: Some(JobId::parse(id).expect("an id")), ..NewJob::new(queue) }
}
fn succeeded() -> Ending {
    Ending::Succeeded { result: None }
}
async fn push(engine: &RedisEngine, jobs: Vec<NewJob>) {
    let pushed = engine.run(&ns(), Push { jobs, answer: PushAnswer::Ids }).await;
    pushed.expect("the jobs are stored");
}
fn asks(worker: &str, wait: Span) -> Lease {
    let mut lease = Lease::jobs(vec![QueueName::parse("q").expect("a name")], 1);
    lease.worker.id = Some(WorkerId::parse(worker).expect("an id"));
    lease.wait = wait;
    lease
}
/// How many workers were heard of.
async fn workers(engine: &RedisEngine) -> usize {
    let page = Page { max: 1_000, cursor: None };
    engine.run(&ns(), ListWorkers { page }).await.expect("workers are listed").items.len()
}
type Waiting = JoinHandle<Result<Leased, CallError>>;

/// Starts a call that waits, and returns when the server has heard of it.
async fn waiting(engine: &RedisEngine, worker: &str, wait: Span) -> Waiting {
    let call = tokio::spawn(engine.run(&ns(), asks(worker, wait)));
    eventually("it is heard of", async || {
        let page = Page { max: 1_000, cursor: None };
        let workers = engine.run(&ns(), ListWorkers { page }).await.expect("workers are listed");
        workers.items.iter().any(|one| one.id.as_str() == worker)
    })
    .await;
    call
}
/// Returns when notifications come to this process. When they begin, every call that waits asks once more.
async fn hears(server: &RedisServer, engine: &RedisEngine) {
    let before = listening(server);
    let call = waiting(engine, &format!("first-{before}"), Span::from_s(30)).await;
    eventually("it has subscribed", async || listening(server) > before).await;
    push(engine, vec![job(&format!("first-{before}"))]).await;
    assert_eq!(answer(call).await.leases.len(), 1);
}
async fn eventually(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !so().await {
        assert!(begin.elapsed() < PROMPT, "this never was so: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
async fn answer(call: Waiting) -> Leased {
    let answer = tokio::time::timeout(PROMPT, call).await.expect("it is answered");
    answer.expect("it ends").expect("it is no fault")
}
fn id_of(leased: &Leased) -> Option<&str> {
    Some(leased.leases.first()?.job.as_ref()?.id.as_str())
}
/// How often a function was called since the server's statistics were reset.
fn calls(server: &RedisServer, command: &str) -> u64 {
    let stats = server.ask(&["INFO", "commandstats"]).expect("statistics");
    let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    let calls = line.and_then(|line| line.split("calls=").nth(1)?.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_by_another_process_wakes_a_waiting_call_at_once() {
    for store in Store::each() {
        let (here, there) = (open_at(&store.url()), open_at(&store.url()));
        let mut best = Duration::MAX;
        for n in 0..10 {
            let call = waiting(&here, &format!("w{n}"), Span::from_s(30)).await;
            let begin = Instant::now();
            push(&there, vec![job(&format!("j{n}"))]).await;
            let leased = answer(call).await;
            best = best.min(begin.elapsed());
            assert_eq!(id_of(&leased), Some(format!("j{n}").as_str()));
        }
        // Others build beside this test: the best of them tells an event from a poll.
        assert!(best < Duration::from_millis(20), "{best:?}");
    }
}

/// Which jobs of an array run already is in its answer, however they are stored and granted: in rows and in a block, one
/// by one and together, without needs and with a limit.
#[tokio::test(flavor = "multi_thread")]
async fn an_array_shows_which_of_its_jobs_a_waiting_call_was_granted() {
    for store in Store::each() {
        let engine = open_at(&store.url());
        let limit = LimitName::parse("one").expect("a name");
        let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
        let put = PutLimit { limit: limit.clone(), settings, gauge: None };
        engine.run(&ns(), put).await.expect("the limit is set");
        let need = Need::Limit { limit, weight: 1, cost: 1 };
        let heard = waiting(&engine, "first", Span::from_s(30)).await;
        eventually("it has subscribed", async || listening(store.node()) > 0).await;
        push(&engine, vec![job("first")]).await;
        answer(heard).await;
        for (case, (many, most, needs, run, priorities)) in [
            (3, 2, vec![], 2, 1),
            (20, 2, vec![], 2, 1),
            (20, 10, vec![], 10, 1),
            (300, 280, vec![], 280, 1),
            (20, 10, vec![need.clone()], 1, 1),
            (20, 10, vec![], 10, 2),
            (20, 3, vec![], 3, 20),
            (20, 10, vec![need], 1, 2),
        ]
        .into_iter()
        .enumerate()
        {
            let queue = QueueName::parse(&format!("q{case}")).expect("a name");
            let asks = Lease {
                ask: Ask::Jobs { queues: vec![queue.clone()], max: most },
                ..asks(&format!("w{case}"), Span::from_s(30))
            };
            let call = tokio::spawn(engine.run(&ns(), asks));
            eventually("it waits", async || workers(&engine).await == case + 2).await;
            let jobs = (0..many).map(|n| NewJob {
                queue: queue.clone(),
                needs: Some(needs.clone()),
                // The first of them are the highest.
                priority: -i8::try_from(n / (many / priorities)).expect("a priority"),
                ..job(&format!("{case}-{n}"))
            });
            let push = Push { jobs: jobs.collect(), answer: PushAnswer::Whole };
            let Pushed::Whole(pushed) = engine.run(&ns(), push).await.expect("it is stored") else {
                panic!("jobs were asked for");
            };
            let leases = answer(call).await.leases;
            assert_eq!(leases.len(), run);
            for (n, pushed) in pushed.into_iter().enumerate() {
                let id = JobRef::Id(pushed.job.id.clone());
                let there = engine.run(&ns(), GetJob { job: id }).await.expect("it is there");
                assert_eq!(pushed.job, *there);
                assert_eq!(there.state == JobState::Running, n < run, "{case}: {n}");
            }
            let done = leases.iter().filter_map(|lease| lease.lease.clone());
            let settle = done.map(|lease| SettleItem::new(lease, succeeded())).collect();
            let settled = engine.run(&ns(), Settle { settle, lease: None }).await;
            settled.expect("they are settled");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_handed_out_when_it_is_due_whoever_pushed_it() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let (here, there) = (open(&server), open(&server));
    let mut best = Duration::MAX;
    for n in 0..5 {
        let call = waiting(&here, &format!("w{n}"), Span::from_s(30)).await;
        let begin = Instant::now();
        let delayed = NewJob { when: When::In(Span::from_ms(400)), ..job(&format!("j{n}")) };
        push(&there, vec![delayed]).await;
        answer(call).await;
        let took = begin.elapsed();
        assert!(took >= Duration::from_millis(395), "{took:?} is too early");
        best = best.min(took);
    }
    drop(there);
    assert!(best < Duration::from_millis(470), "{best:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_push_is_granted_to_those_who_have_waited_longest() {
    for store in Store::each() {
        let server = store.node();
        // A hundred nodes on five connections; who pushes is one more.
        let (engine, nodes) = (open_at(&store.url()), [(); 5].map(|()| open_at(&store.url())));
        for node in &nodes {
            hears(server, node).await;
        }
        let mut calls_waiting = Vec::new();
        for n in 0..100 {
            let node = &nodes[n % nodes.len()];
            calls_waiting.push(waiting(node, &format!("w{n}"), Span::from_s(60)).await);
        }
        // Ticks go on meanwhile; leases are what is counted.
        let of_queue = |n: usize| (0..n).map(|n| job(&format!("j{n}"))).collect::<Vec<_>>();
        server.must(&["CONFIG", "RESETSTAT"]);
        let (begin, before) = (Instant::now(), sent(server));
        push(&engine, of_queue(10)).await;
        eventually("ten are answered", async || {
            calls_waiting.iter().filter(|call| call.is_finished()).count() == 10
        })
        .await;
        let ticks = 4 * 6 * (begin.elapsed().as_millis() as u64 / 300 + 2);
        let all = calls(server, "fcall");
        // The push grants all ten, each to one: nobody asks.
        assert!(all <= 1 + ticks, "{all} calls for one push of ten jobs");
        assert_eq!(sent(server) - before, 10);
        assert!(
            calls_waiting[..10].iter().all(JoinHandle::is_finished),
            "in the order in which they came"
        );
        assert_eq!(calls_waiting.iter().filter(|call| call.is_finished()).count(), 10);
        nodes.iter().for_each(|node| node.drain());
        let mut with = 0;
        for call in calls_waiting {
            with += answer(call).await.leases.len();
        }
        assert_eq!(with, 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_shared_among_those_who_wait() {
    for store in Store::each() {
        let server = store.node();
        let (engine, here) = (open_at(&store.url()), open_at(&store.url()));
        hears(server, &here).await;
        let heard_of = workers(&here).await;
        let mut calls_waiting = Vec::new();
        for n in 0..4 {
            let mut lease = asks(&format!("w{n}"), Span::from_s(60));
            lease.ask = Lease::jobs(vec![QueueName::parse("q").expect("a name")], 100).ask;
            calls_waiting.push(tokio::spawn(here.run(&ns(), lease)));
            eventually("it is heard of", async || workers(&here).await == heard_of + n + 1).await;
        }
        push(&engine, (0..18).map(|n| job(&format!("j{n}"))).collect()).await;
        let mut shares = Vec::new();
        for call in calls_waiting {
            shares.push(answer(call).await.leases.len());
        }
        assert_eq!(shares, [5, 5, 4, 4], "rounded up, of what is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_for_a_message_is_fetched() {
    for store in Store::each() {
        let (here, there) = (open_at(&store.url()), open_at(&store.url()));
        let call = waiting(&here, "w", Span::from_s(60)).await;
        let payload = Json::of(&"x".repeat(100_000)).expect("it is JSON");
        push(&there, vec![NewJob { payload: payload.clone(), ..job("long") }]).await;
        let leased = answer(call).await;
        let seen = leased.leases[0].job.as_ref().expect("a job");
        assert_eq!((seen.id.as_str(), seen.attempt), ("long", 1));
        assert_eq!(seen.payload.as_ref().map(Json::text), Some(payload.text()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_costs_nothing_if_nobody_begins_it_is_granted_unasked() {
    for store in Store::each() {
        let server = store.node();
        let (here, there) = (open_at(&store.url()), open_at(&store.url()));
        hears(server, &here).await;
        let rate = Some(Rate { count: 100, per: Span::from_s(1), burst: 100 });
        let (concurrency, gap) = (Some(9), Some(Span::from_ms(1)));
        let of = LimitSettings::default();
        let rows = [
            ("counts", LimitSettings { concurrency, ..of }, 1),
            ("rate", LimitSettings { rate, ..of }, 0),
            ("gap", LimitSettings { concurrency, gap, ..of }, 0),
            ("quarantine", LimitSettings { concurrency, quarantine: Span::from_ms(1), ..of }, 0),
        ];
        for (name, settings, parcels) in rows {
            let limit = LimitName::parse(name).expect("a name");
            let set = PutLimit { limit: limit.clone(), settings, gauge: None };
            here.run(&ns(), set).await.expect("it is set");
            let before = sent(server);
            let call = waiting(&here, name, Span::from_s(60)).await;
            let needs = vec![Need::Limit { limit, weight: 1, cost: 1 }];
            push(&there, vec![NewJob { needs: Some(needs), ..job(name) }]).await;
            assert_eq!(id_of(&answer(call).await), Some(name));
            assert_eq!(sent(server) - before, parcels, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_its_time_and_a_drain_ends_it_at_once() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server);
    let begin = Instant::now();
    let leased = engine.run(&ns(), asks("a", Span::from_ms(300))).await.expect("it is answered");
    assert!(leased.leases.is_empty());
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(295) && took < Duration::from_secs(5), "{took:?}");
    let call = waiting(&engine, "b", Span::from_s(60)).await;
    engine.drain();
    assert!(answer(call).await.leases.is_empty());
    let no = engine.run(&ns(), asks("c", Span::ZERO)).await.expect_err("it drains");
    assert_eq!(no.code(), Some(tenure_core::refusal::Code::Draining));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_holds_nothing() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server);
    for n in 0..20 {
        let id = format!("j{n}");
        let call = waiting(&engine, &format!("gone{n}"), Span::from_s(60)).await;
        // Gone at about the moment at which it is granted.
        push(&engine, vec![job(&id)]).await;
        call.abort();
        let gone = call.await;
        let (settled, taken) = match gone {
            Ok(Ok(leased)) => (leased.leases.into_iter().next(), true),
            _ => (None, false),
        };
        let lease = match settled {
            Some(lease) => lease,
            None => {
                let leased = engine.run(&ns(), asks("stays", Span::from_s(5))).await;
                let leased = leased.expect("it is answered");
                leased.leases.into_iter().next().expect("what was undone is granted again")
            }
        };
        let seen = engine
            .run(&ns(), GetJob { job: tenure_core::names::JobRef::parse(&id).expect("a ref") });
        let seen = seen.await.expect("it is there");
        assert_eq!((seen.attempt, seen.lost), (1, 0), "{taken}");
        let settle =
            Settle::of(vec![SettleItem::new(lease.lease.expect("it has an id"), succeeded())]);
        assert!(engine.run(&ns(), settle).await.expect("it is settled").settled[0].ok);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_go_together_leave_in_few_calls() {
    const MANY: u64 = 500;
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server);
    hears(&server, &engine).await;
    let waits = || server.must(&["ZCARD", "tenure:{default}wt"]).text().parse().unwrap_or(0u64);
    let call = |n| tokio::spawn(engine.run(&ns(), asks(&format!("w{n}"), Span::from_s(60))));
    let crowd: Vec<_> = (0..MANY).map(call).collect();
    eventually("all wait", async || waits() == MANY).await;
    server.must(&["CONFIG", "RESETSTAT"]);
    // It answers the first of them when all are gone.
    server.must(&["CLIENT", "PAUSE", "500"]);
    for call in crowd {
        call.abort();
    }
    eventually("none of them waits", async || waits() == 0).await;
    // Ticks among them.
    let told = calls(&server, "fcall");
    assert!(told < MANY / 10, "{told} calls");
    push(&engine, vec![job("j")]).await;
    let next = engine.run(&ns(), asks("next", Span::ZERO)).await.expect("it is answered");
    assert_eq!(id_of(&next), Some("j"), "and nothing is granted to them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_finds_its_waiters() {
    if !wanted() {
        return;
    }
    let mut server = RedisServer::start(Aof::Always, &[]);
    let engine = open(&server);
    push(&engine, vec![job("before")]).await;
    let limit = LimitName::parse("l").expect("a name");
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    engine.run(&ns(), PutLimit { limit, settings, gauge: None }).await.expect("it is set");
    server.kill();
    eventually("it is seen to be down", async || engine.health().degraded.is_some()).await;
    let lost = engine.run(&ns(), asks("a", Span::ZERO)).await;
    assert!(lost.is_err(), "nothing is answered: {lost:?}");
    server.restart();
    eventually("it is well again", async || engine.health().degraded.is_none()).await;
    let call = tokio::spawn(engine.run(&ns(), asks("b", Span::from_s(15))));
    assert_eq!(id_of(&answer(call).await), Some("before"));
}
