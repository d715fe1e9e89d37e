//! Failed jobs, counted by their common properties.

use tenure_core::names::QueueName;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::many::failed_with;
use crate::words::*;

/// A job of this queue and kind that fails with this error, and then a second passes.
async fn fails(b: &Bench, name: &str, kind: &str, id: &str, error: &str) {
    b.push(job(name).id(id).kind(kind)).await;
    let lease = b.take_job(name, id).await;
    b.settle(failed_with(&lease, error)).await;
    b.pass(s(1)).await;
}

fn row(group: &FailureGroup) -> (&str, &str, &str, u64, &str) {
    let FailureGroup { queue, kind, error, count, job, .. } = group;
    (queue.as_str(), kind, error, *count, job.as_str())
}

async fn rows(b: &Bench, asked: ListFailures) -> Vec<FailureGroup> {
    let found = b.ok(asked).await;
    assert!(!found.partial);
    found.items
}

pub(crate) async fn a_failed_job_that_others_wait_for_is_a_failure(b: &mut Bench) {
    fails(b, "crawl", "fetch", "a", "http 502").await;
    b.push(job("crawl").id("b").kind("fetch")).await;
    b.push(job("q").id("c").after(["b"]).run_anyway()).await;
    b.settle(failed_with(&b.take_job("crawl", "b").await, "http 503")).await;
    b.pass(s(1)).await;
    // A job that had failed before it was named as a parent.
    b.push(job("q").id("d").after(["a"]).run_anyway()).await;
    for _ in 0..2 {
        let all = rows(b, ListFailures::default()).await;
        let counted: Vec<_> = all.iter().map(row).collect();
        assert_eq!(counted, [("crawl", "fetch", "http #", 2, "b")]);
        // Once no job names them any more, they are counted once, too.
        b.cancel("c").await;
        b.cancel("d").await;
    }
}

pub(crate) async fn failures_are_grouped_by_queue_kind_and_error(b: &mut Bench) {
    assert_eq!(b.ok(ListFailures::default()).await, Failures::default());
    fails(b, "crawl", "fetch", "a", "http 502").await;
    fails(b, "crawl", "fetch", "b", "http 503\nbody: 17 bytes").await;
    fails(b, "crawl", "fetch", "c", "connection refused").await;
    fails(b, "crawl", "visit", "d", "http 502").await;
    fails(b, "mail", "fetch", "e", "http 404").await;
    let long = "x".repeat(200);
    fails(b, "mail", "fetch", "f", &long).await;
    // A job that waits for its next attempt or was cancelled has not failed.
    b.push(job("mail").id("waits")).await;
    let lease = b.take_job("mail", "waits").await;
    b.settle(failed_until(&lease, s(600))).await;
    b.push(job("mail").id("cancelled")).await;
    b.cancel("cancelled").await;
    let all = rows(b, ListFailures::default()).await;
    let cut = "x".repeat(120);
    let found: Vec<_> = all.iter().map(row).collect();
    let expected = [
        ("crawl", "fetch", "http #", 2, "b"),
        ("mail", "fetch", cut.as_str(), 1, "f"),
        ("mail", "fetch", "http #", 1, "e"),
        ("crawl", "visit", "http #", 1, "d"),
        ("crawl", "fetch", "connection refused", 1, "c"),
    ];
    assert_eq!(found, expected, "largest count first, then the latest");
    let ended = |id: &str| {
        let job = b.job(id);
        async move { job.await.finished_at.expect("it ended") }
    };
    assert_eq!((all[0].first_at, all[0].last_at), (ended("a").await, ended("b").await));
}

pub(crate) async fn failures_are_asked_for_by_queue_kind_and_time(b: &mut Bench) {
    fails(b, "crawl", "fetch", "a", "one").await;
    fails(b, "crawl", "visit", "b", "two").await;
    fails(b, "mail", "fetch", "c", "three").await;
    fails(b, "mail", "", "d", "four").await;
    let of = |name: &str| Some(queue(name));
    let errors = async |queue: Option<QueueName>, kind: Option<&str>, max: usize| {
        let kind = kind.map(str::to_owned);
        let asked = ListFailures { queue, kind, finished_after: None, max };
        rows(b, asked).await.into_iter().map(|group| group.error).collect::<Vec<_>>()
    };
    assert_eq!(errors(of("crawl"), None, 100).await, ["two", "one"]);
    assert_eq!(errors(None, Some("fetch"), 100).await, ["three", "one"]);
    assert_eq!(errors(None, Some(""), 100).await, ["four"]);
    assert_eq!(errors(of("nobody's"), None, 100).await, [""; 0]);
    assert_eq!(errors(None, None, 1).await, ["four"], "at most so many groups");
    let from = b.job("b").await.finished_at;
    let asked = ListFailures { queue: of("crawl"), finished_after: from, ..Default::default() };
    let found = rows(b, asked).await;
    assert_eq!(found.iter().map(row).collect::<Vec<_>>(), [("crawl", "visit", "two", 1, "b")]);
}

pub(crate) async fn a_job_that_is_retried_or_deleted_is_no_failure(b: &mut Bench) {
    for id in ["a", "b", "c"] {
        fails(b, "q", "", id, "http 500").await;
    }
    b.ok(RetryJob { job: job_ref("c"), finished_at: None }).await;
    b.ok(DeleteJob { job: job_ref("b") }).await;
    let left = rows(b, ListFailures::default()).await;
    assert_eq!(left.iter().map(row).collect::<Vec<_>>(), [("q", "", "http #", 1, "a")]);
    let error = Some("http 500".to_owned());
    let filter = JobFilter { error, ..JobFilter::default() };
    assert_eq!(b.ok(RetryJobs { filter, max: 10, cursor: None }).await, DoneMany::all(1));
    assert!(rows(b, ListFailures::default()).await.is_empty());
}

pub(crate) async fn many_failures_are_counted_page_by_page(b: &mut Bench) {
    b.push_all(jobs("q", "j", 600)).await;
    let leases = b.take_all("q", 600).await;
    for some in leases.chunks(300) {
        let settle = some.iter().map(|lease| failed_with(lease, "http 500")).collect();
        b.ok(Settle::of(settle)).await;
    }
    let found = rows(b, ListFailures::default()).await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].count, found[0].error.as_str()), (600, "http #"));
}
