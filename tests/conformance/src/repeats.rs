//! Every call can be repeated: the same answer, and no second effect.

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn the_same_settle_again_answers_the_same(b: &mut Bench) {
    b.push_all(jobs("q", "j", 5)).await;
    let leases = b.take_all("q", 5).await;
    let items = [
        succeeded(&leases[0]),
        failed(&leases[1]),
        failed_for_good(&leases[2]),
        snoozed(&leases[3], s(5)),
        released(&leases[4]),
    ];
    for item in items {
        let first = b.settle(item.clone()).await;
        assert_eq!(b.settle(item.clone()).await, first);
        b.pass(ms(300)).await;
        assert_eq!(b.settle(item).await, first, "also later");
    }
}

pub(crate) async fn a_repeated_settle_answers_the_first_whatever_the_job_did_since(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(9, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    let first = b.settle(failed(&lease)).await;
    b.pass(s(2)).await;
    let second = b.take_job("q", "a").await;
    assert_eq!(b.settle(failed(&lease)).await, first);
    b.is("a", JobState::Running).await;
    b.settle(succeeded(&second)).await;
    b.pass(s(90)).await;
    assert_eq!(b.settle(failed(&lease)).await, first, "for as long as the job is retained");
    assert_eq!(b.job("a").await.attempt, 2, "nothing was done twice");
}

pub(crate) async fn another_outcome_for_a_settled_lease_is_told(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(9, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    for other in [failed(&lease), snoozed(&lease, s(5)), released(&lease)] {
        b.no_settle(Code::AlreadySettled, other).await;
    }
    b.is("a", JobState::Succeeded).await;
}

pub(crate) async fn a_settle_is_forgotten_with_its_job(b: &mut Bench) {
    b.push(job("q").id("a").retain(s(5))).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.pass(s(6)).await;
    b.no_job("a").await;
    b.no_settle(Code::LeaseLost, succeeded(&lease)).await;
}

pub(crate) async fn a_lease_without_a_job_is_remembered_for_a_minute(b: &mut Bench) {
    let lease = b.hold([need("lock:x")]).await;
    let first = b.settle(released(&lease)).await;
    b.pass(s(55)).await;
    assert_eq!(b.settle(released(&lease)).await, first);
    b.pass(s(10)).await;
    b.no_settle(Code::LeaseLost, released(&lease)).await;
}

pub(crate) async fn a_repeated_release_does_not_release_the_next_holder(b: &mut Bench) {
    let lease = b.hold([need("lock:x")]).await;
    b.settle(released(&lease)).await;
    let next = b.hold([need("lock:x")]).await;
    b.settle(released(&lease)).await;
    b.lives(&next).await;
    b.in_use("lock:x", 1).await;
    b.denied([need("lock:x")]).await;
}

pub(crate) async fn a_repeated_settle_stores_its_follow_ups_once(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let item = succeeded(&lease).pushing(job("next"));
    b.settle(item.clone()).await;
    b.settle(item).await;
    assert_eq!(b.queue("next").await.counts.ready, 1);
}

pub(crate) async fn a_repeated_settle_corrects_a_rate_once(b: &mut Bench) {
    b.set_limit("r", rate(1, s(1), 10)).await;
    b.push(job("q").needs([need("r")])).await;
    let lease = b.take("q").await;
    let item = succeeded(&lease).spent("r", 6);
    b.settle(item.clone()).await;
    b.settle(item).await;
    b.hold([costing("r", 4)]).await;
    b.denied([need("r")]).await;
}

pub(crate) async fn a_repeated_lease_call_gets_the_same_leases(b: &mut Bench) {
    b.push_all(jobs("q", "j", 5)).await;
    let call = b.ask("q").max(2).request("r1");
    let first = b.ok(call.clone()).await.leases;
    assert_eq!(first.len(), 2);
    let again = b.ok(call.clone()).await.leases;
    let ids = |leases: &[tenure_core::lease::LeaseView]| -> Vec<_> {
        leases.iter().map(|one| (one.lease.clone(), one.fence)).collect()
    };
    assert_eq!(ids(&again), ids(&first));
    assert_eq!(jobs_of(&again), ["j0", "j1"]);
    assert_eq!(b.queue("q").await.counts.ready, 3, "never a second grant");
    b.settle(succeeded(&first[0])).await;
    let again = b.ok(call.clone()).await.leases;
    assert_eq!(ids(&again), ids(&first[1..]), "those of its leases that live");
    b.settle(succeeded(&first[1])).await;
    b.pass(s(50)).await;
    assert!(b.ok(call).await.leases.is_empty(), "for at least a minute");
    assert_eq!(b.queue("q").await.counts.ready, 3);
}

pub(crate) async fn a_repeated_call_for_needs_gets_the_same_lease(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").data(r#"{"pw":"x"}"#), thing("b")]).await;
    let call = b.ask_needs([any_of("p")]).request("r1");
    let first = b.granted(call.clone()).await;
    let again = b.granted(call).await;
    assert_eq!((&again.lease, again.fence), (&first.lease, first.fence));
    assert_eq!(again.resources, first.resources, "with the data, for the first answer was lost");
    assert_eq!(b.pool("p").await.leased, 1);
}

pub(crate) async fn a_repeated_call_for_needs_gets_its_lease_though_they_never_fit_now(
    b: &mut Bench,
) {
    b.set_limit("l", cap(2)).await;
    let call = b.ask_needs([weighing("l", 2)]).request("r1");
    let first = b.granted(call.clone()).await;
    b.set_limit("l", cap(1)).await;
    b.refused(Code::NeverFits, call.clone().request("r2")).await;
    assert_eq!(b.granted(call).await.lease, first.lease);
}

pub(crate) async fn a_request_is_remembered_while_its_leases_live(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let call = b.ask("q").request("r1");
    let first = b.granted(call.clone()).await;
    for _ in 0..10 {
        b.pass(s(10)).await;
        b.lives(&first).await;
    }
    assert_eq!(b.granted(call).await.lease, first.lease);
    b.is("j1", JobState::Ready).await;
}

pub(crate) async fn an_answer_without_a_grant_is_not_remembered(b: &mut Bench) {
    let call = b.ask("q").request("r1");
    b.not_granted(call.clone()).await;
    b.push(job("q").id("a")).await;
    assert_eq!(job_of(&b.granted(call).await), "a");
}

pub(crate) async fn a_repeated_token_is_taken_once(b: &mut Bench) {
    b.set_limit("r", rate(1, hours(1), 2)).await;
    let call = b.ask_needs([need("r")]).ttl(s(0)).request("r1");
    b.granted(call.clone()).await;
    b.ok(call).await;
    b.granted(b.ask_needs([need("r")]).ttl(s(0))).await;
    b.not_granted(b.ask_needs([need("r")]).ttl(s(0))).await;
}

pub(crate) async fn setting_and_pausing_twice_is_setting_once(b: &mut Bench) {
    assert!(b.set_limit("l", cap(2)).await.created);
    let holder = b.hold([need("l")]).await;
    let again = b.set_limit("l", cap(2)).await;
    assert_eq!((again.created, again.view.in_use), (false, 1));
    b.lives(&holder).await;
    b.push(job("q").id("a")).await;
    for _ in 0..2 {
        b.ok(PauseQueue { queue: queue("q"), until: None }).await;
    }
    b.ok(ResumeQueue { queue: queue("q") }).await;
    b.ok(ResumeQueue { queue: queue("q") }).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn a_repeated_delete_says_that_it_is_gone(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    b.push(job("q").id("a")).await;
    b.ok(DeleteJob { job: job_ref("a") }).await;
    b.refused(Code::JobNotFound, DeleteJob { job: job_ref("a") }).await;
    b.ok(DeleteQueue { queue: queue("q") }).await;
    b.refused(Code::QueueNotFound, DeleteQueue { queue: queue("q") }).await;
    b.ok(DeleteLimit { limit: limit("l") }).await;
    b.refused(Code::LimitNotFound, DeleteLimit { limit: limit("l") }).await;
    let delete = DeleteResource { pool: pool("p"), resource: resource("a") };
    b.ok(delete.clone()).await;
    b.refused(Code::ResourceNotFound, delete).await;
    b.ok(DeletePool { pool: pool("p") }).await;
    b.refused(Code::PoolNotFound, DeletePool { pool: pool("p") }).await;
}
