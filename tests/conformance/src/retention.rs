//! How long finished jobs are kept.

use tenure_core::bounds::{RETAIN_FAILED_US, RETAIN_SUCCEEDED_US};
use tenure_core::job::JobState;
use tenure_core::settings::QueueSettings;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::words::*;

/// Finishes one job of each end in the queue.
async fn finish(b: &Bench, queue: &str) {
    b.push_all(["s", "f", "c"].map(|id| job(queue).id(id)).to_vec()).await;
    let leases = b.take_all(queue, 2).await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.cancel("c").await;
}

pub(crate) async fn failures_are_kept_longer_than_the_rest(b: &mut Bench) {
    finish(b, "q").await;
    b.leap(Span::from_us(RETAIN_SUCCEEDED_US - 1_000_000)).await;
    for id in ["s", "f", "c"] {
        b.job(id).await;
    }
    b.leap(s(2)).await;
    b.no_job("s").await;
    b.no_job("c").await;
    b.is("f", JobState::Failed).await;
    b.leap(Span::from_us(RETAIN_FAILED_US - RETAIN_SUCCEEDED_US - 3_000_000)).await;
    b.is("f", JobState::Failed).await;
    b.leap(s(5)).await;
    b.no_job("f").await;
}

pub(crate) async fn a_stated_retain_holds_for_every_end(b: &mut Bench) {
    let settings = QueueSettings { retain: Some(s(30)), ..QueueSettings::default() };
    b.set_queue("q", settings).await;
    finish(b, "q").await;
    b.push(job("q").id("own").retain(s(60))).await;
    b.cancel("own").await;
    b.pass(s(29)).await;
    for id in ["s", "f", "c", "own"] {
        b.job(id).await;
    }
    b.pass(s(2)).await;
    for id in ["s", "f", "c"] {
        b.no_job(id).await;
    }
    b.job("own").await;
    b.pass(s(30)).await;
    b.no_job("own").await;
}

pub(crate) async fn what_is_not_retained_is_gone_at_once(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(0))).await;
    let lease = b.take("q").await;
    assert_eq!(b.settle(succeeded(&lease)).await.state, Some(JobState::Succeeded));
    b.pass(ms(1)).await;
    b.no_job("a").await;
    assert!(!b.push(job("q").id("a")).await.duplicate, "its id is free with it");
}

pub(crate) async fn an_id_is_free_when_its_job_is_gone(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(5))).await;
    b.cancel("a").await;
    assert!(b.push(job("q").id("a")).await.duplicate);
    b.pass(s(6)).await;
    assert!(!b.push(job("q").id("a")).await.duplicate);
    b.take_job("q", "a").await;
}

pub(crate) async fn what_waits_is_kept_for_ever(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(1))).await;
    b.leap(hours(24 * 30)).await;
    b.take_job("q", "a").await;
}
