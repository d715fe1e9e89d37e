//! Cancelling jobs: at once if they wait, at the end of the run if they run.

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_job_that_waits_is_cancelled_at_once(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(job("q").id("ready")).await;
    b.push(job("q").id("scheduled").delay(s(9))).await;
    b.push(job("other").id("blocked").needs([need("closed")])).await;
    b.none("other").await;
    for id in ["ready", "scheduled", "blocked"] {
        let view = b.cancel(id).await;
        assert_eq!((view.state, view.finished_at), (JobState::Cancelled, Some(b.now())), "{id}");
        b.is(id, JobState::Cancelled).await;
    }
    b.pass(s(10)).await;
    b.none("q").await;
    assert_eq!(b.limit("closed").await.waiting, 0);
}

pub(crate) async fn a_cancelled_job_may_be_cancelled_again(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let first = b.cancel("a").await;
    b.pass(s(1)).await;
    assert_eq!(b.cancel("a").await, first);
}

pub(crate) async fn a_job_that_ended_otherwise_cannot_be_cancelled(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let leases = b.take_all("q", 2).await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[1])).await;
    for id in ["j0", "j1"] {
        b.refused(Code::WrongState, CancelJob { job: job_ref(id) }).await;
    }
    b.refused(Code::JobNotFound, CancelJob { job: job_ref("nobody") }).await;
}

pub(crate) async fn a_running_job_is_told_by_the_next_extend(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    let lease = b.take("q").await;
    assert!(b.extend(&lease).await.cancel.is_empty());
    let view = b.cancel("a").await;
    assert_eq!((view.state, view.cancel_requested), (JobState::Running, true));
    b.cancel("a").await;
    let answer = b.extend(&lease).await;
    assert_eq!(answer.cancel, [id_of(&lease)]);
    assert_eq!(answer.extended.len(), 1, "cancel is a part of extended");
    b.in_use("l", 1).await;
    b.settle(released(&lease)).await;
    b.is("a", JobState::Cancelled).await;
    b.in_use("l", 0).await;
}

pub(crate) async fn the_end_of_a_cancelled_run_is_what_the_contract_says(b: &mut Bench) {
    let table = [
        ("succeeded", JobState::Succeeded),
        ("final failed", JobState::Failed),
        ("failed", JobState::Cancelled),
        ("failed, retry in", JobState::Cancelled),
        ("snoozed", JobState::Cancelled),
        ("released", JobState::Cancelled),
        ("force", JobState::Cancelled),
        ("lost", JobState::Cancelled),
    ];
    for (ends, state) in table {
        b.push(job("q").id(ends)).await;
        let lease = b.granted(b.ask("q").ttl(s(5))).await;
        b.cancel(ends).await;
        let item = match ends {
            "succeeded" => succeeded(&lease),
            "final failed" => failed_for_good(&lease),
            "failed" => failed(&lease),
            "failed, retry in" => failed_until(&lease, s(1)),
            "snoozed" => snoozed(&lease, s(1)),
            "released" => released(&lease),
            "force" => {
                b.ok(ForceLease { lease: id_of(&lease) }).await;
                b.is(ends, state).await;
                continue;
            }
            _ => {
                b.until_it_ends(ends, s(10)).await;
                b.is(ends, state).await;
                continue;
            }
        };
        assert_eq!(b.settle(item).await.state, Some(state), "{ends}");
        assert!(b.is(ends, state).await.finished_at.is_some());
    }
}

pub(crate) async fn a_last_attempt_stands_against_a_cancel(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(1, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    b.cancel("a").await;
    assert_eq!(b.settle(failed(&lease)).await.state, Some(JobState::Failed));
}

pub(crate) async fn a_timeout_of_a_cancelled_run_ends_in_cancelled(b: &mut Bench) {
    b.push(job("q").id("a").timeout(s(10))).await;
    b.take("q").await;
    b.cancel("a").await;
    b.pass(s(11)).await;
    b.is("a", JobState::Cancelled).await;
}

pub(crate) async fn a_cancelled_job_is_found_by_its_key(b: &mut Bench) {
    let key = unique("meeting-42", tenure_core::job::OnConflict::Keep);
    b.push(job("q").id("a").unique(key)).await;
    assert_eq!(b.cancel("key:meeting-42").await.id.as_str(), "a");
    b.is("a", JobState::Cancelled).await;
    b.refused(Code::JobNotFound, CancelJob { job: job_ref("key:meeting-42") }).await;
}

pub(crate) async fn many_are_cancelled_by_a_filter(b: &mut Bench) {
    b.push_all(jobs("q", "x", 3).into_iter().map(|job| job.kind("x")).collect()).await;
    b.push_all(jobs("q", "y", 2).into_iter().map(|job| job.label("site", "s")).collect()).await;
    b.push(job("q").id("late").kind("x").delay(s(100))).await;
    b.push(job("other").id("other").kind("x")).await;
    let filter = JobFilter {
        queue: Some(queue("q")),
        states: vec![JobState::Ready],
        kind: Some("x".to_owned()),
        ..JobFilter::default()
    };
    let done = b.ok(CancelJobs { filter: filter.clone(), max: 2, cursor: None }).await;
    assert_eq!((done.done, done.more), (2, true));
    let done = b.ok(CancelJobs { filter, max: 1_000, cursor: None }).await;
    assert_eq!((done.done, done.more), (1, false));
    for (id, state) in [
        ("x0", JobState::Cancelled),
        ("x1", JobState::Cancelled),
        ("x2", JobState::Cancelled),
        ("y0", JobState::Ready),
        ("late", JobState::Scheduled),
        ("other", JobState::Ready),
    ] {
        b.is(id, state).await;
    }
    let label = Some(("site".to_owned(), "s".to_owned()));
    let filter = JobFilter { states: vec![JobState::Ready], label, ..JobFilter::default() };
    assert_eq!(b.ok(CancelJobs { filter, max: 1_000, cursor: None }).await.done, 2);
    b.is("other", JobState::Ready).await;
}
