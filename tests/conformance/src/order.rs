//! The order of grants: priority, then arrival; and the effect of a job's moment or its old place.

use tenure_core::job::JobState;

use crate::bench::Bench;
use crate::words::*;

async fn go_in_order(b: &Bench, ids: &[&str]) {
    for id in ids {
        b.take_job("q", id).await;
    }
    b.none("q").await;
}

pub(crate) async fn priority_goes_before_arrival(b: &mut Bench) {
    let table = [("c", 0), ("e", -100), ("a", 100), ("d", -1), ("b", 1), ("c2", 0)];
    for (id, priority) in table {
        b.push(job("q").id(id).priority(priority)).await;
    }
    go_in_order(b, &["a", "b", "c", "c2", "d", "e"]).await;
}

pub(crate) async fn a_released_job_keeps_its_place(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let lease = b.take_job("q", "j0").await;
    let settled = b.settle(released(&lease)).await;
    assert_eq!(settled.state, Some(JobState::Ready));
    go_in_order(b, &["j0", "j1", "j2"]).await;
}

pub(crate) async fn the_second_release_in_a_row_waits_a_second(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    for _ in 0..2 {
        let lease = b.take_job("q", "j0").await;
        b.settle(released(&lease)).await;
    }
    b.take_job("q", "j1").await;
    b.pass(ms(1_100)).await;
    go_in_order(b, &["j0", "j2"]).await;
}

pub(crate) async fn a_lost_job_keeps_its_place(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    b.granted(b.ask("q").ttl(s(5))).await;
    b.until_it_ends("j0", s(10)).await;
    b.pass(s(3)).await;
    b.is("j0", JobState::Ready).await;
    go_in_order(b, &["j0", "j1", "j2"]).await;
}

pub(crate) async fn a_snoozed_job_ranks_by_the_moment_it_became_due(b: &mut Bench) {
    b.push(job("q").id("snoozed")).await;
    let lease = b.take("q").await;
    b.settle(snoozed(&lease, s(5))).await;
    b.pass(s(3)).await;
    b.push(job("q").id("before")).await;
    b.pass(s(3)).await;
    b.push(job("q").id("after")).await;
    go_in_order(b, &["before", "snoozed", "after"]).await;
}

pub(crate) async fn a_retried_job_ranks_by_the_moment_it_became_due(b: &mut Bench) {
    b.push(job("q").id("retried")).await;
    let lease = b.take("q").await;
    b.settle(failed_until(&lease, s(5))).await;
    b.pass(s(3)).await;
    b.push(job("q").id("before")).await;
    b.pass(s(3)).await;
    b.push(job("q").id("after")).await;
    go_in_order(b, &["before", "retried", "after"]).await;
}

pub(crate) async fn a_delayed_job_ranks_by_the_moment_it_became_due(b: &mut Bench) {
    b.push(job("q").id("late").delay(s(8))).await;
    b.push(job("q").id("early").delay(s(5))).await;
    b.pass(s(2)).await;
    b.push(job("q").id("before")).await;
    b.pass(s(10)).await;
    b.push(job("q").id("after")).await;
    go_in_order(b, &["before", "early", "late", "after"]).await;
}

pub(crate) async fn a_blocked_job_keeps_its_place(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let lock = b.hold([need("l")]).await;
    b.push(job("q").id("first").needs([need("l")])).await;
    b.none("q").await;
    b.push(job("q").id("second").needs([need("l")])).await;
    b.none("q").await;
    b.settle(released(&lock)).await;
    let lease = b.take_job("q", "first").await;
    b.none("q").await;
    b.settle(succeeded(&lease)).await;
    b.take_job("q", "second").await;
}

pub(crate) async fn a_newcomer_does_not_overtake_for_the_same_need(b: &mut Bench) {
    b.set_limit("l", cap(3)).await;
    let heavy = b.hold([weighing("l", 2)]).await;
    b.push(job("q").id("heavy").needs([weighing("l", 2)])).await;
    b.none("q").await;
    b.push(job("q").id("light").needs([need("l")])).await;
    b.none("q").await;
    b.is("light", JobState::Blocked).await;
    b.settle(released(&heavy)).await;
    b.take_job("q", "heavy").await;
    b.take_job("q", "light").await;
}

pub(crate) async fn a_higher_priority_goes_first_in_a_line(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let lock = b.hold([need("l")]).await;
    b.push(job("q").id("low").needs([need("l")])).await;
    b.none("q").await;
    b.push(job("q").id("high").priority(1).needs([need("l")])).await;
    b.none("q").await;
    b.settle(released(&lock)).await;
    b.take_job("q", "high").await;
    b.none("q").await;
}

pub(crate) async fn a_queue_without_a_worker_does_not_hold_up_a_line(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let lock = b.hold([need("l")]).await;
    b.push(job("left").id("left").needs([need("l")])).await;
    b.none("left").await;
    b.push(job("q").id("a").needs([need("l")])).await;
    b.none("q").await;
    b.settle(released(&lock)).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn jobs_at_different_doors_do_not_wait_for_each_other(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").tags(["x"]), thing("b")]).await;
    let held = b.hold([only("p", "a")]).await;
    b.push(job("q").id("tag").needs([tagged("p", "x")])).await;
    b.push(job("q").id("id").needs([only("p", "a")])).await;
    b.push(job("q").id("any").needs([any_of("p")])).await;
    let lease = b.take_job("q", "any").await;
    assert_eq!(resource_of(&lease), "b");
    b.none("q").await;
    b.settle(released(&held)).await;
    let lease = b.take("q").await;
    assert!(["tag", "id"].contains(&job_of(&lease)));
}

pub(crate) async fn a_thousand_blocked_jobs_do_not_delay_the_others(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.hold([need("l")]).await;
    let blocked = |n: usize| job("q").id(&format!("b{n}")).priority(5).needs([need("l")]);
    b.push_all((0..1_000).map(blocked).collect()).await;
    b.push(job("q").id("free")).await;
    b.take_job("q", "free").await;
    let counts = b.queue("q").await.counts;
    assert_eq!((counts.blocked, counts.ready, counts.running), (1_000, 0, 1));
}

pub(crate) async fn many_different_blocked_needs_do_not_delay_the_others(b: &mut Bench) {
    for n in 0..100 {
        b.hold([need(&format!("lock:{n}"))]).await;
    }
    let blocked = |n: usize| job("q").id(&format!("b{n}")).needs([need(&format!("lock:{n}"))]);
    b.push_all((0..100).map(blocked).collect()).await;
    b.push(job("q").id("free")).await;
    // One call may do bounded work; the rest is due at once, without time passing.
    let lease = b.waiting(b.ask("q").wait(s(30))).await.lease().await;
    assert_eq!(job_of(&lease), "free");
}

pub(crate) async fn the_first_of_a_line_that_goes_away_passes_its_turn_on(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    b.hold([need("l")]).await;
    b.push(job("q").id("heavy").needs([weighing("l", 2)])).await;
    b.push(job("q").id("light").needs([need("l")])).await;
    b.none("q").await;
    b.none("q").await;
    b.is("light", JobState::Blocked).await;
    b.cancel("heavy").await;
    b.take_job("q", "light").await;
}
