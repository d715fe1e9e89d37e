//! Many jobs of a flow at once: cancelled and retried parents first, deleted children first.

use tenure_core::job::{JobState, NewJob};
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

fn of_flow(name: &str) -> JobFilter {
    JobFilter { flow: Some(flow(name)), ..JobFilter::default() }
}
fn retry_of(filter: JobFilter, max: usize, cursor: Option<String>) -> RetryJobs {
    RetryJobs { filter, max, cursor }
}

/// Jobs `{name}0` and on, each waiting for the one before, in the queue `q` and the flow `f`.
fn chain(name: &str, count: usize) -> Vec<NewJob> {
    let one = |n: usize| {
        let job = job("q").id(&format!("{name}{n}")).in_flow("f");
        if n == 0 { job } else { job.after([format!("{name}{}", n - 1)]) }
    };
    (0..count).map(one).collect()
}

pub(crate) async fn a_flow_is_retried_parents_first(b: &mut Bench) {
    b.push_all(chain("j", 4)).await;
    b.push(job("q").id("other").in_flow("g")).await;
    b.cancel("other").await;
    b.ends("q", "j0", failed_for_good).await;
    b.told().await;
    assert_eq!(b.members("f").await, [0, 0, 1, 3]);
    // Without its parent a child is skipped.
    let cancelled = JobFilter { states: vec![JobState::Cancelled], ..of_flow("f") };
    assert_eq!(b.ok(retry_of(cancelled, 100, None)).await, DoneMany::all(0));
    let unwell = JobFilter { states: vec![JobState::Failed, JobState::Cancelled], ..of_flow("f") };
    let first = b.ok(retry_of(unwell.clone(), 2, None)).await;
    assert_eq!((first.done, first.more, first.next.is_some()), (2, true, true));
    b.is("j0", JobState::Ready).await;
    b.is("j1", JobState::Dependent).await;
    b.is("j2", JobState::Cancelled).await;
    let rest = b.ok(retry_of(unwell, 100, first.next)).await;
    assert_eq!(rest, DoneMany::all(2), "it goes on with the next");
    assert_eq!(b.members("f").await, [4, 0, 0, 0]);
    b.is("other", JobState::Cancelled).await;
    for n in 0..4 {
        b.ends("q", &format!("j{n}"), succeeded).await;
    }
}

pub(crate) async fn a_long_chain_is_retried_in_one_call(b: &mut Bench) {
    b.push_all(chain("j", 600)).await;
    b.ends("q", "j0", failed_for_good).await;
    b.told().await;
    assert_eq!(b.members("f").await, [0, 0, 1, 599]);
    assert_eq!(b.ok(retry_of(of_flow("f"), 1_000, None)).await, DoneMany::all(600));
    assert_eq!(b.members("f").await, [600, 0, 0, 0]);
    let counts = b.queue("q").await.counts;
    assert_eq!((counts.ready, counts.dependent), (1, 599));
}

pub(crate) async fn a_bulk_retry_passes_over_what_cannot_live_again(b: &mut Bench) {
    b.push(job("p").id("bad").in_flow("g")).await;
    let array = vec![
        job("q").id("child").after(["bad"]).in_flow("f"),
        job("q").id("run").after(["bad"]).run_anyway().in_flow("f"),
        job("q").id("grandchild").after(["child"]).in_flow("f"),
        job("q").id("free").in_flow("f"),
        job("q").id("waiter").after_flow("g"),
    ];
    b.push_all(array).await;
    b.ends("p", "bad", failed_for_good).await;
    b.cancel("run").await;
    b.cancel("free").await;
    b.told().await;
    assert_eq!(b.ok(retry_of(of_flow("f"), 100, None)).await, DoneMany::all(2));
    for (id, state) in [
        ("child", JobState::Cancelled),
        ("grandchild", JobState::Cancelled),
        ("run", JobState::Ready),
        ("free", JobState::Ready),
    ] {
        b.is(id, state).await;
    }
    let filter = JobFilter { queue: Some(queue("q")), ..JobFilter::default() };
    assert_eq!(b.ok(retry_of(filter, 100, None)).await, DoneMany::all(0), "nor by another filter");
    b.is("waiter", JobState::Cancelled).await;
}

pub(crate) async fn a_flow_is_cancelled_parents_first(b: &mut Bench) {
    b.push_all(chain("j", 4)).await;
    let cancel = |max, cursor| CancelJobs { filter: of_flow("f"), max, cursor };
    let first = b.ok(cancel(1, None)).await;
    assert_eq!((first.done, first.more), (1, true));
    b.told().await;
    assert_eq!(b.job("j0").await.error, None, "the oldest");
    for n in 1..4 {
        let view = b.is(&format!("j{n}"), JobState::Cancelled).await;
        assert_eq!(view.error.as_deref(), Some(PARENT_FAILED), "by its parent");
    }
    assert_eq!(b.ok(cancel(100, first.next)).await.done, 0);
    b.push_all(chain("k", 4)).await;
    let lease = b.take_job("q", "k0").await;
    assert_eq!(b.ok(cancel(100, None)).await, DoneMany::all(4), "asked is done");
    assert!(b.is("k0", JobState::Running).await.cancel_requested);
    for n in 1..4 {
        assert_eq!(b.is(&format!("k{n}"), JobState::Cancelled).await.error, None);
    }
    b.settle(released(&lease)).await;
    assert_eq!(b.members("f").await, [0, 0, 0, 8]);
}

pub(crate) async fn dependent_jobs_are_cancelled_by_their_state(b: &mut Bench) {
    b.push_all(chain("j", 3)).await;
    let filter = JobFilter { states: vec![JobState::Dependent], ..JobFilter::default() };
    let found = b.ok(ListJobs { filter: filter.clone(), ..ListJobs::default() }).await.items;
    let ids: Vec<_> = found.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["j2", "j1"]);
    let done = b.ok(CancelJobs { filter, max: 100, cursor: None }).await;
    assert_eq!(done, DoneMany::all(2));
    b.is("j0", JobState::Ready).await;
    assert_eq!(b.members("f").await, [1, 0, 0, 2]);
}

pub(crate) async fn a_flow_is_deleted_children_first(b: &mut Bench) {
    b.push_all(chain("j", 5)).await;
    b.ends("q", "j0", succeeded).await;
    let lease = b.take_job("q", "j1").await;
    let delete = |max, cursor| DeleteJobs { filter: of_flow("f"), max, cursor };
    let first = b.ok(delete(2, None)).await;
    assert_eq!((first.done, first.more), (2, true));
    for id in ["j4", "j3"] {
        b.no_job(id).await;
    }
    // The parent of a running job is skipped, and so is the running job.
    let rest = b.ok(delete(100, first.next)).await;
    assert_eq!(rest, DoneMany::all(1));
    b.is("j0", JobState::Succeeded).await;
    assert_eq!(b.members("f").await, [1, 1, 0, 0]);
    b.settle(failed_for_good(&lease)).await;
    assert_eq!(b.ok(delete(100, None)).await, DoneMany::all(2));
    b.no_flow("f").await;
    // More than a portion, in one call.
    b.push_all(chain("k", 600)).await;
    assert_eq!(b.ok(delete(1_000, None)).await, DoneMany::all(600));
    assert_eq!(b.ok(GetStats).await.jobs.values().sum::<u64>(), 0);
    b.no_flow("f").await;
}
