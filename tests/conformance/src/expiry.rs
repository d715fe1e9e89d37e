//! A job that is not running at its `expires_at` is cancelled.

use tenure_core::job::JobState;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_job_that_does_not_run_in_time_is_cancelled(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    let end = b.now().plus(s(10));
    b.push(job("q").id("ready").expires(end)).await;
    b.push(job("q").id("scheduled").delay(s(60)).expires(end)).await;
    b.push(job("other").id("blocked").needs([need("closed")]).expires(end)).await;
    b.none("other").await;
    b.pass(ms(9_900)).await;
    b.is("ready", JobState::Ready).await;
    b.is("blocked", JobState::Blocked).await;
    b.pass(ms(200)).await;
    for id in ["ready", "scheduled", "blocked"] {
        let view = b.is(id, JobState::Cancelled).await;
        assert_eq!(view.error.as_deref(), Some("expired"), "{id}");
        assert!(view.finished_at.is_some());
    }
    b.none("q").await;
    assert_eq!(b.limit("closed").await.waiting, 0);
}

pub(crate) async fn a_running_job_does_not_expire(b: &mut Bench) {
    b.push(job("q").id("a").expires(b.now().plus(s(10)))).await;
    let lease = b.take("q").await;
    b.pass(s(12)).await;
    b.is("a", JobState::Running).await;
    b.settle(succeeded(&lease)).await;
    b.is("a", JobState::Succeeded).await;
}

pub(crate) async fn a_job_that_waits_for_its_next_attempt_expires(b: &mut Bench) {
    b.push(job("q").id("a").expires(b.now().plus(s(10))).retry(retry(9, 3, fixed(s(60))))).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    b.pass(s(11)).await;
    let view = b.is("a", JobState::Cancelled).await;
    assert_eq!(view.error.as_deref(), Some("expired"));
}

pub(crate) async fn what_expires_passes_its_turn_on(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    b.hold([need("l")]).await;
    let end = b.now().plus(s(5));
    b.push(job("q").id("heavy").needs([weighing("l", 2)]).expires(end)).await;
    b.push(job("q").id("light").needs([need("l")])).await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(s(4)).await;
    assert!(!waiting.is_answered());
    b.pass(s(2)).await;
    assert_eq!(job_of(&waiting.lease().await), "light");
}
