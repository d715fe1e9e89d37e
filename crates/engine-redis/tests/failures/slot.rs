//! A slot that moves to another node while calls run, and a namespace that is frozen meanwhile.

use std::collections::BTreeSet;

use tenure_core::job::JobState;
use tenure_core::requests::{GetStats, Operation};
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt as _, Fault};
use tenure_engine_redis::RedisEngine;
use tenure_engine_redis::link::Address;
use tenure_testkit::redis::{RedisCluster, RedisServer, wanted};

use crate::calls::*;

const TTL: Span = Span::from_s(60);

fn keys_of(server: &RedisServer) -> Vec<String> {
    let found = server.must(&["KEYS", "*"]);
    let keys: BTreeSet<_> = found.list().iter().map(|key| key.text()).collect();
    keys.into_iter().collect()
}

/// A call in the middle of a move: it is answered, or nothing of it happened.
async fn one<O: Operation>(engine: &RedisEngine, request: O) -> Option<O::Reply> {
    match engine.run(&ns(), request).await {
        Ok(reply) => Some(reply),
        Err(CallError::Fault(Fault::Unavailable(_))) => None,
        Err(why) => panic!("{} in a slot that moves: {why}", O::NAME),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_while_calls_run_tears_nothing_apart() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start(2);
    let engine = open(&cluster.url());
    let meta = Address::parse(&cluster.url()).expect("an address").key("default", "m");
    let slot = cluster.slot_of(&meta);
    type Half = fn(usize, bool) -> bool;
    let halves: [(&str, Half); 4] = [
        ("the meta alone", |_, is_meta| is_meta),
        ("all but the meta", |_, is_meta| !is_meta),
        ("every other key", |n, _| n % 2 == 0),
        ("the others", |n, _| n % 2 == 1),
    ];
    for (round, (what, half)) in halves.into_iter().enumerate() {
        let id = |name: &str| format!("{name}-{round}");
        for n in 0..40 {
            push(&engine, job("q", &id(&format!("j{n}")))).await;
        }
        let a = take(&engine, asks("q", &id("a"), TTL)).await.expect("a job");
        let b = take(&engine, asks("q", &id("b"), TTL)).await.expect("a job");
        let from = cluster.owner(slot);
        let keys = keys_of(cluster.server(from));
        let some = keys.iter().enumerate().filter(|(n, key)| half(*n, **key == meta));
        let some: Vec<_> = some.map(|(_, key)| key.as_str()).collect();
        assert!(!some.is_empty() && some.len() < keys.len(), "{what}");
        let moving = cluster.begin_move(slot, from, 1 - from);
        cluster.move_keys(moving, &some);
        let (pushed, leased, settled, extended) = tokio::join!(
            one(&engine, pushes(job("other", &id("new")))),
            one(&engine, asks("q", &id("c"), TTL)),
            one(&engine, settles(&a)),
            one(&engine, extends(&b)),
        );
        cluster.finish_move(moving);
        // What was refused did not happen, what was answered did; and the same calls work now.
        is_whole(&engine).await;
        let there = find(&engine, &id("new")).await;
        assert_eq!(there.is_some(), pushed.is_some(), "{what}");
        push(&engine, job("other", &id("new"))).await;
        let state = see(&engine, a.job.as_ref().expect("a job").id.as_str()).await.state;
        assert_eq!(state == JobState::Succeeded, settled.is_some(), "{what}");
        assert!(settle(&engine, &a).await.ok, "{what}");
        let again = take(&engine, asks("q", &id("c"), TTL)).await.expect("a job");
        if let Some(leased) = leased {
            assert_eq!(leased.leases[0].lease, again.lease, "{what}: the same request");
        }
        assert!(extended.is_none_or(|extended| extended.lost.is_empty()), "{what}");
        assert!(lives(&engine, &b).await, "{what}");
        for lease in [&b, &again] {
            assert!(settle(&engine, lease).await.ok, "{what}");
        }
        is_whole(&engine).await;
        assert_eq!(cluster.owner(slot), 1 - from);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_run_while_a_slot_moves_are_all_done_in_the_end() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start(2);
    let engine = open(&cluster.url());
    let meta = Address::parse(&cluster.url()).expect("an address").key("default", "m");
    let slot = cluster.slot_of(&meta);
    push(&engine, job("q", "first")).await;
    let mut tasks = Vec::new();
    for task in 0..4 {
        let engine = engine.clone();
        tasks.push(tokio::spawn(async move {
            for n in 0..50 {
                push(&engine, job("q", &format!("j-{task}-{n}"))).await;
                let worker = format!("w-{task}-{n}");
                if let Some(lease) = take(&engine, asks("q", &worker, TTL)).await {
                    assert!(settle(&engine, &lease).await.ok);
                }
            }
        }));
    }
    for moves in 1..=3 {
        // Each move meets calls of its own, as far as there are any left.
        eventually("some more is done", async || {
            find(&engine, &format!("j-0-{}", 10 * moves)).await.is_some()
        })
        .await;
        let from = cluster.owner(slot);
        let moving = cluster.begin_move(slot, from, 1 - from);
        cluster.move_some(moving);
        eventually("a call meets the move", async || one(&engine, GetStats).await.is_none()).await;
        cluster.finish_move(moving);
        cluster.await_whole();
    }
    for task in tasks {
        task.await.expect("all is answered");
    }
    for task in 0..4 {
        for n in 0..50 {
            see(&engine, &format!("j-{task}-{n}")).await;
        }
    }
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_frozen_does_nothing_until_it_is_thawed() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start(2);
    let engine = open(&cluster.url());
    let meta = Address::parse(&cluster.url()).expect("an address").key("default", "m");
    push(&engine, job("q", "a")).await;
    let held = take(&engine, asks("q", "holder", TTL)).await.expect("a job");
    let slot = cluster.slot_of(&meta);
    let from = cluster.owner(slot);
    cluster.server(from).must(&["HSET", &meta, "frozen", "1"]);
    for refused in [
        one(&engine, pushes(job("q", "b"))).await.map(|_| ()),
        one(&engine, settles(&held)).await.map(|_| ()),
        one(&engine, extends(&held)).await.map(|_| ()),
    ] {
        assert_eq!(refused, None, "it is frozen");
    }
    cluster.move_slot(slot, from, 1 - from);
    assert!(one(&engine, pushes(job("q", "b"))).await.is_none(), "it is frozen there too");
    cluster.server(1 - from).must(&["HDEL", &meta, "frozen"]);
    assert!(find(&engine, "b").await.is_none());
    assert!(settle(&engine, &held).await.ok);
    push(&engine, job("q", "b")).await;
    is_whole(&engine).await;
}
