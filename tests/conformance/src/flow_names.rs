//! Flows: their members, their counts, when they are finished, and jobs that wait for all of it.

use tenure_core::flow::FlowState;
use tenure_core::job::JobState;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn a_job_belongs_to_the_flow_that_it_states_or_inherits(b: &mut Bench) {
    let array = vec![
        job("p").id("plain"),
        job("p").id("f").in_flow("f"),
        job("p").id("g").in_flow("g"),
        job("q").id("stated").after(["f"]).in_flow("own"),
        job("q").id("first").after(["plain", "g", "f"]),
        job("q").id("none").after(["plain"]),
        job("q").id("theirs").after_item("later"),
        job("q").called("later").id("later").after(["first"]),
    ];
    let pushed = b.push_all(array).await;
    let flows: Vec<_> = pushed.iter().map(|one| flow_of(&one.job)).collect();
    let expected = [None, Some("f"), Some("g"), Some("own"), Some("g"), None, Some("g"), Some("g")];
    assert_eq!(flows, expected);
    assert_eq!(b.members("g").await, [4, 0, 0, 0]);
    // The same for a parent that has ended.
    b.ends("p", "plain", succeeded).await;
    b.ends("p", "f", failed_for_good).await;
    let pushed = b.push(job("q").id("off").after(["f"])).await;
    assert_eq!((pushed.job.state, flow_of(&pushed.job)), (JobState::Cancelled, Some("f")));
    assert_eq!(b.members("f").await, [0, 0, 1, 1], "one that is cancelled at its push is a member");
    let lease = b.take_job("p", "g").await;
    assert_eq!(lease.job.as_deref().and_then(flow_of), Some("g"), "its holder is told");
}

pub(crate) async fn a_flow_is_there_while_a_member_is(b: &mut Bench) {
    b.no_flow("f").await;
    let created = b.now();
    b.push(job("q").id("a").in_flow("f").retain(s(10))).await;
    b.pass(s(1)).await;
    b.push(job("q").id("b").in_flow("f").retain(s(60))).await;
    let view = b.flow("f").await;
    assert_eq!((view.flow.as_str(), view.state, view.cancelling), ("f", FlowState::Open, false));
    assert_eq!((view.created_at, view.finished_at), (created, None));
    assert_eq!(counts_of(&view), [2, 0, 0, 0]);
    b.ends("q", "a", succeeded).await;
    b.pass(s(5)).await;
    b.ends("q", "b", failed_for_good).await;
    let ended = b.now();
    let view = b.flow("f").await;
    assert_eq!((view.state, view.finished_at), (FlowState::Finished, Some(ended)));
    assert_eq!(counts_of(&view), [0, 1, 1, 0]);
    b.pass(s(30)).await;
    b.no_job("a").await;
    assert_eq!(b.members("f").await, [0, 1, 1, 0], "those that are forgotten count on");
    // It comes back, and its counts go on.
    b.push(job("q").id("c").in_flow("f").retain(s(0))).await;
    let view = b.flow("f").await;
    assert_eq!((view.state, view.finished_at), (FlowState::Open, None));
    b.ends("q", "c", succeeded).await;
    assert_eq!(b.members("f").await, [0, 2, 1, 0]);
    b.pass(s(60)).await;
    b.no_flow("f").await;
    b.push(job("q").id("d").in_flow("f")).await;
    assert_eq!(b.members("f").await, [1, 0, 0, 0], "nothing is known of the one before");
}

pub(crate) async fn a_deleted_job_leaves_the_counts_of_its_flow(b: &mut Bench) {
    b.push_all(jobs("q", "j", 5).into_iter().map(|job| job.in_flow("f")).collect()).await;
    b.push(job("r").id("w").after_flow("f")).await;
    b.ends("q", "j0", failed_for_good).await;
    b.cancel("j1").await;
    b.ends("q", "j2", succeeded).await;
    assert_eq!(b.members("f").await, [2, 1, 1, 1]);
    for id in ["j0", "j1"] {
        b.ok(DeleteJob { job: job_ref(id) }).await;
    }
    assert_eq!(b.members("f").await, [2, 1, 0, 0]);
    let filter = JobFilter { queue: Some(queue("q")), ..JobFilter::default() };
    let filter = JobFilter { states: vec![JobState::Succeeded], ..filter };
    assert_eq!(b.ok(DeleteJobs { filter, max: 9, cursor: None }).await.done, 1);
    b.ok(DeleteJob { job: job_ref("j3") }).await;
    assert_eq!(b.members("f").await, [1, 0, 0, 0]);
    b.is("w", JobState::Dependent).await;
    // The last unfinished one is deleted, and no failed one is left.
    b.ok(DeleteJob { job: job_ref("j4") }).await;
    b.told().await;
    b.take_job("r", "w").await;
    b.no_flow("f").await;
    assert_eq!(b.parents("w").await, [("flow:f".to_owned(), "flow")]);
}

pub(crate) async fn a_job_that_waits_for_a_flow_starts_when_its_last_member_ends(b: &mut Bench) {
    b.push_all(jobs("p", "j", 3).into_iter().map(|job| job.in_flow("f")).collect()).await;
    let pushed = b.push(job("q").id("w").after_flow("f")).await;
    assert_eq!((after_of(&pushed.job), waits_of(&pushed.job)), (vec!["flow:f".into()], (1, 1)));
    for id in ["j0", "j1"] {
        b.ends("p", id, succeeded).await;
    }
    b.told().await;
    b.is("w", JobState::Dependent).await;
    let last = b.take_job("p", "j2").await;
    let lease = Some(Box::new(b.ask("q").request("r")));
    let answer = b.ok(Settle { settle: vec![succeeded(&last)], lease }).await;
    let leased = answer.lease.expect("a lease call was made").expect("it is not refused");
    assert_eq!(jobs_of(&leased.leases), ["w"], "in the same step");
    assert_eq!(b.flow("f").await.state, FlowState::Finished);
    assert_eq!(b.push(job("q").id("x").after_flow("f")).await.job.state, JobState::Ready);
}

pub(crate) async fn a_flow_that_failed_counts_as_a_failed_parent(b: &mut Bench) {
    for (name, end) in [("failed", true), ("cancelled", false)] {
        let id = |of: &str| format!("{name}-{of}");
        b.push_all(vec![job("p").id(&id("a")).in_flow(name), job("p").id(&id("b")).in_flow(name)])
            .await;
        b.push(job("q").id(&id("w")).after_flow(name)).await;
        b.push(job("q").id(&id("child")).after([id("w")])).await;
        b.push(job("r").id(&id("run")).after_flow(name).run_anyway()).await;
        if end {
            b.ends("p", &id("a"), failed_for_good).await;
        } else {
            b.cancel(&id("a")).await;
        }
        b.told().await;
        // A flow has not failed before it is finished.
        b.is(&id("w"), JobState::Dependent).await;
        b.ends("p", &id("b"), succeeded).await;
        for of in ["w", "child"] {
            let view = b.is(&id(of), JobState::Cancelled).await;
            assert_eq!(view.error.as_deref(), Some(PARENT_FAILED), "{of}");
        }
        b.ends("r", &id("run"), succeeded).await;
        let view = b.push(job("q").id(&id("late")).after_flow(name)).await.job;
        assert_eq!((view.state, view.error.as_deref()), (JobState::Cancelled, Some(PARENT_FAILED)));
        let view = b.push(job("r").id(&id("late run")).after_flow(name).run_anyway()).await.job;
        assert_eq!(view.state, JobState::Ready);
        b.ends("r", &id("late run"), succeeded).await;
    }
}

pub(crate) async fn members_that_come_while_a_job_waits_for_the_flow_are_waited_for(b: &mut Bench) {
    b.push_all(vec![job("p").id("a").in_flow("f"), job("q").id("w").after_flow("f")]).await;
    let lease = b.take_job("p", "a").await;
    b.push(job("p").id("late").in_flow("f")).await;
    b.settle(succeeded(&lease).pushing(job("p").id("next"))).await;
    b.ends("p", "late", succeeded).await;
    b.told().await;
    assert_eq!(
        (waits_of(&b.is("w", JobState::Dependent).await), b.members("f").await),
        ((1, 1), [1, 2, 0, 0])
    );
    let lease = b.take_job("p", "next").await;
    b.settle(failed_until(&lease, s(5))).await;
    b.is("w", JobState::Dependent).await;
    b.pass(s(6)).await;
    b.ends("p", "next", succeeded).await;
    b.take_job("q", "w").await;
}

pub(crate) async fn a_flow_whose_members_come_in_the_same_array_is_there(b: &mut Bench) {
    let array = vec![
        job("mail").id("mail").after_flow("f").run_anyway(),
        job("mail").id("all").after(["mail"]).after_flow("f"),
        job("p").id("a").in_flow("f"),
        job("p").id("b").after(["a"]),
    ];
    let pushed = b.push_all(array).await;
    let flows: Vec<_> = pushed.iter().map(|one| flow_of(&one.job)).collect();
    assert_eq!(flows, [None, None, Some("f"), Some("f")]);
    assert_eq!(waits_of(&pushed[0].job), (1, 1));
    b.none("mail").await;
    b.ends("p", "a", succeeded).await;
    b.none("mail").await;
    b.ends("p", "b", succeeded).await;
    b.ends("mail", "mail", succeeded).await;
    b.ends("mail", "all", succeeded).await;
    // All its members may be cancelled at their push: then it is finished, and failed.
    b.push(job("p").id("bad")).await;
    b.ends("p", "bad", failed_for_good).await;
    let array = vec![
        job("mail").id("run").after_flow("g").run_anyway(),
        job("mail").id("off").after_flow("g"),
        job("p").id("m").after(["bad"]).in_flow("g"),
    ];
    let states: Vec<_> = b.push_all(array).await.iter().map(|one| one.job.state).collect();
    assert_eq!(states, [JobState::Ready, JobState::Cancelled, JobState::Cancelled]);
}

pub(crate) async fn a_flow_with_many_waiters_tells_them_in_portions(b: &mut Bench) {
    const ALL: usize = 700;
    b.push(job("p").id("a").in_flow("f").retain(s(0))).await;
    let waiter = |n: usize| job("q").id(&format!("w{n}")).after_flow("f");
    b.ok(briefly((0..ALL).map(waiter).collect())).await;
    b.ends("p", "a", succeeded).await;
    b.told().await;
    let taken = b.take_all("q", 1_000).await;
    let pushed: Vec<String> = (0..ALL).map(|n| format!("w{n}")).collect();
    assert_eq!(jobs_of(&taken), pushed);
    b.no_flow("f").await;
}

pub(crate) async fn a_flow_that_is_open_again_keeps_its_waiters(b: &mut Bench) {
    b.push_all(vec![job("p").id("a").in_flow("f"), job("w").id("w")]).await;
    let waiter = |n: usize| job("q").id(&format!("w{n}")).after_flow("f");
    b.ok(briefly((0..600).map(waiter).collect())).await;
    let (a, w) = (b.take("p").await, b.take("w").await);
    let waiting = b.awaits_flow("f", s(60)).await;
    // Within the call it is finished for a moment, which starts no job.
    let settle = vec![succeeded(&a), succeeded(&w).pushing(job("p").id("b").in_flow("f"))];
    b.ok(Settle::of(settle)).await;
    b.told().await;
    assert_eq!(b.queue("q").await.counts.dependent, 600);
    assert_eq!(b.flow("f").await.finished_at, None);
    assert!(!waiting.is_answered(), "nor a caller");
    b.ends("p", "b", succeeded).await;
    assert_eq!(waiting.answer().await.state, FlowState::Finished);
    b.told().await;
    assert_eq!(b.queue("q").await.counts.ready, 600);
}

pub(crate) async fn flows_are_listed_by_their_names(b: &mut Bench) {
    for name in ["b", "import 7/é", "a", "c"] {
        b.push(job("q").id(name).in_flow(name)).await;
    }
    b.cancel("c").await;
    let list = |cursor| ListFlows { page: Page { max: 3, cursor } };
    let page = b.ok(list(None)).await;
    let names: Vec<_> = page.items.iter().map(|flow| flow.flow.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(page.items[2], b.flow("c").await, "each as it is shown alone");
    let rest = b.ok(list(page.next)).await;
    assert_eq!((rest.items.len(), rest.items[0].flow.as_str()), (1, "import 7/é"));
    assert_eq!((rest.next, rest.items[0].state), (None, FlowState::Open));
}
