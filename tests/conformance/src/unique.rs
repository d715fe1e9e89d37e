//! "There is one of these": how long a key is held, and the effect of a second push.

use tenure_core::job::{JobState, NewJob, OnConflict, PushedJob, Unique, Until};
use tenure_core::lease::SettleItem;
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

fn keyed(id: &str, on_conflict: OnConflict) -> NewJob {
    job("q").id(id).unique(unique("k", on_conflict))
}
fn until_start(id: &str, on_conflict: OnConflict) -> NewJob {
    let unique = Unique { until: Until::Start, ..unique("k", on_conflict) };
    job("q").id(id).unique(unique)
}

/// Checks that a push with the key meets the job `holder`.
async fn is_held_by(b: &Bench, holder: &str, what: &str) {
    let pushed = b.push(keyed("newcomer", OnConflict::Keep)).await;
    assert!(pushed.duplicate, "the key is held {what}");
    assert_eq!(pushed.job.id.as_str(), holder, "{what}");
    b.no_job("newcomer").await;
}
/// Checks that a push with the key makes a job, and deletes it again.
async fn is_free(b: &Bench, what: &str) {
    let pushed = b.push(keyed("newcomer", OnConflict::Keep)).await;
    assert!(!pushed.duplicate, "the key is free {what}");
    b.ok(DeleteJob { job: job_ref("newcomer") }).await;
}

pub(crate) async fn keep_answers_the_job_that_is_there(b: &mut Bench) {
    b.push(keyed("a", OnConflict::Keep).payload("1").priority(3)).await;
    let second = b.push(keyed("b", OnConflict::Keep).payload("2").priority(9)).await;
    assert!(second.duplicate && !second.replaced);
    assert_eq!((second.job.id.as_str(), second.job.priority), ("a", 3));
    assert_eq!(b.job("a").await.payload, Some(json("1")));
    b.no_job("b").await;
}

pub(crate) async fn a_key_is_held_in_every_state_until_the_end(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let holder = b.hold([need("l")]).await;
    let said = keyed("a", OnConflict::Keep).needs([need("l")]).retry(retry(9, 9, fixed(s(5))));
    b.push(said.delay(s(5))).await;
    is_held_by(b, "a", "before its moment").await;
    b.pass(s(6)).await;
    is_held_by(b, "a", "while it is ready").await;
    b.none("q").await;
    b.is("a", JobState::Blocked).await;
    is_held_by(b, "a", "while it is blocked").await;
    b.settle(released(&holder)).await;
    let lease = b.take("q").await;
    is_held_by(b, "a", "while it runs").await;
    b.settle(failed(&lease)).await;
    is_held_by(b, "a", "between attempts").await;
    b.pass(s(6)).await;
    let lease = b.take("q").await;
    b.settle(snoozed(&lease, s(5))).await;
    is_held_by(b, "a", "while it is snoozed").await;
    b.pass(s(6)).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    is_free(b, "when it succeeded").await;
}

pub(crate) async fn a_key_is_free_after_every_end(b: &mut Bench) {
    b.push(keyed("failed", OnConflict::Keep)).await;
    let lease = b.take("q").await;
    b.settle(failed_for_good(&lease)).await;
    is_free(b, "when it failed").await;
    b.push(keyed("cancelled", OnConflict::Keep)).await;
    b.cancel("cancelled").await;
    is_free(b, "when it is cancelled").await;
    b.push(keyed("expired", OnConflict::Keep).expires(b.now().plus(s(5)))).await;
    b.pass(s(6)).await;
    is_free(b, "when it expired").await;
}

pub(crate) async fn a_key_until_start_is_free_when_its_first_run_begins(b: &mut Bench) {
    b.push(until_start("a", OnConflict::Keep)).await;
    is_held_by(b, "a", "before its first run").await;
    let lease = b.take("q").await;
    is_free(b, "while it runs").await;
    b.settle(failed_until(&lease, s(60))).await;
    is_free(b, "between its attempts").await;
}

pub(crate) async fn two_may_run_when_a_key_ends_at_the_start(b: &mut Bench) {
    b.push(until_start("a", OnConflict::Reject)).await;
    let first = b.take_job("q", "a").await;
    b.push(until_start("b", OnConflict::Reject)).await;
    let no = b.no_push(Code::UniqueConflict, until_start("c", OnConflict::Reject)).await;
    assert_eq!(no.job.as_deref(), Some("b"));
    let second = b.take_job("q", "b").await;
    b.settle(succeeded(&first)).await;
    b.settle(succeeded(&second)).await;
}

pub(crate) async fn a_key_is_held_for_so_long_in_any_case(b: &mut Bench) {
    let hold = Some(s(60));
    for until in [Until::End, Until::Start] {
        let id = format!("{until:?}");
        let unique = Unique { until, hold, ..unique("k", OnConflict::Keep) };
        b.push(job("q").id(&id).unique(unique)).await;
        let lease = b.take("q").await;
        is_held_by(b, &id, "while it runs").await;
        b.settle(succeeded(&lease)).await;
        b.pass(s(50)).await;
        is_held_by(b, &id, "after its end, within the time").await;
        b.pass(s(11)).await;
        is_free(b, "when the time is over").await;
    }
}

pub(crate) async fn a_key_is_held_longer_than_its_time_while_the_job_is_there(b: &mut Bench) {
    let unique = Unique { hold: Some(s(10)), ..unique("k", OnConflict::Keep) };
    b.push(job("q").id("a").unique(unique)).await;
    b.pass(s(20)).await;
    is_held_by(b, "a", "until the end").await;
}

pub(crate) async fn a_key_is_held_on_when_its_job_is_gone(b: &mut Bench) {
    let held = || Unique { hold: Some(s(60)), ..unique("k", OnConflict::Keep) };
    let began = b.now();
    b.push(job("q").id("a").unique(held()).retain(s(0))).await;
    let lease = b.take("q").await;
    b.pass(s(1)).await;
    let ended = b.now();
    b.settle(succeeded(&lease)).await;
    b.pass(s(2)).await;
    b.no_job("a").await;
    let by_push = b.push(job("other").id("b").unique(held())).await;
    b.push(job("carrier")).await;
    let carrier = b.take("carrier").await;
    let with_push =
        SettleItem { push: vec![job("other").id("c").unique(held())], ..succeeded(&carrier) };
    let settled = b.settle(with_push).await;
    for pushed in [&by_push, &settled.pushed[0]] {
        assert!(pushed.duplicate && !pushed.replaced, "the key is held");
        let job = &pushed.job;
        assert_eq!((job.id.as_str(), job.queue.as_str()), ("a", "q"), "by the job that is gone");
        assert_eq!((job.state, job.payload.as_ref()), (JobState::Succeeded, None));
        assert_eq!((job.created_at, job.finished_at), (began, Some(ended)));
    }
    b.no_job("b").await;
    b.no_job("c").await;
    let replaces = Unique { on_conflict: OnConflict::Replace, ..held() };
    assert!(
        !b.push(job("q").id("d").unique(replaces)).await.duplicate,
        "nothing is there to replace"
    );
}

pub(crate) async fn reject_names_the_job_that_is_there(b: &mut Bench) {
    b.push(keyed("a", OnConflict::Reject)).await;
    let no = b.no_push(Code::UniqueConflict, keyed("b", OnConflict::Reject)).await;
    assert_eq!(no.job.as_deref(), Some("a"));
    b.no_job("b").await;
    let lease = b.take("q").await;
    b.no_push(Code::UniqueConflict, keyed("b", OnConflict::Reject)).await;
    b.settle(succeeded(&lease)).await;
    assert!(!b.push(keyed("b", OnConflict::Reject)).await.duplicate);
}

pub(crate) async fn two_of_one_array_with_one_key_are_one_job_even_if_they_reject(b: &mut Bench) {
    let items = || ["a", "b"].map(|id| keyed(id, OnConflict::Reject)).to_vec();
    let ids = |pushed: &[PushedJob]| {
        pushed.iter().map(|one| (one.job.id.to_string(), one.duplicate)).collect::<Vec<_>>()
    };
    let one_job = |duplicate| vec![("a".to_owned(), duplicate), ("a".to_owned(), true)];
    assert_eq!(ids(&b.push_all(items()).await), one_job(false));
    assert_eq!(b.queue("q").await.counts.ready, 1);
    // The key is held by the first, so the same array again is a repeat by its id.
    assert_eq!(ids(&b.push_all(items()).await), one_job(true));
    // A key that was held before the call still refuses all of it.
    let other = vec![job("q").id("c"), keyed("d", OnConflict::Reject)];
    let no = b.refused(Code::UniqueConflict, Push { jobs: other, answer: PushAnswer::Whole }).await;
    assert_eq!((no.index, no.job.as_deref()), (Some(1), Some("a")));
}

pub(crate) async fn a_repeat_by_id_is_no_conflict(b: &mut Bench) {
    b.push(keyed("a", OnConflict::Reject)).await;
    let again = b.push(keyed("a", OnConflict::Reject)).await;
    assert!(again.duplicate, "the same push again is the same job");
}

pub(crate) async fn replace_gives_the_job_that_is_there_the_new_content(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push(keyed("a", OnConflict::Replace).payload("1").group("g").label("k", "1").kind("x")).await;
    let until = b.now().plus(hours(9));
    let second = keyed("b", OnConflict::Replace)
        .payload("2")
        .kind("y")
        .needs([need("l")])
        .priority(8)
        .group("h")
        .label("k", "2")
        .delay(s(30))
        .expires(until);
    let pushed = b.push(second).await;
    assert!(pushed.duplicate && pushed.replaced);
    assert_eq!(pushed.job.id.as_str(), "a", "the id stays");
    let view = b.is("a", JobState::Scheduled).await;
    assert_eq!((view.payload, view.kind.as_str()), (Some(json("2")), "y"));
    assert_eq!((view.needs, view.priority), (vec![need("l")], 8));
    assert_eq!((view.group, view.expires_at), (Some(group("h")), Some(until)));
    assert_eq!(view.run_at, b.now().plus(s(30)));
    assert_eq!(view.labels.get("k").map(String::as_str), Some("2"));
    b.no_job("b").await;
    b.none("q").await;
    b.pass(s(31)).await;
    assert_eq!(b.take_job("q", "a").await.limits, [limit("l")]);
    b.none("q").await;
}

pub(crate) async fn replace_starts_the_attempts_again(b: &mut Bench) {
    let said = keyed("a", OnConflict::Replace).retry(retry(3, 3, fixed(s(100))));
    b.push(said).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    assert_eq!(b.job("a").await.attempt, 1);
    b.push(keyed("b", OnConflict::Replace)).await;
    let view = b.is("a", JobState::Ready).await;
    assert_eq!(view.attempt, 0);
    let lease = b.take_job("q", "a").await;
    assert_eq!(lease.job.as_ref().map(|job| job.attempt), Some(1));
}

pub(crate) async fn replace_frees_a_blocked_job(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(keyed("a", OnConflict::Replace).needs([need("closed")])).await;
    b.none("q").await;
    b.is("a", JobState::Blocked).await;
    b.push(keyed("b", OnConflict::Replace).needs([])).await;
    b.take_job("q", "a").await;
    assert_eq!(b.limit("closed").await.waiting, 0);
}

pub(crate) async fn replace_of_a_running_job_keeps_it(b: &mut Bench) {
    b.push(keyed("a", OnConflict::Replace).payload("1")).await;
    let lease = b.take("q").await;
    let second = b.push(keyed("b", OnConflict::Replace).payload("2")).await;
    assert!(second.duplicate && !second.replaced);
    assert_eq!(second.job.id.as_str(), "a");
    let view = b.is("a", JobState::Running).await;
    assert_eq!((view.payload, view.attempt), (Some(json("1")), 1));
    b.settle(succeeded(&lease)).await;
}

pub(crate) async fn replace_across_queues_is_refused(b: &mut Bench) {
    b.push(keyed("a", OnConflict::Replace).payload("1")).await;
    let elsewhere = job("other").id("b").unique(unique("k", OnConflict::Replace));
    let no = b.no_push(Code::UniqueConflict, elsewhere).await;
    assert_eq!(no.job.as_deref(), Some("a"));
    assert_eq!(b.job("a").await.payload, Some(json("1")));
    b.no_job("b").await;
}

pub(crate) async fn a_key_belongs_to_the_namespace(b: &mut Bench) {
    b.push(keyed("a", OnConflict::Keep)).await;
    let elsewhere = job("other").id("b").unique(unique("k", OnConflict::Keep));
    let pushed = b.push(elsewhere).await;
    assert!(pushed.duplicate);
    assert_eq!((pushed.job.id.as_str(), pushed.job.queue.as_str()), ("a", "q"));
    b.none("other").await;
}

pub(crate) async fn a_job_is_named_by_the_key_that_it_holds_now(b: &mut Bench) {
    b.no_job("key:k").await;
    b.push(keyed("a", OnConflict::Keep)).await;
    assert_eq!(b.job("key:k").await.id.as_str(), "a");
    assert_eq!(b.explain("key:k").await.id.as_str(), "a");
    let lease = b.take("q").await;
    assert_eq!(b.job("key:k").await.state, JobState::Running);
    b.settle(succeeded(&lease)).await;
    b.no_job("key:k").await;
    b.push(keyed("b", OnConflict::Keep)).await;
    assert_eq!(b.job("key:k").await.id.as_str(), "b");
}

/// Takes the job and undoes the grant, like a server that could not write its answer.
async fn grant_in_vain(b: &Bench, id: &str) {
    let lease = b.take_job("q", id).await;
    b.undo(&lease);
    b.eventually("it is ready", async || b.job(id).await.state == JobState::Ready).await;
}

pub(crate) async fn a_key_until_start_comes_back_with_a_grant_that_nobody_received(b: &mut Bench) {
    b.push(until_start("a", OnConflict::Keep)).await;
    grant_in_vain(b, "a").await;
    is_held_by(b, "a", "after a grant that was undone").await;
    assert_eq!(b.job("a").await.started_at, None);
    // The same if the grant is not undone, and its worker makes a call late in the ttl.
    b.granted(b.ask("q").by("me").ttl(s(5))).await;
    b.pass(s(3)).await;
    b.not_granted(b.ask("q").by("me")).await;
    b.until_it_ends("a", s(10)).await;
    is_held_by(b, "a", "after a lease that was never delivered").await;
    let lease = b.take_job("q", "a").await;
    is_free(b, "when its first run begins").await;
    b.settle(released(&lease)).await;
    // It began once: a later grant cannot bring the key back.
    b.pass(s(2)).await;
    grant_in_vain(b, "a").await;
    is_free(b, "after its first run").await;
}

pub(crate) async fn a_key_until_start_that_another_took_meanwhile_stays_with_it(b: &mut Bench) {
    b.push(until_start("a", OnConflict::Keep)).await;
    let lease = b.take_job("q", "a").await;
    b.push(until_start("b", OnConflict::Keep).delay(s(60))).await;
    b.undo(&lease);
    b.eventually("it is ready", async || b.job("a").await.state == JobState::Ready).await;
    is_held_by(b, "b", "that took it meanwhile").await;
    // The second never had the key, so it cannot give it back.
    grant_in_vain(b, "a").await;
    is_held_by(b, "b", "still").await;
    b.cancel("b").await;
    is_free(b, "when its holder ended").await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    assert!(b.ok(Audit::default()).await.ok);
}

pub(crate) async fn a_key_until_start_comes_back_within_its_time_too(b: &mut Bench) {
    let said = Unique { until: Until::Start, hold: Some(s(20)), ..unique("k", OnConflict::Keep) };
    b.push(job("q").id("a").unique(said)).await;
    grant_in_vain(b, "a").await;
    b.pass(s(25)).await;
    is_held_by(b, "a", "beyond its time, since it has not started").await;
    b.take_job("q", "a").await;
    is_free(b, "when its first run begins").await;
}

pub(crate) async fn a_reminder_is_set_moved_and_called_off_by_its_key(b: &mut Bench) {
    let reminder = |wait| {
        let unique = Unique { until: Until::Start, ..unique("meeting-42", OnConflict::Replace) };
        job("q").unique(unique).delay(wait)
    };
    let first = b.push(reminder(s(60))).await.job.id;
    let moved = b.push(reminder(s(10))).await;
    assert!(moved.replaced);
    assert_eq!(moved.job.id, first);
    b.pass(s(11)).await;
    let fired = b.take_job("q", first.as_str()).await;
    let second = b.push(reminder(s(60))).await;
    assert!(!second.duplicate, "it can be set again after it fired");
    b.settle(succeeded(&fired)).await;
    b.ok(DeleteJob { job: job_ref("key:meeting-42") }).await;
    b.no_job(second.job.id.as_str()).await;
    b.pass(s(61)).await;
    b.none("q").await;
}
