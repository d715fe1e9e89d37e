//! A primary that dies, and the replica that takes its place.

use std::time::{Duration, Instant};

use tenure_core::job::JobState;
use tenure_core::time::Span;
use tenure_testkit::redis::{RedisSentinel, wanted};

use crate::calls::*;

const TTL: Span = Span::from_s(3);

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_service_goes_on_and_the_new_primary_learns_first() {
    if !wanted() {
        return;
    }
    let mut servers = RedisSentinel::start();
    let engine = open(&servers.url());
    for id in ["a", "b", "c"] {
        push(&engine, job("q", id)).await;
    }
    let held = take(&engine, asks("q", "holder", TTL)).await.expect("a job");
    let lock = take(&engine, locks("lock:deploy", "locker", TTL)).await.expect("the lock");
    // What the replica has not got yet, a failover loses: here it gets all.
    assert_eq!(servers.primary().must(&["WAIT", "1", "5000"]).text(), "1");
    let old = servers.kill_primary();
    let began = Instant::now();
    servers.await_failover(old);
    // Leases that the replica knew live on, and their time begins anew.
    assert!(lives(&engine, &held).await);
    assert!(lives(&engine, &lock).await);
    let back = Instant::now();
    assert!(took_over(began), "{:?}", began.elapsed());
    let free = take(&engine, asks("q", "free", TTL)).await.expect("other jobs go on");
    assert!(settle(&engine, &free).await.ok);
    assert!(settle(&engine, &lock).await.ok, "the holder of the lock is done");
    let mut tries = 0;
    eventually("the lock is granted again", async || {
        assert!(lives(&engine, &held).await);
        tries += 1;
        take(&engine, locks("lock:deploy", &format!("w{tries}"), TTL)).await.is_some()
    })
    .await;
    // Somebody else might have held it, by what the old primary alone knew.
    assert!(back.elapsed() >= TTL.std() - Duration::from_millis(500), "{:?}", back.elapsed());
    assert_eq!(see(&engine, "a").await.state, JobState::Running);
    assert!(settle(&engine, &held).await.ok);
    is_whole(&engine).await;
    // The old one comes back as a replica, and changes nothing.
    servers.restart(old);
    servers.await_replica();
    push(&engine, job("q", "later")).await;
    is_whole(&engine).await;
}

fn took_over(began: Instant) -> bool {
    began.elapsed() < Duration::from_secs(20)
}
