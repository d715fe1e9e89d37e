//! Calls that wait for a result when they cannot be registered, are not told, or their process has died.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::{JobState, NewJob, ResultView};
use tenure_core::names::JobRef;
use tenure_core::requests::{GetResult, GetStats};
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt as _};
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tokio::task::JoinHandle;

use crate::calls::*;
use crate::listening::{Store, listening};
use crate::proxy::{Passing, Proxy};

type Waiting = JoinHandle<Result<Box<ResultView>, CallError>>;

/// A second, and what a busy machine adds to it.
const A_LOOK: Duration = Duration::from_secs(3);

fn waits(engine: &Arc<RedisEngine>, id: &str, wait: Span) -> Waiting {
    let job = JobRef::parse(id).expect("an id");
    tokio::spawn(engine.run(&ns(), GetResult { job, wait }))
}
async fn registered(engine: &RedisEngine) -> u64 {
    ok(engine, GetStats).await.result_waiters
}
async fn answer(waiting: Waiting) -> ResultView {
    let answer = tokio::time::timeout(PROMPT, waiting).await.expect("it is answered");
    *answer.expect("it ends").expect("it is no fault")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_registers_nobody_and_answers_all_the_same() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &["--maxmemory-policy", "noeviction"]);
    let engine = open(&server.url());
    push(&engine, job("q", "a")).await;
    let lease = take(&engine, asks("q", "w", Span::from_s(60))).await.expect("a job");
    server.must(&["CONFIG", "SET", "maxmemory", "1"]);
    let waiting = waits(&engine, "a", Span::from_s(30));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!waiting.is_finished(), "it waits");
    assert_eq!(registered(&engine).await, 0);
    let ended = Instant::now();
    assert!(settle(&engine, &lease).await.ok);
    assert_eq!(answer(waiting).await.state, JobState::Succeeded);
    assert!(ended.elapsed() < A_LOOK, "{:?}", ended.elapsed());
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_come_costs_a_look() {
    for store in Store::each() {
        let server = store.node();
        let proxy = Proxy::to(server.port()).await;
        let (here, other) = (open(&proxy.url()), open(&server.url()));
        push(&other, job("q", "a")).await;
        let lease = take(&other, asks("q", "w", Span::from_s(60))).await.expect("a job");
        let waiting = waits(&here, "a", Span::from_s(30));
        eventually("it listens", async || listening(server) == 1).await;
        eventually("it is registered", async || registered(&other).await == 1).await;
        proxy.pass(Passing::NoMessages);
        let ended = Instant::now();
        assert!(settle(&other, &lease).await.ok);
        assert_eq!(answer(waiting).await.state, JobState::Succeeded);
        assert!(ended.elapsed() < A_LOOK, "{:?}", ended.elapsed());
        assert_eq!(registered(&other).await, 0);
        is_whole(&other).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_has_died_is_forgotten_after_its_waits() {
    for store in Store::each() {
        let server = store.node();
        let proxy = Proxy::to(server.port()).await;
        let (dead, other) = (open(&proxy.url()), open(&server.url()));
        push(&other, job("q", "a")).await;
        push(&other, NewJob { retain: Some(Span::ZERO), ..job("q", "b") }).await;
        let _a = waits(&dead, "a", Span::from_s(1));
        let _b = waits(&dead, "b", Span::from_s(1));
        eventually("they are registered", async || registered(&other).await == 2).await;
        proxy.pass(Passing::Nothing);
        proxy.cut();
        // It still counts as somebody who waits: what ends now is kept.
        let lease = take(&other, asks("q", "w", Span::from_s(60))).await.expect("a job");
        let lease = match name_of(&lease) {
            "b" => lease,
            _ => take(&other, asks("q", "v", Span::from_s(60))).await.expect("a job"),
        };
        assert!(settle(&other, &lease).await.ok);
        assert_eq!(see(&other, "b").await.state, JobState::Succeeded);
        assert_eq!(registered(&other).await, 1);
        eventually("the other is forgotten", async || registered(&other).await == 0).await;
        is_whole(&other).await;
    }
}

fn name_of(lease: &tenure_core::lease::LeaseView) -> &str {
    lease.job.as_ref().expect("a job").id.as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_for_a_moment_ends_no_wait() {
    for store in Store::each() {
        let server = store.node();
        let proxy = Proxy::to(server.port()).await;
        let (here, other) = (open(&proxy.url()), open(&server.url()));
        push(&other, job("q", "a")).await;
        let waiting = waits(&here, "a", Span::from_s(30));
        eventually("it is registered", async || registered(&other).await == 1).await;
        proxy.cut();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let lease = take(&other, asks("q", "w", Span::from_s(60))).await.expect("a job");
        assert!(settle(&other, &lease).await.ok);
        assert_eq!(answer(waiting).await.state, JobState::Succeeded);
    }
}
