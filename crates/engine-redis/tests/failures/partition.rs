//! A client that is cut off: its packets are dropped, no connection is closed.

use std::time::{Duration, Instant};

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::{Lease, ListWorkers, Page};
use tenure_core::time::Span;
use tenure_engine::{CallError, Engine as _, EngineExt as _, Fault};
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;
use crate::proxy::{Passing, Proxy};

const TTL: Span = Span::from_s(2);
/// No call waits longer for an answer that does not come.
const TOLD_WITHIN: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_is_told_so_and_loses_what_it_held_to_others() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Proxy::to(server.port()).await;
    let cut_off = open(&proxy.url());
    let other = open(&server.url());
    push(&cut_off, job("q", "a")).await;
    let held = take(&cut_off, asks("q", "cut-off", TTL)).await.expect("a job");
    let lock = take(&cut_off, locks("lock:deploy", "cut-off-too", TTL)).await.expect("the lock");
    // The other server is there as well, and ticks.
    push(&other, job("q", "b")).await;
    proxy.pass(Passing::Nothing);
    let cut = Instant::now();
    let call = cut_off.run(&ns(), extends(&held));
    let told = tokio::spawn(async move { (call.await, cut.elapsed()) });
    eventually("another gets the lock", async || {
        let worker = format!("w{}", cut.elapsed().as_nanos());
        take(&other, locks("lock:deploy", &worker, TTL)).await.is_some()
    })
    .await;
    // Not before its holder had stopped by its own clock, and soon after its ttl.
    assert!(cut.elapsed() > TTL.std() - Duration::from_millis(500), "{:?}", cut.elapsed());
    assert!(cut.elapsed() < TTL.std() + Duration::from_secs(3), "{:?}", cut.elapsed());
    let (answer, after) = told.await.expect("it ends");
    assert!(after < TOLD_WITHIN, "{after:?}");
    match answer {
        Err(CallError::Fault(Fault::Unknown(_) | Fault::Unavailable(_))) => {}
        answer => panic!("nothing can have been answered: {answer:?}"),
    }
    // It has more than one connection, and each is found dead in its own time.
    eventually("it says so", async || cut_off.health().degraded.is_some()).await;
    assert!(cut.elapsed() < TOLD_WITHIN, "{:?}", cut.elapsed());
    eventually("its job was taken back", async || {
        see(&other, "a").await.state != JobState::Running
    })
    .await;
    // It is back, and what it says of what it held comes too late.
    proxy.pass(Passing::All);
    assert!(!lives(&cut_off, &held).await);
    let late = settle(&cut_off, &lock).await;
    assert_eq!((late.ok, late.code), (false, Some(Code::LeaseLost)));
    eventually("it is well again", async || cut_off.health().degraded.is_none()).await;
    is_whole(&cut_off).await;
}

/// While a call waits it may be granted a job in anybody's step: who then hears nothing any more cannot say that nothing
/// happened.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_while_it_waits_does_not_know_what_it_was_granted() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let proxy = Proxy::to(server.port()).await;
    let cut_off = open(&proxy.url());
    let other = open(&server.url());
    let lease = Lease { wait: Span::from_s(50), ..asks("q", "cut-off", TTL) };
    let call = tokio::spawn({
        let engine = cut_off.clone();
        async move { engine.run(&ns(), lease).await }
    });
    eventually("it is heard of", async || {
        let page = Page { max: 100, cursor: None };
        !ok(&other, ListWorkers { page }).await.items.is_empty()
    })
    .await;
    // No connection is made any more, and those that were there end.
    proxy.pass(Passing::Nothing);
    proxy.cut();
    let answer =
        tokio::time::timeout(PROMPT, call).await.expect("it is answered").expect("it ends");
    assert!(matches!(answer, Err(CallError::Fault(Fault::Unknown(_)))), "{answer:?}");
}
