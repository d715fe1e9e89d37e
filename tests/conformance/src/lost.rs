//! A dead holder loses its lease, and only then; poison, suspects, leases that were never delivered.

use tenure_core::job::{JobState, JobView, Outcome};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::QueueSettings;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::words::*;

/// Takes the next job of the queue and lets its holder die. The job must be ready.
async fn lose(b: &Bench, id: &str) -> JobView {
    let lease = b.granted(b.ask("q").ttl(s(5))).await;
    assert_eq!(job_of(&lease), id);
    b.until_it_ends(id, s(10)).await
}

pub(crate) async fn a_dead_holder_loses_its_lease_and_only_then(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.set_pool("p", plain_pool(), vec![thing("r")]).await;
    b.push(job("q").id("a").needs([need("l"), any_of("p")])).await;
    let lease = b.granted(b.ask("q").ttl(s(10))).await;
    b.pass(s(9)).await;
    b.is("a", JobState::Running).await;
    b.in_use("l", 1).await;
    b.pass(s(2)).await;
    let view = b.is("a", JobState::Scheduled).await;
    assert_eq!((view.lost, view.attempt, view.lease), (1, 0, None));
    let error = view.errors.last().expect("a reap is listed");
    assert_eq!(error.outcome, Outcome::Lost);
    b.in_use("l", 0).await;
    assert_eq!(b.pool("p").await.available, 1);
    b.is_lost(&lease).await;
}

pub(crate) async fn a_suspect_waits_longer_with_each_loss(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 0, fixed(s(1))))).await;
    for (lost, wait) in [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60)] {
        let view = lose(b, "a").await;
        assert_eq!((view.state, view.lost), (JobState::Scheduled, lost), "0 is never poison");
        assert_eq!(view.run_at, b.now().plus(s(wait)), "after {lost}");
        b.pass(s(wait)).await;
        b.pass(ms(1)).await;
        b.is("a", JobState::Ready).await;
    }
}

pub(crate) async fn a_queue_says_how_long_a_lost_job_waits(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 0, fixed(s(1))))).await;
    let delay = |lost_delay| QueueSettings { lost_delay, ..QueueSettings::default() };
    // A change is for jobs that are lost from now on, whenever they were pushed.
    b.set_queue("q", delay(Some(s(7)))).await;
    for lost in 1..=2 {
        let view = lose(b, "a").await;
        assert_eq!((view.state, view.lost), (JobState::Scheduled, lost));
        assert_eq!(view.run_at, b.now().plus(s(7)), "the same each time");
        b.pass(s(7)).await;
        b.pass(ms(1)).await;
    }
    b.set_queue("q", delay(Some(Span::ZERO))).await;
    let view = lose(b, "a").await;
    assert_eq!((view.state, view.lost), (JobState::Ready, 3), "at once");
    b.set_queue("q", delay(None)).await;
    assert_eq!(lose(b, "a").await.run_at, b.now().plus(s(16)));
}

pub(crate) async fn a_lost_job_that_waits_for_nothing_keeps_its_place(b: &mut Bench) {
    let settings = QueueSettings { lost_delay: Some(Span::ZERO), ..QueueSettings::default() };
    b.set_queue("q", settings).await;
    b.push_all(jobs("q", "j", 3)).await;
    lose(b, "j0").await;
    assert_eq!(job_of(&b.granted(b.ask("q").by("other")).await), "j0");
    // It is a suspect all the same.
    b.is("j0", JobState::Running).await;
    assert_eq!(b.job("j0").await.lost, 1);
}

pub(crate) async fn the_reap_that_reaches_max_lost_fails_the_job(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    for lost in 1..=2 {
        assert_eq!(lose(b, "a").await.lost, lost);
        b.pass(s(5)).await;
    }
    let view = lose(b, "a").await;
    assert_eq!((view.state, view.error.as_deref()), (JobState::Failed, Some("poison")));
    assert!(view.finished_at.is_some());
    assert_eq!(view.errors.iter().filter(|error| error.outcome == Outcome::Lost).count(), 3);
    b.pass(s(60)).await;
    b.none("q").await;
}

pub(crate) async fn any_accepted_settle_sets_lost_to_zero(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 2, fixed(s(1))))).await;
    for outcome in ["released", "snoozed", "failed"] {
        assert_eq!(lose(b, "a").await.state, JobState::Scheduled, "in a row, before {outcome}");
        b.pass(s(3)).await;
        let lease = b.take("q").await;
        let item = match outcome {
            "released" => released(&lease),
            "snoozed" => snoozed(&lease, s(1)),
            _ => failed(&lease),
        };
        b.settle(item).await;
        assert_eq!(b.job("a").await.lost, 0, "after {outcome}");
        b.pass(s(2)).await;
    }
}

pub(crate) async fn a_lease_without_a_job_is_reaped_too(b: &mut Bench) {
    let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(s(5))).await;
    let waiting = b.ask_needs([need("lock:x")]).wait(s(30));
    let waiting = b.waiting_at("lock:x", 1, waiting).await;
    b.pass(s(4)).await;
    assert!(!waiting.is_answered());
    b.in_use("lock:x", 1).await;
    b.pass(s(2)).await;
    let next = waiting.lease().await;
    assert!(next.fence > lock.fence);
    b.no_settle(Code::LeaseLost, released(&lock)).await;
    b.lives(&next).await;
}

pub(crate) async fn a_worker_is_given_one_suspect_at_a_time(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    b.ok(b.ask("q").max(3).ttl(s(5))).await;
    for id in ["j0", "j1", "j2"] {
        b.until_it_ends(id, s(10)).await;
    }
    b.pass(s(3)).await;
    b.push_all(jobs("q", "sound", 2)).await;
    let taken = b.ok(b.ask("q").by("one").max(10)).await.leases;
    let mut ids = jobs_of(&taken);
    ids.sort_unstable();
    assert_eq!(ids, ["j0", "sound0", "sound1"], "one suspect, and all that are none");
    b.not_granted(b.ask("q").by("one").max(10)).await;
    let other = b.ok(b.ask("q").by("two").max(10)).await.leases;
    assert_eq!(jobs_of(&other), ["j1"]);
    let suspect = taken.iter().find(|lease| job_of(lease) == "j0").expect("it was taken");
    b.settle(succeeded(suspect)).await;
    assert_eq!(job_of(&b.granted(b.ask("q").by("one")).await), "j2");
}

/// Takes the next job of the queue; its worker asks again after this long, and never extends.
async fn never_extended(b: &Bench, id: &str, asks_again_after: Span) -> JobView {
    let lease = b.granted(b.ask("q").by("me").ttl(s(5))).await;
    assert_eq!(job_of(&lease), id);
    b.pass(asks_again_after).await;
    b.not_granted(b.ask("q").by("me")).await;
    b.until_it_ends(id, s(10)).await
}

/// The outcomes of its errors, oldest first.
fn ends(view: &JobView) -> Vec<&'static str> {
    view.errors.iter().map(|error| error.outcome.as_str()).collect()
}

pub(crate) async fn a_lease_that_was_never_delivered_counts_nowhere(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    // Its worker is alive late in the ttl, and yet it never extends: it cannot know of the grant.
    let view = never_extended(b, "a", s(3)).await;
    assert_eq!((view.state, view.lost, view.attempt), (JobState::Ready, 0, 0));
    assert_eq!(ends(&view), ["undelivered"]);
}

pub(crate) async fn a_worker_that_asked_once_more_before_it_died_is_found_out(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 3, fixed(s(1))))).await;
    for lost in 1..=3 {
        let view = never_extended(b, "a", s(1)).await;
        assert_eq!(view.lost, lost, "{:?}", view.errors);
        b.pass(s(5)).await;
    }
    let view = b.is("a", JobState::Failed).await;
    assert_eq!(view.error.as_deref(), Some("poison"));
    assert_eq!(ends(&view), ["lost"; 3]);
}

pub(crate) async fn three_leases_in_a_row_that_were_never_delivered_count_as_one_lost(
    b: &mut Bench,
) {
    b.push(job("q").id("a").retry(retry(20, 2, fixed(s(1))))).await;
    for (nth, lost) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1)] {
        let view = never_extended(b, "a", s(3)).await;
        assert_eq!((view.lost, view.attempt), (lost, 0), "after {nth}");
        assert_eq!(view.errors.len(), nth);
        b.pass(s(3)).await;
    }
    let view = never_extended(b, "a", s(3)).await;
    assert_eq!((view.state, view.error.as_deref()), (JobState::Failed, Some("poison")));
    assert_eq!(ends(&view), ["undelivered"; 6]);
}

pub(crate) async fn a_settle_ends_a_row_of_leases_that_were_never_delivered(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    for _ in 0..2 {
        for _ in 0..2 {
            assert_eq!(never_extended(b, "a", s(3)).await.lost, 0);
            b.pass(s(2)).await;
        }
        let lease = b.take("q").await;
        b.settle(snoozed(&lease, s(1))).await;
        b.pass(s(2)).await;
    }
}

pub(crate) async fn a_lease_that_was_extended_was_delivered(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.granted(b.ask("q").by("me").ttl(s(5))).await;
    b.lives(&lease).await;
    b.pass(s(1)).await;
    b.not_granted(b.ask("q").by("me")).await;
    assert_eq!(b.until_it_ends("a", s(10)).await.lost, 1);
}

pub(crate) async fn a_reaped_job_may_be_retried_by_hand_and_starts_anew(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 1, fixed(s(1))))).await;
    assert_eq!(lose(b, "a").await.state, JobState::Failed);
    b.ok(RetryJob { job: job_ref("a"), finished_at: None }).await;
    let view = b.is("a", JobState::Ready).await;
    assert_eq!(view.attempt, 0);
    assert!(!view.errors.is_empty(), "errors are kept");
    b.take_job("q", "a").await;
}
