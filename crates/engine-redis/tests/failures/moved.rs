//! Calls that wait while the slot of their namespace moves to another node, or while its node is started anew: they hear
//! of new work from the node that has the namespace then.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tenure_core::lease::Leased;
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine::{Engine as _, EngineExt as _};
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::{Aof, RedisCluster, wanted};
use tokio::task::JoinHandle;

use crate::calls::*;
use crate::listening::{listening, sent};
use crate::parcels::{granted, waits};

/// Far longer than any of it takes.
const TTL: Span = Span::from_s(60);

/// The slot of the namespace.
fn slot(cluster: &RedisCluster) -> u16 {
    cluster.slot_of("tenure:{default}m")
}

/// Returns when this many processes listen at a node of a cluster; how long that took.
async fn listen_at(cluster: &RedisCluster, node: usize, many: usize) -> Duration {
    let begin = Instant::now();
    eventually("they listen", async || listening(cluster.server(node)) == many).await;
    begin.elapsed()
}

/// A call that waits, made again until it is answered.
fn patient(engine: &Arc<RedisEngine>, worker: &str) -> JoinHandle<Leased> {
    let (engine, worker) = (engine.clone(), worker.to_owned());
    tokio::spawn(async move {
        ok(&engine, Lease { wait: Span::from_s(25), ..asks("q", &worker, TTL) }).await
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_while_its_slot_moves_is_granted_new_work_at_once() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start(2);
    let (here, there) = (open(&cluster.url()), open(&cluster.url()));
    let slot = slot(&cluster);
    // Both processes listen from the first to the last.
    let other = Lease { wait: Span::from_s(50), ..asks("other", "other", TTL) };
    let _waits = tokio::spawn(there.run(&ns(), other));
    let (mut heard, mut prompt) = (Duration::MAX, Duration::MAX);
    for round in 0..4 {
        let (from, id) = (cluster.owner(slot), format!("j{round}"));
        let call = waits(&here, &format!("w{round}"), TTL).await;
        listen_at(&cluster, from, 2).await;
        cluster.move_slot(slot, from, 1 - from);
        heard = heard.min(listen_at(&cluster, 1 - from, 2).await);
        // After the gap it asks once more; then it waits there.
        let asked = || cluster.server(1 - from).must(&["EXISTS", "tenure:{default}wt"]).text();
        eventually("it waits there", async || asked() == "1").await;
        let (before, begin) = (sent(cluster.server(1 - from)), Instant::now());
        push(&there, job("q", &id)).await;
        assert_eq!(granted(call).await, id);
        prompt = prompt.min(begin.elapsed());
        assert_eq!(sent(cluster.server(1 - from)) - before, 1, "it was granted in that step");
        let seen = see(&there, &id).await;
        assert_eq!((seen.attempt, seen.lost, seen.errors.len()), (1, 0, 0));
        is_whole(&there).await;
    }
    // The first call of a process learns where the slot is; the best of the rounds has learnt it. The machine may have
    // other work in any of them.
    assert!(heard < Duration::from_millis(900), "{heard:?}");
    assert!(prompt < Duration::from_millis(100), "{prompt:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_come_while_a_slot_moves_are_granted_once_each_to_those_who_wait() {
    const JOBS: usize = 90;
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start(2);
    let (here, there) = (open(&cluster.url()), open(&cluster.url()));
    let slot = slot(&cluster);
    let granted = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for consumer in 0..4 {
        let (here, granted) = (here.clone(), granted.clone());
        consumers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            for n in 0.. {
                if granted.load(Ordering::SeqCst) >= JOBS {
                    break;
                }
                let lease = asks("q", &format!("c{consumer}-{n}"), TTL);
                let lease = Lease { wait: Span::from_s(2), ..lease };
                for lease in ok(&here, lease).await.leases {
                    seen.push(lease.job.as_ref().expect("a job").id.to_string());
                    assert!(settle(&here, &lease).await.ok);
                    granted.fetch_add(1, Ordering::SeqCst);
                }
            }
            seen
        }));
    }
    let pusher = tokio::spawn({
        let there = there.clone();
        async move {
            for n in 0..JOBS {
                push(&there, job("q", &format!("j{n}"))).await;
            }
        }
    });
    let mut moves = 0;
    while granted.load(Ordering::SeqCst) < JOBS || moves < 3 {
        let from = cluster.owner(slot);
        let moving = cluster.begin_move(slot, from, 1 - from);
        cluster.move_some(moving);
        cluster.finish_move(moving);
        cluster.await_whole();
        moves += 1;
        // Each move meets work of its own.
        let (had, begin) = (granted.load(Ordering::SeqCst), Instant::now());
        eventually("some more is done", async || {
            assert!(begin.elapsed() < PROMPT, "nothing is granted any more");
            granted.load(Ordering::SeqCst) >= (had + 10).min(JOBS)
        })
        .await;
    }
    pusher.await.expect("all is pushed");
    let mut all = Vec::new();
    for consumer in consumers {
        all.extend(consumer.await.expect("all is answered"));
    }
    let ids: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), ids.len()), (JOBS, JOBS), "each is granted once");
    for id in ids {
        let seen = see(&there, id).await;
        assert_eq!((seen.attempt, seen.lost), (1, 0), "{id}");
    }
    is_whole(&there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_node_that_is_started_anew_is_granted_in_the_step_again() {
    if !wanted() {
        return;
    }
    let mut cluster = RedisCluster::start_with(2, Aof::Always);
    let (here, there) = (open(&cluster.url()), open(&cluster.url()));
    let owner = cluster.owner(slot(&cluster));
    let first = patient(&here, "first");
    listen_at(&cluster, owner, 1).await;
    cluster.server_mut(owner).kill();
    eventually("it is seen to be down", async || here.health().degraded.is_some()).await;
    cluster.server_mut(owner).restart();
    cluster.await_whole();
    listen_at(&cluster, owner, 1).await;
    push(&there, job("q", "a")).await;
    let leased = tokio::time::timeout(PROMPT, first).await.expect("in time").expect("it ends");
    assert_eq!(leased.leases[0].job.as_ref().expect("a job").id.as_str(), "a");
    assert!(settle(&here, &leased.leases[0]).await.ok);
    // From here on all is as before.
    let next = waits(&here, "next", TTL).await;
    let before = sent(cluster.server(owner));
    push(&there, job("q", "b")).await;
    assert_eq!(granted(next).await, "b");
    assert_eq!(sent(cluster.server(owner)) - before, 1, "it was granted in that step");
    let seen = see(&there, "b").await;
    assert_eq!((seen.attempt, seen.lost, seen.errors.len()), (1, 0, 0));
    is_whole(&there).await;
}
