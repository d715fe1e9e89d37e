//! Storing jobs: defaults, ids, arrays, and immediate refusals.

use tenure_core::job::{JobState, Need, NewJob, OnConflict, Retry};
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::QueueSettings;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_job_has_the_defaults_of_the_contract(b: &mut Bench) {
    let pushed = b.push(job("q")).await;
    assert!(!pushed.duplicate && !pushed.replaced, "it is new");
    let view = pushed.job;
    assert!(view.id.as_str().starts_with("job_"), "the id is made: {}", view.id);
    assert_eq!((view.queue.as_str(), view.kind.as_str()), ("q", ""));
    assert_eq!((view.state, view.priority, view.attempt, view.lost), (JobState::Ready, 0, 0, 0));
    assert_eq!((view.run_at, view.created_at), (b.now(), b.now()));
    assert_eq!((view.group, view.unique, view.lease, view.error), (None, None, None, None));
    assert_eq!((view.started_at, view.finished_at, view.expires_at), (None, None, None));
    assert!(view.needs.is_empty() && view.errors.is_empty() && view.labels.is_empty());
    assert_eq!((view.retry, view.timeout), (Retry::default(), None));
    assert!(!view.cancel_requested);
    assert!(b.job(view.id.as_str()).await.payload.is_none_or(|payload| payload.is_null()));
}

pub(crate) async fn a_job_is_shown_as_it_was_pushed(b: &mut Bench) {
    b.set_limit("l", cap(3)).await;
    let far = b.now().plus(hours(5));
    let said = job("q")
        .id("a")
        .kind("fetch")
        .payload(r#"{"url":"x","n":[1,2.5,null]}"#)
        .priority(-7)
        .group("tenant-7")
        .needs([weighing("l", 2)])
        .retry(retry(4, 2, fixed(s(9))))
        .timeout(s(300))
        .expires(far)
        .retain(hours(2))
        .label("k", "v");
    b.push(said.clone()).await;
    let view = b.job("a").await;
    assert_eq!(view.kind, "fetch");
    let payload = view.payload.as_ref().map(value);
    assert_eq!(payload, Some(serde_json::json!({"url": "x", "n": [1, 2.5, null]})));
    assert_eq!((view.priority, view.group.clone()), (-7, said.group));
    assert_eq!((Some(view.needs.clone()), Some(view.retry.clone())), (said.needs, said.retry));
    assert_eq!((view.timeout, view.expires_at), (said.timeout, Some(far)));
    assert_eq!((view.retain, view.labels), (said.retain, said.labels));
}

pub(crate) async fn an_id_that_is_there_is_answered_with_that_job(b: &mut Bench) {
    b.push(job("q").id("a").payload("1").priority(5)).await;
    let again = b.push(job("other").id("a").payload("2")).await;
    assert!(again.duplicate && !again.replaced);
    assert_eq!((again.job.queue.as_str(), again.job.priority), ("q", 5));
    assert_eq!(b.job("a").await.payload, Some(json("1")), "the content is not compared, nor taken");
    b.take_job("q", "a").await;
    b.none("q").await;
    b.none("other").await;
}

pub(crate) async fn a_finished_job_keeps_its_id(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    let again = b.push(job("q").id("a")).await;
    assert!(again.duplicate);
    assert_eq!(again.job.state, JobState::Succeeded);
    b.none("q").await;
}

pub(crate) async fn an_array_is_answered_in_its_order(b: &mut Bench) {
    b.push(job("q").id("b")).await;
    let answer = b.push_all(vec![job("q").id("c"), job("q").id("b"), job("q").id("a")]).await;
    let said: Vec<_> = answer.iter().map(|job| (job.job.id.as_str(), job.duplicate)).collect();
    assert_eq!(said, [("c", false), ("b", true), ("a", false)]);
}

/// Arrays of a few jobs, of some dozens, and of hundreds.
const SIZES: [usize; 3] = [3, 20, 300];

/// With one priority; with one that changes with each job; with one that changes with each ten.
const RUNS: [usize; 3] = [usize::MAX, 1, 10];

/// Pushes an array of `many` jobs of a queue, of two priorities that change after `run` of them. Each is shown as a
/// later view shows it: with its state by then if it runs already, otherwise as it was.
async fn is_shown(
    b: &mut Bench,
    queue: &str,
    (many, run): (usize, usize),
    needs: &[Need],
) -> Vec<JobState> {
    let shaped = |n: usize| {
        let job =
            job(queue).id(&format!("{queue}-{n}")).kind("k").payload(&format!("{{\"n\":{n}}}"));
        let priority = if n / run % 2 == 1 { 5 } else { 0 };
        NewJob { needs: Some(needs.to_vec()), priority, ..job.label("a", &n.to_string()) }
    };
    let answer = b.push_all((0..many).map(shaped).collect()).await;
    let mut states = vec![];
    for (n, pushed) in answer.into_iter().enumerate() {
        let (shown, there) = (pushed.job, b.job(&format!("{queue}-{n}")).await);
        states.push(shown.state);
        assert!(!pushed.duplicate && !pushed.replaced);
        if shown.state == JobState::Running || shown.state == there.state {
            assert_eq!(shown, there);
        } else {
            assert_eq!(there.state, JobState::Running, "it was granted since");
        }
    }
    states
}

pub(crate) async fn an_array_is_shown_as_it_is_stored(b: &mut Bench) {
    b.set_limit("one", cap(1)).await;
    b.set_limit("closed", cap(0)).await;
    for (many, run) in SIZES.into_iter().flat_map(|many| RUNS.map(|run| (many, run))) {
        let (name, size) = (|word: &str| format!("{word}-{many}-{run}"), (many, run));
        let states = is_shown(b, &name("free"), size, &[]).await;
        assert_eq!(states, vec![JobState::Ready; many]);
        is_shown(b, &name("held"), size, &[need("closed")]).await;
        let waiting = b.waiting(b.ask(&name("asked")).max(2).wait(s(60))).await;
        let all = b.waiting(b.ask(&name("asked")).max(1_000).wait(s(60))).await;
        is_shown(b, &name("asked"), size, &[]).await;
        for call in [waiting, all] {
            assert!(!call.answer().await.leases.is_empty());
        }
        let waiting = b.waiting(b.ask(&name("one")).max(2).wait(s(60))).await;
        is_shown(b, &name("one"), size, &[need("one")]).await;
        let lease = waiting.lease().await;
        b.settle(succeeded(&lease)).await;
    }
}

pub(crate) async fn an_array_is_stored_whole_or_not_at_all(b: &mut Bench) {
    let bad = job("q").id("bad").needs([need("nowhere")]);
    let jobs = vec![job("q").id("a"), bad, job("q").id("c")];
    let no = b.refused(Code::UnknownLimit, Push { jobs, answer: PushAnswer::Whole }).await;
    assert_eq!(no.index, Some(1), "the item is named: {no:?}");
    for id in ["a", "bad", "c"] {
        b.no_job(id).await;
    }
    b.refused(Code::QueueNotFound, GetQueue { queue: queue("q") }).await;
}

pub(crate) async fn the_same_id_twice_in_an_array_is_one_job(b: &mut Bench) {
    let answer =
        b.push_all(vec![job("q").id("a").payload("1"), job("q").id("a").payload("2")]).await;
    assert_eq!((answer[0].duplicate, answer[1].duplicate), (false, true));
    assert_eq!(b.job("a").await.payload, Some(json("1")));
    assert_eq!(b.queue("q").await.counts.ready, 1);
}

pub(crate) async fn the_same_key_twice_in_an_array_is_one_job(b: &mut Bench) {
    let one = |id: &str| job("q").id(id).unique(unique("k", OnConflict::Keep));
    let answer = b.push_all(vec![one("a"), one("b")]).await;
    assert_eq!((answer[0].duplicate, answer[1].duplicate), (false, true));
    assert_eq!(answer[1].job.id.as_str(), "a");
    b.no_job("b").await;
}

pub(crate) async fn a_replacement_in_an_array_never_moves_to_another_queue(b: &mut Bench) {
    let one = |name: &str, id: &str, payload: &str| {
        job(name).id(id).unique(unique("k", OnConflict::Replace)).payload(payload)
    };
    let answer =
        b.push_all(vec![one("q", "a", "1"), one("other", "b", "2"), one("q", "c", "3")]).await;
    let said: Vec<_> = answer
        .iter()
        .map(|pushed| (pushed.job.id.as_str(), pushed.duplicate, pushed.replaced))
        .collect();
    assert_eq!(said, [("a", false, false), ("a", true, false), ("a", true, true)]);
    let there = b.job("a").await;
    assert_eq!((there.queue.as_str(), there.payload), ("q", Some(json("3"))));
}

pub(crate) async fn an_array_with_a_taken_key_that_rejects_stores_nothing(b: &mut Bench) {
    b.push(job("q").id("first").unique(unique("k", OnConflict::Reject))).await;
    let late = job("q").id("late").unique(unique("k", OnConflict::Reject));
    let jobs = vec![job("q").id("a"), late];
    let no = b.refused(Code::UniqueConflict, Push { jobs, answer: PushAnswer::Whole }).await;
    assert_eq!((no.index, no.job.as_deref()), (Some(1), Some("first")));
    b.no_job("a").await;
}

pub(crate) async fn a_short_answer_has_the_ids(b: &mut Bench) {
    let jobs = vec![job("q").id("a"), job("q").id("a")];
    let Pushed::Ids(ids) = b.ok(Push { jobs, answer: PushAnswer::Ids }).await else {
        panic!("ids were asked for");
    };
    let said: Vec<_> = ids.iter().map(|pushed| (pushed.id.as_str(), pushed.duplicate)).collect();
    assert_eq!(said, [("a", false), ("a", true)]);
}

pub(crate) async fn a_moment_in_the_past_is_now(b: &mut Bench) {
    let pushed = b.push(job("q").at(b.now().minus(hours(1)))).await;
    assert_eq!((pushed.job.state, pushed.job.run_at), (JobState::Ready, b.now()));
    b.take("q").await;
}

pub(crate) async fn a_delayed_job_waits_for_its_moment(b: &mut Bench) {
    let due = b.now().plus(s(10));
    let delayed = b.push(job("q").id("delay").delay(s(10))).await;
    let timed = b.push(job("q").id("run_at").at(due)).await;
    for pushed in [delayed, timed] {
        assert_eq!((pushed.job.state, pushed.job.run_at), (JobState::Scheduled, due));
    }
    b.none("q").await;
    b.pass(ms(9_900)).await;
    b.none("q").await;
    b.pass(ms(200)).await;
    b.is("delay", JobState::Ready).await;
    assert_eq!(b.take_all("q", 5).await.len(), 2);
}

pub(crate) async fn a_push_says_when_nobody_asks_for_its_queue(b: &mut Bench) {
    assert_eq!(b.push(job("q").id("a")).await.workers, Some(0));
    b.take("q").await;
    assert_eq!(b.push(job("q").id("b")).await.workers, None);
    b.pass(s(50)).await;
    assert_eq!(b.push(job("q").id("c")).await.workers, None, "somebody asked in this minute");
    b.pass(s(12)).await;
    assert_eq!(b.push(job("q").id("d")).await.workers, Some(0));
}

pub(crate) async fn what_can_never_be_is_refused_at_the_push(b: &mut Bench) {
    b.set_limit("three", cap(3)).await;
    b.set_limit("spaced", rate(10, s(1), 1)).await;
    b.set_limit("bursty", rate(10, s(1), 5)).await;
    b.set_limit("site:*", cap(2)).await;
    b.set_pool("pool", plain_pool(), vec![thing("a")]).await;
    let table: [(&[Need], Code); 10] = [
        (&[need("nowhere")], Code::UnknownLimit),
        (&[need("nowhere:x")], Code::UnknownLimit),
        (&[need("three"), need("nowhere")], Code::UnknownLimit),
        (&[any_of("nowhere")], Code::UnknownPool),
        (&[weighing("three", 4)], Code::NeverFits),
        (&[weighing("site:x", 3)], Code::NeverFits),
        (&[weighing("lock:x", 2)], Code::NeverFits),
        (&[costing("spaced", 2)], Code::NeverFits),
        (&[costing("bursty", 6)], Code::NeverFits),
        (&[need("three"), any_of("pool"), weighing("three", 2)], Code::DuplicateNeed),
    ];
    for (needs, code) in table {
        let refused = tenure_core::job::NewJob { needs: Some(needs.to_vec()), ..job("q") };
        let no = b.no_push(code, refused).await;
        assert!(!no.hint.is_empty(), "{code} says what to do");
    }
    let twice = job("q").needs([tagged("pool", "x"), only("pool", "a")]);
    b.no_push(Code::DuplicateNeed, twice).await;
    b.refused(Code::QueueNotFound, GetQueue { queue: queue("q") }).await;
}

pub(crate) async fn the_hint_of_a_cost_above_the_burst_names_the_burst(b: &mut Bench) {
    b.set_limit("spaced", rate(10, s(1), 1)).await;
    let no = b.no_push(Code::NeverFits, job("q").needs([costing("spaced", 2)])).await;
    assert!(no.hint.contains("burst"), "{}", no.hint);
}

pub(crate) async fn what_just_fits_is_taken(b: &mut Bench) {
    b.set_limit("three", cap(3)).await;
    b.set_limit("bursty", rate(10, s(1), 5)).await;
    b.set_limit("closed", cap(0)).await;
    b.push(job("q").needs([weighing("three", 3), costing("bursty", 5)])).await;
    b.take("q").await;
    b.push(job("q").id("patient").needs([weighing("closed", 7)])).await;
    b.none("q").await;
    b.is("patient", JobState::Blocked).await;
}

pub(crate) async fn what_a_limit_has_not_is_ignored(b: &mut Bench) {
    b.set_limit("cap", cap(2)).await;
    b.set_limit("rate", rate(1, s(1), 1)).await;
    b.push(job("q").needs([costing("cap", 50), weighing("rate", 50)])).await;
    b.take("q").await;
    b.in_use("cap", 1).await;
}

pub(crate) async fn a_full_queue_refuses_more(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    let settings = QueueSettings { max_waiting: Some(3), ..QueueSettings::default() };
    b.set_queue("q", settings).await;
    b.push(job("q").id("blocked").needs([need("closed")])).await;
    b.none("q").await;
    b.push(job("q").id("scheduled").delay(s(100))).await;
    b.push(job("q").id("ready")).await;
    let no = b.no_push(Code::QueueFull, job("q").id("more")).await;
    assert!(no.retry_after_s.is_some(), "it says when to come back");
    b.no_job("more").await;
    assert!(b.push(job("q").id("ready")).await.duplicate, "a repeat is no new job");
    b.take_job("q", "ready").await;
    b.push(job("q").id("more")).await;
    b.push(job("elsewhere")).await;
}

pub(crate) async fn an_array_that_overfills_a_queue_is_refused_whole(b: &mut Bench) {
    let settings = QueueSettings { max_waiting: Some(2), ..QueueSettings::default() };
    b.set_queue("q", settings).await;
    let push = Push { jobs: jobs("q", "j", 3), answer: PushAnswer::Whole };
    b.refused(Code::QueueFull, push).await;
    assert_eq!(b.queue("q").await.counts.ready, 0);
    b.push_all(jobs("q", "j", 2)).await;
}

pub(crate) async fn needs_given_replace_those_of_the_queue(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.set_limit("open", cap(9)).await;
    let settings = QueueSettings { needs: vec![need("closed")], ..QueueSettings::default() };
    b.set_queue("q", settings).await;
    assert_eq!(b.push(job("q").id("queue's")).await.job.needs, [need("closed")]);
    assert_eq!(b.push(job("q").id("own").needs([need("open")])).await.job.needs, [need("open")]);
    assert!(b.push(job("q").id("none").needs([])).await.job.needs.is_empty());
    let taken = b.take_all("q", 9).await;
    assert_eq!(jobs_of(&taken), ["own", "none"]);
}

pub(crate) async fn defaults_of_a_queue_are_copied_at_the_push(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    let settings = QueueSettings {
        retry: Some(retry(2, 1, fixed(s(7)))),
        timeout: Some(s(60)),
        retain: Some(s(30)),
        ..QueueSettings::default()
    };
    b.set_queue("q", settings.clone()).await;
    b.push(job("q").id("early")).await;
    b.push(job("q").id("own").timeout(s(5)).retry(retry(9, 9, fixed(s(1))))).await;
    let needs = vec![need("closed")];
    b.set_queue("q", QueueSettings { needs, ..QueueSettings::default() }).await;
    b.push(job("q").id("late")).await;

    let early = b.job("early").await;
    assert_eq!((Some(early.retry), early.timeout), (settings.retry, settings.timeout));
    assert!(early.needs.is_empty(), "a later change is for later pushes");
    let own = b.job("own").await;
    assert_eq!((own.retry, own.timeout), (retry(9, 9, fixed(s(1))), Some(s(5))));
    let late = b.job("late").await;
    assert_eq!((late.retry, late.timeout), (Retry::default(), None));
    assert_eq!(late.needs, [need("closed")]);
}

pub(crate) async fn namespaces_share_nothing(b: &mut Bench) {
    let other = Namespace::parse("other").expect("a namespace");
    b.set_limit("l", cap(1)).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    let push = Push { jobs: vec![job("q").id("a").payload("2")], answer: PushAnswer::Whole };
    let Ok(Pushed::Whole(pushed)) = b.call_in(&other, push).await else {
        panic!("another namespace takes a push");
    };
    assert!(!pushed[0].duplicate, "an id is unique within a namespace");
    let unknown = Push { jobs: vec![job("q").needs([need("l")])], answer: PushAnswer::Whole };
    let no = b.call_in(&other, unknown).await.expect_err("the limit is not there");
    assert_eq!(no.code(), Some(Code::UnknownLimit));

    b.hold([need("lock:x")]).await;
    let lock = b.ask_needs([need("lock:x")]);
    let leased = b.call_in(&other, lock).await.expect("a lock of another namespace");
    assert_eq!(leased.leases.len(), 1);
    b.take_job("q", "a").await;
    b.none("q").await;
    let lease = b.call_in(&other, b.ask("q")).await.expect("answered").leases.remove(0);
    assert_eq!(lease.job.and_then(|job| job.payload), Some(json("2")));
}
