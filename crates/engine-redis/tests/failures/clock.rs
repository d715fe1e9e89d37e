//! The clock of Redis steps back, or leaps ahead. (The suite has the sentences one by one: `time::*`.)

use std::sync::Arc;

use tenure_core::job::JobState;
use tenure_core::names::{LimitName, Namespace};
use tenure_core::requests::GetLimit;
use tenure_core::time::Span;
use tenure_engine::{Clock as _, Engine as _};
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;
use crate::reclaim::another;

const TTL: Span = Span::from_s(5);

async fn set(engine: &RedisEngine, clock: &TestClock) {
    engine.testing_set_clock(clock, &[Namespace::main()]).await.expect("the clock can be set");
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
    set(&engine, &clock).await;
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
        set(&engine, &clock).await;
        assert_eq!(engine.health().degraded.is_some(), degraded, "{what}");
        assert_eq!(see(&engine, "a").await.state, JobState::Running, "{what}");
        let lock = take(&engine, locks("lock:deploy", what, TTL)).await.expect("the lock");
        assert!(lock.fence > fence, "{what}");
        fence = lock.fence;
        assert!(settle(&engine, &lock).await.ok, "{what}");
    }
    // From the leap on it has a ttl of its own; then it is taken back, and counted: a job that kills the only worker
    // there is must be found out.
    for _ in 0..6 {
        clock.advance(Span::from_s(1));
        set(&engine, &clock).await;
    }
    let seen = see(&engine, "a").await;
    assert_ne!(seen.state, JobState::Running);
    assert_eq!(seen.lost, 1);
    is_whole(&engine).await;
}

/// Processes that tick when they are told to, one server, and their clock.
struct Many {
    server: RedisServer,
    clock: TestClock,
    engines: Vec<Arc<RedisEngine>>,
}

impl Many {
    async fn start(engines: usize) -> Self {
        let server = RedisServer::start(Aof::Off, &[]);
        let engines = (0..engines).map(|_| another(&server)).collect();
        let many = Many { server, clock: TestClock::default(), engines };
        many.show();
        for engine in &many.engines {
            many.tick(engine).await;
        }
        many
    }

    /// The server and all processes see what the clocks show now.
    fn show(&self) {
        let now = self.clock.now().us().to_string();
        self.server.must(&["SET", "tenure:{default}now", &now]);
        for engine in &self.engines {
            engine.testing_set_watch(&self.clock).expect("it is for tests");
        }
    }

    async fn tick(&self, engine: &RedisEngine) {
        for _ in 0..8 {
            if !engine.testing_tick(&Namespace::main()).await.expect("a tick") {
                return;
            }
        }
        panic!("what is due is never done");
    }

    /// Time passes, and some processes tick each second.
    async fn pass(&self, span: Span, who: &[usize]) {
        let mut left = span;
        while left > Span::ZERO {
            let step = left.min(Span::from_s(1));
            self.clock.advance(step);
            self.show();
            for n in who {
                self.tick(&self.engines[*n]).await;
            }
            left = Span::from_us(left.us() - step.us());
        }
    }

    async fn is_held(&self) -> bool {
        ok(&self.engines[0], GetLimit { limit: LimitName::parse(LOCK).expect("a name") })
            .await
            .in_use
            > 0
    }
}

const LOCK: &str = "lock:deploy";

#[tokio::test(flavor = "multi_thread")]
async fn after_a_leap_nobody_is_reaped_early_whoever_ticks() {
    if !wanted() {
        return;
    }
    // 2 comes after the leap.
    for who in [&[0][..], &[1], &[2], &[2, 0, 1], &[0, 2, 1]] {
        for (ttl, leap) in [(5_000, 1_900), (2_000, 2_600), (2_000, 1_500), (5_000, 60_000)] {
            let what = format!("ttl {ttl}, leap {leap}, ticked by {who:?}");
            let (ttl, leap) = (Span::from_ms(ttl), Span::from_ms(leap));
            let mut many = Many::start(2).await;
            take(&many.engines[0], locks(LOCK, "holder", ttl)).await.expect("it is free");
            many.pass(Span::from_ms(700), &[0, 1]).await;
            many.engines.push(another(&many.server));
            many.clock.leap(leap);
            many.show();
            for n in who {
                many.tick(&many.engines[*n]).await;
            }
            // Until 0.8 of the ttl has passed.
            let works = Span::from_us(ttl.us() * 4 / 5 - 700_001);
            many.pass(works, who).await;
            assert!(many.is_held().await, "{what}: its holder still works");
            many.pass(Span::from_us(ttl.us() + 5_000_000), who).await;
            assert!(!many.is_held().await, "{what}: it is never found out");
            is_whole(&many.engines[0]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_comes_later_keeps_nobody_from_reaping_on_time() {
    if !wanted() {
        return;
    }
    let mut many = Many::start(1).await;
    take(&many.engines[0], locks(LOCK, "holder", TTL)).await.expect("it is free");
    many.pass(Span::from_ms(2_500), &[0]).await;
    many.engines.push(another(&many.server));
    many.pass(Span::from_ms(2_400), &[1, 0]).await;
    assert!(many.is_held().await);
    many.pass(Span::from_ms(101), &[1, 0]).await;
    assert!(!many.is_held().await, "its ttl is over by a clock that somebody watched all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_finds_itself_alone_reaps_one_ttl_after_it_could_know() {
    if !wanted() {
        return;
    }
    let mut many = Many::start(1).await;
    take(&many.engines[0], locks(LOCK, "holder", TTL)).await.expect("it is free");
    many.pass(Span::from_s(1), &[0]).await;
    many.engines.push(another(&many.server));
    // The first is gone; nobody knows what the clock did until the second looked, a second later.
    many.pass(Span::from_s(5), &[1]).await;
    assert!(many.is_held().await);
    many.pass(Span::from_s(2), &[1]).await;
    assert!(!many.is_held().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_took_over_reaps_one_ttl_after_its_first_look() {
    if !wanted() {
        return;
    }
    let mut many = Many::start(1).await;
    take(&many.engines[0], locks(LOCK, "holder", TTL)).await.expect("it is free");
    many.pass(Span::from_s(1), &[0]).await;
    many.engines.push(another(&many.server));
    // It looked a moment after the last tick of the first, and is sure that it is alone only more than 3 s later.
    many.pass(Span::from_ms(1), &[1]).await;
    many.pass(Span::from_ms(2_500), &[1]).await;
    many.pass(Span::from_s(1), &[1]).await;
    many.pass(Span::from_ms(1_400), &[1]).await;
    assert!(many.is_held().await);
    many.pass(Span::from_ms(200), &[1]).await;
    assert!(!many.is_held().await, "it watched all the time from its first look");
}
