//! Calls for the result of a job: their answers, their waits, and their ends if the job or the caller goes away.

use tenure_core::bounds::AWAITS_MAX;
use tenure_core::job::{JobState, OnConflict, ResultView};
use tenure_core::lease::Ending;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::secret::Json;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::calls::waits::Waiting;
use crate::words::*;

impl Bench {
    fn get_result(&self, id: &str, wait: Span) -> GetResult {
        GetResult { job: job_ref(id), wait, seen: None }
    }
    /// How a job ended, or its present state, without a wait.
    async fn result(&self, id: &str) -> ResultView {
        *self.ok(self.get_result(id, s(0))).await
    }
    /// Waits until this many calls wait for results, or for flows.
    pub(crate) async fn result_waiters(&self, many: usize) {
        self.eventually("as many calls wait for results", async || {
            self.ok(GetStats).await.result_waiters == many as u64
        })
        .await;
    }
    /// A call that waits for a result, registered after those that wait already.
    pub(crate) async fn awaits(&self, id: &str, wait: Span) -> Waiting<Box<ResultView>> {
        let before = self.ok(GetStats).await.result_waiters as usize;
        let waiting = self.start(self.get_result(id, wait));
        self.result_waiters(before + 1).await;
        waiting
    }
    /// Checks that a waiting call for a result is answered with this state and its fields.
    async fn answered(&self, waiting: Waiting<Box<ResultView>>, state: JobState) -> ResultView {
        let view = waiting.answer().await;
        assert_eq!(view.state, state, "{view:?}");
        assert_eq!(view.finished_at.is_some(), state.is_finished(), "{view:?}");
        *view
    }
}

pub(crate) async fn the_result_of_a_finished_job_is_shown_at_once(b: &mut Bench) {
    b.push_all(["s", "f", "c", "n"].map(|id| job("q").id(id)).to_vec()).await;
    let leases = b.take_all("q", 4).await;
    let result = Some(json(r#"{"n": 1}"#));
    b.settle(ending(&leases[0], Ending::Succeeded { result }).reporting("7")).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.cancel("c").await;
    b.settle(released(&leases[2])).await;
    b.settle(succeeded(&leases[3])).await;
    let wait = s(60);
    let view = *b.ok(b.get_result("s", wait)).await;
    assert_eq!((view.id.as_str(), view.state), ("s", JobState::Succeeded));
    assert_eq!(view.result.as_ref().map(value), Some(value(&json(r#"{"n": 1}"#))));
    assert_eq!((view.error, view.finished_at, view.attempt), (None, Some(b.now()), 1));
    assert_eq!(view.progress.as_ref().map(Json::text), Some("7"));
    let view = *b.ok(b.get_result("f", wait)).await;
    assert_eq!((view.state, view.result), (JobState::Failed, None));
    assert_eq!((view.error.as_deref(), view.attempt), (Some("it broke"), 1));
    let view = *b.ok(b.get_result("c", wait)).await;
    assert_eq!((view.state, view.error, view.attempt), (JobState::Cancelled, None, 0));
    let view = *b.ok(b.get_result("n", wait)).await;
    assert_eq!((view.state, view.result), (JobState::Succeeded, None));
}

pub(crate) async fn a_job_that_is_not_finished_has_no_result_yet(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(3, 3, fixed(s(5))))).await;
    let nothing = |view: &ResultView| {
        view.result.is_none() && view.error.is_none() && view.finished_at.is_none()
    };
    let view = b.result("a").await;
    assert_eq!((view.state, view.attempt, nothing(&view)), (JobState::Ready, 0, true));
    let lease = b.take("q").await;
    let view = b.result("a").await;
    assert_eq!((view.state, view.attempt, nothing(&view)), (JobState::Running, 1, true));
    b.settle(failed(&lease).reporting("1")).await;
    let view = b.result("a").await;
    assert_eq!((view.state, view.attempt, nothing(&view)), (JobState::Scheduled, 1, true));
    assert_eq!(view.progress.as_ref().map(Json::text), Some("1"));
    let no = b.refused(Code::JobNotFound, b.get_result("nobody", s(60))).await;
    assert!(no.detail.contains("nobody"), "{no}");
    b.refused(Code::JobNotFound, b.get_result("key:nobody", s(60))).await;
}

pub(crate) async fn who_waits_for_a_result_gets_it_when_the_job_ends(b: &mut Bench) {
    b.push_all(["s", "f"].map(|id| job("q").id(id)).to_vec()).await;
    b.push(job("other").id("c")).await;
    b.push(job("other").id("e").expires(b.now().plus(s(5)))).await;
    b.push(job("r").id("p").retry(retry(3, 1, fixed(s(1))))).await;
    let mut calls = vec![];
    for id in ["s", "f", "c", "e", "p"] {
        calls.push(b.awaits(id, s(60)).await);
    }
    let leases = b.take_all("q", 2).await;
    assert!(calls.iter().all(|call| !call.is_answered()));
    let result = Some(json("[1]"));
    b.settle(ending(&leases[0], Ending::Succeeded { result })).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.cancel("c").await;
    let mut calls = calls.into_iter();
    let mut next = || calls.next().expect("a call for each job");
    let view = b.answered(next(), JobState::Succeeded).await;
    assert_eq!(view.result.as_ref().map(Json::text), Some("[1]"));
    let view = b.answered(next(), JobState::Failed).await;
    assert_eq!(view.error.as_deref(), Some("it broke"));
    b.answered(next(), JobState::Cancelled).await;
    b.pass(s(6)).await;
    let view = b.answered(next(), JobState::Cancelled).await;
    assert_eq!(view.error.as_deref(), Some("expired"));
    let _dies = b.granted(b.ask("r").ttl(s(5))).await;
    b.pass(s(7)).await;
    let view = b.answered(next(), JobState::Failed).await;
    assert_eq!(view.error.as_deref(), Some("poison"));
    b.result_waiters(0).await;
}

pub(crate) async fn a_wait_goes_on_through_attempts_and_snoozes(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(3, 3, fixed(s(1))))).await;
    let waiting = b.awaits("a", s(60)).await;
    for item in [failed, |lease: &_| snoozed(lease, s(1)), released] {
        let lease = b.take("q").await;
        b.settle(item(&lease)).await;
        b.pass(s(2)).await;
        assert!(!waiting.is_answered());
    }
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    assert_eq!(b.answered(waiting, JobState::Succeeded).await.attempt, 2);
}

pub(crate) async fn who_waits_for_a_job_with_retain_zero_gets_its_result(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(0))).await;
    let waiting = b.awaits("a", s(60)).await;
    let lease = b.take("q").await;
    b.settle(ending(&lease, Ending::Succeeded { result: Some(json("5")) })).await;
    let view = b.answered(waiting, JobState::Succeeded).await;
    assert_eq!(view.result.as_ref().map(Json::text), Some("5"));
    b.pass(ms(9_900)).await;
    assert_eq!(b.result("a").await.result.as_ref().map(Json::text), Some("5"));
    b.pass(ms(200)).await;
    b.no_job("a").await;
}

pub(crate) async fn each_end_of_a_job_that_is_waited_for_is_kept_a_while(b: &mut Bench) {
    let of = |id: &str| job("q").id(id).retain(s(0)).retry(retry(3, 1, fixed(s(1))));
    b.push_all(["f", "l", "c", "runs"].map(of).to_vec()).await;
    b.push(of("e").expires(b.now().plus(s(4)))).await;
    let mut calls = vec![];
    for id in ["f", "l", "c", "runs", "e"] {
        calls.push(b.awaits(id, s(60)).await);
    }
    let failing = b.take_job("q", "f").await;
    let _dies = b.granted(b.ask("q").ttl(s(5))).await;
    b.settle(failed_for_good(&failing)).await;
    b.cancel("c").await;
    b.pass(s(9)).await;
    for id in ["f", "l", "c", "e"] {
        assert!(b.result(id).await.state.is_finished(), "{id}");
    }
    assert!(calls[3..4].iter().all(|call| !call.is_answered()));
    b.pass(s(8)).await;
    for id in ["f", "l", "c", "e"] {
        b.no_job(id).await;
    }
}

pub(crate) async fn one_of_many_that_end_together_is_waited_for(b: &mut Bench) {
    let of = |queue: &str, name: &str| {
        let jobs = jobs(queue, name, 40).into_iter().map(|job| job.retain(s(0)));
        jobs.collect::<Vec<_>>()
    };
    let push = |jobs| Push { jobs, answer: PushAnswer::Ids };
    b.ok(push(of("plain", "p"))).await;
    b.set_limit("site:*", cap(1)).await;
    let keyed = of("keyed", "k").into_iter().enumerate();
    let keyed = keyed.map(|(n, job)| job.needs([need(&format!("site:{n}"))]));
    b.ok(push(keyed.collect())).await;
    for (queue, name) in [("plain", "p"), ("keyed", "k")] {
        let leases = b.take_all(queue, 40).await;
        assert_eq!(leases.len(), 40);
        let first = b.awaits(&format!("{name}3"), s(60)).await;
        let last = b.awaits(&format!("{name}39"), s(60)).await;
        b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
        b.answered(first, JobState::Succeeded).await;
        b.answered(last, JobState::Succeeded).await;
        b.pass(s(5)).await;
        for n in [3, 39] {
            b.is(&format!("{name}{n}"), JobState::Succeeded).await;
        }
        for n in [0, 2, 4, 38] {
            b.no_job(&format!("{name}{n}")).await;
        }
        b.pass(s(6)).await;
        for n in [3, 39] {
            b.no_job(&format!("{name}{n}")).await;
        }
    }
    let audit = b.ok(Audit::default()).await;
    assert!(audit.ok, "{:?}", audit.faults);
}

pub(crate) async fn a_wait_that_is_over_answers_the_state_as_it_is(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(0))).await;
    let waiting = b.awaits("a", s(10)).await;
    let lease = b.take("q").await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(200)).await;
    let view = b.answered(waiting, JobState::Running).await;
    assert_eq!((view.result, view.error, view.attempt), (None, None, 1));
    b.result_waiters(0).await;
    // No call waits any more, so nothing is kept.
    b.settle(succeeded(&lease)).await;
    b.pass(ms(10)).await;
    b.no_job("a").await;
}

pub(crate) async fn a_job_that_is_deleted_while_somebody_waits_is_not_found(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let waiting = b.awaits("a", s(60)).await;
    b.ok(DeleteJob { job: job_ref("a") }).await;
    // Another job under its id is not the one that was meant.
    b.push(job("q").id("a")).await;
    waiting.refusal(Code::JobNotFound).await;
    b.result_waiters(0).await;
}

pub(crate) async fn a_key_means_the_job_that_held_it_when_it_was_asked(b: &mut Bench) {
    let held = || unique("k", OnConflict::Keep);
    b.push(job("q").id("a").unique(held())).await;
    let waiting = b.awaits("key:k", s(60)).await;
    let lease = b.take("q").await;
    b.settle(ending(&lease, Ending::Succeeded { result: Some(json("1")) })).await;
    b.push(job("q").id("b").unique(held())).await;
    let view = b.answered(waiting, JobState::Succeeded).await;
    assert_eq!((view.id.as_str(), view.result.as_ref().map(Json::text)), ("a", Some("1")));
    assert_eq!(b.result("key:k").await.id.as_str(), "b");
}

pub(crate) async fn many_wait_for_one_job(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let mut calls = vec![];
    for _ in 0..20 {
        calls.push(b.start(b.get_result("a", s(60))));
    }
    b.result_waiters(20).await;
    let gone = calls.split_off(15);
    for call in gone {
        call.hang_up().await;
    }
    b.result_waiters(15).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    for call in calls {
        b.answered(call, JobState::Succeeded).await;
    }
    b.result_waiters(0).await;
}

pub(crate) async fn a_caller_who_is_gone_waits_for_no_result(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(0))).await;
    let gone = b.awaits("a", s(60)).await;
    gone.hang_up().await;
    b.result_waiters(0).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.pass(ms(10)).await;
    b.no_job("a").await;
}

pub(crate) async fn a_wait_that_ends_late_shows_what_its_tick_has_opened(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all(["a", "b", "c"].map(|id| job("q").id(id).needs([need("l")])).to_vec()).await;
    let _dies = b.granted(b.ask("q").max(2).ttl(s(3))).await;
    assert_eq!(b.result("b").await.state, JobState::Blocked);
    let waiting = b.awaits("b", ms(2_001)).await;
    // The wait and the lease end in one tick.
    b.leap(s(3)).await;
    let view = waiting.answer().await;
    assert_eq!(view.state, b.result("b").await.state, "{view:?}");
    assert_eq!(view.state, JobState::Ready, "{view:?}");
}

pub(crate) async fn a_draining_engine_answers_with_what_is_there(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let waiting = b.awaits("a", s(60)).await;
    b.engine().drain();
    b.answered(waiting, JobState::Ready).await;
    let view = *b.ok(b.get_result("a", s(60))).await;
    assert_eq!(view.state, JobState::Ready);
}

pub(crate) async fn ten_thousand_and_one_waits_are_one_too_many(b: &mut Bench) {
    if !b.bears_a_crowd() {
        return;
    }
    b.push_all(jobs("q", "j", 3)).await;
    let mut calls = Vec::new();
    // Not all at once: on a slow machine each call would wait until all others are registered.
    while calls.len() < AWAITS_MAX {
        let some = (AWAITS_MAX - calls.len()).min(500);
        let call = |n: usize| b.start(b.get_result(&format!("j{}", n % 2), s(60)));
        calls.extend((0..some).map(call));
        b.result_waiters(calls.len()).await;
    }
    let no = b.refused(Code::LineFull, b.get_result("j2", s(60))).await;
    assert!(no.retry_after_s.is_some(), "it says when to come back");
    assert_eq!(b.result("j2").await.state, JobState::Ready, "who does not wait is answered");
    let lease = b.take_job("q", "j0").await;
    b.settle(succeeded(&lease)).await;
    let waiting = b.start(b.get_result("j2", s(60)));
    b.result_waiters(AWAITS_MAX / 2 + 1).await;
    assert!(!waiting.is_answered());
}
