//! After a crash: dependencies and counts are unchanged, and all children are notified.

use tenure_core::flow::FlowState;
use tenure_core::job::{JobState, NewJob};
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn jobs_that_wait_survive_a_crash(b: &mut Bench) {
    b.push_all(vec![job("p").id("a").in_flow("f"), job("p").id("b").retain(s(0))]).await;
    b.push_all(vec![
        job("q").id("c").after(["a", "b", "gone"]).or_gone(),
        job("q").id("run").after(["b"]).run_anyway(),
        job("q").id("later").after(["a"]).delay(s(60)),
        job("w").id("w").after_flow("f"),
        job("q").id("off").after(["a"]),
    ])
    .await;
    b.cancel("off").await;
    b.ends("p", "a", succeeded).await;
    b.retried("off").await;
    b.ends("q", "off", succeeded).await;
    let ids = ["a", "b", "c", "run", "later", "w", "off"];
    let mut before = vec![];
    for id in ids {
        before.push((b.job(id).await, b.parents(id).await, b.children(id).await));
    }
    let counts = b.queue("q").await.counts;
    assert_eq!(waits_of(&before[2].0), (3, 1));
    if !b.reopen().await {
        return;
    }
    for (id, before) in ids.into_iter().zip(before) {
        assert_eq!((b.job(id).await, b.parents(id).await, b.children(id).await), before, "{id}");
    }
    assert_eq!(b.queue("q").await.counts, counts);
    b.ends("p", "b", failed_for_good).await;
    b.is("c", JobState::Cancelled).await;
    b.ends("q", "run", succeeded).await;
    b.pass(s(61)).await;
    b.take_job("q", "later").await;
}

/// The number of children of a parent that ends; the engine crashes at once after that.
const CHILDREN: usize = 1_000;

async fn children(b: &Bench, name: &str, with: fn(NewJob) -> NewJob) {
    let child = |n: usize| with(job("q").id(&format!("{name}{n}")).after([name]));
    b.ok(briefly((0..CHILDREN).map(child).collect())).await;
}

pub(crate) async fn a_crash_between_an_end_and_the_last_child_told_loses_nobody(b: &mut Bench) {
    b.push(job("p").id("good").retain(s(0))).await;
    children(b, "good", |job| job).await;
    b.ends("p", "good", succeeded).await;
    if !b.reopen().await {
        return;
    }
    b.told().await;
    let counts = b.queue("q").await.counts;
    assert_eq!((counts.ready, counts.dependent), (CHILDREN as u64, 0));
    let taken = b.take_all("q", 1_000).await;
    assert_eq!(taken.len(), CHILDREN);
    b.none("q").await;
    b.ok(Settle::of(taken.iter().map(succeeded).collect())).await;
    b.told().await;
    b.no_job("good").await;
    b.push(job("p").id("bad")).await;
    children(b, "bad", |job| job).await;
    b.ends("p", "bad", failed_for_good).await;
    b.reopen().await;
    b.told().await;
    let view = b.retried("bad").await;
    assert_eq!(view.cancelled_children, Some(CHILDREN as u64));
    assert_eq!(b.queue("q").await.counts.dependent, 0);
}

pub(crate) async fn a_crash_loses_nobody_who_waits_for_a_flow(b: &mut Bench) {
    b.push(job("p").id("a").in_flow("f")).await;
    let waiter = |n: usize| job("q").id(&format!("w{n}")).after_flow("f");
    b.ok(briefly((0..CHILDREN).map(waiter).collect())).await;
    b.ends("p", "a", succeeded).await;
    if !b.reopen().await {
        return;
    }
    b.told().await;
    assert_eq!(b.take_all("q", 1_000).await.len(), CHILDREN);
}

pub(crate) async fn a_parent_is_kept_across_a_crash_until_its_children_have_ended(b: &mut Bench) {
    b.push_all(vec![job("p").id("a").retain(s(0)), job("p").id("b").retain(s(10))]).await;
    b.push(job("q").id("c").after(["a", "b"])).await;
    let leases = b.take_all("p", 2).await;
    b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
    if !b.reopen().await {
        return;
    }
    b.pass(s(60)).await;
    b.is("a", JobState::Succeeded).await;
    b.is("b", JobState::Succeeded).await;
    b.refused(tenure_core::refusal::Code::InUse, DeleteJob { job: job_ref("a") }).await;
    b.ends("q", "c", succeeded).await;
    b.told().await;
    b.no_job("a").await;
    b.no_job("b").await;
}

pub(crate) async fn parents_are_let_go_after_a_crash(b: &mut Bench) {
    let ids: Vec<String> = (0..CHILDREN).map(|n| format!("p{n}")).collect();
    b.ok(briefly(ids.iter().map(|id| job("p").id(id).retain(s(0))).collect())).await;
    b.push(job("q").id("c").after(&ids).retain(s(0))).await;
    let leases = b.take_all("p", 1_000).await;
    b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
    b.told().await;
    b.ends("q", "c", succeeded).await;
    if !b.reopen().await {
        return;
    }
    b.told().await;
    let stats = b.ok(GetStats).await;
    assert_eq!(stats.jobs.values().sum::<u64>(), 0, "{stats:?}");
    assert_eq!(b.push(job("q").id("c")).await.job.parents, 0);
}

pub(crate) async fn a_flow_survives_a_crash(b: &mut Bench) {
    b.push(job("p").id("gone").in_flow("f").retain(s(0))).await;
    b.push_all(jobs("p", "j", 3).into_iter().map(|job| job.in_flow("f")).collect()).await;
    b.push(job("q").id("w").after_flow("f").run_anyway()).await;
    b.push(job("p").id("done").in_flow("g")).await;
    b.ends("p", "gone", succeeded).await;
    b.ends("p", "j0", failed_for_good).await;
    b.cancel("done").await;
    b.told().await;
    let before = (b.flow("f").await, b.flow("g").await);
    assert_eq!(counts_of(&before.0), [2, 1, 1, 0]);
    if !b.reopen().await {
        return;
    }
    assert_eq!((b.flow("f").await, b.flow("g").await), before);
    assert_eq!(b.ok(ListFlows::default()).await.items.len(), 2);
    b.ends("p", "j1", succeeded).await;
    b.is("w", JobState::Dependent).await;
    b.push(job("r").id("late").after(["j2"])).await;
    b.ends("p", "j2", succeeded).await;
    b.is("w", JobState::Dependent).await;
    b.ends("r", "late", succeeded).await;
    b.take_job("q", "w").await;
    // A job above a flow is still above it.
    b.no_push(tenure_core::refusal::Code::Cycle, job("q").after(["w"]).in_flow("h")).await;
    assert_eq!(b.flow("f").await.state, FlowState::Finished);
}

pub(crate) async fn a_flow_that_is_called_off_is_so_after_a_crash(b: &mut Bench) {
    let of = |n: usize| job("q").id(&format!("j{n}")).in_flow("f");
    b.ok(briefly((0..CHILDREN).map(of).collect())).await;
    let lease = b.take("q").await;
    assert!(b.cancel_flow("f").await.cancelling);
    if !b.reopen().await {
        return;
    }
    b.told().await;
    let view = b.flow("f").await;
    assert_eq!((counts_of(&view), view.cancelling), ([1, 0, 0, CHILDREN as u64 - 1], false));
    assert!(b.is("j0", JobState::Running).await.cancel_requested);
    b.settle(released(&lease)).await;
    assert_eq!(b.flow("f").await.state, FlowState::Finished);
}

pub(crate) async fn a_retried_child_waits_once_after_a_crash(b: &mut Bench) {
    b.push_all(jobs("p", "a", 2)).await;
    b.push(job("q").id("c").after(["a0", "a1"])).await;
    b.ends("p", "a0", failed_for_good).await;
    b.retried("a0").await;
    b.retried("c").await;
    b.cancel("c").await;
    b.retried("c").await;
    if !b.reopen().await {
        return;
    }
    assert_eq!(waits_of(&b.is("c", JobState::Dependent).await), (2, 2));
    let leases = b.take_all("p", 2).await;
    b.settle(succeeded(&leases[0])).await;
    b.is("c", JobState::Dependent).await;
    b.settle(succeeded(&leases[1])).await;
    b.ends("q", "c", succeeded).await;
    b.none("q").await;
}
