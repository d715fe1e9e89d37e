//! A follower follows the journal, and a takeover reads only the entries that its rows lack.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::Namespace;
use tenure_core::requests::{Lease, Settle};
use tenure_core::time::Span;
use tenure_engine::Embedded;
use tenure_engine_api::EngineExt;
use tenure_node::StoreLeader;
use tenure_testkit::needs_redis;

use crate::nodes::bench::{Bench, LONG, queue};
use crate::nodes::line::Line;

/// Leases and settles all waiting jobs, in batches.
fn settle(bench: &Bench, engine: &Arc<Embedded>, jobs: usize) {
    let lease = Lease { ttl: Span::from_s(60), ..Lease::jobs(vec![queue()], jobs) };
    let leased = bench.runtime.block_on(engine.run(&Namespace::main(), lease)).unwrap();
    assert_eq!(leased.leases.len(), jobs);
    let items = leased
        .leases
        .into_iter()
        .map(|lease| SettleItem::new(lease.lease.unwrap(), Ending::Succeeded { result: None }));
    let settle = Settle::of(items.collect());
    let settled = bench.runtime.block_on(engine.run(&Namespace::main(), settle)).unwrap();
    assert_eq!(settled.settled.len(), jobs);
}

fn durable(bench: &Bench, engine: &Arc<Embedded>) -> Vec<String> {
    bench.runtime.block_on(engine.durable())
}

/// Removes all entries from the log, so that no server without them can read the store any more.
fn break_the_log(bench: &Bench) {
    bench.redis.must(&["XTRIM", "{shop}:log", "MAXLEN", "0"]);
}

#[test]
fn a_takeover_reads_only_entries_that_its_follower_lacks() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..10).unwrap();
    let second = bench.node("http://second");
    bench.follows(&second);
    break_the_log(&bench);
    // It has these, and applies all that follow.
    for from in (10..1_010).step_by(100) {
        bench.push(&engine, from..from + 100).unwrap();
    }
    settle(&bench, &engine, 500);
    bench.follows(&second);
    break_the_log(&bench);
    let rows = durable(&bench, &engine);
    drop(engine);
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    assert_eq!(durable(&bench, &engine), rows);
    assert_eq!(bench.lease(&engine, 1_000, Span::from_s(60)).len(), 510);
    second.close();
}

#[test]
fn the_next_leader_has_all_answered_calls_and_serves_at_once() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..1).unwrap();
    let second = bench.node("http://second");
    bench.follows(&second);
    break_the_log(&bench);
    let answered = std::thread::scope(|scope| {
        let pushes = scope.spawn(|| {
            (1..).take_while(|n| bench.push(&engine, *n..*n + 1).is_ok()).last().unwrap()
        });
        let begun = Instant::now();
        while second.applied() < 100 {
            assert!(begun.elapsed() < LONG, "{} entries", second.applied());
            std::thread::sleep(Duration::from_millis(1));
        }
        bench.crash(&first, "http://first");
        pushes.join().unwrap()
    });
    drop(engine);
    let engine = bench.here(&second);
    bench.push(&engine, 1_000_000..1_000_001).unwrap();
    for n in 0..=answered {
        assert!(bench.is_there(&engine, n), "j{n} of {answered}");
    }
    // Its earlier state is over: it follows from nothing, and forwards calls.
    let third = bench.node("http://third");
    bench.there(&third, "http://second");
    second.close();
}

#[test]
fn a_follower_that_missed_a_rebuild_begins_with_its_snapshot() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..50).unwrap();
    bench.redis.must(&["ACL", "SETUSER", "standby", "on", ">secret", "~*", "+@all"]);
    let url = bench.redis.url().replace("redis://", "redis://standby:secret@");
    let second = bench.member_with(&url, "http://second", |_| {});
    bench.follows(&second);
    let before = second.applied();
    bench.redis.must(&["ACL", "SETUSER", "standby", "-xrange"]);
    for n in 50..60 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    bench.redis.must(&["FLUSHALL"]);
    // The push is answered once the store is rebuilt, with a snapshot of everything before and an empty log.
    bench.push(&engine, 60..70).unwrap();
    assert_eq!(second.applied(), before, "it could not read");
    bench.redis.must(&["ACL", "SETUSER", "standby", "+xrange"]);
    bench.follows(&second);
    break_the_log(&bench);
    let rows = durable(&bench, &engine);
    drop(engine);
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    assert_eq!(durable(&bench, &engine), rows);
    second.close();
}

#[test]
fn a_standby_whose_rows_are_of_a_store_that_is_gone_begins_anew() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    for n in 0..50 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    bench.redis.must(&["ACL", "SETUSER", "standby", "on", ">secret", "~*", "+@all"]);
    let url = bench.redis.url().replace("redis://", "redis://standby:secret@");
    let second = bench.member_with(&url, "http://second", |_| {});
    bench.follows(&second);
    drop(engine);
    // It must not take the store before that is gone: it would write it again, as it should.
    bench.redis.must(&["ACL", "SETUSER", "standby", "-@scripting"]);
    bench.crash(&first, "http://first");
    // Removes everything except the id of the store: both servers that had its entries are gone.
    bench.redis.must(&["DEL", "{shop}:own", "{shop}:log"]);
    bench.redis.must(&["ACL", "SETUSER", "standby", "+@scripting"]);
    let engine = bench.here(&second);
    assert!(!bench.is_there(&engine, 0), "the rows of before are no copy of this store");
    bench.push(&engine, 100..101).unwrap();
    second.close();
}

#[test]
fn rows_that_are_ahead_of_their_store_are_read_anew() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    for n in 0..10 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    let second = bench.node("http://second");
    bench.follows(&second);
    drop(engine);
    // No server answers for the first, and its heartbeats go on: the second does not take the store.
    bench.network.is_silent.store(true, Ordering::Relaxed);
    first.crash();
    let own = |field: &str, value: &str| bench.redis.must(&["HSET", "{shop}:own", field, value]);
    let ahead = second.applied();
    own("number", "3");
    for number in 4..=ahead {
        bench.redis.must(&["XDEL", "{shop}:log", &format!("{number}-0")]);
    }
    let begun = Instant::now();
    while second.applied() != 3 {
        own("beat", &bench.redis_time().to_string());
        assert!(begun.elapsed() < LONG, "it has {} of 3 entries", second.applied());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_member_that_was_deposed_follows_from_nothing() {
    needs_redis!();
    let bench = Bench::start();
    let line = Line::to(&bench.runtime, bench.redis.port());
    let first = bench.member_with(&line.url(), "http://first", |_| {});
    let engine = bench.here(&first);
    bench.push(&engine, 0..20).unwrap();
    let second = bench.node("http://second");
    bench.follows(&second);
    assert_eq!(first.applied(), 0, "an owner is no standby");
    // A heartbeat after the refused connection would show that it lives.
    line.cut();
    bench.network.nodes.lock().unwrap().remove("http://first");
    let taken = bench.here(&second);
    line.mend();
    bench.push(&taken, 20..40).unwrap();
    drop(engine);
    bench.follows(&first);
    break_the_log(&bench);
    let rows = durable(&bench, &taken);
    drop(taken);
    bench.crash(&second, "http://second");
    let engine = bench.here(&first);
    assert_eq!(durable(&bench, &engine), rows);
    first.close();
}

#[test]
fn a_takeover_delayed_by_an_unreadable_journal_keeps_its_rows() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..50).unwrap();
    bench.redis.must(&["ACL", "SETUSER", "standby", "on", ">secret", "~*", "+@all"]);
    let url = bench.redis.url().replace("redis://", "redis://standby:secret@");
    let second = bench.member_with(&url, "http://second", |_| {});
    bench.follows(&second);
    // Only its rows have these entries now. More come that it cannot read.
    break_the_log(&bench);
    bench.redis.must(&["ACL", "SETUSER", "standby", "-xrange"]);
    for n in 50..60 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    let rows = durable(&bench, &engine);
    drop(engine);
    bench.crash(&first, "http://first");
    bench.until(&second, "it cannot read the journal", |place| match place {
        StoreLeader::None(why) if why.contains("journal cannot be read") => Some(()),
        _ => None,
    });
    bench.redis.must(&["ACL", "SETUSER", "standby", "+xrange"]);
    let engine = bench.here(&second);
    assert_eq!(durable(&bench, &engine), rows);
    second.close();
}

#[test]
fn the_store_is_handed_to_the_standby_that_is_furthest() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..20).unwrap();
    bench.redis.must(&["ACL", "SETUSER", "behind", "on", ">secret", "~*", "+@all", "-xrange"]);
    let url = bench.redis.url().replace("redis://", "redis://behind:secret@");
    let behind = bench.member_with(&url, "http://behind", |_| {});
    bench.there(&behind, "http://first");
    let second = bench.node("http://second");
    bench.follows(&second);
    let behind_by = |url: &str| {
        let standbys = first.health().standbys;
        standbys.into_iter().find(|standby| standby.url == url).map(|standby| standby.behind)
    };
    // A server reports once a second.
    let begun = Instant::now();
    while behind_by("http://second") != Some(0) {
        assert!(begun.elapsed() < LONG, "{:?}", first.health());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(behind_by("http://behind"), Some(bench.end()));
    assert_eq!(second.health().standbys, []);
    drop(engine);
    first.close();
    bench.here(&second);
    second.close();
}
