//! Several members of one store in one process, on a real Redis.

mod backups;
mod bench;
mod costs;
mod cut;
mod ending;
mod formats;
mod gone_key;
mod gone_log;
mod histories;
mod line;
mod paused;
mod recovery;
mod replicas;
mod room;
mod snapshots;
mod standby;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tenure_core::time::Span;
use tenure_engine_api::{CallError, Fault};
use tenure_node::StoreLeader;
use tenure_testkit::needs_redis;

use crate::nodes::bench::{Bench, LONG};
use crate::nodes::line::Line;

#[test]
fn a_follower_forwards_and_takes_over_with_all_answered_calls() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..1_000).unwrap();
    assert_eq!(bench.lease(&engine, 1, Span::from_s(60)).len(), 1);
    let second = bench.node("http://second");
    bench.there(&second, "http://first");
    drop(engine);
    let begun = Instant::now();
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    assert_eq!(bench.lease(&engine, 1, Span::from_s(60)).len(), 1);
    println!("from the crash to the first grant with 1,000 jobs: {:?}", begun.elapsed());
    for n in [0, 500, 999] {
        assert!(bench.is_there(&engine, n), "j{n}");
    }
    // Both leases are held: 998 jobs are left.
    assert_eq!(bench.lease(&engine, 1_000, Span::from_s(60)).len(), 998);
    second.close();
}

#[test]
fn a_member_that_closes_hands_the_store_over() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = bench.two();
    bench.push(&engine, 0..10).unwrap();
    drop(engine);
    let begun = Instant::now();
    first.close();
    let engine = bench.here(&second);
    println!("from SIGTERM to the next owner: {:?}", begun.elapsed());
    assert_eq!(bench.lease(&engine, 100, Span::from_s(60)).len(), 10);
    second.close();
}

#[test]
fn a_server_forwards_to_its_successor_after_a_handover() {
    needs_redis!();
    let bench = Bench::start();
    let (first, _, second) = bench.two();
    bench.crash(&first, "http://first");
    bench.here(&second);
    let third = bench.node("http://third");
    bench.there(&third, "http://second");
    second.close();
    bench.there(&second, "http://third");
    bench.here(&third);
    third.close();
}

#[test]
fn of_two_servers_started_at_once_one_leads_the_store() {
    needs_redis!();
    let bench = Bench::start();
    let (one, other) = (bench.node("http://one"), bench.node("http://other"));
    let mut places = [one.place(), other.place()];
    let leader = bench.runtime.block_on(async {
        let [one, other] = &mut places;
        let serves = |place: &StoreLeader| matches!(place, StoreLeader::Local { .. });
        tokio::time::timeout(LONG, async {
            tokio::select! {
                _ = one.wait_for(serves) => 0,
                _ = other.wait_for(serves) => 1,
            }
        })
        .await
        .unwrap()
    });
    match leader {
        0 => bench.there(&other, "http://one"),
        _ => bench.there(&one, "http://other"),
    }
}

#[test]
fn a_redis_that_forgot_everything_is_written_anew_by_its_owner() {
    needs_redis!();
    let mut bench = Bench::start();
    let first = bench.node("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..50).unwrap();
    bench.redis.must(&["FLUSHALL"]);
    bench.push(&engine, 50..60).unwrap();
    // Another process: the content of the old one is gone with it, and it is another run.
    bench.redis.kill();
    bench.redis.restart();
    bench.push(&engine, 60..70).unwrap();
    drop(engine);
    let second = bench.node("http://second");
    bench.there(&second, "http://first");
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    for n in 0..70 {
        assert!(bench.is_there(&engine, n), "j{n}");
    }
}

#[test]
fn a_store_of_another_id_is_not_overwritten() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..1).unwrap();
    let other = "0".repeat(31) + "7";
    bench.redis.must(&["HSET", "{shop}:store", "id", &other]);
    bench.redis.must(&["DEL", "{shop}:own"]);
    bench.until(&first, "nobody serves", |place| match place {
        StoreLeader::None(why) if why.contains("another store") => Some(()),
        _ => None,
    });
    assert_eq!(bench.redis.must(&["HGET", "{shop}:store", "id"]).text(), other);
    assert_eq!(bench.redis.must(&["EXISTS", "{shop}:own"]).text(), "0");
    assert!(first.health().warnings.iter().any(|why| why.contains("another store")));
}

#[test]
fn a_member_that_was_taken_over_tells_its_callers_and_passes_on() {
    needs_redis!();
    let bench = Bench::start();
    let line = Line::to(&bench.runtime, bench.redis.port());
    let first = bench.member_with(&line.url(), "http://first", |_| {});
    let engine = bench.here(&first);
    bench.push(&engine, 0..1).unwrap();
    let second = bench.node("http://second");
    bench.there(&second, "http://first");
    // No server reaches the first, and it reaches no Redis for a moment: its heartbeats stop.
    line.cut();
    bench.network.nodes.lock().unwrap().remove("http://first");
    let taken = bench.here(&second);
    bench.push(&taken, 1..2).unwrap();
    line.mend();
    let refused = bench.push(&engine, 2..3);
    assert!(
        matches!(refused, Err(CallError::Fault(Fault::Unknown(_) | Fault::Unavailable(_)))),
        "{refused:?}"
    );
    bench.there(&first, "http://second");
    assert!(!bench.is_there(&taken, 2), "nothing of it is there");
    first.close();
    second.close();
}

/// History 16: the leader reaches Redis, and no other server reaches the leader.
#[test]
fn a_leader_unreachable_by_peers_stays_leader_while_it_writes() {
    needs_redis!();
    let bench = Bench::start();
    let (first, engine, second) = bench.two();
    bench.network.is_silent.store(true, Ordering::Relaxed);
    let epoch = bench.redis.must(&["HGET", "{shop}:own", "epoch"]);
    // A heartbeat each second, for much longer than heartbeats may be missing.
    let (begun, mut beats) = (Instant::now(), BTreeSet::new());
    while beats.len() < 8 {
        assert!(begun.elapsed() < LONG, "it beats no more");
        beats.insert(bench.redis.must(&["HGET", "{shop}:own", "beat"]).text());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(bench.redis.must(&["HGET", "{shop}:own", "epoch"]), epoch);
    bench.there(&second, "http://first");
    bench.push(&engine, 0..1).unwrap();
    second.close();
    first.close();
}
