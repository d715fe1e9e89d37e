//! Parents that live again, and children that are retried: they check their parents again.

use tenure_core::job::{JobState, OnConflict, Unique};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn a_retried_child_waits_again_for_parents_that_are_unfinished(b: &mut Bench) {
    b.push_all(jobs("p", "a", 3)).await;
    b.push(job("q").id("c").after(["a0", "a1", "a2"])).await;
    b.ends("p", "a0", succeeded).await;
    b.ends("p", "a1", failed_for_good).await;
    b.is("c", JobState::Cancelled).await;
    assert_eq!(b.retried("a1").await.state, JobState::Ready);
    let view = b.retried("c").await;
    assert_eq!((view.state, waits_of(&view)), (JobState::Dependent, (3, 2)));
    assert_eq!((view.error, view.finished_at, view.attempt), (None, None, 0));
    assert_eq!(b.queue("q").await.counts.dependent, 1);
    let leases = b.take_all("p", 2).await;
    b.settle(succeeded(&leases[0])).await;
    b.none("q").await;
    b.settle(succeeded(&leases[1])).await;
    b.ends("q", "c", succeeded).await;
    b.none("q").await;
}

pub(crate) async fn a_retry_answers_how_many_children_its_failure_cancelled(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    let children = jobs("q", "c", 3).into_iter().map(|job| job.after(["a"]));
    b.push_all(children.collect()).await;
    b.push(job("q").id("r").after(["a"]).run_anyway()).await;
    b.push(job("q").id("g").after(["c0"])).await;
    b.cancel("c2").await;
    b.ends("p", "a", failed_for_good).await;
    assert_eq!(b.job("a").await.cancelled_children, None, "a retry alone says it");
    assert_eq!(b.retried("a").await.cancelled_children, Some(2), "its own, by its failure");
    for id in ["c0", "c1", "c2", "g"] {
        b.is(id, JobState::Cancelled).await;
    }
    b.ends("p", "a", failed_for_good).await;
    assert_eq!(b.retried("a").await.cancelled_children, None, "none this time");
    b.retried("c0").await;
    b.ends("p", "a", failed_for_good).await;
    b.is("c0", JobState::Cancelled).await;
    assert_eq!(b.retried("a").await.cancelled_children, Some(1));
    // The end of a cancelled job counts as its failure did.
    b.retried("c1").await;
    b.cancel("a").await;
    assert_eq!(b.retried("a").await.cancelled_children, Some(1));
}

pub(crate) async fn a_retried_child_whose_parent_is_failed_is_refused_and_names_it(b: &mut Bench) {
    b.push_all(jobs("p", "a", 2)).await;
    b.push(job("q").id("c").after(["a0", "a1"])).await;
    b.push(job("q").id("r").after(["a0", "a1"]).run_anyway()).await;
    b.ends("p", "a0", succeeded).await;
    b.ends("p", "a1", failed_for_good).await;
    let before = b.is("c", JobState::Cancelled).await;
    assert_eq!(b.not_retried("c").await.job.as_deref(), Some("a1"));
    assert_eq!(b.job("c").await, before, "a refused call changed nothing");
    // A job with `run_anyway` accepts any end.
    b.ends("q", "r", failed_for_good).await;
    assert_eq!(b.retried("r").await.state, JobState::Ready);
    b.retried("a1").await;
    b.cancel("a1").await;
    assert_eq!(b.not_retried("c").await.job.as_deref(), Some("a1"), "a cancelled parent too");
    b.retried("a1").await;
    b.ends("p", "a1", succeeded).await;
    assert_eq!(b.retried("c").await.state, JobState::Ready);
}

pub(crate) async fn a_parent_that_is_gone_counts_as_done_at_a_retry(b: &mut Bench) {
    b.push(job("p").id("a").retain(s(0))).await;
    b.push(job("q").id("c").after(["a"])).await;
    b.ends("p", "a", failed_for_good).await;
    b.told().await;
    b.no_job("a").await;
    let view = b.retried("c").await;
    assert_eq!((view.state, waits_of(&view)), (JobState::Ready, (1, 0)));
    assert_eq!(b.parents("c").await, [("a".to_owned(), "gone")]);
    // A job that is pushed under its id later is another one.
    b.push(job("p").id("a")).await;
    assert_eq!(b.parents("c").await, [("a".to_owned(), "gone")]);
    b.cancel("c").await;
    assert_eq!(b.retried("c").await.state, JobState::Ready);
    assert!(b.children("a").await.is_empty());
}

pub(crate) async fn a_retried_child_keeps_its_parents_anew(b: &mut Bench) {
    b.push(job("p").id("a").retain(s(10))).await;
    b.push(job("q").id("c").after(["a"])).await;
    b.ends("p", "a", succeeded).await;
    b.cancel("c").await;
    b.pass(s(5)).await;
    b.retried("c").await;
    b.pass(s(60)).await;
    b.is("a", JobState::Succeeded).await;
    b.refused(Code::InUse, DeleteJob { job: job_ref("a") }).await;
    b.ends("q", "c", succeeded).await;
    b.told().await;
    b.no_job("a").await;
}

pub(crate) async fn a_child_that_is_cancelled_and_retried_starts_once(b: &mut Bench) {
    b.push_all(jobs("p", "a", 2)).await;
    b.push(job("q").id("c").after(["a0", "a1"])).await;
    for _ in 0..3 {
        b.cancel("c").await;
        let view = b.retried("c").await;
        assert_eq!((view.state, waits_of(&view)), (JobState::Dependent, (2, 2)));
    }
    assert_eq!(b.children("a0").await, [("c".to_owned(), JobState::Dependent)], "each child once");
    b.ends("p", "a0", succeeded).await;
    b.told().await;
    assert_eq!(waits_of(&b.is("c", JobState::Dependent).await), (2, 1));
    b.cancel("c").await;
    assert_eq!(waits_of(&b.retried("c").await), (2, 1));
    b.ends("p", "a1", succeeded).await;
    b.ends("q", "c", succeeded).await;
    b.none("q").await;
}

pub(crate) async fn a_retried_parent_leaves_its_children_as_they_are(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    b.push_all(vec![job("q").id("c").after(["a"]), job("r").id("r").after(["a"]).run_anyway()])
        .await;
    b.ends("p", "a", failed_for_good).await;
    b.ends("r", "r", succeeded).await;
    b.retried("a").await;
    b.ends("p", "a", succeeded).await;
    b.told().await;
    assert_eq!(b.is("c", JobState::Cancelled).await.error.as_deref(), Some(PARENT_FAILED));
    b.is("r", JobState::Succeeded).await;
    b.none("r").await;
    let expected = [("c", JobState::Cancelled), ("r", JobState::Succeeded)];
    assert_eq!(b.children("a").await, expected.map(|(id, state)| (id.to_owned(), state)));
}

pub(crate) async fn a_replaced_holder_that_was_finished_waits_for_nobody(b: &mut Bench) {
    let keyed = |id: &str, on_conflict| {
        let unique = Unique { hold: Some(s(600)), ..unique("k", on_conflict) };
        job("q").id(id).unique(unique)
    };
    b.push(job("p").id("a").retain(s(0))).await;
    b.push(keyed("c", OnConflict::Keep).after(["a"])).await;
    b.cancel("c").await;
    let pushed = b.push(keyed("x", OnConflict::Replace)).await;
    assert!(pushed.replaced, "{pushed:?}");
    assert_eq!((pushed.job.state, waits_of(&pushed.job)), (JobState::Ready, (1, 0)));
    let lease = b.take_job("q", "c").await;
    b.push(job("r").id("d").after(["c"])).await;
    b.ends("p", "a", failed_for_good).await;
    b.told().await;
    b.no_job("a").await;
    b.is("c", JobState::Running).await;
    b.is("d", JobState::Dependent).await;
    b.settle(succeeded(&lease)).await;
    b.is("d", JobState::Ready).await;
}

pub(crate) async fn a_retried_member_is_unfinished_in_its_flow_again(b: &mut Bench) {
    b.push(job("p").id("a").in_flow("f")).await;
    b.ends("p", "a", failed_for_good).await;
    assert_eq!(b.members("f").await, [0, 0, 1, 0]);
    b.retried("a").await;
    let view = b.flow("f").await;
    assert_eq!((counts_of(&view), view.finished_at), ([1, 0, 0, 0], None));
    b.ends("p", "a", succeeded).await;
    assert_eq!(b.members("f").await, [0, 1, 0, 0]);
}

pub(crate) async fn a_retry_looks_at_the_flow_of_a_child_anew(b: &mut Bench) {
    b.push_all(vec![job("p").id("m").in_flow("f"), job("p").id("n").in_flow("f")]).await;
    b.push(job("q").id("c").after_flow("f")).await;
    let leases = b.take_all("p", 2).await;
    b.settle(failed_for_good(&leases[0])).await;
    b.is("c", JobState::Dependent).await;
    b.settle(succeeded(&leases[1])).await;
    b.is("c", JobState::Cancelled).await;
    let no = b.not_retried("c").await;
    assert!(no.detail.contains("\"f\""), "it names the flow: {no}");
    b.retried("m").await;
    let view = b.retried("c").await;
    assert_eq!((view.state, waits_of(&view)), (JobState::Dependent, (1, 1)));
    b.ends("p", "m", succeeded).await;
    b.ends("q", "c", succeeded).await;
}

pub(crate) async fn a_member_that_would_wait_for_a_flow_is_not_retried(b: &mut Bench) {
    b.push(job("p").id("one").in_flow("f")).await;
    b.push(job("q").id("above").after_flow("f").run_anyway()).await;
    b.ends("p", "one", succeeded).await;
    b.ends("q", "above", failed_for_good).await;
    // Its parent has ended and waits for no flow any more, so that it may belong to one.
    let child = |id: &str| job("r").id(id).after(["above"]).run_anyway();
    b.push_all(vec![child("m").in_flow("g"), child("free")]).await;
    b.ends("r", "m", failed_for_good).await;
    b.ends("r", "free", failed_for_good).await;
    b.retried("above").await;
    let before = b.job("m").await;
    b.not_retried("m").await;
    assert_eq!(b.job("m").await, before);
    assert_eq!(b.members("g").await, [0, 0, 1, 0]);
    assert_eq!(b.retried("free").await.state, JobState::Dependent, "it belongs to none");
    b.no_push(Code::Cycle, job("r").id("z").after(["free"]).in_flow("g")).await;
    b.ends("q", "above", succeeded).await;
    b.is("free", JobState::Ready).await;
    assert_eq!(b.retried("m").await.state, JobState::Ready);
    assert_eq!(b.members("g").await, [1, 0, 0, 0]);
}
