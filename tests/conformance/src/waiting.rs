//! Calls that wait: what wakes them, in which order, and what happens if their caller is gone.

use tenure_core::job::JobState;
use tenure_core::lease::Fence;
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_push_wakes_a_waiting_worker(b: &mut Bench) {
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    assert!(!waiting.is_answered());
    b.push(job("q").id("a")).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}

pub(crate) async fn a_push_wakes_one_and_no_more(b: &mut Bench) {
    let one = b.waiting(b.ask("q").wait(s(60))).await;
    let two = b.waiting(b.ask("q").wait(s(60))).await;
    b.push(job("q").id("a")).await;
    b.eventually("one is woken", async || one.is_answered() || two.is_answered()).await;
    let (first, second) = if one.is_answered() { (one, two) } else { (two, one) };
    assert_eq!(job_of(&first.lease().await), "a");
    b.push(job("q").id("b")).await;
    assert_eq!(job_of(&second.lease().await), "b");
}

pub(crate) async fn many_pushes_wake_as_many(b: &mut Bench) {
    let mut waiting = vec![];
    for _ in 0..20 {
        waiting.push(b.waiting(b.ask("q").wait(s(60))).await);
    }
    b.push_all(jobs("q", "j", 20)).await;
    let mut ids = vec![];
    for call in waiting {
        ids.push(job_of(&call.lease().await).to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20, "each got another job");
}

pub(crate) async fn a_call_never_waits_to_be_filled(b: &mut Bench) {
    let waiting = b.waiting(b.ask("q").max(10).wait(s(60))).await;
    b.push(job("q").id("a")).await;
    assert_eq!(waiting.answer().await.leases.len(), 1);
    b.push_all(jobs("q", "j", 3)).await;
    let answer = b.start(b.ask("q").max(10).wait(s(60))).answer().await;
    assert_eq!(answer.leases.len(), 3, "as many as can be then");
}

pub(crate) async fn what_becomes_due_wakes_a_waiting_worker(b: &mut Bench) {
    b.push(job("q").id("a").delay(s(10))).await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(200)).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}

pub(crate) async fn a_wait_for_jobs_ends_with_its_time(b: &mut Bench) {
    b.push(job("q").delay(s(30))).await;
    let waiting = b.waiting(b.ask("q").wait(s(10))).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(600)).await;
    let answer = waiting.answer().await;
    assert!(answer.leases.is_empty());
    assert!(answer.next_at.is_some_and(|next| next > b.now()), "{:?}", answer.next_at);
}

pub(crate) async fn any_queue_of_a_call_wakes_it(b: &mut Bench) {
    let call = Lease::jobs(vec![queue("a"), queue("b"), queue("c")], 1).by("me").wait(s(60));
    let waiting = b.waiting(call).await;
    b.push(job("elsewhere")).await;
    b.push(job("c").id("c")).await;
    assert_eq!(job_of(&waiting.lease().await), "c");
}

pub(crate) async fn a_lost_job_wakes_a_waiting_worker(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    b.granted(b.ask("q").ttl(s(5))).await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(s(4)).await;
    assert!(!waiting.is_answered());
    b.pass(s(4)).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}

pub(crate) async fn a_second_call_under_one_request_takes_over(b: &mut Bench) {
    let call = || b.ask("q").request("r1").wait(s(60));
    let first = b.waiting(call()).await;
    let second = b.waiting(call()).await;
    assert!(first.answer().await.leases.is_empty(), "answered at once with an empty list");
    assert!(!second.is_answered());
    b.push(job("q").id("a")).await;
    assert_eq!(job_of(&second.lease().await), "a");
    b.is("a", JobState::Running).await;
}

pub(crate) async fn a_second_call_for_needs_takes_the_place_over(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let call = || b.ask_needs([need("lock:x")]).request("r1").wait(s(60));
    let first = b.waiting(call()).await;
    let other = b.waiting(b.ask_needs([need("lock:x")]).wait(s(60))).await;
    let second = b.waiting(call()).await;
    assert!(first.answer().await.leases.is_empty());
    b.settle(released(&held)).await;
    second.lease().await;
    assert!(!other.is_answered(), "the place is the first one's");
}

pub(crate) async fn a_second_call_that_does_not_wait_ends_the_first(b: &mut Bench) {
    let first = b.waiting(b.ask("q").request("r1").wait(s(60))).await;
    assert!(b.ok(b.ask("q").request("r1")).await.leases.is_empty());
    assert!(first.answer().await.leases.is_empty(), "answered at once with an empty list");
    b.push(job("q").id("a")).await;
    b.is("a", JobState::Ready).await;
}

pub(crate) async fn a_second_call_for_needs_that_does_not_wait_ends_the_first(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let call = || b.ask_needs([need("lock:x")]).request("r1");
    let first = b.waiting(call().wait(s(60))).await;
    assert!(b.ok(call()).await.leases.is_empty());
    assert!(first.answer().await.leases.is_empty(), "answered at once with an empty list");
    b.settle(released(&held)).await;
    b.in_use("lock:x", 0).await;
}

pub(crate) async fn a_caller_who_is_gone_gets_nothing(b: &mut Bench) {
    if !b.sees_hang_ups() {
        return;
    }
    let gone = b.waiting(b.ask("q").by("gone").wait(s(60))).await;
    gone.hang_up().await;
    b.push(job("q").id("a")).await;
    let lease = b.waiting(b.ask("q").wait(s(60))).await.lease().await;
    let view = lease.job.as_ref().expect("a job");
    assert_eq!((view.id.as_str(), view.attempt, view.lost), ("a", 1, 0));
    let listed = b.ok(ListLeases::default()).await.items;
    assert_eq!(listed.len(), 1, "there is one lease: {listed:?}");
}

pub(crate) async fn many_callers_who_are_gone_poison_nothing(b: &mut Bench) {
    if !b.sees_hang_ups() {
        return;
    }
    b.push(job("q").id("a").retry(retry(20, 1, fixed(s(1))))).await;
    b.take("q").await;
    for _ in 0..5 {
        b.waiting(b.ask("q").wait(s(60))).await.hang_up().await;
    }
    let lease = b.ok(ListLeases::default()).await.items.remove(0).lease;
    b.ok(ForceLease { lease }).await;
    let lease = b.waiting(b.ask("q").wait(s(60))).await.lease().await;
    assert_eq!(lease.job.as_ref().map(|job| (job.attempt, job.lost)), Some((1, 0)));
}

pub(crate) async fn a_caller_of_needs_who_is_gone_holds_nothing(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let gone = b.ask_needs([need("lock:x")]).wait(s(60));
    let gone = b.waiting_at("lock:x", 1, gone).await;
    gone.hang_up().await;
    b.eventually("it has left the line", async || b.limit("lock:x").await.waiting == 0).await;
    b.settle(released(&held)).await;
    let next = b.waiting(b.ask_needs([need("lock:x")]).wait(s(60))).await;
    b.pass(s(7)).await;
    next.lease().await;
}

pub(crate) async fn a_grant_that_is_undone_counts_nowhere(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 1, fixed(s(1))))).await;
    let call = b.ask("q").request("r1");
    let mut last = Fence::default();
    for _ in 0..4 {
        let lease = b.granted(call.clone()).await;
        assert!(lease.fence > last, "the same request is granted anew");
        last = lease.fence;
        b.undo(&lease);
        b.eventually("it is ready", async || b.job("a").await.state == JobState::Ready).await;
        let job = b.job("a").await;
        assert_eq!((job.attempt, job.lost, job.errors.len()), (0, 0, 0));
        b.undo(&lease);
    }
    let held = b.hold([need("lock:x")]).await;
    b.undo(&held);
    b.eventually("it is free", async || b.limit("lock:x").await.in_use == 0).await;
    b.no_settle(Code::LeaseLost, released(&held)).await;
    assert_eq!(b.granted(call).await.job.map(|job| job.attempt), Some(1));
}

pub(crate) async fn a_grant_that_somebody_got_is_not_undone(b: &mut Bench) {
    b.push_all(jobs("q", "j", 4)).await;
    let call = b.ask("q").request("r1");
    let repeated = b.granted(call.clone()).await;
    b.granted(call).await;
    let extended = b.take("q").await;
    b.lives(&extended).await;
    let settled = b.take("q").await;
    b.settle(succeeded(&settled)).await;
    for lease in [&repeated, &extended, &settled] {
        b.undo(lease);
    }
    // A last job that is undone after them shows that they were checked.
    let last = b.take("q").await;
    b.undo(&last);
    b.eventually("it is ready", async || b.job("j3").await.state == JobState::Ready).await;
    b.lives(&repeated).await;
    b.lives(&extended).await;
    b.is("j2", JobState::Succeeded).await;
}

pub(crate) async fn a_drained_engine_takes_no_more_callers(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let held = b.take("q").await;
    let waiting = b.waiting(b.ask("empty").wait(s(60))).await;
    b.engine().drain();
    assert!(waiting.answer().await.leases.is_empty());
    b.refused(Code::Draining, b.ask("q")).await;
    b.refused(Code::Draining, b.ask_needs([need("lock:x")])).await;
    b.engine().drain();
    b.lives(&held).await;
    b.settle(succeeded(&held)).await;
    b.push(job("q").id("late")).await;
    b.is("j1", JobState::Ready).await;
}
