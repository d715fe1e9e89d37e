//! Gauges when the process that reads one dies, and when the store has forgotten: what is granted then, and that no secret
//! of an address is told.

use std::time::Duration;

use tenure_core::events::EventType;
use tenure_core::gauge::{Gauge, GaugeAddress, GaugeClaim, GaugeResult, GaugeSource, OnStale};
use tenure_core::names::{JobRef, LimitName, Namespace};
use tenure_core::requests::{EventsSince, ExplainJob, GetLimit, PutLimit, ReadEvents};
use tenure_core::settings::{LimitSettings, LimitView};
use tenure_core::time::Span;
use tenure_engine::{Engine as _, GaugeFeed};
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;
use crate::reclaim::{Store, lock};

const TTL: Span = Span::from_s(30);

fn gauge(lag: Span) -> Gauge {
    let url = GaugeAddress::parse("http://me:geheim@127.0.0.1:9/load").expect("an address");
    Gauge {
        source: GaugeSource::Count { url, count: vec!["/running".to_owned()] },
        every: Span::from_ms(500),
        lag,
        stale: Span::from_s(30),
        on_stale: OnStale::Hold,
    }
}

async fn put(engine: &RedisEngine, gauge: Gauge) -> LimitView {
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    let limit = LimitName::parse("site").expect("a name");
    ok(engine, PutLimit { limit, settings, gauge: Some(Box::new(gauge)) }).await.view
}

async fn view(engine: &RedisEngine) -> LimitView {
    ok(engine, GetLimit { limit: LimitName::parse("site").expect("a name") }).await
}

async fn claim(feed: &mut GaugeFeed) -> GaugeClaim {
    let claimed = tokio::time::timeout(PROMPT, feed.next()).await.expect("one is claimed");
    claimed.expect("the engine is open").claim
}

async fn read(engine: &RedisEngine, claim: &GaugeClaim, result: GaugeResult) {
    let answered = engine.answer_gauge(&Namespace::main(), claim.answered(result)).await;
    answered.expect("an answer is taken, or dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_dies_leaves_the_gauge_to_another() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let (dies, lives) = (open(&server.url()), open(&server.url()));
    let shown = put(&lives, gauge(Span::from_s(10))).await;
    let mut feed = dies.gauges().expect("it has gauges read");
    push(&lives, tenure_core::job::NewJob { needs: Some(needs("site")), ..job("q", "j") }).await;
    // Nobody has read it: the call finds nothing, and stands at the door.
    assert!(take(&lives, asks("q", "w0", TTL)).await.is_none());
    let first = claim(&mut feed).await;
    assert!(format!("{:?}", first.gauge.source).contains("•••"), "its address is shown redacted");
    drop(feed);
    drop(dies);
    let mut feed = lives.gauges().expect("it has gauges read");
    let second = claim(&mut feed).await;
    assert!(second.number > first.number);
    let silent = second.asked_at.since(first.asked_at);
    assert!(silent >= Span::from_s(5), "no claim is made while one is open: {silent}");
    let failed = view(&lives).await;
    let why = ok(&lives, ExplainJob { job: JobRef::parse("j").expect("an id") }).await;
    let read_all = ReadEvents { since: EventsSince::First, ..ReadEvents::default() };
    let events = ok(&lives, read_all).await.items;
    assert!(events.iter().any(|event| event.happened.kind == EventType::GaugeFailed));
    // An answer to the old claim is dropped.
    read(&lives, &first, GaugeResult::Sum(1)).await;
    assert_eq!(view(&lives).await.external, 0);
    read(&lives, &second, GaugeResult::Sum(0)).await;
    let lease = take(&lives, asks("q", "w1", TTL)).await.expect("it is granted on the reading");
    assert_eq!(lease.limits.len(), 1);
    let seen = format!("{shown:?} {failed:?} {why:?} {events:?}");
    assert!(seen.contains("did not answer"), "{seen}");
    assert!(!seen.contains("geheim"), "{seen}");
    is_whole(&lives).await;
    lives.close(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_loss_only_a_reading_counts_that_shows_what_was_forgotten() {
    let Some(mut store) = Store::start().await else { return };
    let mut feed = store.engine.gauges().expect("it has gauges read");
    put(&store.engine, gauge(Span::from_s(60))).await;
    let _lock = lock(&store.engine, "lock:a", "w").await.expect("it is free");
    store.save();
    store.forget().await;
    push(&store.engine, tenure_core::job::NewJob { needs: Some(needs("site")), ..job("q", "j") })
        .await;
    // What was granted and forgotten may start so late: until then nothing is granted, whatever a gauge shows.
    let mut granted = 0;
    let began = tenure_engine::Clock::now(&store.clock);
    for second in 0..180 {
        store.pass(Span::from_s(1)).await;
        while let Some(claimed) = feed.try_next() {
            read(&store.engine, &claimed.claim, GaugeResult::Sum(0)).await;
        }
        if take(&store.engine, asks("q", &format!("w{second}"), TTL)).await.is_some() {
            granted += 1;
            break;
        }
    }
    let waited = tenure_engine::Clock::now(&store.clock).since(began);
    assert_eq!(granted, 1, "it is granted once a reading shows all");
    assert!(waited >= Span::from_s(60), "{waited}");
    is_whole(&store.engine).await;
}
