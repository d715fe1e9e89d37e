//! A push that replaced the content of another job left no job of its own: a repeat of it changes nothing, for a minute.

use tenure_core::job::{JobState, NewJob, OnConflict, PushedJob, Unique, Until};
use tenure_core::lease::SettleItem;
use tenure_core::requests::Audit;

use crate::bench::Bench;
use crate::calls::flows::FlowWords as _;
use crate::words::*;

fn until(until: Until, id: &str) -> NewJob {
    let unique = Unique { until, ..unique("k", OnConflict::Replace) };
    job("q").id(id).payload(&format!("\"{id}\"")).unique(unique)
}
fn to_start(id: &str) -> NewJob {
    until(Until::Start, id)
}
fn to_end(id: &str) -> NewJob {
    until(Until::End, id)
}

/// Checks that the push replaces the content of the job.
async fn replaces(b: &Bench, push: NewJob, there: &str) -> PushedJob {
    let pushed = b.push(push).await;
    assert!(pushed.duplicate && pushed.replaced);
    assert_eq!(pushed.job.id.as_str(), there);
    pushed
}

/// Checks that the push does nothing, and is answered with the job.
async fn is_repeat(b: &Bench, push: NewJob, there: &str) -> PushedJob {
    let id = push.id.clone().expect("it has an id");
    let pushed = b.push(push).await;
    assert!(pushed.duplicate && !pushed.replaced, "nothing happened in this call");
    assert_eq!(pushed.job.id.as_str(), there);
    b.no_job(id.as_str()).await;
    pushed
}

async fn has_payload(b: &Bench, id: &str, text: &str) {
    assert_eq!(b.job(id).await.payload, Some(json(&format!("\"{text}\""))));
}

pub(crate) async fn a_repeat_while_the_job_runs_stores_no_second_job(b: &mut Bench) {
    b.push(to_start("a")).await;
    replaces(b, to_start("b"), "a").await;
    let lease = b.take_job("q", "a").await;
    let again = is_repeat(b, to_start("b"), "a").await;
    assert_eq!(again.job.state, JobState::Running);
    b.none("q").await;
    b.settle(succeeded(&lease)).await;
    let again = is_repeat(b, to_start("b"), "a").await;
    assert_eq!(again.job.state, JobState::Succeeded);
    b.none("q").await;
    assert!(!b.push(to_start("c")).await.duplicate, "a push of its own is a new job");
}

pub(crate) async fn a_repeat_after_the_end_stores_no_second_job(b: &mut Bench) {
    b.push(to_end("a")).await;
    replaces(b, to_end("b"), "a").await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    is_repeat(b, to_end("b"), "a").await;
    b.none("q").await;
}

pub(crate) async fn a_repeat_does_not_bring_older_content_back(b: &mut Bench) {
    b.push(to_end("a")).await;
    replaces(b, to_end("b"), "a").await;
    is_repeat(b, to_end("b"), "a").await;
    replaces(b, to_end("c"), "a").await;
    is_repeat(b, to_end("b"), "a").await;
    has_payload(b, "a", "c").await;
    is_repeat(b, to_end("c"), "a").await;
    assert!(b.push(to_end("a")).await.duplicate, "the first push was never different");
    has_payload(b, "a", "c").await;
}

pub(crate) async fn a_repeat_does_not_move_a_job(b: &mut Bench) {
    let push = |id: &str| {
        let unique = Unique { within: Some(s(60)), ..unique("k", OnConflict::Replace) };
        job("q").id(id).delay(s(20)).unique(unique)
    };
    b.push(push("a")).await;
    b.pass(s(5)).await;
    let first = replaces(b, push("b"), "a").await;
    b.pass(s(5)).await;
    let again = is_repeat(b, push("b"), "a").await;
    assert_eq!(again.job.run_at, first.job.run_at);
}

pub(crate) async fn a_repeat_of_a_push_that_revived_a_job_changes_nothing(b: &mut Bench) {
    let push = |id: &str| {
        let unique = Unique { hold: Some(hours(1)), ..unique("k", OnConflict::Replace) };
        job("q").id(id).payload(&format!("\"{id}\"")).unique(unique)
    };
    b.push(push("a")).await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    replaces(b, push("b"), "a").await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    let again = is_repeat(b, push("b"), "a").await;
    assert_eq!(again.job.state, JobState::Succeeded);
    b.none("q").await;
    replaces(b, push("c"), "a").await;
}

pub(crate) async fn a_push_that_comes_twice_in_one_call_replaces_once(b: &mut Bench) {
    let second = |payload: &str| to_end("b").payload(payload);
    b.push(to_end("a")).await;
    let pushed = b.push_all(vec![second("1"), second("2"), to_end("c"), second("3")]).await;
    let said: Vec<_> = pushed.iter().map(|one| (one.job.id.as_str(), one.replaced)).collect();
    assert_eq!(said, [("a", true), ("a", false), ("a", true), ("a", false)]);
    assert!(pushed.iter().all(|one| one.duplicate));
    has_payload(b, "a", "c").await;
    // The same if the job is of that call, or of another key.
    let other = |id: &str| job("q").id(id).unique(unique("other", OnConflict::Replace));
    let pushed = b.push_all(vec![other("d"), other("e"), other("e"), to_end("e")]).await;
    let said: Vec<_> = pushed.iter().map(|one| (one.job.id.as_str(), one.replaced)).collect();
    assert_eq!(said, [("d", false), ("d", true), ("d", false), ("d", false)]);
    is_repeat(b, other("e"), "d").await;
    has_payload(b, "a", "c").await;
}

pub(crate) async fn a_follow_up_that_replaced_is_remembered(b: &mut Bench) {
    b.push(to_start("a")).await;
    b.push(job("carrier").id("x").retain(s(600))).await;
    let carrier = b.take("carrier").await;
    let item = SettleItem { push: vec![to_start("b")], ..succeeded(&carrier) };
    let settled = b.settle(item.clone()).await;
    assert!(settled.pushed[0].replaced);
    b.take_job("q", "a").await;
    is_repeat(b, to_start("b"), "a").await;
    let again = b.settle(item).await;
    assert_eq!(again.pushed.len(), 1, "a repeated settle shows the job that was replaced");
    let shown = &again.pushed[0];
    assert!(shown.duplicate && !shown.replaced && shown.job.id.as_str() == "a");
    // A follow-up of another settle is the same push as well.
    b.push(job("carrier").id("y")).await;
    let carrier = b.take("carrier").await;
    let settled = b.settle(SettleItem { push: vec![to_start("b")], ..succeeded(&carrier) }).await;
    assert!(settled.pushed[0].duplicate && !settled.pushed[0].replaced);
    b.none("q").await;
}

pub(crate) async fn a_repeat_says_what_is_known_of_a_job_that_is_gone(b: &mut Bench) {
    let pushed_at = b.now();
    b.push(to_start("a").retain(s(0))).await;
    b.pass(s(1)).await;
    let first = replaces(b, to_start("b").delay(s(5)), "a").await;
    b.pass(s(6)).await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    b.pass(s(1)).await;
    b.no_job("a").await;
    let again = is_repeat(b, to_start("b"), "a").await;
    let (was, is) = (&first.job, &again.job);
    assert_eq!((is.queue.as_str(), is.created_at), ("q", pushed_at));
    assert_eq!((is.state, is.run_at), (was.state, was.run_at), "as the first was answered");
    assert_eq!(is.payload, None, "what it carried is gone");
    b.none("q").await;
    // Its id is another job's by now: the push is still not of that one.
    b.push(job("q").id("a").delay(s(600))).await;
    let again = is_repeat(b, to_start("b"), "a").await;
    assert_eq!(again.job.created_at, pushed_at);
}

pub(crate) async fn a_push_that_replaced_is_remembered_for_a_minute(b: &mut Bench) {
    b.push(to_start("a")).await;
    replaces(b, to_start("b"), "a").await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    b.pass(s(55)).await;
    is_repeat(b, to_start("b"), "a").await;
    // A repeat does not extend the time.
    b.pass(s(6)).await;
    assert!(!b.push(to_start("b")).await.duplicate, "it is a push of its own");
    b.take_job("q", "b").await;
}

pub(crate) async fn more_pushes_are_forgotten_than_one_tick_carries(b: &mut Bench) {
    b.push(to_end("a").delay(hours(1))).await;
    for part in 0..3 {
        let ids = (0..1_000).map(|n| to_end(&format!("b{part}-{n}")).delay(hours(1)));
        b.push_all(ids.collect()).await;
    }
    b.pass(s(65)).await;
    let pushed = b.push(to_end("b0-0").delay(hours(1))).await;
    assert!(pushed.replaced);
    let pushed = b.push(to_end("b2-999").delay(hours(1))).await;
    assert!(pushed.replaced);
}

pub(crate) async fn a_job_of_that_id_goes_before_what_is_remembered(b: &mut Bench) {
    b.push(to_start("a")).await;
    replaces(b, to_start("b"), "a").await;
    b.take_job("q", "a").await;
    // A push without a key, or one that keeps, is no repeat of a push that replaces.
    assert!(!b.push(job("q").id("b")).await.duplicate);
    let pushed = b.push(to_start("b")).await;
    assert!(pushed.duplicate && pushed.job.id.as_str() == "b");
    b.take_job("q", "b").await;
}

pub(crate) async fn a_push_that_kept_what_is_there_is_not_remembered(b: &mut Bench) {
    b.push(to_start("a")).await;
    let keep = || {
        let unique = Unique { until: Until::Start, ..unique("k", OnConflict::Keep) };
        job("q").id("b").unique(unique)
    };
    assert!(b.push(keep()).await.duplicate);
    b.take_job("q", "a").await;
    assert!(!b.push(keep()).await.duplicate, "its content never ran");
    b.take_job("q", "b").await;
    // Nor is one that met a running job.
    b.push(to_end("c")).await;
    let lease = b.take_job("q", "c").await;
    assert!(!b.push(to_end("d")).await.replaced);
    b.settle(succeeded(&lease)).await;
    assert!(!b.push(to_end("d")).await.duplicate);
    b.take_job("q", "d").await;
}

pub(crate) async fn what_its_own_call_cancelled_is_not_replaced(b: &mut Bench) {
    b.push(job("q").id("parent")).await;
    let lease = b.take("q").await;
    b.settle(failed_for_good(&lease)).await;
    let keeps = job("q").id("a").payload("\"a\"").unique(unique("k", OnConflict::Keep));
    let pushed = b.push_all(vec![keeps.after(["parent"]), to_end("b")]).await;
    let said: Vec<_> = pushed.iter().map(|one| (one.job.id.as_str(), one.replaced)).collect();
    assert_eq!(said, [("a", false), ("a", false)]);
    b.is("a", JobState::Cancelled).await;
    has_payload(b, "a", "a").await;
    b.none("q").await;
}

pub(crate) async fn children_may_wait_for_a_push_that_is_repeated(b: &mut Bench) {
    b.push(to_end("a")).await;
    let call = || vec![to_end("b").called("parent"), job("q").id("c").after_item("parent")];
    let pushed = b.push_all(call()).await;
    assert!(pushed[0].replaced && !pushed[1].duplicate);
    let again = b.push_all(call()).await;
    assert!(again.iter().all(|one| one.duplicate && !one.replaced));
    assert_eq!(again[0].job.id.as_str(), "a");
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    b.take_job("q", "c").await;
}

pub(crate) async fn a_job_may_be_younger_than_the_clock_of_the_push_that_replaces_it(
    b: &mut Bench,
) {
    b.push(to_end("a").delay(hours(5))).await;
    if !b.back(hours(1)).await {
        return;
    }
    replaces(b, to_end("b"), "a").await;
    is_repeat(b, to_end("b"), "a").await;
    let audit = b.ok(Audit::default()).await;
    assert!(audit.ok, "{:?}", audit.faults);
}
