//! Jobs that wait for other jobs: when they start, when they are cancelled, and how their parents are named.

use tenure_core::flow::OnParentFailure;
use tenure_core::job::{JobState, OnConflict, Unique};
use tenure_core::requests::*;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

/// Settles, and asks the queue for jobs with nothing in between: the ids of the granted jobs.
async fn settled_then_leased(
    b: &Bench,
    settle: Vec<tenure_core::lease::SettleItem>,
    queue: &str,
) -> Vec<String> {
    let lease = Some(Box::new(b.ask(queue).max(10).request("next")));
    let answer = b.ok(Settle { settle, lease }).await;
    let leased = answer.lease.expect("a lease call was made").expect("it is not refused");
    jobs_of(&leased.leases).into_iter().map(str::to_owned).collect()
}

pub(crate) async fn a_child_starts_in_the_step_in_which_its_last_parent_succeeds(b: &mut Bench) {
    let child = || job("q").id("c").after(["a", "b"]);
    let pushed = b.push_all(vec![job("p").id("a"), job("p").id("b"), child()]).await;
    let view = &pushed[2].job;
    assert_eq!((view.state, waits_of(view)), (JobState::Dependent, (2, 2)));
    assert_eq!((after_of(view), flow_of(view)), (vec!["a".to_owned(), "b".to_owned()], None));
    assert_eq!(view.on_parent_failure, OnParentFailure::Cancel);
    assert_eq!(waits_of(&pushed[0].job), (0, 0));
    b.none("q").await;
    b.ends("p", "a", succeeded).await;
    b.told().await;
    assert_eq!(waits_of(&b.is("c", JobState::Dependent).await), (2, 1));
    b.none("q").await;
    let lease = b.take_job("p", "b").await;
    assert_eq!(settled_then_leased(b, vec![succeeded(&lease)], "q").await, ["c"]);
    let view = b.is("c", JobState::Running).await;
    assert_eq!((waits_of(&view), view.attempt), ((2, 0), 1));
    assert!(b.push(child()).await.duplicate, "a repeat is no new job");
}

pub(crate) async fn the_end_of_a_parent_wakes_a_waiting_worker(b: &mut Bench) {
    b.push_all(vec![job("p").id("a"), job("q").id("c").after(["a"])]).await;
    let lease = b.take("p").await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    assert!(!waiting.is_answered());
    b.settle(succeeded(&lease)).await;
    assert_eq!(job_of(&waiting.lease().await), "c");
}

pub(crate) async fn a_child_of_a_finished_parent_is_ready_at_once(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    b.ends("p", "a", succeeded).await;
    let pushed = b.push(job("q").id("c").after(["a"])).await;
    assert_eq!((pushed.job.state, waits_of(&pushed.job)), (JobState::Ready, (1, 0)));
    assert_eq!(after_of(&pushed.job), ["a"]);
    b.push(job("p").id("b")).await;
    let pushed = b.push(job("q").id("d").after(["a", "b"])).await;
    assert_eq!((pushed.job.state, waits_of(&pushed.job)), (JobState::Dependent, (2, 1)));
    b.take_job("q", "c").await;
}

pub(crate) async fn a_child_arrives_when_its_last_parent_ends(b: &mut Bench) {
    b.push_all(vec![job("p").id("a"), job("q").id("c").after(["a"])]).await;
    b.push(job("q").id("d").after(["a"])).await;
    b.push(job("q").id("other")).await;
    b.ends("p", "a", succeeded).await;
    b.push(job("q").id("later")).await;
    for id in ["other", "c", "d", "later"] {
        b.take_job("q", id).await;
    }
}

pub(crate) async fn jobs_of_one_array_may_name_each_other_in_any_order(b: &mut Bench) {
    let array = vec![
        job("q").id("last").after_item("mid").after(["first"]),
        job("q").called("mid").after(["first"]),
        job("q").id("first").called("start"),
        job("q").id("beside").after_item("start"),
    ];
    let pushed = b.push_all(array).await;
    let made = pushed[1].job.id.to_string();
    assert_eq!(after_of(&pushed[0].job), [made.as_str(), "first"], "resolved to ids");
    assert_eq!(waits_of(&pushed[0].job), (2, 2));
    assert_eq!(after_of(&pushed[3].job), ["first"]);
    let states: Vec<JobState> = pushed.iter().map(|one| one.job.state).collect();
    let dependent = JobState::Dependent;
    assert_eq!(states, [dependent, dependent, JobState::Ready, dependent]);
    b.ends("q", "first", succeeded).await;
    b.ends("q", &made, succeeded).await;
    b.ends("q", "beside", succeeded).await;
    b.ends("q", "last", succeeded).await;
}

pub(crate) async fn a_duplicate_in_an_array_stands_for_the_job_that_is_there(b: &mut Bench) {
    let keyed = |id: &str| job("p").id(id).unique(unique("k", OnConflict::Keep));
    b.push_all(vec![job("p").id("done"), keyed("holder")]).await;
    b.ends("p", "done", succeeded).await;
    let array = vec![
        job("p").id("done"),
        keyed("other").called("kept").after(["nobody"]),
        job("q").id("c").after(["done"]),
        job("q").id("d").after_item("kept"),
        job("q").id("twice"),
        job("q").id("twice").called("again"),
        job("q").id("e").after_item("again").after(["twice"]),
    ];
    let pushed = b.push_all(array).await;
    let duplicates: Vec<bool> = pushed.iter().map(|one| one.duplicate).collect();
    assert_eq!(duplicates, [true, true, false, false, false, true, false]);
    assert_eq!(pushed[2].job.state, JobState::Ready, "the job that is there has ended");
    assert_eq!(after_of(&pushed[3].job), ["holder"]);
    assert_eq!(
        (after_of(&pushed[6].job), waits_of(&pushed[6].job)),
        (vec!["twice".into()], (1, 1))
    );
    b.ends("p", "holder", succeeded).await;
    b.is("d", JobState::Ready).await;
    b.no_job("other").await;
}

pub(crate) async fn the_same_parent_twice_is_one(b: &mut Bench) {
    b.push(job("p").id("a").unique(unique("k", OnConflict::Keep))).await;
    let child = job("q").id("c").after(["a", "key:k", "a"]).after_flow("f").or_gone();
    let child = child.after_flow("f").or_gone();
    let pushed = b.push(child).await;
    assert_eq!(
        (after_of(&pushed.job), waits_of(&pushed.job)),
        (vec!["a".into(), "flow:f".into()], (2, 1))
    );
    b.ends("p", "a", succeeded).await;
    assert_eq!(waits_of(&b.is("c", JobState::Ready).await), (2, 0));
}

pub(crate) async fn a_parent_is_named_by_the_key_that_it_holds(b: &mut Bench) {
    let keyed = |id: &str| job("p").id(id).unique(unique("k", OnConflict::Keep));
    b.push(keyed("a")).await;
    let pushed = b.push(job("q").id("c").after(["key:k"])).await;
    assert_eq!(after_of(&pushed.job), ["a"]);
    b.ends("p", "a", succeeded).await;
    b.is("c", JobState::Ready).await;
    // A later holder of the key is another job.
    b.push(keyed("b")).await;
    assert_eq!(b.parents("c").await, [("a".to_owned(), "succeeded")]);
    let later = vec![job("q").id("d").after(["key:k"]), keyed("x")];
    let pushed = b.push_all(later).await;
    assert_eq!((after_of(&pushed[0].job), pushed[1].duplicate), (vec!["b".into()], true));
}

pub(crate) async fn a_parent_that_fails_for_good_cancels_its_children_and_theirs(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    b.push(job("q").id("c").after(["a"])).await;
    b.push(job("q").id("d").after(["c"])).await;
    b.push(job("q").id("e").after(["d"]).run_anyway()).await;
    b.ends("p", "a", failed_for_good).await;
    for id in ["c", "d"] {
        let view = b.is(id, JobState::Cancelled).await;
        assert_eq!(view.error.as_deref(), Some(PARENT_FAILED), "{id}");
        assert_eq!((view.finished_at, view.attempt), (Some(b.now()), 0), "{id}");
    }
    b.take_job("q", "e").await;
    assert_eq!(b.queue("q").await.counts.dependent, 0);
}

pub(crate) async fn a_parent_that_will_be_retried_cancels_nobody(b: &mut Bench) {
    b.push(job("p").id("a").retry(retry(2, 3, fixed(s(1))))).await;
    b.push(job("q").id("c").after(["a"])).await;
    for end in [failed, |lease: &_| snoozed(lease, s(1)), released] {
        b.ends("p", "a", end).await;
        b.pass(s(2)).await;
        b.is("c", JobState::Dependent).await;
    }
    let _dies = b.granted(b.ask("p").ttl(s(5))).await;
    b.until_it_ends("a", s(10)).await;
    b.pass(s(3)).await;
    b.is("c", JobState::Dependent).await;
    b.ends("p", "a", succeeded).await;
    b.is("c", JobState::Ready).await;
}

pub(crate) async fn a_child_that_says_run_starts_after_any_end_of_its_parents(b: &mut Bench) {
    let child = |id: &str| job("q").id(id).after(["s", "f", "c"]).run_anyway();
    b.push_all(["s", "f", "c"].map(|id| job("p").id(id)).to_vec()).await;
    let pushed = b.push(child("x")).await;
    assert_eq!(pushed.job.on_parent_failure, OnParentFailure::Run);
    let leases = b.take_all("p", 2).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.cancel("c").await;
    assert_eq!(waits_of(&b.is("x", JobState::Dependent).await), (3, 1));
    b.settle(succeeded(&leases[0])).await;
    b.is("x", JobState::Ready).await;
    assert_eq!(b.push(child("y")).await.job.state, JobState::Ready, "they have all ended");
}

pub(crate) async fn a_parent_that_expires_is_cancelled_or_dies_as_poison_failed(b: &mut Bench) {
    b.push(job("late").id("late").expires(b.now().plus(s(3)))).await;
    b.push(job("off").id("off")).await;
    b.push(job("many").id("many")).await;
    b.push(job("stop").id("stop")).await;
    b.push(job("dies").id("dies").retry(retry(3, 1, fixed(s(1))))).await;
    b.push(job("slow").id("slow").retry(retry(1, 3, fixed(s(1)))).timeout(s(5))).await;
    let all = ["late", "off", "many", "stop", "dies", "slow"];
    for id in all {
        b.push(job("q").id(&format!("{id}-c")).after([id])).await;
        b.push(job("r").id(&format!("{id}-r")).after([id]).run_anyway()).await;
    }
    b.cancel("off").await;
    let filter = JobFilter { queue: Some(queue("many")), ..JobFilter::default() };
    assert_eq!(b.ok(CancelJobs { filter, max: 9, cursor: None }).await.done, 1);
    let lease = b.take("stop").await;
    b.cancel("stop").await;
    b.is("stop-c", JobState::Dependent).await;
    b.settle(released(&lease)).await;
    let _dies = b.granted(b.ask("dies").ttl(s(5))).await;
    let _slow = b.granted(b.ask("slow").ttl(hours(1))).await;
    for id in ["late", "dies", "slow"] {
        b.is(&format!("{id}-c"), JobState::Dependent).await;
    }
    b.pass(s(10)).await;
    for id in all {
        let view = b.is(&format!("{id}-c"), JobState::Cancelled).await;
        assert_eq!(view.error.as_deref(), Some(PARENT_FAILED), "{id}");
        b.is(&format!("{id}-r"), JobState::Ready).await;
    }
}

pub(crate) async fn the_first_failed_parent_cancels_a_child_while_the_others_run(b: &mut Bench) {
    b.push_all(jobs("p", "a", 3)).await;
    b.push(job("q").id("c").after(["a0", "a1", "a2"])).await;
    let leases = b.take_all("p", 3).await;
    b.settle(failed_for_good(&leases[1])).await;
    let before = b.is("c", JobState::Cancelled).await;
    b.is("a0", JobState::Running).await;
    b.pass(s(1)).await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[2])).await;
    b.told().await;
    let after = b.is("c", JobState::Cancelled).await;
    assert_eq!((after.error, after.finished_at), (before.error, before.finished_at));
    b.none("q").await;
}

pub(crate) async fn a_cancelled_child_does_not_wake_when_its_parents_end(b: &mut Bench) {
    b.push_all(vec![job("p").id("a"), job("q").id("c").after(["a"])]).await;
    b.push(job("q").id("d").after(["c"])).await;
    let view = b.cancel("c").await;
    assert_eq!((view.state, view.error), (JobState::Cancelled, None));
    assert_eq!(b.is("d", JobState::Cancelled).await.error.as_deref(), Some(PARENT_FAILED));
    b.ends("p", "a", succeeded).await;
    b.told().await;
    b.none("q").await;
    assert_eq!(b.is("c", JobState::Cancelled).await.error, None);
}

pub(crate) async fn a_child_of_a_failed_parent_is_cancelled_at_its_push(b: &mut Bench) {
    b.push_all(jobs("p", "a", 2)).await;
    b.ends("p", "a0", failed_for_good).await;
    let key = || Unique { hold: Some(s(600)), ..unique("k", OnConflict::Reject) };
    let keyed = |id: &str| job("q").id(id).unique(key());
    let array = vec![
        job("q").id("run").after_item("c").run_anyway(),
        job("q").id("d").after_item("c"),
        keyed("c").called("c").after(["a1", "a0"]),
    ];
    let pushed = b.push_all(array).await;
    for one in &pushed[1..] {
        assert!(!one.duplicate, "it is stored");
        assert_eq!((one.job.state, one.job.finished_at), (JobState::Cancelled, Some(b.now())));
        assert_eq!(one.job.error.as_deref(), Some(PARENT_FAILED));
    }
    assert_eq!((pushed[0].job.state, waits_of(&pushed[0].job)), (JobState::Ready, (1, 0)));
    assert!(!b.push(keyed("free")).await.duplicate, "it holds no key");
    assert!(b.push(job("q").id("d")).await.duplicate, "its id is taken");
    b.ends("p", "a1", succeeded).await;
    b.told().await;
    b.is("c", JobState::Cancelled).await;
    b.leap(Span::from_us(tenure_core::bounds::RETAIN_SUCCEEDED_US + 1)).await;
    b.no_job("d").await;
    b.is("c", JobState::Cancelled).await;
}

pub(crate) async fn a_replaced_child_waits_on_for_the_same_parents(b: &mut Bench) {
    let key = |on_conflict| unique("k", on_conflict);
    b.push_all(vec![job("p").id("a"), job("p").id("b")]).await;
    b.push(job("q").id("c").unique(key(OnConflict::Keep)).after(["a"]).in_flow("f")).await;
    let replacing = job("q").id("x").payload("2").unique(key(OnConflict::Replace));
    let pushed = b.push(replacing.in_flow("g")).await;
    assert!(pushed.replaced, "{pushed:?}");
    let view = b.is("c", JobState::Dependent).await;
    assert_eq!((after_of(&view), waits_of(&view)), (vec!["a".into()], (1, 1)));
    assert_eq!((view.payload, view.flow), (Some(json("2")), Some(flow("f"))));
    // A parent that is replaced is still waited for.
    b.push(job("p").id("held").unique(unique("h", OnConflict::Keep))).await;
    b.push(job("q").id("d").after(["held"])).await;
    b.push(job("p").id("y").payload("3").unique(unique("h", OnConflict::Replace))).await;
    b.is("d", JobState::Dependent).await;
    b.ends("p", "a", succeeded).await;
    b.is("c", JobState::Ready).await;
    b.ends("p", "b", succeeded).await;
    b.ends("p", "held", succeeded).await;
    b.is("d", JobState::Ready).await;
}

pub(crate) async fn a_delayed_child_waits_for_its_parents_and_its_moment(b: &mut Bench) {
    b.push_all(jobs("p", "a", 2)).await;
    let moment = b.now().plus(s(10));
    b.push(job("q").id("c").after(["a0"]).at(moment)).await;
    let pushed = b.push(job("q").id("d").after(["a1"]).delay(s(10))).await;
    assert_eq!((pushed.job.state, pushed.job.run_at), (JobState::Dependent, moment));
    b.ends("p", "a0", succeeded).await;
    b.is("c", JobState::Scheduled).await;
    assert_eq!(b.queue("q").await.counts.scheduled, 1);
    b.pass(s(9)).await;
    b.none("q").await;
    b.pass(s(2)).await;
    b.is("d", JobState::Dependent).await;
    b.take_job("q", "c").await;
    b.ends("p", "a1", succeeded).await;
    b.take_job("q", "d").await;
    // A parent that has ended does not change the moment.
    let pushed = b.push(job("q").id("e").after(["a0"]).delay(s(10))).await;
    assert_eq!(pushed.job.state, JobState::Scheduled);
}
