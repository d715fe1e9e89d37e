//! Readers of events when the store forgets: they are told so, and nobody goes on in silence.

use tenure_core::events::{EventId, EventType, GapWhy};
use tenure_core::requests::{EventsRead, EventsSince, ReadEvents};
use tenure_core::time::Span;
use tenure_engine_redis::RedisEngine;

use crate::calls::*;
use crate::reclaim::{Store, another, set};

async fn read(engine: &RedisEngine, since: EventsSince) -> EventsRead {
    ok(engine, ReadEvents { since, max: 1_000, ..ReadEvents::default() }).await
}
async fn end(engine: &RedisEngine) -> EventId {
    read(engine, EventsSince::Now).await.next
}
fn pushed(read: &EventsRead) -> Vec<&str> {
    let pushed = read.items.iter().filter(|event| event.happened.kind == EventType::JobPushed);
    pushed.map(|event| event.happened.about.job.as_ref().expect("a job").as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_store_that_forgot_an_old_id_is_answered_with_a_gap() {
    let Some(mut store) = Store::start().await else { return };
    push(&store.engine, job("q", "kept")).await;
    let kept = end(&store.engine).await;
    store.save();
    push(&store.engine, job("q", "lost")).await;
    let lost = end(&store.engine).await;
    assert_eq!((lost.life, lost.number), (kept.life, kept.number + 1));
    store.restart();
    // Nobody has called since: this very call finds that the store has forgotten, before it answers.
    let first = read(&store.engine, EventsSince::Id(lost)).await;
    let gap = first.gap.clone().expect("something is missing");
    assert_eq!((gap.after, gap.why), (lost, GapWhy::Restarted));
    assert_ne!(first.next.life, lost.life);
    assert_eq!(pushed(&first), ["kept"]);
    // What another has pushed takes the number that was lost, in another life.
    let other = another(&store.server);
    set(&other, &store.clock).await;
    push(&other, job("q", "next")).await;
    let again = read(&other, EventsSince::Id(lost)).await;
    assert_eq!(again.gap.clone().expect("it is another life").why, GapWhy::Restarted);
    assert_eq!(pushed(&again), ["kept", "next"]);
    // Whoever has seen the gap goes on.
    let on = read(&other, EventsSince::Id(first.next)).await;
    assert_eq!((&on.gap, pushed(&on)), (&None, vec!["next"]));
    is_whole(&other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_before_the_loss_is_found_is_in_the_new_life() {
    let Some(mut store) = Store::start().await else { return };
    push(&store.engine, job("q", "kept")).await;
    store.save();
    push(&store.engine, job("q", "lost")).await;
    let lost = end(&store.engine).await;
    store.restart();
    // A push does not look which run of the server answers it.
    push(&store.engine, job("q", "early")).await;
    let first = read(&store.engine, EventsSince::Id(lost)).await;
    assert_eq!(first.gap.clone().expect("the number was another's").why, GapWhy::Restarted);
    assert_eq!(pushed(&first), ["kept", "early"]);
    is_whole(&store.engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_lost_whole_begins_a_new_life() {
    let Some(mut store) = Store::start().await else { return };
    let worker = lock_of(&store).await;
    let seen = end(&store.engine).await;
    store.restart();
    let first = read(&store.engine, EventsSince::Id(seen)).await;
    let gap = first.gap.clone().expect("all is lost");
    assert_eq!((gap.after, gap.why), (seen, GapWhy::Restarted));
    assert!(lives(&store.engine, &worker).await, "its holder claims it");
    let next = read(&store.engine, EventsSince::Id(first.next)).await;
    assert_eq!(next.gap, None);
    let granted = next.items.iter().find(|event| event.happened.kind == EventType::LeaseGranted);
    assert_eq!(granted.map(|event| &event.happened.about.lease), Some(&worker.lease));
    is_whole(&store.engine).await;
}

async fn lock_of(store: &Store) -> tenure_core::lease::LeaseView {
    take(&store.engine, locks("lock:deploy", "holder", Span::from_s(60))).await.expect("the lock")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_lost_nothing_goes_on_in_the_same_life() {
    if !tenure_testkit::redis::wanted() {
        return;
    }
    let mut server =
        tenure_testkit::redis::RedisServer::start(tenure_testkit::redis::Aof::Always, &[]);
    let engine = open(&format!("{}?forgets=never", server.url()));
    push(&engine, job("q", "before")).await;
    let seen = end(&engine).await;
    server.kill();
    server.restart();
    push(&engine, job("q", "after")).await;
    let on = read(&engine, EventsSince::Id(seen)).await;
    assert_eq!((&on.gap, pushed(&on)), (&None, vec!["after"]));
    is_whole(&engine).await;
}
