//! Taking jobs: the fields of a lease, the choice of the next job, and how many are granted.

use tenure_core::bounds::{ITEMS_MAX, PAGE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use tenure_core::job::JobState;
use tenure_core::lease::Fence;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn nothing_to_give_is_an_empty_answer(b: &mut Bench) {
    assert_eq!(b.none("q").await.next_at, None);
    b.queue("q").await;
}

pub(crate) async fn an_empty_answer_says_when_it_may_change(b: &mut Bench) {
    let pushed = b.push(job("q").delay(s(10))).await;
    let next = b.none("q").await.next_at.expect("the next due moment is known");
    assert!(next > b.now() && next <= pushed.job.run_at, "{next}");
}

pub(crate) async fn a_job_is_granted_to_one(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    b.take_job("q", "a").await;
    b.none("q").await;
    b.pass(s(5)).await;
    b.none("q").await;
}

pub(crate) async fn a_lease_says_what_is_held(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.set_pool("p", plain_pool(), vec![thing("r").data(r#"{"pw":"x"}"#).tags(["t"])]).await;
    let said = job("q").id("a").payload("[1]").needs([need("l"), tagged("p", "t")]).timeout(s(90));
    b.push(said).await;
    let lease = b.granted(b.ask("q").by("me").ttl(s(20))).await;
    assert_eq!((lease.holder.as_str(), lease.granted_at), ("me", b.now()));
    assert_eq!(lease.expires_at, b.now().plus(s(20)));
    assert_eq!(lease.deadline, Some(b.now().plus(s(90))));
    assert_eq!(lease.limits, [limit("l")]);
    let held = &lease.resources[0];
    assert_eq!((held.pool.as_str(), held.id.as_str()), ("p", "r"));
    assert_eq!(value(&held.data), serde_json::json!({"pw": "x"}));
    assert_eq!(held.tags, [tag("t")]);
    let job = lease.job.as_ref().expect("a job");
    assert_eq!((job.state, job.attempt), (JobState::Running, 1));
    assert_eq!(job.payload, Some(json("[1]")));
    let shown = b.job("a").await;
    assert_eq!((shown.state, shown.attempt), (JobState::Running, 1));
    assert_eq!((shown.lease, shown.started_at), (lease.lease, Some(b.now())));
}

pub(crate) async fn a_worker_without_a_name_is_anonymous(b: &mut Bench) {
    b.push(job("q")).await;
    let lease = b.granted(Lease::jobs(vec![queue("q")], 1)).await;
    assert_eq!(lease.holder, "anonymous");
    assert_eq!((lease.deadline, lease.expires_at), (None, b.now().plus(DEFAULT_TTL)));
}

pub(crate) async fn a_call_gets_no_more_bytes_than_one_answer_carries(b: &mut Bench) {
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    let all = PAGE_BYTES_MAX / PAYLOAD_BYTES_MAX + 4;
    b.set_limit("l", cap(1_000)).await;
    for n in 0..all {
        // In every way that a grant may go: alike and apart, with needs and without.
        let bare = job("q").id(&format!("j{n}")).payload(&payload);
        b.push(if n % 3 == 0 { bare.needs([need("l")]) } else { bare }).await;
    }
    let mut took = vec![];
    while took.iter().sum::<usize>() < all {
        let leased = b.ok(Lease::jobs(vec![queue("q")], ITEMS_MAX).by("w")).await;
        let bytes = leased.leases.iter().filter_map(|lease| lease.job.as_deref());
        let bytes: usize = bytes.map(tenure_core::job::JobView::bytes).sum();
        assert!((1..=PAGE_BYTES_MAX).contains(&bytes), "{bytes} bytes in one answer");
        took.push(leased.leases.len());
    }
    assert_eq!((took.len(), took.iter().sum::<usize>()), (2, all), "{took:?}");
}

pub(crate) async fn fences_rise_with_every_grant(b: &mut Bench) {
    b.push_all(jobs("q", "j", 5)).await;
    let mut last = Fence::default();
    for lease in b.take_all("q", 3).await {
        assert!(
            lease.fence > last && lease.fence.get() >= b.now().us(),
            "{} after {last}",
            lease.fence
        );
        last = lease.fence;
    }
    let lock = b.hold([need("lock:x")]).await;
    assert!(lock.fence > last, "one fence for jobs and locks");
    b.pass(s(1)).await;
    let later = b.take("q").await;
    assert!(later.fence > lock.fence && later.fence.get() >= b.now().us());
    b.settle(released(&later)).await;
    assert!(b.take("q").await.fence > later.fence);
}

pub(crate) async fn a_fence_is_not_changed_by_an_extend(b: &mut Bench) {
    b.push(job("q")).await;
    let lease = b.take("q").await;
    b.pass(s(5)).await;
    b.lives(&lease).await;
    let listed = b.ok(ListLeases::default()).await.items;
    assert_eq!((listed.len(), listed[0].fence), (1, lease.fence));
}

pub(crate) async fn a_call_gets_as_many_as_there_are(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let leases = b.take_all("q", 10).await;
    assert_eq!(jobs_of(&leases), ["j0", "j1", "j2"]);
}

pub(crate) async fn a_call_gets_no_more_than_it_asks_for(b: &mut Bench) {
    b.push_all(jobs("q", "j", 5)).await;
    assert_eq!(b.take_all("q", 2).await.len(), 2);
    assert_eq!(b.queue("q").await.counts.ready, 3);
}

pub(crate) async fn a_call_gets_no_more_than_the_needs_allow(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    let with_need = |n: usize| job("q").id(&format!("j{n}")).needs([need("l")]);
    b.push_all((0..5).map(with_need).collect()).await;
    assert_eq!(b.take_all("q", 5).await.len(), 2);
    b.in_use("l", 2).await;
    b.is("j4", JobState::Blocked).await;
}

pub(crate) async fn a_thousand_jobs_are_taken_in_one_call(b: &mut Bench) {
    b.push_all(jobs("q", "j", 1_000)).await;
    let leases = b.take_all("q", 1_000).await;
    assert_eq!(leases.len(), 1_000);
    assert!(leases.windows(2).all(|two| two[0].fence < two[1].fence), "each has its own fence");
}

pub(crate) async fn queues_are_tried_in_the_order_given(b: &mut Bench) {
    b.push(job("a").id("a").priority(100)).await;
    b.push(job("b").id("b").priority(-100)).await;
    let both = Lease::jobs(vec![queue("b"), queue("a")], 1).by("w1");
    assert_eq!(job_of(&b.granted(both.clone()).await), "b");
    assert_eq!(job_of(&b.granted(both).await), "a", "the first that has a job that may go");
}

pub(crate) async fn a_queue_whose_jobs_are_blocked_is_passed_over(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(job("a").needs([need("closed")])).await;
    b.push(job("b").id("b")).await;
    let both = Lease::jobs(vec![queue("a"), queue("b")], 1).by("w1");
    assert_eq!(job_of(&b.granted(both).await), "b");
}

pub(crate) async fn a_blocked_job_does_not_stand_in_the_way(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let lock = b.hold([need("l")]).await;
    b.push(job("q").id("blocked").priority(100).needs([need("l")])).await;
    b.push(job("q").id("free")).await;
    b.take_job("q", "free").await;
    b.is("blocked", JobState::Blocked).await;
    b.none("q").await;
    b.settle(released(&lock)).await;
    b.take_job("q", "blocked").await;
}
