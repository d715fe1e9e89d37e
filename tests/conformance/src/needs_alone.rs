//! Calls for needs alone: they stand in the same lines as jobs, like one more queue.

use tenure_core::lease::ReasonKind;
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_lease_of_needs_has_no_job(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").data("7")]).await;
    let lease = b.granted(b.ask_needs([need("lock:x"), any_of("p")]).by("me").ttl(s(40))).await;
    assert!(lease.job.is_none() && lease.deadline.is_none());
    assert_eq!((lease.holder.as_str(), lease.limits.as_slice()), ("me", &[limit("lock:x")][..]));
    assert_eq!(lease.resources[0].data, json("7"));
    assert_eq!((lease.granted_at, lease.expires_at), (b.now(), b.now().plus(s(40))));
}

pub(crate) async fn who_gets_nothing_is_told_why(b: &mut Bench) {
    let held = b.granted(b.ask_needs([need("lock:x")]).by("me")).await;
    let empty = b.denied([need("lock:x")]).await;
    let reason = empty.reasons.iter().find(|why| why.kind == ReasonKind::Limit);
    let reason = reason.expect("the limit is named");
    assert_eq!(reason.name.as_deref(), Some("lock:x"));
    assert_eq!((reason.in_use, reason.capacity), (Some(1), Some(1)));
    assert_eq!(reason.holders[0].lease, id_of(&held));
    assert_eq!(reason.holders[0].holder, "me");
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    b.hold([any_of("p")]).await;
    let empty = b.denied([any_of("p")]).await;
    assert!(empty.reasons.iter().any(|why| why.kind == ReasonKind::Pool), "{empty:?}");
}

pub(crate) async fn needs_that_can_never_be_are_refused(b: &mut Bench) {
    b.set_limit("two", cap(2)).await;
    b.set_limit("r", rate(1, s(1), 1)).await;
    let table = [
        (vec![need("nowhere")], Code::UnknownLimit),
        (vec![any_of("nowhere")], Code::UnknownPool),
        (vec![weighing("two", 3)], Code::NeverFits),
        (vec![costing("r", 2)], Code::NeverFits),
        (vec![need("two"), weighing("two", 2)], Code::DuplicateNeed),
    ];
    for (needs, code) in table {
        b.refused(code, Lease::needs(needs).wait(s(30))).await;
    }
    b.in_use("two", 0).await;
}

pub(crate) async fn callers_are_served_in_the_order_of_their_asking(b: &mut Bench) {
    let mut held = b.hold([need("lock:x")]).await;
    let mut line = vec![];
    for place in 1..=4 {
        let call = b.ask_needs([need("lock:x")]).ttl(hours(1)).wait(s(60));
        line.push(b.waiting_at("lock:x", place, call).await);
    }
    for _ in 0..4 {
        b.settle(released(&held)).await;
        held = line.remove(0).lease().await;
        assert!(line.iter().all(|waiting| !waiting.is_answered()), "one at a time");
        b.in_use("lock:x", 1).await;
    }
}

pub(crate) async fn a_newcomer_does_not_overtake_a_caller(b: &mut Bench) {
    b.set_limit("l", cap(3)).await;
    let held = b.hold([weighing("l", 2)]).await;
    let heavy = b.ask_needs([weighing("l", 2)]).wait(s(60));
    let heavy = b.waiting_at("l", 1, heavy).await;
    b.denied([need("l")]).await;
    b.settle(released(&held)).await;
    heavy.lease().await;
    b.hold([need("l")]).await;
}

pub(crate) async fn callers_and_jobs_have_their_turns_in_one_line(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    b.push(job("q").id("a").needs([need("lock:x")])).await;
    let worker = b.waiting(b.ask("q").wait(s(60))).await;
    b.eventually("the job stands in line", async || b.limit("lock:x").await.waiting == 1).await;
    let caller = b.ask_needs([need("lock:x")]).wait(s(60));
    let caller = b.waiting_at("lock:x", 2, caller).await;
    b.settle(released(&held)).await;
    b.eventually("one is served", async || worker.is_answered() || caller.is_answered()).await;
    b.in_use("lock:x", 1).await;
    let (first, second) = if worker.is_answered() { (worker, caller) } else { (caller, worker) };
    assert!(!second.is_answered());
    let lease = first.lease().await;
    b.settle(released(&lease)).await;
    // A released job stands in line again; no caller waits for its queue any more.
    b.pass(s(2)).await;
    second.lease().await;
}

pub(crate) async fn callers_of_different_needs_do_not_wait_for_each_other(b: &mut Bench) {
    b.hold([need("lock:x")]).await;
    let waiting = b.ask_needs([need("lock:x"), need("lock:y")]).wait(s(60));
    let _waiting = b.waiting_at("lock:x", 1, waiting).await;
    b.hold([need("lock:y")]).await;
}

pub(crate) async fn a_place_is_kept_for_a_while_after_the_wait(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let early = || b.ask_needs([need("lock:x")]).by("early").ttl(hours(1)).request("r1");
    let first = b.waiting_at("lock:x", 1, early().wait(s(1))).await;
    b.pass(s(2)).await;
    assert!(first.answer().await.leases.is_empty());
    let late = b.ask_needs([need("lock:x")]).ttl(hours(1)).wait(s(60));
    let late = b.waiting(late).await;
    b.pass(s(1)).await;
    let back = b.start(early().wait(s(60)));
    b.eventually("the early caller is back", async || {
        let workers = b.ok(ListWorkers::default()).await.items;
        let early = workers.iter().find(|one| one.id.as_str() == "early");
        early.is_some_and(|one| one.last_seen_at == b.now())
    })
    .await;
    b.settle(released(&held)).await;
    let lease = back.lease().await;
    assert!(!late.is_answered());
    b.settle(released(&lease)).await;
    late.lease().await;
}

pub(crate) async fn a_place_is_kept_under_the_first_request_of_a_wait(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let early =
        |request: &str| b.ask_needs([need("lock:x")]).by("early").ttl(hours(1)).request(request);
    let first = b.waiting_at("lock:x", 1, early("r1").wait(s(1))).await;
    b.pass(s(2)).await;
    assert!(first.answer().await.leases.is_empty());
    let late = b.ask_needs([need("lock:x")]).ttl(hours(1)).wait(s(60));
    let late = b.waiting(late).await;
    b.pass(s(1)).await;
    let back = b.start(early("r2").place("r1").wait(s(60)));
    b.eventually("the early caller is back", async || {
        let workers = b.ok(ListWorkers::default()).await.items;
        let early = workers.iter().find(|one| one.id.as_str() == "early");
        early.is_some_and(|one| one.last_seen_at == b.now())
    })
    .await;
    b.settle(released(&held)).await;
    let lease = back.lease().await;
    assert!(!late.is_answered());
    b.settle(released(&lease)).await;
    late.lease().await;
}

pub(crate) async fn a_place_is_not_kept_for_ever(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let early = || b.ask_needs([need("lock:x")]).ttl(hours(1)).request("r1");
    let first = b.waiting_at("lock:x", 1, early().wait(s(1))).await;
    b.pass(s(2)).await;
    assert!(first.answer().await.leases.is_empty());
    let late = b.ask_needs([need("lock:x")]).ttl(hours(1)).wait(s(60));
    let late = b.waiting(late).await;
    b.pass(s(7)).await;
    let back = b.waiting(early().wait(s(60))).await;
    b.settle(released(&held)).await;
    late.lease().await;
    assert!(!back.is_answered());
}

pub(crate) async fn what_frees_is_not_held_for_who_is_not_there(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let early = b.ask_needs([need("lock:x")]).request("r1").wait(s(1));
    let first = b.waiting_at("lock:x", 1, early).await;
    b.pass(s(2)).await;
    assert!(first.answer().await.leases.is_empty());
    let late = b.ask_needs([need("lock:x")]).ttl(hours(1)).wait(s(60));
    let late = b.waiting(late).await;
    b.settle(released(&held)).await;
    // At most a turn of a second passes before the next in line is served.
    b.pass(s(2)).await;
    late.lease().await;
}

pub(crate) async fn a_wait_that_is_over_is_answered_empty(b: &mut Bench) {
    b.hold([need("lock:x")]).await;
    let waiting = b.ask_needs([need("lock:x")]).wait(s(5));
    let waiting = b.waiting_at("lock:x", 1, waiting).await;
    b.pass(s(4)).await;
    assert!(!waiting.is_answered());
    b.pass(s(2)).await;
    let answer = waiting.answer().await;
    assert!(answer.leases.is_empty());
    assert!(answer.reasons.iter().any(|why| why.kind == ReasonKind::Limit), "{answer:?}");
}

pub(crate) async fn a_wait_that_ends_in_the_tick_that_frees_is_granted(b: &mut Bench) {
    let _dies = b.granted(b.ask_needs([need("lock:x")]).ttl(s(3))).await;
    let alone = b.ask_needs([need("lock:x")]).wait(ms(2_001));
    let alone = b.waiting_at("lock:x", 1, alone).await;
    b.set_limit("l", cap(1)).await;
    b.push_all(["a", "b"].map(|id| job("q").id(id).needs([need("l")])).to_vec()).await;
    let _dies = b.granted(b.ask("q").max(2).ttl(s(3))).await;
    let for_jobs = b.waiting(b.ask("q").by("w").wait(ms(2_001))).await;
    b.leap(s(3)).await;
    assert_eq!(alone.lease().await.limits, [limit("lock:x")]);
    assert_eq!(for_jobs.lease().await.limits, [limit("l")]);
}

pub(crate) async fn a_line_has_an_end(b: &mut Bench) {
    if !b.bears_a_crowd() {
        return;
    }
    let most = tenure_core::bounds::LINE_MAX;
    b.hold([need("lock:x")]).await;
    let mut line = Vec::new();
    // Not all at once: on a slow machine each call would wait until all others are registered.
    while line.len() < most {
        let some = (most - line.len()).min(500);
        line.extend((0..some).map(|_| b.start(b.ask_needs([need("lock:x")]).wait(s(60)))));
        let heard = async || b.limit("lock:x").await.waiting == line.len() as u64;
        b.eventually("all stand in line", heard).await;
    }
    let no = b.refused(Code::LineFull, b.ask_needs([need("lock:x")]).wait(s(60))).await;
    assert!(no.retry_after_s.is_some(), "it says when to come back");
    b.hold([need("lock:y")]).await;
    assert!(line.iter().all(|waiting| !waiting.is_answered()));
}
