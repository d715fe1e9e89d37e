//! Pausing queues and limits.

use tenure_core::job::JobState;
use tenure_core::lease::{Later, ReasonKind};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

fn pause_queue(until: Option<Later>) -> PauseQueue {
    PauseQueue { queue: queue("q"), until }
}
fn pause_limit(until: Later) -> PauseLimit {
    PauseLimit { limit: limit("l"), until }
}

pub(crate) async fn a_paused_queue_grants_nothing_and_takes_pushes(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let running = b.take("q").await;
    let view = b.ok(pause_queue(None)).await;
    assert!(view.paused);
    assert_eq!(view.paused_until, None);
    b.push(job("q").id("late")).await;
    b.none("q").await;
    b.lives(&running).await;
    b.settle(succeeded(&running)).await;
    b.leap(hours(5)).await;
    b.none("q").await;
    assert!(!b.ok(ResumeQueue { queue: queue("q") }).await.paused);
    let taken = b.take_all("q", 5).await;
    assert_eq!(jobs_of(&taken), ["j1", "late"]);
}

pub(crate) async fn a_queue_is_paused_for_a_while(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let view = b.ok(pause_queue(Some(Later::For(s(10))))).await;
    assert_eq!((view.paused, view.paused_until), (true, Some(b.now().plus(s(10)))));
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.none("q").await;
    b.pass(ms(200)).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
    assert!(!b.queue("q").await.paused);
}

pub(crate) async fn a_queue_is_paused_until_a_moment(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    b.ok(pause_queue(Some(Later::Until(b.now().plus(s(5)))))).await;
    b.none("q").await;
    b.pass(s(6)).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn resuming_a_queue_wakes_its_workers(b: &mut Bench) {
    b.ok(pause_queue(None)).await;
    b.push(job("q").id("a")).await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    assert!(!waiting.is_answered());
    b.ok(ResumeQueue { queue: queue("q") }).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}

pub(crate) async fn pausing_a_queue_that_is_not_there_makes_it(b: &mut Bench) {
    b.ok(pause_queue(None)).await;
    assert!(b.queue("q").await.paused);
    b.push(job("q")).await;
    b.none("q").await;
}

pub(crate) async fn a_paused_queue_passes_nothing_on(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let holder = b.hold([need("l")]).await;
    b.push(job("q").id("paused").needs([need("l")])).await;
    b.none("q").await;
    b.push(job("other").id("other").needs([need("l")])).await;
    b.none("other").await;
    b.ok(pause_queue(None)).await;
    b.settle(released(&holder)).await;
    b.none("q").await;
    b.take_job("other", "other").await;
}

pub(crate) async fn a_paused_limit_grants_nothing_before_its_moment(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    b.push_all((0..2).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()).await;
    let running = b.take("q").await;
    let view = b.ok(pause_limit(Later::For(s(10)))).await;
    assert_eq!(view.paused_until, Some(b.now().plus(s(10))));
    b.none("q").await;
    b.lives(&running).await;
    let reason = b.waits_for("j1", ReasonKind::LimitPaused).await;
    assert_eq!(reason.earliest, Some(b.now().plus(s(10))));
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.is("j1", JobState::Blocked).await;
    b.pass(ms(200)).await;
    assert_eq!(job_of(&waiting.lease().await), "j1");
    assert_eq!(b.limit("l").await.paused_until, None);
}

pub(crate) async fn of_two_pauses_of_a_limit_the_later_moment_holds(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    let first = b.now().plus(s(10));
    b.ok(pause_limit(Later::Until(first))).await;
    assert_eq!(b.ok(pause_limit(Later::For(s(3)))).await.paused_until, Some(first));
    b.pass(s(4)).await;
    b.denied([need("l")]).await;
    let later = b.now().plus(s(30));
    assert_eq!(b.ok(pause_limit(Later::For(s(30)))).await.paused_until, Some(later));
    b.pass(s(29)).await;
    b.denied([need("l")]).await;
    b.pass(s(2)).await;
    b.hold([need("l")]).await;
}

pub(crate) async fn a_paused_limit_can_be_resumed(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    b.ok(pause_limit(Later::For(hours(5)))).await;
    b.ok(pause_limit(Later::For(s(5)))).await;
    b.leap(hours(1)).await;
    b.denied([need("l")]).await;
    let waiting = b.ask_needs([need("l")]).wait(s(60));
    let waiting = b.waiting_at("l", 1, waiting).await;
    b.ok(ResumeLimit { limit: limit("l") }).await;
    waiting.lease().await;
}

pub(crate) async fn a_limit_that_is_not_there_cannot_be_paused(b: &mut Bench) {
    b.refused(Code::LimitNotFound, pause_limit(Later::For(s(5)))).await;
    b.refused(Code::LimitNotFound, ResumeLimit { limit: limit("l") }).await;
}

pub(crate) async fn one_member_of_a_template_is_paused_alone(b: &mut Bench) {
    b.set_limit("site:*", cap(5)).await;
    let until = Later::For(s(10));
    b.ok(PauseLimit { limit: limit("site:a"), until }).await;
    b.denied([need("site:a")]).await;
    b.hold([need("site:b")]).await;
    b.pass(s(11)).await;
    b.hold([need("site:a")]).await;
}

pub(crate) async fn pausing_ends_no_lease(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let held = b.hold([need("l")]).await;
    b.ok(pause_limit(Later::For(s(10)))).await;
    b.in_use("l", 1).await;
    b.lives(&held).await;
    b.settle(released(&held)).await;
    b.in_use("l", 0).await;
}
