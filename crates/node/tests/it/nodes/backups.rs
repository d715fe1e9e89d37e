//! Backups of a shared store: from rows that are a copy of its journal, or none.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{scope, sleep};
use std::time::Duration;

use tenure_engine::backup::{BackupHead, check};
use tenure_engine::copy::CopyError;
use tenure_engine_api::Fault;
use tenure_node::Node;
use tenure_testkit::needs_redis;

use crate::nodes::bench::Bench;

fn backed_up(node: &Node) -> Result<BackupHead, CopyError> {
    let bytes: Vec<u8> = node.backup()?.map(Result::unwrap).collect::<Vec<_>>().concat();
    Ok(check(&*bytes).unwrap().head)
}

#[track_caller]
fn refused(node: &Node, said: &str) {
    match backed_up(node) {
        Err(CopyError::Fault(Fault::Unavailable(why))) => assert!(why.contains(said), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// A leader with ten entries, and its follower, that may not write to the store from now on.
fn with_reader(bench: &Bench) -> (Arc<Node>, Arc<Node>) {
    let first = bench.node("http://first");
    let engine = bench.here(&first);
    bench.redis.must(&["ACL", "SETUSER", "standby", "on", ">secret", "~*", "+@all"]);
    let url = bench.redis.url().replace("redis://", "redis://standby:secret@");
    let second = bench.member_with(&url, "http://second", |_| {});
    for n in 0..10 {
        bench.push(&engine, n..n + 1).unwrap();
    }
    bench.follows(&second);
    bench.redis.must(&["ACL", "SETUSER", "standby", "-@scripting"]);
    (first, second)
}

/// Does something while the store has a leader that no other server hears of.
fn led<T: Send>(bench: &Bench, act: impl FnOnce() -> T + Send) -> T {
    scope(|scope| {
        let acts = scope.spawn(act);
        while !acts.is_finished() {
            let now = bench.redis_time().to_string();
            bench.redis.must(&["HSET", "{shop}:own", "beat", &now]);
            sleep(Duration::from_millis(2));
        }
        acts.join().unwrap()
    })
}

#[test]
fn both_servers_of_a_busy_store_have_all_that_was_answered() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = bench.two();
    bench.push(&engine, 0..100).unwrap();
    scope(|scope| {
        let pushes = scope.spawn(|| {
            for n in 100..400 {
                bench.push(&engine, n..n + 1).unwrap();
            }
        });
        while !pushes.is_finished() {
            for node in [&first, &second] {
                assert!(backed_up(node).unwrap().jobs >= 100);
            }
        }
    });
    for node in [&first, &second] {
        assert_eq!(backed_up(node).unwrap().jobs, 400);
    }
}

#[test]
fn a_follower_sends_no_entries_that_the_store_has_lost() {
    needs_redis!();
    let bench = Bench::start();
    let (first, second) = with_reader(&bench);
    bench.network.is_silent.store(true, Ordering::Relaxed);
    first.crash();
    // What a replica that lacked the last entries shows once it is the primary.
    let ahead = bench.end();
    bench.redis.must(&["HSET", "{shop}:own", "number", "3"]);
    for number in 4..=ahead {
        bench.redis.must(&["XDEL", "{shop}:log", &format!("{number}-0")]);
    }
    let jobs = led(&bench, || backed_up(&second).unwrap().jobs);
    assert!(jobs <= 3, "{jobs} jobs of 3 entries");
}

#[test]
fn rows_with_another_entry_of_the_same_number_are_not_sent() {
    needs_redis!();
    let bench = Bench::start();
    let (first, second) = with_reader(&bench);
    bench.network.is_silent.store(true, Ordering::Relaxed);
    first.crash();
    // The last entry is another one, and the others are gone: the follower has nothing to begin anew with.
    bench.redis.must(&["XTRIM", "{shop}:log", "MAXLEN", "0"]);
    bench.redis.must(&["HSET", "{shop}:own", "checksum", "another1"]);
    led(&bench, || refused(&second, "no rows with entry"));
}

#[test]
fn a_store_that_is_gone_or_another_one_is_not_backed_up() {
    needs_redis!();
    let bench = Bench::start();
    let (first, second) = with_reader(&bench);
    first.crash();
    let own = bench.redis.must(&["HGET", "{shop}:own", "store"]).text();
    let other = "0".repeat(31) + "7";
    bench.redis.must(&["HSET", "{shop}:own", "store", &other]);
    refused(&second, "another store");
    bench.redis.must(&["HSET", "{shop}:own", "store", &own]);
    bench.redis.must(&["DEL", "{shop}:own"]);
    refused(&second, "no last entry");
}
