//! Only the log of a store is lost: its leader notices at its next heartbeat, and rebuilds the store.

use std::thread;
use std::time::{Duration, Instant};

use tenure_testkit::needs_redis;

use crate::nodes::bench::{Bench, LONG};
use crate::nodes::snapshots::push_until_turned;

#[test]
fn an_owner_whose_log_is_gone_writes_the_store_anew() {
    needs_redis!();
    let gone: [&[&[&str]]; 3] = [
        &[&["DEL", "{shop}:log"]],
        &[&["RENAME", "{shop}:log", "{shop}:elsewhere"]],
        &[&["DEL", "{shop}:log"], &["SET", "{shop}:log", "x"]],
    ];
    for commands in gone {
        let (bench, first, engine) = Bench::led();
        // Entries behind a snapshot: with the log they are gone from Redis, and the snapshot still names a store.
        let jobs = push_until_turned(&bench, &engine, 0, "");
        bench.push(&engine, jobs..jobs + 20).unwrap();
        let jobs = jobs + 20;
        let snapshot = || format!("{:?}", bench.redis.must(&["HMGET", "{shop}:own", "snapshot"]));
        let before = snapshot();
        for command in commands {
            bench.redis.must(command);
        }
        // No call comes: the heartbeat notices it.
        let begun = Instant::now();
        while snapshot() == before {
            assert!(begun.elapsed() < LONG, "{commands:?}: it is not written anew");
            thread::sleep(Duration::from_millis(20));
        }
        bench.push(&engine, jobs..jobs + 1).unwrap();
        drop(engine);
        bench.crash(&first, "http://first");
        // Another server has only the content of Redis.
        let second = bench.node("http://second");
        let engine = bench.here(&second);
        for job in (0..=jobs).rev().take(100) {
            assert!(bench.is_there(&engine, job), "{commands:?}: job {job} is lost");
        }
        drop(engine);
        second.close();
    }
}
