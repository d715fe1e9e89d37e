//! Dependencies that are refused: unknown parents, circles, refs, a flow above a flow.

use tenure_core::bounds::AFTER_MAX;
use tenure_core::job::{JobState, NewJob, OnConflict, Unique};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn a_child_of_an_unknown_parent_is_refused(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    let no = b.no_push(Code::UnknownParent, job("q").id("c").after(["a", "nobody"])).await;
    assert!(no.detail.contains("nobody"), "{no}");
    assert!(no.pointer.is_some_and(|pointer| pointer.ends_with("/after/1")));
    b.no_push(Code::UnknownParent, job("q").id("c").after(["key:nobody"])).await;
    b.no_push(Code::UnknownParent, job("q").id("c").after_flow("nobody")).await;
    let array = vec![
        job("q").id("fine").after(["a"]),
        job("q").id("c").after(["fine"]).after_flow("nobody"),
    ];
    is_about(&b.no_push_all(Code::UnknownParent, array).await, 1, "/after/1");
    for id in ["fine", "c"] {
        b.no_job(id).await;
    }
    // A forgotten parent is unknown.
    b.push(job("z").id("gone").retain(s(0))).await;
    b.ends("z", "gone", succeeded).await;
    b.told().await;
    b.no_push(Code::UnknownParent, job("q").id("c").after(["gone"])).await;
    // A duplicate stands for the job that holds its key, which may be forgotten.
    let key = || Unique { hold: Some(s(600)), ..unique("k", OnConflict::Keep) };
    b.push(job("z").id("held").retain(s(0)).unique(key())).await;
    b.ends("z", "held", succeeded).await;
    b.told().await;
    let array = vec![job("q").id("x").unique(key()), job("q").id("c").after(["x"])];
    let no = b.no_push_all(Code::UnknownParent, array).await;
    is_about(&no, 1, "/after/0");
    assert!(no.detail.contains("held"), "{no}");
    // A job that would be cancelled at its push must know its parents too.
    b.cancel("a").await;
    b.no_push(Code::UnknownParent, job("q").id("c").after(["a", "nobody"])).await;
    b.no_job("c").await;
    let stats = b.ok(GetStats).await;
    assert_eq!(stats.jobs.get(&JobState::Dependent).copied().unwrap_or_default(), 0);
}

pub(crate) async fn an_unknown_parent_is_taken_with_gone_done(b: &mut Bench) {
    let child = job("q").id("c").after(["nobody"]).or_gone().after_flow("none").or_gone();
    let pushed = b.push(child).await;
    assert_eq!((pushed.job.state, waits_of(&pushed.job)), (JobState::Ready, (2, 0)));
    assert_eq!(after_of(&pushed.job), ["nobody", "flow:none"]);
    assert_eq!(b.parents("c").await[0], ("nobody".to_owned(), "gone"));
    assert_eq!(b.push(job("q").after(["key:nobody"]).or_gone()).await.job.state, JobState::Ready);
    // An existing parent is waited for, and its failure counts.
    b.push(job("p").id("a").in_flow("f")).await;
    b.push(job("q").id("d").after(["a"]).or_gone()).await;
    b.push(job("q").id("e").after_flow("f").or_gone()).await;
    for id in ["d", "e"] {
        b.is(id, JobState::Dependent).await;
    }
    b.ends("p", "a", failed_for_good).await;
    for id in ["d", "e"] {
        b.is(id, JobState::Cancelled).await;
    }
}

pub(crate) async fn what_was_taken_as_done_stays_done(b: &mut Bench) {
    b.push(job("p").id("other")).await;
    b.push(job("q").id("c").after(["a"]).or_gone().after(["other"])).await;
    b.push(job("p").id("a")).await;
    assert_eq!(waits_of(&b.is("c", JobState::Dependent).await), (2, 1));
    let parents = b.parents("c").await;
    assert_eq!(parents, [("a".to_owned(), "gone"), ("other".to_owned(), "ready")]);
    assert!(b.children("a").await.is_empty(), "it is another job");
    b.ends("p", "other", succeeded).await;
    b.is("c", JobState::Ready).await;
    b.cancel("a").await;
    b.ok(DeleteJob { job: job_ref("a") }).await;
}

pub(crate) async fn jobs_that_wait_for_each_other_are_refused(b: &mut Bench) {
    b.push_all(vec![job("q").id("there"), job("q").id("m").in_flow("f")]).await;
    let of = |id: &str| job("q").id(id);
    let rows: [(&str, Vec<NewJob>, &[usize]); 7] = [
        ("itself", vec![of("x").after(["x"])], &[0]),
        ("itself, which is there", vec![of("there").after(["there"])], &[0]),
        ("by ids", vec![of("z"), of("x").after(["y"]), of("y").after(["x"])], &[1, 2]),
        (
            "by refs",
            vec![job("q").called("x").after_item("y"), job("q").called("y").after_item("x")],
            &[0, 1],
        ),
        (
            "three, by both",
            vec![of("x").after(["y"]), of("y").after_item("r"), job("q").called("r").after(["x"])],
            &[0, 1, 2],
        ),
        ("its own flow", vec![of("x").in_flow("f").after_flow("f")], &[0]),
        (
            "a flow between",
            vec![of("x").after_flow("g"), of("y").in_flow("g").after(["x"])],
            &[0, 1],
        ),
    ];
    for (case, array, items) in rows {
        let no = b.no_push_all(Code::Cycle, array).await;
        assert!(no.index.is_some_and(|index| items.contains(&index)), "{case}: {no}");
        for id in ["x", "y", "z"] {
            b.no_job(id).await;
        }
    }
    b.no_flow("g").await;
    assert_eq!(b.members("f").await, [1, 0, 0, 0]);
    // The same jobs in one direction only are no circle.
    b.push_all(vec![of("x").after(["y"]), of("y").after(["z"]), of("z").after(["there"])]).await;
}

pub(crate) async fn a_ref_names_one_item_of_its_call(b: &mut Bench) {
    let array = || vec![job("q").id("a").called("r"), job("q").id("c").after_item("other")];
    is_about(&b.no_push_all(Code::UnknownParent, array()).await, 1, "/after/0");
    let twice = vec![job("q").id("a").called("r"), job("q").id("c").called("r")];
    is_about(&b.no_push_all(Code::InvalidField, twice).await, 1, "/ref");
    b.push(job("q").id("a").called("r")).await;
    // It is not stored: another call does not know it, and may use it again.
    b.no_push(Code::UnknownParent, job("q").id("c").after_item("r")).await;
    b.push_all(vec![job("q").id("b").called("r"), job("q").id("c").after_item("r")]).await;
    assert_eq!(after_of(&b.job("c").await), ["b"]);
}

pub(crate) async fn a_call_has_a_bound_for_its_parents(b: &mut Bench) {
    let many = |count: usize| -> Vec<String> { (0..count).map(|n| format!("x{n}")).collect() };
    let gone = |job: NewJob, count: usize| {
        many(count).iter().fold(job, |job, id| job.after([id]).or_gone())
    };
    let array =
        |rest: usize| vec![gone(job("q").id("a"), AFTER_MAX - 10), gone(job("q").id("b"), rest)];
    let no = b.no_push_all(Code::OutOfBounds, array(11)).await;
    assert!(no.index.is_some(), "{no}");
    b.no_job("a").await;
    let pushed = b.push_all(array(10)).await;
    assert_eq!(waits_of(&pushed[0].job), (AFTER_MAX as u32 - 10, 0));
}

pub(crate) async fn a_refused_array_stores_nothing_of_its_flow(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    let array = vec![
        job("q").id("m").in_flow("f"),
        job("q").id("c").after(["a"]).in_flow("f"),
        job("q").id("bad").needs([need("nowhere")]),
    ];
    b.no_push_all(Code::UnknownLimit, array).await;
    b.no_flow("f").await;
    assert!(b.children("a").await.is_empty());
    b.ok(DeleteJob { job: job_ref("a") }).await;
}

pub(crate) async fn a_waiter_for_a_flow_belongs_to_none(b: &mut Bench) {
    b.push_all(vec![job("p").id("m").in_flow("f"), job("p").id("n").in_flow("g")]).await;
    let no = b.no_push(Code::Cycle, job("q").id("w").after_flow("f").in_flow("h")).await;
    assert!(no.pointer.is_some_and(|pointer| pointer.ends_with("/flow")));
    let pushed = b.push(job("q").id("w").after(["n"]).after_flow("f")).await;
    assert_eq!(flow_of(&pushed.job), None, "it inherits none");
    // Nor do the jobs that wait for it, however far.
    let array =
        vec![job("q").id("x").after(["n"]).after(["w"]), job("q").id("y").after(["x", "n"])];
    for one in b.push_all(array).await {
        assert_eq!(flow_of(&one.job), None);
    }
    for parent in ["w", "x", "y"] {
        b.no_push(Code::Cycle, job("q").id("z").after([parent]).in_flow("h")).await;
    }
    let array = vec![
        job("q").id("s").called("s").in_flow("h"),
        job("q").id("z").after_item("v").in_flow("h"),
        job("q").id("v").called("v").after_flow("f"),
    ];
    is_about(&b.no_push_all(Code::Cycle, array).await, 1, "/flow");
    b.no_flow("h").await;
    b.ends("p", "m", succeeded).await;
    b.ends("p", "n", succeeded).await;
    // A named flow is waited for, finished or not; a parent that has ended waits for nothing.
    b.no_push(Code::Cycle, job("q").id("z").after_flow("f").in_flow("h")).await;
    b.ends("q", "w", succeeded).await;
    let pushed = b.push(job("q").id("z").after(["w"]).in_flow("h")).await;
    assert_eq!(flow_of(&pushed.job), Some("h"));
    b.no_push(Code::Cycle, job("q").id("o").after(["y"]).in_flow("h")).await;
    assert_eq!(b.members("h").await, [1, 0, 0, 0]);
}

pub(crate) async fn a_duplicate_belongs_to_a_flow_only_if_the_job_that_is_there_does(
    b: &mut Bench,
) {
    b.push(job("p").id("plain").unique(unique("k", OnConflict::Keep))).await;
    let array = vec![job("q").id("w").after_flow("f"), job("p").id("plain").in_flow("f")];
    is_about(&b.no_push_all(Code::UnknownParent, array).await, 0, "/after/0");
    b.no_flow("f").await;
    b.push(job("p").id("m").in_flow("f")).await;
    let array = vec![job("q").id("w").after_flow("f"), job("p").id("plain").in_flow("f")];
    let pushed = b.push_all(array).await;
    assert_eq!((pushed[1].duplicate, flow_of(&pushed[1].job)), (true, None));
    assert_eq!(b.members("f").await, [1, 0, 0, 0]);
}

pub(crate) async fn flows_that_nobody_knows_are_refused(b: &mut Bench) {
    let no = b.no_flow("nobody").await;
    assert!(no.detail.contains("nobody"), "{no}");
    b.refused(Code::FlowNotFound, GetFlow { flow: flow("nobody"), wait: s(60) }).await;
    b.refused(Code::FlowNotFound, CancelFlow { flow: flow("nobody") }).await;
    let list = ListParents { job: job_ref("nobody"), full: false, page: Page::default() };
    b.refused(Code::JobNotFound, list).await;
    let list = ListChildren { job: job_ref("nobody"), page: Page::default() };
    b.refused(Code::JobNotFound, list).await;
    b.push(job("q").id("a")).await;
    assert!(b.parents("a").await.is_empty() && b.children("a").await.is_empty());
    assert!(b.ok(ListFlows::default()).await.items.is_empty());
}
