//! Settling and asking in one call: as a settle and a lease call right after it, with nothing in between.

use tenure_core::job::JobState;
use tenure_core::lease::{LeaseView, Leased, SettleItem, Verdict};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

fn both(settle: Vec<SettleItem>, lease: Lease) -> Settle {
    Settle { settle, lease: Some(Box::new(lease)) }
}

/// The answer of the lease call.
#[track_caller]
fn leased(settled: Settled) -> Leased {
    settled.lease.expect("a lease call was made").expect("it is not refused")
}

fn ids(leases: &[LeaseView]) -> Vec<(String, u64)> {
    leases.iter().map(|lease| (id_of(lease), lease.fence.get())).collect()
}

pub(crate) async fn settles_and_a_lease_call_are_answered_together(b: &mut Bench) {
    b.push_all(jobs("q", "j", 4)).await;
    let held = b.take_all("q", 2).await;
    let call = b.ask("q").max(5).request("r1");
    let answer = b.ok(both(held.iter().map(succeeded).collect(), call)).await;
    assert!(answer.settled.iter().all(|one| one.ok && one.state == Some(JobState::Succeeded)));
    let leased = leased(answer);
    assert_eq!(jobs_of(&leased.leases), ["j2", "j3"]);
    assert_eq!(leased.leases[0].job.as_ref().map(|job| job.attempt), Some(1));
    b.is("j0", JobState::Succeeded).await;
    for lease in &leased.leases {
        b.lives(lease).await;
    }
}

pub(crate) async fn a_settle_without_a_lease_call_is_answered_without_leases(b: &mut Bench) {
    b.push(job("q")).await;
    let held = b.take("q").await;
    assert_eq!(b.ok(Settle::of(vec![succeeded(&held)])).await.lease, None);
}

pub(crate) async fn no_settles_and_a_lease_call_are_a_lease_call(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let answer = b.ok(both(vec![], b.ask("q").request("r1"))).await;
    assert!(answer.settled.is_empty());
    assert_eq!(jobs_of(&leased(answer).leases), ["a"]);
}

pub(crate) async fn what_a_settle_frees_is_granted_in_the_same_call(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all(jobs("q", "j", 2).into_iter().map(|job| job.needs([need("l")])).collect()).await;
    let held = b.take("q").await;
    b.none("q").await;
    let answer = b.ok(both(vec![succeeded(&held)], b.ask("q").request("r1"))).await;
    assert_eq!(jobs_of(&leased(answer).leases), ["j1"]);
    b.in_use("l", 1).await;
}

pub(crate) async fn what_a_settle_pushes_or_gives_back_is_granted_in_the_same_call(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let held = b.take_all("q", 2).await;
    let items = vec![released(&held[0]), succeeded(&held[1]).pushing(job("q").id("next"))];
    let answer = b.ok(both(items, b.ask("q").max(5).request("r1"))).await;
    assert_eq!(jobs_of(&leased(answer).leases), ["j0", "next"]);
}

pub(crate) async fn a_lock_that_is_given_back_is_granted_again_in_the_same_call(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let call = b.ask_needs([need("lock:x")]).request("r1");
    let next = leased(b.ok(both(vec![released(&held)], call)).await).leases.remove(0);
    assert!(next.fence > held.fence);
    b.in_use("lock:x", 1).await;
    b.lives(&next).await;
}

pub(crate) async fn whoever_waited_before_goes_first(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all(jobs("q", "j", 2).into_iter().map(|job| job.needs([need("l")])).collect()).await;
    let held = b.take("q").await;
    let before = b.waiting(b.ask("q").wait(s(60))).await;
    let call = b.ask("q").request("r1").wait(s(60));
    let after = b.start(both(vec![succeeded(&held)], call));
    let first = before.lease().await;
    assert_eq!(job_of(&first), "j1");
    b.push(job("q").id("free")).await;
    assert_eq!(jobs_of(&leased(after.answer().await).leases), ["free"]);
}

pub(crate) async fn a_line_for_needs_is_not_jumped_by_settling(b: &mut Bench) {
    let held = b.hold([need("lock:x")]).await;
    let call = b.ask_needs([need("lock:x")]).wait(s(60));
    let before = b.waiting_at("lock:x", 1, call).await;
    let call = b.ask_needs([need("lock:x")]).request("r1").wait(s(60));
    let after = b.start(both(vec![released(&held)], call));
    let next = before.lease().await;
    assert!(!after.is_answered());
    b.settle(released(&next)).await;
    assert_eq!(leased(after.answer().await).leases.len(), 1);
}

pub(crate) async fn the_answer_comes_with_the_first_grant(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let held = b.take("q").await;
    let call = b.ask("q").request("r1").wait(s(60));
    let waiting = b.waiting_after(vec![succeeded(&held)], call).await;
    b.is("a", JobState::Succeeded).await;
    assert!(!waiting.is_answered());
    b.push(job("q").id("b")).await;
    let answer = waiting.answer().await;
    assert_eq!(answer.settled[0].state, Some(JobState::Succeeded));
    assert_eq!(jobs_of(&leased(answer).leases), ["b"]);
}

pub(crate) async fn a_wait_in_vain_ends_with_the_settles(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    b.push(job("q").id("later").delay(s(30))).await;
    let held = b.take("q").await;
    let call = b.ask("q").request("r1").wait(s(10));
    let waiting = b.waiting_after(vec![succeeded(&held)], call).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(600)).await;
    let answer = waiting.answer().await;
    assert!(answer.settled[0].ok);
    let leased = leased(answer);
    assert!(leased.leases.is_empty());
    assert!(leased.next_at.is_some_and(|next| next > b.now()), "{:?}", leased.next_at);
}

pub(crate) async fn needs_in_vain_are_told_why(b: &mut Bench) {
    b.push(job("q")).await;
    let job = b.take("q").await;
    let held = b.hold([need("lock:x")]).await;
    let call = b.ask_needs([need("lock:x")]).request("r1");
    let answer = b.ok(both(vec![succeeded(&job)], call)).await;
    assert!(answer.settled[0].ok);
    let leased = leased(answer);
    assert_eq!(leased.reasons[0].holders[0].lease, id_of(&held));
}

pub(crate) async fn settles_stand_when_their_caller_is_gone(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let held = b.take("q").await;
    let call = b.ask("q").request("r1").wait(s(60));
    b.waiting_after(vec![succeeded(&held)], call).await.hang_up().await;
    b.is("a", JobState::Succeeded).await;
    b.push(job("q").id("b")).await;
    let lease = b.waiting(b.ask("q").wait(s(60))).await.lease().await;
    let view = lease.job.as_ref().expect("a job");
    assert_eq!((view.id.as_str(), view.attempt, view.lost), ("b", 1, 0));
    assert_eq!(b.ok(ListLeases::default()).await.items.len(), 1);
}

pub(crate) async fn the_same_call_again_answers_the_same_and_grants_nothing(b: &mut Bench) {
    b.push_all(jobs("q", "j", 8)).await;
    let held = b.take_all("q", 2).await;
    let call = both(
        vec![succeeded(&held[0]), failed(&held[1])],
        b.ask("q").max(2).request("r1").wait(s(60)),
    );
    let first = b.ok(call.clone()).await;
    let again = b.ok(call.clone()).await;
    assert_eq!(again.settled, first.settled);
    let (first, again) = (leased(first), leased(again));
    assert_eq!(ids(&again.leases), ids(&first.leases));
    assert_eq!(jobs_of(&again.leases), ["j2", "j3"]);
    b.settle(succeeded(&first.leases[0])).await;
    let again = leased(b.ok(call.clone()).await);
    assert_eq!(ids(&again.leases), ids(&first.leases[1..]), "those of its leases that live");
    b.settle(succeeded(&first.leases[1])).await;
    b.pass(s(50)).await;
    assert!(leased(b.ok(call).await).leases.is_empty(), "for at least a minute");
    let counts = b.queue("q").await.counts;
    assert_eq!(counts.ready + counts.scheduled, 5, "four, and the one that is tried again");
}

pub(crate) async fn a_repeat_does_not_get_what_it_settles(b: &mut Bench) {
    b.push_all(jobs("q", "j", 6)).await;
    let call = || b.ask("q").max(3).request("r1");
    let held = b.ok(call()).await.leases;
    let answer = b.ok(both(vec![succeeded(&held[0]), released(&held[2])], call())).await;
    assert!(answer.settled.iter().all(|one| one.ok));
    assert_eq!(ids(&leased(answer).leases), ids(&held[1..2]));
    let answer = b.ok(both(vec![succeeded(&held[1])], call())).await;
    assert!(answer.settled[0].ok);
    assert!(leased(answer).leases.is_empty());
    assert_eq!(b.queue("q").await.counts.ready, 4);
}

pub(crate) async fn the_same_call_while_the_first_waits_takes_over(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let held = b.take("q").await;
    let call = || b.ask("q").request("r1").wait(s(60));
    let first = b.waiting_after(vec![succeeded(&held)], call()).await;
    let second = b.waiting_after(vec![succeeded(&held)], call()).await;
    let answer = first.answer().await;
    assert!(answer.settled[0].ok);
    assert!(leased(answer).leases.is_empty(), "answered at once with an empty list");
    b.push(job("q").id("b")).await;
    let answer = second.answer().await;
    assert!(answer.settled[0].ok, "the same as the first time");
    assert_eq!(jobs_of(&leased(answer).leases), ["b"]);
}

pub(crate) async fn a_lease_call_that_is_refused_leaves_the_settles(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let unknown = b.ask_needs([need("lock:x"), need("nope")]);
    let rows = [
        (unknown, Code::UnknownLimit, "/lease/needs/1/limit"),
        (b.ask_needs([weighing("l", 2)]), Code::NeverFits, "/lease/needs/0/weight"),
        (b.ask_needs([any_of("nope")]), Code::UnknownPool, "/lease/needs/0/pool"),
        (b.ask_needs([need("l")]).ttl(s(0)), Code::InvalidField, "/lease/ttl"),
    ];
    for (n, (call, code, pointer)) in rows.into_iter().enumerate() {
        let id = format!("j{n}");
        b.push(job("q").id(&id)).await;
        let held = b.take("q").await;
        let call = both(vec![succeeded(&held)], call.request("r1").wait(s(60)));
        for _ in 0..2 {
            let answer = b.ok(call.clone()).await;
            assert!(answer.settled[0].ok, "{pointer}");
            let no = answer.lease.expect("a lease call was made").expect_err(pointer);
            assert_eq!((no.code, no.pointer.as_deref()), (code, Some(pointer)));
            assert!(!no.hint.is_empty());
        }
        b.is(&id, JobState::Succeeded).await;
    }
    b.in_use("lock:x", 0).await;
}

pub(crate) async fn settles_that_are_refused_ask_for_nothing(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let held = b.take("q").await;
    let item = succeeded(&held).verdict("nope", "r", Verdict::Ok);
    let call = both(vec![item], b.ask("q").request("r1").wait(s(60)));
    let no = b.refused(Code::UnknownResource, call).await;
    assert_eq!((no.index, no.pointer.as_deref()), (Some(0), Some("/settle/0/resources/0")));
    b.lives(&held).await;
    b.is("j1", JobState::Ready).await;
    assert_eq!(b.queue("q").await.counts.running, 1);
}

pub(crate) async fn a_settle_that_comes_too_late_asks_all_the_same(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let held = b.take("q").await;
    let lease = b.ok(ListLeases::default()).await.items.remove(0).lease;
    b.ok(ForceLease { lease }).await;
    b.take_job("q", "j0").await;
    let answer = b.ok(both(vec![succeeded(&held)], b.ask("q").request("r1"))).await;
    assert_eq!((answer.settled[0].ok, answer.settled[0].code), (false, Some(Code::LeaseLost)));
    assert_eq!(jobs_of(&leased(answer).leases), ["j1"]);
}

pub(crate) async fn a_token_is_taken_after_a_settle(b: &mut Bench) {
    b.set_limit("r", rate(1, s(60), 1)).await;
    b.push(job("q")).await;
    let held = b.take("q").await;
    let call = both(vec![succeeded(&held)], b.ask_needs([need("r")]).ttl(s(0)).request("r1"));
    let answer = b.ok(call).await;
    assert!(answer.settled[0].ok);
    let leased = leased(answer);
    assert_eq!((leased.leases.len(), leased.leases[0].lease.as_ref()), (1, None));
    b.denied([need("r")]).await;
}

pub(crate) async fn an_engine_that_drains_settles_and_grants_nothing(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let held = b.take_all("q", 2).await;
    let call = b.ask("empty").request("r1").wait(s(60));
    let waiting = b.waiting_after(vec![succeeded(&held[0])], call).await;
    b.engine().drain();
    let answer = waiting.answer().await;
    assert!(answer.settled[0].ok);
    assert!(leased(answer).leases.is_empty());
    let call = both(vec![succeeded(&held[1])], b.ask("q").request("r2"));
    let answer = b.ok(call).await;
    assert!(answer.settled[0].ok);
    let no = answer.lease.expect("a lease call was made").expect_err("it drains");
    assert_eq!(no.code, Code::Draining);
    b.is("j1", JobState::Succeeded).await;
    b.is("j2", JobState::Ready).await;
}

pub(crate) async fn many_are_settled_and_granted_in_one_call(b: &mut Bench) {
    b.push_all(jobs("q", "j", 900)).await;
    let mut held = b.take_all("q", 300).await;
    for round in 0..3 {
        let items = held.iter().map(succeeded).collect();
        let call = b.ask("q").max(300).request(&format!("r{round}"));
        let answer = b.ok(both(items, call)).await;
        assert!(answer.settled.len() == 300 && answer.settled.iter().all(|one| one.ok));
        held = leased(answer).leases;
        assert_eq!(held.len(), if round < 2 { 300 } else { 0 });
    }
    let counts = b.queue("q").await.counts;
    assert_eq!((counts.ready, counts.running), (0, 0));
    let succeeded = b.ok(GetStats).await.jobs;
    assert_eq!(succeeded.get(&JobState::Succeeded), Some(&900));
}
