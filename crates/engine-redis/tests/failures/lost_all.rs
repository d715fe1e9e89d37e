//! A store that lost everything, and processes that remember different things of it: its key, a ttl, or
//! nothing. Whoever of them comes first, what the others know is learnt.

use std::sync::Arc;

use tenure_core::lease::LeaseView;
use tenure_core::requests::{GetStats, ListLeases};
use tenure_core::time::Span;
use tenure_engine::Engine as _;
use tenure_engine_redis::RedisEngine;

use crate::calls::*;
use crate::reclaim::{Store, another, limit, lock, set};

pub const TTL: Span = Span::from_s(30);
pub const HOUR: Span = Span::from_s(3_600);

/// A process that uses the namespace and knows its key, and never asked for a lease.
pub async fn onlooker(store: &Store) -> Arc<RedisEngine> {
    let engine = another(&store.server);
    looks(&engine, store).await;
    engine
}

/// What it does: a tick, a push, a look at the leases, for which it needs the key.
pub async fn looks(engine: &RedisEngine, store: &Store) {
    set(engine, &store.clock).await;
    push(engine, job("looked", "looked")).await;
    ok(engine, ListLeases::default()).await;
}

/// A process that knows nothing.
pub async fn newcomer(store: &Store) -> Arc<RedisEngine> {
    let engine = another(&store.server);
    set(&engine, &store.clock).await;
    engine
}

pub async fn long_lock(engine: &RedisEngine, name: &str, worker: &str) -> LeaseView {
    take(engine, locks(name, worker, HOUR)).await.expect("a lock")
}

/// All is lost, and the onlooker comes first.
async fn lose_all(store: &mut Store, onlooker: &RedisEngine) {
    store.restart();
    looks(onlooker, store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_knows_the_key_alone_and_comes_first_hides_no_loss() {
    let Some(mut store) = Store::start().await else { return };
    let held = long_lock(&store.engine, "lock:deploy", "holder").await;
    let silent = long_lock(&store.engine, "lock:other", "silent").await;
    let first = onlooker(&store).await;
    lose_all(&mut store, &first).await;
    // Now the process that knows the ttl says anything at all.
    store.pass(Span::from_ms(1)).await;
    let (engine, new) = (store.engine.clone(), newcomer(&store).await);
    assert!(lock(&new, "lock:deploy", "early").await.is_none(), "it was told");
    assert!(lives(&engine, &held).await, "the key is the same, and his id tells what he holds");
    assert!(lives(&new, &held).await, "whomever he asks");
    store.leap(Span::from_s(3_000)).await;
    assert!(lives(&engine, &held).await);
    for name in ["lock:deploy", "lock:other"] {
        assert!(lock(&new, name, &format!("{name}-early")).await.is_none(), "{name}");
    }
    store.leap(Span::from_s(599)).await;
    assert!(lock(&new, "lock:other", "just-before").await.is_none());
    store.pass(Span::from_s(2)).await;
    assert!(lock(&new, "lock:other", "next").await.is_some(), "its holder was silent");
    assert!(lock(&new, "lock:deploy", "late").await.is_none(), "this one is held");
    assert!(!lives(&engine, &silent).await, "he comes after learning");
    assert!(settle(&engine, &held).await.ok);
    assert!(lock(&new, "lock:deploy", "next-deploy").await.is_some());
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_knows_of_the_loss_and_of_no_ttl_makes_it_learn_for_the_usual_one() {
    let Some(mut store) = Store::start().await else { return };
    let held = lock(&store.engine, "lock:deploy", "holder").await.expect("the lock");
    let first = onlooker(&store).await;
    lose_all(&mut store, &first).await;
    let new = newcomer(&store).await;
    assert!(lock(&new, "lock:deploy", "early").await.is_none(), "nobody else has said anything");
    assert!(lives(&new, &held).await);
    store.pass(TTL).await;
    assert!(lock(&new, "lock:other", "free").await.is_some(), "it has learnt");
    is_whole(&new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_pushes_at_first_tells_it_with_the_next_call_that_can() {
    let Some(mut store) = Store::start().await else { return };
    long_lock(&store.engine, "lock:deploy", "holder").await;
    let first = onlooker(&store).await;
    lose_all(&mut store, &first).await;
    let engine = store.engine.clone();
    push(&engine, job("q", "a")).await;
    ok(&engine, GetStats).await;
    store.leap(Span::from_s(100)).await;
    assert!(lock(&engine, "lock:deploy", "early").await.is_none());
    let new = newcomer(&store).await;
    assert!(lock(&new, "lock:deploy", "early-too").await.is_none());
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tells_its_own_longest_ttl_and_the_longest_of_all_is_learnt() {
    let Some(mut store) = Store::start().await else { return };
    let short = lock(&store.engine, "lock:short", "short").await.expect("a lock");
    let other = newcomer(&store).await;
    let long = long_lock(&other, "lock:long", "long").await;
    store.restart();
    // The one with the shorter memory is first.
    store.pass(Span::from_ms(1)).await;
    let engine = store.engine.clone();
    assert!(lives(&engine, &short).await);
    assert!(settle(&engine, &short).await.ok);
    assert!(lock(&engine, "lock:short", "early").await.is_none());
    set(&other, &store.clock).await;
    store.pass(Span::from_s(31)).await;
    assert!(lock(&engine, "lock:long", "early-too").await.is_none(), "it learns for an hour");
    assert!(!lives(&engine, &short).await, "what ended while it learns is remembered until then");
    assert!(lives(&other, &long).await);
    store.leap(Span::from_s(3_569)).await;
    assert!(lives(&other, &long).await);
    // Neither makes it learn again.
    store.pass(Span::from_s(1)).await;
    set(&other, &store.clock).await;
    assert!(lock(&engine, "lock:short", "next").await.is_some());
    assert!(lock(&engine, "lock:long", "late").await.is_none());
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_when_it_has_learnt_once_makes_it_learn_again_and_claims_nothing() {
    let Some(mut store) = Store::start().await else { return };
    let ended = lock(&store.engine, "lock:short", "short").await.expect("a lock");
    let other = newcomer(&store).await;
    let long = long_lock(&other, "lock:long", "long").await;
    store.restart();
    store.pass(Span::from_ms(1)).await;
    let engine = store.engine.clone();
    assert!(lives(&engine, &ended).await);
    // It learns, the lock is given back, and that is forgotten again.
    assert!(settle(&engine, &ended).await.ok);
    store.pass(Span::from_s(100)).await;
    let free = lock(&engine, "lock:free", "free").await.expect("it has learnt");
    set(&other, &store.clock).await;
    assert!(lock(&engine, "lock:long", "early").await.is_none(), "it was told of an hour");
    for (lease, who) in [(&ended, &engine), (&long, &other)] {
        // Which of the two ended is not remembered.
        assert!(!lives(who, lease).await);
    }
    assert!(lives(&engine, &free).await);
    store.leap(Span::from_s(3_400)).await;
    assert!(lock(&engine, "lock:long", "early-too").await.is_none());
    assert!(lives(&engine, &free).await);
    store.leap(Span::from_s(150)).await;
    assert!(lock(&engine, "lock:long", "next").await.is_some());
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_when_all_that_it_knew_is_over_makes_nothing_learn() {
    let Some(mut store) = Store::start().await else { return };
    lock(&store.engine, "lock:deploy", "holder").await.expect("the lock");
    let first = onlooker(&store).await;
    lose_all(&mut store, &first).await;
    let away = std::mem::replace(&mut store.engine, first);
    store.pass(Span::from_s(61)).await;
    set(&away, &store.clock).await;
    let engine = store.engine.clone();
    assert!(
        lock(&engine, "lock:deploy", "next").await.is_some(),
        "its holder has stopped long ago"
    );
    assert_eq!(away.notice(), None);
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_granted_since_the_loss_stands_and_what_it_ended_is_not_claimed() {
    let Some(mut store) = Store::start().await else { return };
    let old = long_lock(&store.engine, "lock:old", "old").await;
    let taken = long_lock(&store.engine, "lock:taken", "taken").await;
    store.restart();
    let new = newcomer(&store).await;
    let mut ended = Vec::new();
    for n in 0..3 {
        let lease =
            lock(&new, &format!("lock:{n}"), &format!("new{n}")).await.expect("it knows of nobody");
        assert!(settle(&new, &lease).await.ok);
        ended.push(lease);
    }
    push(&new, job("q", "free")).await;
    let free = take(&new, asks("q", "free", TTL)).await.expect("a job");
    let other = lock(&new, "lock:taken", "other").await.expect("nobody has told anything yet");
    store.pass(Span::from_ms(1)).await;
    let engine = store.engine.clone();
    assert!(lock(&new, "lock:old", "early").await.is_none(), "it was told");
    assert!(old.fence < free.fence, "fences follow the clock");
    // The newcomer knew no key, and made a new one.
    assert!(!lives(&engine, &old).await && !lives(&engine, &taken).await);
    for lease in [&free, &other] {
        assert!(lives(&engine, lease).await, "what was granted since stands");
    }
    for lease in &ended {
        assert!(!lives(&engine, lease).await, "what ended is not made again");
    }
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_before_is_claimed_after_grants_that_were_made_since() {
    let Some(mut store) = Store::start().await else { return };
    let old = long_lock(&store.engine, "lock:old", "old").await;
    let silent = long_lock(&store.engine, "lock:silent", "silent").await;
    let first = onlooker(&store).await;
    lose_all(&mut store, &first).await;
    store.pass(Span::from_ms(1)).await;
    // While it learns, what needs nothing exclusive is granted, with higher fences, and ends.
    let engine = store.engine.clone();
    let mut since = Vec::new();
    for id in ["a", "b"] {
        push(&engine, job("q", id)).await;
        since.push(take(&engine, asks("q", id, TTL)).await.expect("a job"));
    }
    assert!(settle(&engine, &since[0]).await.ok);
    assert!(old.fence < since[0].fence, "fences follow the clock");
    assert!(lives(&engine, &old).await, "it is of before the loss");
    assert!(lives(&engine, &since[1]).await);
    // Said of the first one that was settled: its end is remembered with its job.
    assert!(!lives(&engine, &since[0]).await);
    assert_eq!(limit(&engine, "lock:old").await.holders[0].lease, name(&old));
    let next = take(&engine, asks("looked", "next", TTL)).await.expect("a job");
    assert!(next.fence > old.fence && next.fence > since[1].fence, "fences go on");
    assert!(lives(&engine, &silent).await);
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_new_store_s_clock_is_behind_leases_of_before_are_claimed_too() {
    let Some(mut store) = Store::start().await else { return };
    store.leap(Span::from_s(500)).await;
    let old = long_lock(&store.engine, "lock:old", "old").await;
    let first = onlooker(&store).await;
    // Another machine, whose clock is five minutes behind.
    store.clock.step_back(Span::from_s(300));
    store.restart();
    looks(&first, &store).await;
    push(&first, job("q", "a")).await;
    let low = take(&first, asks("q", "a", TTL)).await.expect("a job");
    assert!(low.fence < old.fence, "its fence follows the new clock");
    store.pass(Span::from_ms(1)).await;
    let engine = store.engine.clone();
    assert!(lives(&engine, &old).await);
    push(&engine, job("q", "b")).await;
    let next = take(&engine, asks("q", "b", TTL)).await.expect("a job");
    assert!(next.fence > old.fence, "fences go on above what was claimed");
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_second_after_the_loss_of_the_last_writes_tells_what_it_knows_too() {
    let Some(mut store) = Store::start().await else { return };
    let first = onlooker(&store).await;
    store.save();
    store.pass(Span::from_s(1)).await;
    let held = long_lock(&store.engine, "lock:deploy", "holder").await;
    store.restart();
    looks(&first, &store).await;
    let ended = lock(&first, "lock:ended", "ended").await.expect("nobody has told anything yet");
    let other = lock(&first, "lock:other", "other").await.expect("nobody has told anything yet");
    assert!(settle(&first, &ended).await.ok);
    store.pass(Span::from_ms(1)).await;
    let engine = store.engine.clone();
    assert!(lock(&first, "lock:deploy", "early").await.is_none(), "it was told");
    assert!(lives(&engine, &held).await, "his grant was forgotten, and those since were not");
    assert!(lives(&engine, &other).await);
    assert!(!lives(&engine, &ended).await, "what ended is not made again");
    store.leap(Span::from_s(3_500)).await;
    assert!(lock(&first, "lock:new", "early-too").await.is_none());
    assert!(lives(&engine, &held).await);
    store.leap(Span::from_s(101)).await;
    assert!(lock(&first, "lock:new", "new").await.is_some());
    assert!(lock(&first, "lock:deploy", "late").await.is_none(), "it is held");
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_whose_process_died_with_the_store_proves_the_loss_himself() {
    let Some(mut store) = Store::start().await else { return };
    let held = long_lock(&store.engine, "lock:deploy", "holder").await;
    let first = onlooker(&store).await;
    lose_all(&mut store, &first).await;
    // Who granted it is gone. The guess of the onlooker is over, and the holder is late.
    store.engine = first;
    store.leap(Span::from_s(100)).await;
    let engine = store.engine.clone();
    let other = lock(&engine, "lock:other", "other").await.expect("it has learnt what it could");
    assert!(!lives(&engine, &held).await, "after learning nothing is claimed");
    assert!(lock(&engine, "lock:deploy", "early").await.is_none(), "but he may be at it still");
    assert!(lives(&engine, &other).await);
    store.leap(Span::from_s(3_510)).await;
    assert!(lock(&engine, "lock:deploy", "next").await.is_some());
    assert!(!lives(&engine, &held).await, "and now he is not");
    assert!(lock(&engine, "lock:more", "more").await.is_some());
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_alone_makes_an_ignorant_store_learn_and_is_claimed_by() {
    let Some(mut store) = Store::start().await else { return };
    let held = long_lock(&store.engine, "lock:deploy", "holder").await;
    let settled = long_lock(&store.engine, "lock:settled", "settled").await;
    let key = store.server.must(&["HMGET", "tenure:{default}m", "key", "kid"]);
    let key: Vec<_> = key.list().iter().map(|part| part.text()).collect();
    store.restart();
    // As if who knows the key had been here, and was told of no loss.
    store.server.must(&["HSET", "tenure:{default}m", "key", &key[0], "kid", &key[1]]);
    store.engine = newcomer(&store).await;
    let engine = store.engine.clone();
    let other = lock(&engine, "lock:other", "other").await.expect("it knows of nobody");
    let ended = lock(&engine, "lock:ended", "ended").await.expect("it knows of nobody");
    assert!(settle(&engine, &ended).await.ok);
    assert!(lives(&engine, &held).await, "an id of before its birth is proof enough");
    assert!(!lives(&engine, &ended).await, "what was granted since and ended is not made again");
    assert!(settle(&engine, &settled).await.ok, "of a settle too");
    assert!(lives(&engine, &other).await);
    assert!(lock(&engine, "lock:deploy", "early").await.is_none());
    is_whole(&engine).await;
}
