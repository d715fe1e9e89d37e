//! A slot that moves to another node while calls run, and a namespace that is frozen meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_core::job::{JobState, NewJob, OnConflict, Unique, Until, When};
use tenure_core::lease::Ending;
use tenure_core::names::UniqueKey;
use tenure_core::requests::{Operation, Push, PushAnswer};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt as _, Fault};
use tenure_engine_redis::RedisEngine;
use tenure_engine_redis::library::Library;
use tenure_engine_redis::link::Address;
use tenure_testkit::Dice;
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

/// Two nodes, of which one has the namespace: its own key, and the slot that moves.
struct Nodes {
    cluster: RedisCluster,
    engine: Arc<RedisEngine>,
    meta: String,
    slot: u16,
}

impl Nodes {
    fn start() -> Option<Self> {
        if !wanted() {
            return None;
        }
        let cluster = RedisCluster::start(2);
        let engine = open(&cluster.url());
        let meta = Address::parse(&cluster.url()).expect("an address").key("default", "m");
        let slot = cluster.slot_of(&meta);
        Some(Nodes { cluster, engine, meta, slot })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_while_calls_run_tears_nothing_apart() {
    let Some(Nodes { cluster, engine, meta, slot }) = Nodes::start() else { return };
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
async fn what_needs_only_what_is_there_goes_on_while_its_slot_moves() {
    let Some(Nodes { cluster, engine, meta, slot }) = Nodes::start() else { return };
    let mut leases = Vec::new();
    for n in 0..40 {
        push(&engine, job("q", &format!("j{n}"))).await;
    }
    for n in 0..20 {
        leases.push(take(&engine, asks("q", &format!("w{n}"), TTL)).await.expect("a job"));
    }
    let from = cluster.owner(slot);
    let moving = cluster.begin_move(slot, from, 1 - from);
    // Nothing has left yet: no lease is lost because of the move, whatever the library still has in memory. (A key that
    // is nowhere cannot be looked for meanwhile.)
    let library = Library::release();
    for anew in [false, true] {
        if anew {
            cluster.server(from).must(&["FUNCTION", "LOAD", "REPLACE", library.text()]);
        }
        for lease in &leases {
            let extended = one(&engine, extends(lease)).await.expect("a heartbeat goes on");
            assert!(extended.lost.is_empty());
        }
    }
    // The namespace's own key is gone: the other node has it, and not all else.
    cluster.move_keys(moving, &[&meta]);
    assert!(one(&engine, extends(&leases[0])).await.is_none());
    cluster.finish_move(moving);
    is_whole(&engine).await;
    for lease in &leases {
        assert!(settle(&engine, lease).await.ok);
    }
    is_whole(&engine).await;
}

/// Which parts are moved first, in how many rounds.
const PARTS: u64 = 8;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_part_has_left_each_call_is_done_whole_or_not_at_all() {
    let Some(Nodes { cluster, engine, meta, slot }) = Nodes::start() else { return };
    let mut dice = Dice::mixed(7);
    let (mut done, mut refused) = (0, 0);
    // A namespace in use has most of the keys that a call may need.
    for n in 0..1_000 {
        push(&engine, job(["q", "other", "third"][n % 3], &format!("s{n}"))).await;
        let worker = format!("s{n}");
        if let Some(lease) = take(&engine, asks("q", &worker, TTL)).await {
            assert!(settle(&engine, &lease).await.ok);
        }
    }
    for round in 0..PARTS {
        // Short lines and few leases, so that much is emptied and filled in one call.
        let mut held = Vec::new();
        for n in 0..12 {
            let queue = ["q", "other", "third"][n % 3];
            push(&engine, job(queue, &format!("j{round}-{n}"))).await;
            if n >= 4 {
                held.extend(take(&engine, asks(queue, &format!("w{round}-{n}"), TTL)).await);
            }
        }
        let from = cluster.owner(slot);
        let keys = keys_of(cluster.server(from));
        // From none to an eighth of the keys; the namespace's own stays, so that calls are tried here.
        let some = keys.iter().filter(|key| **key != meta && dice.below(8 * PARTS) < round);
        let some: Vec<_> = some.map(String::as_str).collect();
        let moving = cluster.begin_move(slot, from, 1 - from);
        cluster.move_keys(moving, &some);
        let mut settles_of = held.clone();
        let extends_of = settles_of.split_off(held.len() / 2);
        let mut pushed = tokio::task::JoinSet::new();
        for n in 0..6 {
            let (engine, id) = (engine.clone(), format!("n{round}-{n}"));
            let queue = ["q", "other", "third"][n % 3];
            pushed.spawn(async move {
                let there = one(&engine, pushes(job(queue, &id))).await.is_some();
                (id, there)
            });
        }
        let mut settled = tokio::task::JoinSet::new();
        for lease in settles_of {
            let engine = engine.clone();
            settled.spawn(async move {
                let ended = one(&engine, settles(&lease)).await;
                (lease, ended.map(|ended| ended.settled[0].ok))
            });
        }
        let mut extended = tokio::task::JoinSet::new();
        for lease in extends_of {
            let engine = engine.clone();
            extended.spawn(async move {
                let kept = one(&engine, extends(&lease)).await;
                (lease, kept.map(|kept| kept.lost.is_empty()))
            });
        }
        let mut leased = tokio::task::JoinSet::new();
        for n in 0..4 {
            let (engine, worker) = (engine.clone(), format!("l{round}-{n}"));
            leased.spawn(async move {
                let given = one(&engine, asks("q", &worker, TTL)).await;
                (worker, given.map(|given| given.leases))
            });
        }
        let (pushed, settled) = (pushed.join_all().await, settled.join_all().await);
        let (extended, leased) = (extended.join_all().await, leased.join_all().await);
        cluster.finish_move(moving);
        is_whole(&engine).await;
        for (id, answered) in pushed {
            assert_eq!(find(&engine, &id).await.is_some(), answered, "round {round}: {id}");
            *if answered { &mut done } else { &mut refused } += 1;
        }
        for (lease, ok) in settled {
            assert_ne!(ok, Some(false), "round {round}");
            let state = see(&engine, lease.job.as_ref().expect("a job").id.as_str()).await.state;
            assert_eq!(state == JobState::Succeeded, ok.is_some(), "round {round}");
            *if ok.is_some() { &mut done } else { &mut refused } += 1;
        }
        for (lease, lives_on) in extended {
            assert_ne!(lives_on, Some(false), "round {round}");
            assert!(lives(&engine, &lease).await, "round {round}");
            *if lives_on.is_some() { &mut done } else { &mut refused } += 1;
        }
        for (worker, given) in leased {
            let again = ok(&engine, asks("q", &worker, TTL)).await.leases;
            if let Some(given) = given.filter(|given| !given.is_empty()) {
                assert_eq!(given[0].lease, again[0].lease, "round {round}: the same request");
                done += 1;
            }
            for lease in again {
                assert!(settle(&engine, &lease).await.ok, "round {round}");
            }
        }
        is_whole(&engine).await;
    }
    assert!(done > 20 && refused > 20, "{done} were done, {refused} refused");
}

/// A job for later under a key of its own; pushed again it is for `when`. Pushes that replaced a job are remembered by their
/// ids, all of these in one key.
fn reminder(key: &str, when: When) -> NewJob {
    let key = UniqueKey::parse(key).expect("a key");
    let on_conflict = OnConflict::Replace;
    let unique = Unique { key, until: Until::End, hold: None, on_conflict, within: None };
    NewJob { unique: Some(unique), when, ..job("kept", &format!("r{}-same", unique_number())) }
}

fn unique_number() -> u32 {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_would_empty_a_key_and_fill_it_again_is_not_begun() {
    let Some(Nodes { cluster, engine, slot, .. }) = Nodes::start() else { return };
    for n in 0..1_500 {
        push(&engine, job("kept", &format!("k{n}"))).await;
    }
    // Of the last rows some have all that rows can have.
    for n in 0..3 {
        push(&engine, job("parts", &format!("p{n}"))).await;
        let lease = take(&engine, asks("parts", &format!("p{n}"), TTL)).await.expect("a job");
        let mut extend = extends(&lease);
        extend.leases[0].progress = Some(Json::from(1));
        ok(&engine, extend).await;
        let mut ends = settles(&lease);
        ends.settle[0].ending = match n {
            0 => Ending::Succeeded { result: Some(Json::from(1)) },
            1 => Ending::Failed { error: "no".to_owned(), retry_in: None, last: true },
            _ => continue,
        };
        ok(&engine, ends).await;
    }
    let hour = When::In(Span::from_s(3_600));
    let both = |when| Push {
        jobs: vec![reminder("a", when), NewJob { when: hour, ..job("kept", "later") }],
        answer: PushAnswer::Ids,
    };
    // The only one that is for later is made ready, and another is for later: what is due is empty between.
    push(&engine, reminder("a", hour)).await;
    push(&engine, reminder("a", hour)).await;
    let from = cluster.owner(slot);
    let due = cluster.server(from).must(&["ZCARD", "tenure:{default}due"]).text();
    assert_eq!(due, "1");
    let moving = cluster.begin_move(slot, from, 1 - from);
    // As long as it stays for later, nothing is emptied.
    assert!(one(&engine, pushes(reminder("a", When::In(Span::from_s(60))))).await.is_some());
    assert!(one(&engine, both(When::Now)).await.is_none());
    cluster.finish_move(moving);
    is_whole(&engine).await;
    assert!(find(&engine, "later").await.is_none(), "nothing of it was done");
    ok(&engine, both(When::Now)).await;
    assert_eq!(see(&engine, "later").await.state, JobState::Scheduled);
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_run_while_a_slot_moves_are_all_done_in_the_end() {
    let Some(Nodes { cluster, engine, slot, .. }) = Nodes::start() else { return };
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
        // Calls that need only what is still there are done; a new name needs more.
        let mut names = 0;
        eventually("a call meets the move", async || {
            names += 1;
            let queue = format!("new-{moves}-{names}");
            one(&engine, pushes(job(&queue, &queue))).await.is_none()
        })
        .await;
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
    let Some(Nodes { cluster, engine, meta, slot }) = Nodes::start() else { return };
    push(&engine, job("q", "a")).await;
    let held = take(&engine, asks("q", "holder", TTL)).await.expect("a job");
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
