//! What a call is granted while it waits is sent to its process: what becomes of it when the message does not come, and
//! when nobody is there any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::JobState;
use tenure_core::lease::Leased;
use tenure_core::requests::{Lease, ListWorkers, Page};
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt as _};
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::RedisServer;
use tokio::task::JoinHandle;

use crate::calls::*;
use crate::listening::{Store, listening, sent};
use crate::proxy::{Passing, Proxy};

/// Far longer than any of it takes.
const TTL: Span = Span::from_s(60);

/// Starts a call that waits, and returns when the store has heard of it.
pub async fn waits(
    engine: &Arc<RedisEngine>,
    worker: &str,
    ttl: Span,
) -> JoinHandle<Result<Leased, CallError>> {
    let lease = Lease { wait: Span::from_s(50), ..asks("q", worker, ttl) };
    let call = tokio::spawn(engine.run(&ns(), lease));
    eventually("it is heard of", async || {
        let page = Page { max: 100, cursor: None };
        let workers = ok(engine, ListWorkers { page }).await.items;
        workers.iter().any(|one| one.id.as_str() == worker)
    })
    .await;
    call
}

pub async fn granted(call: JoinHandle<Result<Leased, CallError>>) -> String {
    let answer = tokio::time::timeout(PROMPT, call).await.expect("it is answered");
    let leased = answer.expect("it ends").expect("it is no fault");
    leased.leases[0].job.as_ref().expect("a job").id.to_string()
}

/// Returns when this many processes listen.
async fn listen(server: &RedisServer, many: usize) {
    eventually("they listen", async || listening(server) == many).await;
}

/// The port of the one connection that listens.
fn listening_port(server: &RedisServer) -> u16 {
    let list = server.must(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
    let addresses = list.split(' ').find_map(|word| word.strip_prefix("addr=127.0.0.1:"));
    addresses.and_then(|port| port.parse().ok()).expect("somebody listens")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_come_costs_a_moment() {
    for store in Store::each() {
        let server = store.node();
        let proxy = Proxy::to(server.port()).await;
        let here = open(&proxy.url());
        let call = waits(&here, "w", TTL).await;
        listen(server, 1).await;
        proxy.pass(Passing::NoMessages);
        let other = open(&server.url());
        let begin = Instant::now();
        push(&other, job("q", "a")).await;
        assert_eq!(see(&other, "a").await.state, JobState::Running, "it was granted in that step");
        assert_eq!(sent(server), 1);
        assert_eq!(granted(call).await, "a");
        // A tick of the process tells it, once a second.
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        let seen = see(&other, "a").await;
        assert_eq!((seen.attempt, seen.lost, seen.errors.len()), (1, 0, 0));
        is_whole(&other).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_has_ended_is_granted_nothing() {
    for store in Store::each() {
        let server = store.node();
        let proxy = Proxy::to(server.port()).await;
        let (dead, other) = (open(&proxy.url()), open(&server.url()));
        let _first = waits(&dead, "dead", TTL).await;
        let next = waits(&other, "next", TTL).await;
        listen(server, 2).await;
        proxy.pass(Passing::Nothing);
        proxy.cut();
        eventually("the server has seen it", async || {
            server.must(&["CLIENT", "LIST", "TYPE", "pubsub"]).text().lines().count() == 1
        })
        .await;
        push(&other, job("q", "a")).await;
        assert_eq!(granted(next).await, "a");
        assert_eq!(see(&other, "a").await.lost, 0);
        is_whole(&other).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stands_still_keeps_a_job_for_one_ttl() {
    for store in Store::each() {
        let ttl = Span::from_s(2);
        let server = store.node();
        let proxy = Proxy::to(server.port()).await;
        let (still, other) = (open(&proxy.url()), open(&server.url()));
        let _first = waits(&still, "still", ttl).await;
        listen(server, 1).await;
        proxy.pass(Passing::Nothing);
        let begin = Instant::now();
        push(&other, job("q", "a")).await;
        assert_eq!(see(&other, "a").await.state, JobState::Running);
        let next = waits(&other, "next", TTL).await;
        assert_eq!(granted(next).await, "a");
        assert!(begin.elapsed() >= ttl.std() - Duration::from_millis(100), "{:?}", begin.elapsed());
        is_whole(&other).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_too_late_for_its_caller_is_given_back() {
    for store in Store::each() {
        let server = store.node();
        let proxy = Proxy::to(server.port()).await;
        let here = open(&proxy.url());
        let call = waits(&here, "gone", TTL).await;
        listen(server, 1).await;
        // The caller goes while what it was granted is on its way.
        proxy.pass(Passing::AllBut(listening_port(server)));
        let other = open(&server.url());
        push(&other, job("q", "a")).await;
        assert_eq!(see(&other, "a").await.state, JobState::Running);
        call.abort();
        let next = waits(&other, "next", TTL).await;
        assert_eq!(granted(next).await, "a");
        let seen = see(&other, "a").await;
        assert_eq!((seen.attempt, seen.lost, seen.errors.len()), (1, 0, 0), "it counts nowhere");
        is_whole(&other).await;
    }
}
