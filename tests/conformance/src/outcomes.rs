//! The effect of each outcome on a job: state, attempt, moment of the next run.

use tenure_core::bounds::{ERROR_BYTES_MAX, ERRORS_KEPT};
use tenure_core::job::{Backoff, JobState, Outcome, Retry};
use tenure_core::lease::{Ending, Later};
use tenure_core::settings::QueueSettings;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn succeeded_keeps_the_result(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.pass(s(2)).await;
    let result = Some(json(r#"{"n":1}"#));
    let settled = b.settle(ending(&lease, Ending::Succeeded { result: result.clone() })).await;
    assert_eq!((settled.state, settled.run_at), (Some(JobState::Succeeded), None));
    let view = b.is("a", JobState::Succeeded).await;
    assert_eq!((view.result, view.finished_at), (result, Some(b.now())));
    assert_eq!((view.attempt, view.lease, view.error), (1, None, None));
    b.none("q").await;
}

pub(crate) async fn failed_is_tried_again_after_the_backoff(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(5, 3, fixed(s(7))))).await;
    let lease = b.take("q").await;
    let settled = b.settle(failed(&lease)).await;
    let due = b.now().plus(s(7));
    assert_eq!((settled.state, settled.run_at), (Some(JobState::Scheduled), Some(due)));
    let view = b.is("a", JobState::Scheduled).await;
    assert_eq!((view.attempt, view.run_at, view.lease), (1, due, None));
    assert_eq!(view.error.as_deref(), Some("it broke"));
    assert_eq!(view.errors.len(), 1);
    let error = &view.errors[0];
    assert_eq!((error.attempt, error.outcome, error.at), (1, Outcome::Failed, b.now()));
    b.pass(ms(6_900)).await;
    b.none("q").await;
    b.pass(ms(200)).await;
    assert_eq!(b.take("q").await.job.expect("a job").attempt, 2);
}

pub(crate) async fn a_final_failure_is_not_tried_again(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let settled = b.settle(failed_for_good(&lease)).await;
    assert_eq!((settled.state, settled.run_at), (Some(JobState::Failed), None));
    let view = b.is("a", JobState::Failed).await;
    assert_eq!((view.finished_at, view.attempt), (Some(b.now()), 1));
    b.leap(hours(2)).await;
    b.none("q").await;
}

pub(crate) async fn the_last_attempt_fails_for_good(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(3, 3, fixed(s(1))))).await;
    for attempt in 1..=3 {
        let lease = b.take("q").await;
        assert_eq!(lease.job.as_ref().map(|job| job.attempt), Some(attempt));
        let settled = b.settle(failed(&lease)).await;
        let state = if attempt == 3 { JobState::Failed } else { JobState::Scheduled };
        assert_eq!(settled.state, Some(state), "attempt {attempt}");
        b.pass(ms(1_100)).await;
    }
    b.none("q").await;
}

pub(crate) async fn attempts_without_end_are_tried_without_end(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(0, 3, fixed(s(1))))).await;
    for _ in 0..25 {
        let lease = b.take("q").await;
        b.settle(failed(&lease)).await;
        b.pass(ms(1_100)).await;
    }
    let view = b.is("a", JobState::Ready).await;
    assert_eq!(view.attempt, 25);
    assert_eq!(view.errors.len(), ERRORS_KEPT, "the last errors are kept");
    let attempts: Vec<u32> = view.errors.iter().map(|error| error.attempt).collect();
    assert_eq!(attempts, (6..=25).collect::<Vec<_>>(), "oldest first");
}

pub(crate) async fn the_waits_between_attempts_grow_as_stated(b: &mut Bench) {
    let exponential = Backoff::Exponential { base: s(2), max: s(10), jitter: false };
    let list = Backoff::List { delays: vec![s(1), s(30), s(5)], jitter: false };
    let table: [(&str, Backoff, [u64; 5]); 3] = [
        ("exponential", exponential, [2, 4, 8, 10, 10]),
        ("fixed", fixed(s(3)), [3, 3, 3, 3, 3]),
        ("list", list, [1, 30, 5, 5, 5]),
    ];
    for (name, backoff, waits) in table {
        b.push(job(name).id(name).retry(retry(20, 3, backoff))).await;
        for wait in waits {
            let lease = b.take(name).await;
            let run_at = b.settle(failed(&lease)).await.run_at;
            assert_eq!(run_at, Some(b.now().plus(s(wait))), "{name}");
            b.pass(s(wait)).await;
            b.pass(ms(1)).await;
        }
    }
}

pub(crate) async fn jitter_lies_between_half_the_wait_and_the_whole(b: &mut Bench) {
    let backoff = Backoff::Exponential { base: s(100), max: s(1_000), jitter: true };
    let jobs = jobs("q", "j", 40).into_iter().map(|job| job.retry(retry(5, 3, backoff.clone())));
    b.push_all(jobs.collect()).await;
    let mut waits: Vec<Span> = vec![];
    for lease in b.take_all("q", 40).await {
        let run_at = b.settle(failed(&lease)).await.run_at.expect("a next run");
        waits.push(run_at.since(b.now()));
    }
    assert_eq!(waits.len(), 40);
    assert!(waits.iter().all(|wait| (s(50)..=s(100)).contains(wait)), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait < s(75)), "even, so some are in the lower half");
    assert!(waits.iter().any(|wait| *wait > s(75)), "even, so some are in the upper half");
}

pub(crate) async fn a_stated_retry_replaces_the_backoff(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(5, 3, fixed(hours(1))))).await;
    let lease = b.take("q").await;
    let settled = b.settle(failed_until(&lease, s(10))).await;
    assert_eq!(settled.run_at, Some(b.now().plus(s(10))));
    b.pass(s(11)).await;
    assert_eq!(b.take("q").await.job.expect("a job").attempt, 2, "it is an attempt all the same");
}

pub(crate) async fn a_stated_retry_does_not_add_attempts(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(1, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    assert_eq!(b.settle(failed_until(&lease, s(10))).await.state, Some(JobState::Failed));
}

pub(crate) async fn a_snooze_costs_no_attempt(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(1, 3, fixed(s(1))))).await;
    for _ in 0..3 {
        let lease = b.take("q").await;
        assert_eq!(lease.job.as_ref().map(|job| job.attempt), Some(1));
        let settled = b.settle(snoozed(&lease, s(5))).await;
        let due = b.now().plus(s(5));
        assert_eq!((settled.state, settled.run_at), (Some(JobState::Scheduled), Some(due)));
        assert_eq!(b.job("a").await.attempt, 0, "between runs: those that ended");
        b.pass(ms(4_800)).await;
        b.none("q").await;
        b.pass(ms(300)).await;
    }
}

pub(crate) async fn snoozes_are_counted_until_a_retry(b: &mut Bench) {
    b.push(job("q").id("j")).await;
    assert_eq!(b.job("j").await.snoozed, 0);
    for n in 1..=3 {
        let lease = b.take_job("q", "j").await;
        let item = if n == 2 { snoozed_anew(&lease, s(1)) } else { snoozed(&lease, s(1)) };
        b.settle(item).await;
        assert_eq!(b.job("j").await.snoozed, n);
        b.leap(s(1)).await;
    }
    // A store that is opened again knows them.
    b.reopen().await;
    let lease = b.take_job("q", "j").await;
    b.settle(failed_for_good(&lease)).await;
    assert_eq!(b.job("j").await.snoozed, 3);
    assert_eq!(b.retried("j").await.snoozed, 0);
}

pub(crate) async fn a_snooze_beyond_its_bound_fails_the_job(b: &mut Bench) {
    let bounded = |most| Retry { max_snoozes: Some(most), ..Retry::default() };
    b.push(job("q").id("j").retry(bounded(2))).await;
    assert_eq!(b.job("j").await.retry.max_snoozes, Some(2));
    for _ in 0..2 {
        let lease = b.take_job("q", "j").await;
        b.settle(snoozed(&lease, s(1))).await;
        b.leap(s(1)).await;
    }
    b.reopen().await;
    let lease = b.take_job("q", "j").await;
    let settled = b.settle(snoozed(&lease, s(1))).await;
    assert_eq!((settled.state, settled.run_at), (Some(JobState::Failed), None));
    let there = b.is("j", JobState::Failed).await;
    assert_eq!((there.snoozed, there.attempt), (3, 1));
    let error = there.error.expect("it says why");
    assert!(error.contains("max_snoozes") && error.contains("(2)"), "{error}");
    assert_eq!(there.errors.last().map(|last| last.error.clone()), Some(error));
    // A queue may set it for its jobs, and 0 lets none.
    b.set_queue("none", QueueSettings { retry: Some(bounded(0)), ..QueueSettings::default() })
        .await;
    b.push(job("none").id("at once")).await;
    let lease = b.take_job("none", "at once").await;
    b.settle(snoozed(&lease, s(1))).await;
    b.is("at once", JobState::Failed).await;
}

pub(crate) async fn a_snooze_may_name_its_moment(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let until = b.now().plus(s(90));
    let later = Later::Until(until);
    let settled = b.settle(ending(&lease, Ending::Snoozed { later, reset: false })).await;
    assert_eq!(settled.run_at, Some(until));
}

pub(crate) async fn a_release_costs_nothing(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(1, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    let settled = b.settle(released(&lease)).await;
    assert_eq!(settled.state, Some(JobState::Ready));
    let view = b.job("a").await;
    assert_eq!((view.attempt, view.lost, view.errors.len()), (0, 0, 0));
    assert_eq!(b.take("q").await.job.expect("a job").attempt, 1);
}

pub(crate) async fn attempts_count_what_succeeded_or_failed(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(9, 9, fixed(s(1))))).await;
    let steps: [(&str, u32); 5] =
        [("snoozed", 0), ("failed", 1), ("released", 1), ("lost", 1), ("failed", 2)];
    for (outcome, attempt) in steps {
        let lease = b.granted(b.ask("q").ttl(s(5))).await;
        match outcome {
            "snoozed" => drop(b.settle(snoozed(&lease, s(1))).await),
            "failed" => drop(b.settle(failed(&lease)).await),
            "released" => drop(b.settle(released(&lease)).await),
            _ => drop(b.until_it_ends("a", s(10)).await),
        }
        assert_eq!(b.job("a").await.attempt, attempt, "after {outcome}");
        b.pass(s(3)).await;
    }
}

pub(crate) async fn a_long_error_is_cut_and_its_end_kept(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let error = format!("{}the cause", "x".repeat(ERROR_BYTES_MAX));
    b.settle(ending(&lease, Ending::Failed { error, retry_in: None, last: true })).await;
    let kept = b.job("a").await.error.expect("an error");
    assert!(kept.len() <= ERROR_BYTES_MAX && kept.ends_with("the cause"), "{} bytes", kept.len());
}
