//! The stamp by which a process knows its store again: of a namespace that is new, of one that was deleted
//! or flushed, of an older world, and beside earlier releases.

use std::sync::Arc;

use tenure_core::names::Namespace;
use tenure_core::requests::ListLeases;
use tenure_core::time::Span;
use tenure_engine::{Clock as _, Engine as _, EngineExt as _};
use tenure_engine_redis::link::{Address, Value};
use tenure_engine_redis::{Options, RedisEngine, Time};
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;
use crate::lost_all::{HOUR, TTL, long_lock, looks, newcomer, onlooker};
use crate::reclaim::{Store, lock, set};

/// The key of the namespace.
const META: &str = "tenure:{default}m";

async fn stamp(store: &Store) -> String {
    store.server.must(&["HGET", META, "born"]).text()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_that_nothing_is_forgotten_is_believed() {
    let Some(mut store) = Store::start().await else { return };
    let address = Address::parse(&store.server.url()).expect("an address");
    let options =
        Options { forgets_never: true, time: Time::TestingByHand, ..Options::testing(address) };
    store.engine = Arc::new(RedisEngine::open(options).expect("an engine can be opened"));
    store.pass(Span::ZERO).await;
    lock(&store.engine, "lock:deploy", "holder").await.expect("the lock");
    store.restart();
    store.pass(Span::from_ms(1)).await;
    let engine = store.engine.clone();
    assert!(lock(&engine, "lock:deploy", "next").await.is_some());
    is_whole(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_new_has_lost_nothing_and_each_has_its_own_birth() {
    let Some(store) = Store::start().await else { return };
    let engine = store.engine.clone();
    lock(&engine, "lock:a", "a").await.expect("a lock");
    let one = |name: &str| Namespace::parse(name).expect("a name");
    let locked = async |name: &str, worker: &str| {
        let set = engine.testing_set_clock(&store.clock, &[one(name)]).await;
        set.expect("the clock is set");
        let leased = engine.run(&one(name), locks("lock:a", worker, TTL)).await;
        !leased.expect("an answer").leases.is_empty()
    };
    assert!(locked("second", "a").await && locked("third", "a").await, "nothing was there to lose");
    // One of them is deleted, and the server goes on.
    store.clock.advance(Span::from_ms(1));
    let keys = store.server.must(&["KEYS", "tenure:{second}*"]);
    let keys: Vec<_> = keys.list().iter().map(|key| key.text()).collect();
    let mut del = vec!["DEL"];
    del.extend(keys.iter().map(String::as_str));
    store.server.must(&del);
    assert!(!locked("second", "b").await, "all of it was lost");
    assert!(!locked("third", "b").await, "it is held");
    for round in 0..31 {
        store.pass(Span::from_s(1)).await;
        for name in ["second", "third"] {
            let set = engine.testing_set_clock(&store.clock, &[one(name)]).await;
            set.unwrap_or_else(|why| panic!("{round}: {why}"));
        }
    }
    assert!(locked("second", "c").await && locked("third", "c").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_may_be_lost_while_the_server_goes_on() {
    let Some(store) = Store::start().await else { return };
    let held = long_lock(&store.engine, "lock:deploy", "holder").await;
    let first = onlooker(&store).await;
    let before = stamp(&store).await;
    store.clock.advance(Span::from_ms(1));
    store.server.must(&["FLUSHALL"]);
    looks(&first, &store).await;
    assert_ne!(stamp(&store).await, before);
    store.leap(TTL).await;
    let new = newcomer(&store).await;
    assert!(lock(&new, "lock:deploy", "early").await.is_none());
    assert!(lives(&new, &held).await);
    is_whole(&new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_older_than_what_is_known_is_learnt_from_now_on() {
    let Some(store) = Store::start().await else { return };
    long_lock(&store.engine, "lock:deploy", "holder").await;
    store.leap(Span::from_s(7_200)).await;
    long_lock(&store.engine, "lock:again", "holder").await;
    // As if the address led to a store of long ago again, on a server that went on.
    let old = stamp(&store).await;
    let (at, rest) = old.split_once('-').expect("a moment and a run");
    let older = at.parse::<u64>().expect("a number") - 3_600_000_000;
    store.server.must(&["HSET", META, "born", &format!("{older}-{rest}")]);
    store.pass(Span::from_s(60)).await;
    let engine = store.engine.clone();
    assert!(lock(&engine, "lock:new", "early").await.is_none(), "an hour of learning");
    store.leap(Span::from_s(3_500)).await;
    assert!(lock(&engine, "lock:new", "early-too").await.is_none());
    store.leap(Span::from_s(200)).await;
    assert!(lock(&engine, "lock:new", "next").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_of_an_earlier_release_gets_a_stamp_and_nobody_has_lost_anything() {
    let Some(store) = Store::start().await else { return };
    let held = lock(&store.engine, "lock:a", "a").await.expect("a lock");
    store.server.must(&["HDEL", META, "born"]);
    let engine = newcomer(&store).await;
    assert!(lock(&engine, "lock:b", "b").await.is_some(), "nothing is learnt");
    assert!(lives(&engine, &held).await);
    let given = stamp(&store).await;
    assert!(given.contains('+'), "it was there before: {given}");
    // Who knows it finds it again.
    set(&engine, &store.clock).await;
    assert!(lock(&engine, "lock:c", "c").await.is_some());
    assert_eq!(stamp(&store).await, given);
    is_whole(&engine).await;
}

/// A tick as an earlier release of this layout sends it: until when the namespace learns.
async fn old_tick(engine: &RedisEngine, kid: &str, ttl: u64) -> Option<u64> {
    #[derive(serde::Serialize)]
    struct Args<'a> {
        proc: &'a str,
        waiters: u32,
        kn: (bool, &'a str, u64),
    }
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Learns {
        Until(u64),
        No(bool),
    }
    #[derive(serde::Deserialize)]
    struct Header {
        #[serde(default)]
        l: Option<Learns>,
    }
    let args = Args { proc: "old", waiters: 0, kn: (false, kid, ttl) };
    let args = rmp_serde::to_vec_named(&args).expect("bytes");
    let answer = engine.link().fcall("default", "tick", &[META], &[args]).await;
    let Value::Array(parts) = answer.expect("an answer") else { panic!("a list") };
    let Value::BulkString(header) = &parts[0] else { panic!("bytes") };
    match rmp_serde::from_slice::<Header>(header).expect("a header").l {
        Some(Learns::Until(until)) => Some(until),
        Some(Learns::No(learns)) => {
            assert!(!learns);
            None
        }
        None => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_release_beside_this_one_tells_what_it_knows_as_before() {
    let Some(store) = Store::start().await else { return };
    let engine = store.engine.clone();
    long_lock(&engine, "lock:a", "a").await;
    let kid = store.server.must(&["HGET", META, "kid"]).text();
    assert_eq!(old_tick(&engine, &kid, HOUR.us()).await, None, "it knows this one");
    assert!(lock(&engine, "lock:b", "b").await.is_some());
    // As an earlier release writes the namespace, its stamp stays.
    assert!(stamp(&store).await.contains('-'));
    let until = old_tick(&engine, "another", HOUR.us()).await.expect("it knew another key");
    assert_eq!(until, store.clock.now().plus(HOUR).us());
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_server_s_own_clock_too() {
    if !wanted() {
        return;
    }
    let ttl = Span::from_s(40);
    let mut server = RedisServer::start(Aof::Off, &[]);
    let (granter, looker) = (open(&server.url()), open(&server.url()));
    let held = take(&granter, locks("lock:deploy", "holder", ttl)).await.expect("the lock");
    ok(&looker, ListLeases::default()).await;
    server.kill();
    server.restart();
    ok(&looker, ListLeases::default()).await;
    // Its next tick, or this call: whichever is first.
    assert!(lives(&granter, &held).await);
    let new = open(&server.url());
    assert!(take(&new, locks("lock:deploy", "early", ttl)).await.is_none());
    let notice = granter.notice().expect("it learns");
    let left = notice.split("for another ").nth(1).and_then(|rest| rest.split('s').next());
    let left: u64 = left.and_then(|left| left.parse().ok()).unwrap_or_else(|| panic!("{notice}"));
    assert!((31..=40).contains(&left), "for the ttl that it knows, and no usual one: {notice}");
    is_whole(&granter).await;
}
