//! Queues: settings, counts, and which of them may be deleted.

use std::collections::BTreeMap;

use tenure_core::job::Retry;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::{QueueCounts, QueueSettings};

use crate::bench::Bench;
use crate::words::*;

fn patch(name: &str) -> PatchQueue {
    PatchQueue {
        queue: queue(name),
        needs: Patch::Keep,
        retry: Patch::Keep,
        timeout: Patch::Keep,
        retain: Patch::Keep,
        max_waiting: Patch::Keep,
        lost_delay: Patch::Keep,
        shares: Patch::Keep,
        show_payload: Patch::Keep,
    }
}

pub(crate) async fn a_queue_exists_from_its_first_use(b: &mut Bench) {
    b.refused(Code::QueueNotFound, GetQueue { queue: queue("pushed") }).await;
    b.push(job("pushed")).await;
    b.queue("pushed").await;
    b.none("asked").await;
    b.queue("asked").await;
    b.refused(Code::QueueNotFound, ResumeQueue { queue: queue("nowhere") }).await;
    b.refused(Code::QueueNotFound, DeleteQueue { queue: queue("nowhere") }).await;
}

pub(crate) async fn a_put_replaces_all_settings(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let settings = QueueSettings {
        needs: vec![need("l")],
        retry: Some(Retry::default()),
        timeout: Some(s(5)),
        retain: Some(s(6)),
        max_waiting: Some(7),
        lost_delay: Some(ms(500)),
        shares: BTreeMap::from([(group("g"), 3)]),
        show_payload: false,
    };
    let put = b.set_queue("q", settings.clone()).await;
    assert!(put.created);
    assert_eq!(put.view.settings, settings);
    assert_eq!(b.queue("q").await.settings, settings);
    let only_timeout = QueueSettings { timeout: Some(s(9)), ..QueueSettings::default() };
    let put = b.set_queue("q", only_timeout.clone()).await;
    assert_eq!((put.created, put.view.settings), (false, only_timeout));
}

pub(crate) async fn a_patch_changes_what_it_names(b: &mut Bench) {
    b.set_queue("q", QueueSettings { max_waiting: Some(6), ..QueueSettings::default() }).await;
    let said = PatchQueue { timeout: Patch::Set(s(5)), max_waiting: Patch::Set(7), ..patch("q") };
    assert!(!b.ok(said).await.created);
    let said = PatchQueue { timeout: Patch::Reset, retain: Patch::Set(s(6)), ..patch("q") };
    let put = b.ok(said).await;
    let settings = put.view.settings;
    assert_eq!((put.created, settings.timeout), (false, None));
    assert_eq!((settings.retain, settings.max_waiting), (Some(s(6)), Some(7)));
}

pub(crate) async fn a_patch_of_a_queue_that_is_not_there_is_refused_and_makes_nothing(
    b: &mut Bench,
) {
    let said = || PatchQueue { timeout: Patch::Set(s(5)), ..patch("q") };
    b.refused(Code::QueueNotFound, said()).await;
    b.refused(Code::QueueNotFound, GetQueue { queue: queue("q") }).await;
    // A push makes it.
    assert_eq!(b.push(job("q")).await.job.timeout, None);
    b.ok(said()).await;
    assert_eq!(b.push(job("q")).await.job.timeout, Some(s(5)));
}

pub(crate) async fn jobs_are_counted_by_state(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.hold([need("l")]).await;
    b.push_all((0..2).map(|_| job("q").needs([need("l")])).collect()).await;
    b.none("q").await;
    b.push_all(jobs("q", "r", 3)).await;
    b.push(job("q").delay(s(60))).await;
    let lease = b.take_job("q", "r0").await;
    let counts = b.queue("q").await.counts;
    let expected = QueueCounts { ready: 2, blocked: 2, scheduled: 1, dependent: 0, running: 1 };
    assert_eq!(counts, expected);
    b.settle(succeeded(&lease)).await;
    assert_eq!(b.queue("q").await.counts, QueueCounts { running: 0, ..expected });
}

pub(crate) async fn the_oldest_ready_job_is_shown(b: &mut Bench) {
    assert_eq!(b.ok(PauseQueue { queue: queue("q"), until: None }).await.oldest_ready_at, None);
    b.ok(ResumeQueue { queue: queue("q") }).await;
    b.push(job("q").id("a")).await;
    let first = b.now();
    b.pass(s(5)).await;
    b.push(job("q").id("b")).await;
    assert_eq!(b.queue("q").await.oldest_ready_at, Some(first));
    b.take_job("q", "a").await;
    assert_eq!(b.queue("q").await.oldest_ready_at, Some(b.now()));
    b.take_job("q", "b").await;
    assert_eq!(b.queue("q").await.oldest_ready_at, None);
}

pub(crate) async fn workers_of_a_queue_are_those_of_the_last_minute(b: &mut Bench) {
    b.not_granted(b.ask("q").by("one")).await;
    b.not_granted(b.ask("q").by("one")).await;
    b.not_granted(b.ask("q").by("two")).await;
    b.not_granted(b.ask("other").by("three")).await;
    assert_eq!(b.queue("q").await.workers, 2);
    b.pass(s(40)).await;
    b.not_granted(b.ask("q").by("two")).await;
    b.pass(s(25)).await;
    assert_eq!(b.queue("q").await.workers, 1);
}

pub(crate) async fn a_queue_with_unfinished_jobs_is_not_deleted(b: &mut Bench) {
    b.push(job("q").id("a").delay(s(5))).await;
    b.refused(Code::NotEmpty, DeleteQueue { queue: queue("q") }).await;
    b.pass(s(6)).await;
    b.refused(Code::NotEmpty, DeleteQueue { queue: queue("q") }).await;
    let lease = b.take_job("q", "a").await;
    b.refused(Code::NotEmpty, DeleteQueue { queue: queue("q") }).await;
    b.settle(succeeded(&lease)).await;
    b.ok(DeleteQueue { queue: queue("q") }).await;
    b.refused(Code::QueueNotFound, GetQueue { queue: queue("q") }).await;
}

pub(crate) async fn a_deleted_queue_has_no_settings_left(b: &mut Bench) {
    let settings = QueueSettings { timeout: Some(s(5)), ..QueueSettings::default() };
    b.set_queue("q", settings).await;
    b.ok(DeleteQueue { queue: queue("q") }).await;
    assert_eq!(b.push(job("q")).await.job.timeout, None);
}

pub(crate) async fn a_limit_named_after_a_queue_holds_for_all_its_jobs(b: &mut Bench) {
    b.push_all(jobs("q", "j", 4)).await;
    b.set_limit("queue:q", cap(2)).await;
    assert_eq!(b.take_all("q", 5).await.len(), 2, "also for those pushed before");
    b.in_use("queue:q", 2).await;
    b.none("q").await;
    b.push(job("other")).await;
    b.take("other").await;
    b.set_limit("queue:q", cap(3)).await;
    b.take("q").await;
    b.none("q").await;
}

pub(crate) async fn a_queue_limit_frees_with_its_jobs(b: &mut Bench) {
    b.set_limit("queue:q", cap(1)).await;
    b.push_all(jobs("q", "j", 2)).await;
    let lease = b.take("q").await;
    b.in_use("queue:q", 1).await;
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.settle(succeeded(&lease)).await;
    assert_eq!(job_of(&waiting.lease().await), "j1");
}

pub(crate) async fn a_queue_limit_may_be_a_rate(b: &mut Bench) {
    b.set_limit("queue:q", rate(1, s(10), 1)).await;
    b.push_all(jobs("q", "j", 3)).await;
    assert_eq!(b.take_all("q", 3).await.len(), 1);
    b.pass(ms(9_900)).await;
    b.none("q").await;
    b.pass(ms(200)).await;
    assert_eq!(b.take_all("q", 3).await.len(), 1);
}

pub(crate) async fn a_queue_that_nobody_needs_is_forgotten_in_a_day(b: &mut Bench) {
    b.push(job("once")).await;
    b.settle(succeeded(&b.take("once").await)).await;
    b.none("asked").await;
    b.push(job("waits").delay(hours(100))).await;
    let shares = std::collections::BTreeMap::from([(group("a"), 3)]);
    b.set_queue("set", QueueSettings { shares, ..QueueSettings::default() }).await;
    b.ok(PauseQueue { queue: queue("paused"), until: None }).await;
    b.leap(hours(23)).await;
    b.none("asked").await;
    b.queue("once").await;
    b.leap(hours(3)).await;
    b.refused(Code::QueueNotFound, GetQueue { queue: queue("once") }).await;
    for name in ["asked", "waits", "set", "paused"] {
        b.queue(name).await;
    }
    b.leap(hours(26)).await;
    b.refused(Code::QueueNotFound, GetQueue { queue: queue("asked") }).await;
    let there = b.ok(GetStats).await.queues;
    let names: Vec<&str> = there.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["paused", "set", "waits"]);
    // It is created again by a push.
    b.push(job("once").id("again")).await;
    b.take_job("once", "again").await;
}
