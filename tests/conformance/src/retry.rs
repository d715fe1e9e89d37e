//! Making a finished job ready again.

use tenure_core::job::{JobState, OnConflict};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

fn again(id: &str) -> RetryJob {
    RetryJob { job: job_ref(id), finished_at: None }
}

pub(crate) async fn a_failed_job_is_made_ready_with_its_errors(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(2, 3, fixed(s(1))))).await;
    for _ in 0..2 {
        let lease = b.take("q").await;
        b.settle(failed(&lease)).await;
        b.pass(s(2)).await;
    }
    b.is("a", JobState::Failed).await;
    let view = *b.ok(again("a")).await;
    assert_eq!((view.state, view.attempt, view.finished_at), (JobState::Ready, 0, None));
    assert_eq!(view.errors.len(), 2, "errors are kept");
    let lease = b.take("q").await;
    assert_eq!(lease.job.as_ref().map(|job| job.attempt), Some(1));
    assert_eq!(b.settle(failed(&lease)).await.state, Some(JobState::Scheduled));
}

pub(crate) async fn a_cancelled_job_is_made_ready(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    b.cancel("a").await;
    assert_eq!(b.ok(again("a")).await.state, JobState::Ready);
    let lease = b.take_job("q", "a").await;
    let settled = b.settle(snoozed(&lease, s(1))).await;
    assert_eq!(settled.state, Some(JobState::Scheduled), "the cancel is over");
}

pub(crate) async fn a_job_that_succeeded_or_runs_cannot_be_retried(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let leases = b.take_all("q", 2).await;
    b.settle(succeeded(&leases[0])).await;
    b.refused(Code::WrongState, again("j0")).await;
    b.refused(Code::WrongState, again("j1")).await;
    b.refused(Code::JobNotFound, again("nobody")).await;
    b.is("j1", JobState::Running).await;
}

pub(crate) async fn only_the_end_that_is_meant_is_retried(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(1, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    let first = b.job("a").await.finished_at;
    b.ok(RetryJob { job: job_ref("a"), finished_at: first }).await;
    b.pass(s(1)).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    b.refused(Code::WrongState, RetryJob { job: job_ref("a"), finished_at: first }).await;
    let second = b.is("a", JobState::Failed).await.finished_at;
    assert_ne!(first, second);
    b.ok(RetryJob { job: job_ref("a"), finished_at: second }).await;
    b.is("a", JobState::Ready).await;
}

pub(crate) async fn a_retry_takes_its_key_again(b: &mut Bench) {
    let keyed = |id: &str| job("q").id(id).unique(unique("k", OnConflict::Keep));
    b.push(keyed("a")).await;
    b.cancel("a").await;
    b.ok(again("a")).await;
    let second = b.push(keyed("b")).await;
    assert!(second.duplicate);
    assert_eq!(second.job.id.as_str(), "a");
}

pub(crate) async fn a_retry_of_a_job_whose_key_is_taken_is_refused(b: &mut Bench) {
    let keyed = |id: &str| job("q").id(id).unique(unique("k", OnConflict::Keep));
    b.push(keyed("a")).await;
    b.cancel("a").await;
    b.push(keyed("b")).await;
    let no = b.refused(Code::UniqueConflict, again("a")).await;
    assert_eq!(no.job.as_deref(), Some("b"));
    b.is("a", JobState::Cancelled).await;
}

pub(crate) async fn a_retried_job_is_retained_anew(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(10))).await;
    b.cancel("a").await;
    b.pass(s(5)).await;
    b.ok(again("a")).await;
    b.pass(s(20)).await;
    b.is("a", JobState::Ready).await;
}

pub(crate) async fn many_are_retried_by_a_filter(b: &mut Bench) {
    b.push_all(jobs("q", "j", 5)).await;
    let leases = b.take_all("q", 5).await;
    for lease in &leases[..3] {
        b.settle(failed_for_good(lease)).await;
    }
    b.settle(succeeded(&leases[3])).await;
    b.settle(released(&leases[4])).await;
    b.cancel("j4").await;
    let states = vec![JobState::Failed];
    let filter = JobFilter { queue: Some(queue("q")), states, ..JobFilter::default() };
    let done = b.ok(RetryJobs { filter: filter.clone(), max: 2, cursor: None }).await;
    assert_eq!((done.done, done.more), (2, true));
    let done = b.ok(RetryJobs { filter: filter.clone(), max: 1_000, cursor: None }).await;
    assert_eq!((done.done, done.more), (1, false));
    assert_eq!(b.ok(RetryJobs { filter, max: 1_000, cursor: None }).await.done, 0);
    b.is("j4", JobState::Cancelled).await;
    assert_eq!(b.take_all("q", 10).await.len(), 3);
}
