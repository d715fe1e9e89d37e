//! The clock of Redis steps back, or leaps ahead. (The suite has the sentences one by one: `time::*`.)

use tenure_core::job::JobState;
use tenure_core::names::Namespace;
use tenure_core::time::{Moment, Span};
use tenure_engine::{Clock as _, Engine as _};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

const TTL: Span = Span::from_s(5);

async fn set(engine: &RedisEngine, now: Moment) {
    engine.testing_set_clock(now, &[Namespace::main()]).await.expect("the clock can be set");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_back_or_leaps_blames_nobody_and_fences_rise() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let address = Address::parse(&server.url()).expect("the address of the fixture is one");
    let engine = RedisEngine::open(Options::testing(address)).expect("an engine can be opened");
    let clock = TestClock::default();
    set(&engine, clock.now()).await;
    for id in ["a", "b"] {
        push(&engine, job("q", id)).await;
    }
    let held = take(&engine, asks("q", "holder", TTL)).await.expect("a job");
    let mut fence = held.fence;
    for (what, back, ahead, degraded) in [
        ("a little back", 500, 0, false),
        ("further back", 5_000, 0, true),
        ("back again", 0, 5_500, false),
        ("far back", 3_600_000, 0, false),
        ("far ahead", 0, 7_200_000, false),
    ] {
        clock.step_back(Span::from_ms(back));
        clock.advance(Span::from_ms(ahead));
        set(&engine, clock.now()).await;
        assert_eq!(engine.health().degraded.is_some(), degraded, "{what}");
        assert_eq!(see(&engine, "a").await.state, JobState::Running, "{what}");
        let lock = take(&engine, locks("lock:deploy", what, TTL)).await.expect("the lock");
        assert!(lock.fence > fence, "{what}");
        fence = lock.fence;
        assert!(settle(&engine, &lock).await.ok, "{what}");
    }
    // From the leap on it has a ttl of its own; then it is taken back, and not counted as lost.
    for _ in 0..6 {
        clock.advance(Span::from_s(1));
        set(&engine, clock.now()).await;
    }
    let seen = see(&engine, "a").await;
    assert_ne!(seen.state, JobState::Running);
    assert_eq!(seen.lost, 0);
    is_whole(&engine).await;
}
