//! Reservations: what frees is kept for a job that was blocked past the patience of the namespace.

use tenure_core::bounds::{ASKED_US, PATIENCE_US_DEFAULT};
use tenure_core::lease::{Later, LeaseView, ReasonKind};
use tenure_core::requests::{PauseLimit, PauseQueue};
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::words::*;

const PATIENCE: Span = Span::from_us(PATIENCE_US_DEFAULT);

/// Lets time pass while a call asks for `queue` each second.
async fn ask_for(b: &Bench, queue: &str, span: Span) {
    for _ in 0..span.us() / s(1).us() {
        b.none(queue).await;
        b.pass(s(1)).await;
    }
    b.none(queue).await;
}

/// A limit of 8, 5 of them held; a heavy job of 4 that has reserved; light jobs of 1.
async fn reserved(b: &Bench) -> LeaseView {
    b.set_limit("l", cap(8)).await;
    let holder = b.hold([weighing("l", 5)]).await;
    b.push(job("heavy").id("heavy").needs([weighing("l", 4)])).await;
    b.push_all((0..9).map(|n| job("light").id(&format!("l{n}")).needs([need("l")])).collect())
        .await;
    ask_for(b, "heavy", PATIENCE).await;
    ask_for(b, "heavy", s(3)).await;
    holder
}

pub(crate) async fn a_heavy_job_is_not_starved_by_light_ones(b: &mut Bench) {
    b.set_limit("l", cap(4)).await;
    let light = |n: u64| job("light").id(&format!("l{n}")).needs([need("l")]);
    b.push_all((0..200).map(light).collect()).await;
    let mut held = b.take_all("light", 4).await;
    assert_eq!(held.len(), 4);
    b.push(job("heavy").id("heavy").needs([weighing("l", 4)])).await;
    b.none("heavy").await;
    for second in 0..60 {
        // One light job ends each second and the next one asks before the heavy one: the four
        // permits are never free together unless they are kept.
        b.pass(s(1)).await;
        if !held.is_empty() {
            b.settle(succeeded(&held.remove(0))).await;
        }
        held.extend(b.take_all("light", 4).await);
        if second < 5 {
            assert_eq!(held.len(), 4, "before its patience is over nothing is kept");
        }
        for lease in &held {
            b.lives(lease).await;
        }
        if let [lease] = &b.take_all("heavy", 1).await[..] {
            assert_eq!(job_of(lease), "heavy");
            assert!(held.is_empty());
            return;
        }
    }
    panic!("the heavy job starved");
}

pub(crate) async fn what_is_kept_is_kept_for_it(b: &mut Bench) {
    let holder = reserved(b).await;
    b.none("light").await;
    let reason = b.waits_for("l0", ReasonKind::Reserved).await;
    assert!(!reason.detail.is_empty(), "by whom, since when, how much");
    b.settle(released(&holder)).await;
    b.take_job("heavy", "heavy").await;
}

pub(crate) async fn what_is_beyond_a_reservation_is_free_for_all(b: &mut Bench) {
    let holder = reserved(b).await;
    b.none("light").await;
    b.settle(released(&holder)).await;
    assert_eq!(b.take_all("light", 9).await.len(), 4, "eight are free, four are kept");
    b.take_job("heavy", "heavy").await;
}

pub(crate) async fn a_reservation_falls_when_its_job_is_called_off(b: &mut Bench) {
    let holder = reserved(b).await;
    b.none("light").await;
    b.cancel("heavy").await;
    assert_eq!(b.take_all("light", 9).await.len(), 3);
    b.lives(&holder).await;
}

pub(crate) async fn a_reservation_falls_when_nobody_asks_for_its_queue(b: &mut Bench) {
    reserved(b).await;
    b.none("light").await;
    b.pass(Span::from_us(ASKED_US)).await;
    b.pass(s(2)).await;
    assert_eq!(b.take_all("light", 9).await.len(), 3);
}

pub(crate) async fn a_reservation_falls_when_its_queue_is_paused(b: &mut Bench) {
    reserved(b).await;
    b.none("light").await;
    b.ok(PauseQueue { queue: queue("heavy"), until: None }).await;
    assert_eq!(b.take_all("light", 9).await.len(), 3);
}

pub(crate) async fn nothing_is_kept_before_patience_is_over(b: &mut Bench) {
    b.set_limit("l", cap(4)).await;
    b.hold([weighing("l", 2)]).await;
    b.push(job("heavy").needs([weighing("l", 4)])).await;
    ask_for(b, "heavy", s(5)).await;
    b.push(job("light").needs([need("l")])).await;
    b.take("light").await;
}

pub(crate) async fn a_resource_is_kept_too(b: &mut Bench) {
    // Two needs that are never free together by chance: the job that waits for both keeps one.
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let first = b.hold([any_of("p")]).await;
    let second = b.hold([need("lock:x")]).await;
    b.push(job("heavy").id("heavy").needs([any_of("p"), need("lock:x")])).await;
    ask_for(b, "heavy", s(13)).await;
    b.settle(released(&first)).await;
    b.push(job("light").id("light").needs([any_of("p")])).await;
    b.none("light").await;
    b.settle(released(&second)).await;
    let lease = b.take_job("heavy", "heavy").await;
    b.settle(succeeded(&lease)).await;
    b.take_job("light", "light").await;
}

pub(crate) async fn a_job_that_waits_for_a_moment_keeps_nothing(b: &mut Bench) {
    b.set_limit("l", cap(4)).await;
    b.set_limit("paused", cap(1)).await;
    let until = Later::For(hours(1));
    b.ok(PauseLimit { limit: limit("paused"), until }).await;
    b.push(job("heavy").needs([weighing("l", 4), need("paused")])).await;
    let two = b.hold([weighing("l", 2)]).await;
    ask_for(b, "heavy", s(15)).await;
    b.push(job("light").needs([need("l")])).await;
    b.take("light").await;
    b.lives(&two).await;
}
