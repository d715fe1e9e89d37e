//! Many jobs at once: found by their errors and their ends, cancelled, retried and deleted together.

use std::collections::BTreeSet;

use tenure_core::bounds::LIST_SCAN_MAX;
use tenure_core::job::JobState;
use tenure_core::lease::{Ending, LeaseView, SettleItem};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_engine_api::EngineExt;

use crate::bench::Bench;
use crate::words::*;

/// The most jobs that one call may change.
const MOST: usize = 1_000;

fn cancel(filter: JobFilter) -> CancelJobs {
    CancelJobs { filter, max: MOST, cursor: None }
}
fn retry_all(filter: JobFilter) -> RetryJobs {
    RetryJobs { filter, max: MOST, cursor: None }
}
fn delete(filter: JobFilter) -> DeleteJobs {
    DeleteJobs { filter, max: MOST, cursor: None }
}
fn of_queue(name: &str) -> JobFilter {
    JobFilter { queue: Some(queue(name)), ..JobFilter::default() }
}
fn with_error(text: &str) -> JobFilter {
    JobFilter { error: Some(text.to_owned()), ..JobFilter::default() }
}
fn with_label(key: &str, value: &str) -> JobFilter {
    JobFilter { label: Some((key.to_owned(), value.to_owned())), ..JobFilter::default() }
}

pub(crate) fn failed_with(lease: &LeaseView, error: &str) -> SettleItem {
    ending(lease, Ending::Failed { error: error.to_owned(), retry_in: None, last: true })
}

async fn found(b: &Bench, filter: JobFilter) -> BTreeSet<String> {
    let listed = b.ok(ListJobs { filter, ..ListJobs::default() }).await;
    listed.items.iter().map(|job| job.id.to_string()).collect()
}
fn ids<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.map(str::to_owned).into()
}

/// Three failed jobs, a second apart; one that waits for its next attempt, and one that never ran.
async fn some_failed(b: &Bench) {
    for (id, error) in [("a", "http 502: gone"), ("b", "refused\nhttp 502"), ("c", "Gone")] {
        b.push(job("q").id(id)).await;
        let lease = b.take("q").await;
        b.settle(failed_with(&lease, error)).await;
        b.pass(s(1)).await;
    }
    b.push(job("q").id("waits")).await;
    let lease = b.take("q").await;
    let retry_in = Some(s(600));
    b.settle(ending(
        &lease,
        Ending::Failed { error: "http 502".to_owned(), retry_in, last: false },
    ))
    .await;
    b.push(job("other").id("new")).await;
}

pub(crate) async fn jobs_are_found_by_a_part_of_their_last_error(b: &mut Bench) {
    some_failed(b).await;
    assert_eq!(found(b, with_error("http 502")).await, ids(["a", "b", "waits"]));
    assert_eq!(found(b, with_error("gone")).await, ids(["a"]), "letter by letter");
    assert_eq!(found(b, with_error("refused\nhttp")).await, ids(["b"]));
    assert_eq!(found(b, with_error("nothing like it")).await, ids([]));
    assert_eq!(found(b, with_error("")).await, ids(["a", "b", "c", "waits"]), "any error");
    let failed = JobFilter { states: vec![JobState::Failed], ..with_error("502") };
    assert_eq!(found(b, failed).await, ids(["a", "b"]));
    // The next end of the job decides.
    b.ok(RetryJob { job: job_ref("a"), finished_at: None }).await;
    assert_eq!(found(b, with_error("gone")).await, ids([]), "a job that lives again has none");
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    assert_eq!(found(b, with_error("502")).await, ids(["b", "waits"]));
}

pub(crate) async fn jobs_are_found_by_when_they_ended(b: &mut Bench) {
    some_failed(b).await;
    let mut ended = Vec::new();
    for id in ["a", "b", "c"] {
        ended.push(b.job(id).await.finished_at.expect("it ended"));
    }
    let window = |finished_after, finished_before| JobFilter {
        finished_after,
        finished_before,
        ..JobFilter::default()
    };
    let [a, second, c] = [ended[0], ended[1], ended[2]];
    assert_eq!(found(b, window(Some(second), None)).await, ids(["b", "c"]), "from then on");
    assert_eq!(found(b, window(None, Some(second))).await, ids(["a"]), "before then");
    assert_eq!(found(b, window(Some(a), Some(second))).await, ids(["a"]), "windows join");
    assert_eq!(found(b, window(Some(second), Some(c))).await, ids(["b"]));
    assert_eq!(found(b, window(Some(c.plus(ms(1))), None)).await, ids([]));
    assert_eq!(found(b, window(Some(c), Some(a))).await, ids([]), "an empty window");
    let both = JobFilter { error: Some("502".to_owned()), ..window(Some(second), None) };
    assert_eq!(found(b, both).await, ids(["b"]));
}

pub(crate) async fn failures_are_retried_by_their_error_and_time(b: &mut Bench) {
    some_failed(b).await;
    let from = b.job("b").await.finished_at;
    let filter = JobFilter { finished_after: from, ..with_error("502") };
    assert_eq!(b.ok(retry_all(filter)).await, DoneMany::all(1));
    b.is("a", JobState::Failed).await;
    b.is("b", JobState::Ready).await;
    let filter = JobFilter { states: vec![JobState::Failed], ..with_error("502") };
    assert_eq!(b.ok(delete(filter)).await, DoneMany::all(1));
    b.no_job("a").await;
    assert_eq!(b.ok(cancel(with_error("502"))).await, DoneMany::all(1), "who waits is cancelled");
    b.is("waits", JobState::Cancelled).await;
    b.is("c", JobState::Failed).await;
    b.is("new", JobState::Ready).await;
}

pub(crate) async fn a_label_with_colons_is_found(b: &mut Bench) {
    // Over HTTP both would be written a:b:c, which is split at its last colon.
    b.push(job("q").id("value").label("a", "b:c")).await;
    b.push(job("q").id("key").label("a:b", "c")).await;
    assert_eq!(found(b, with_label("a:b", "c")).await, ids(["key"]));
    assert_eq!(b.ok(delete(with_label("a:b", "c"))).await.done, 1);
    b.no_job("key").await;
}

pub(crate) async fn a_bulk_call_goes_on_where_it_stopped_and_ends(b: &mut Bench) {
    b.push_all(jobs("q", "j", 7)).await;
    b.push(job("other").id("other")).await;
    let (mut cursor, mut steps) = (None, Vec::new());
    loop {
        let step = b.ok(CancelJobs { filter: of_queue("q"), max: 3, cursor }).await;
        assert_eq!(step.more, step.next.is_some(), "a cursor exactly where there may be more");
        steps.push(step.done);
        assert!(steps.len() < 10, "it ends");
        cursor = step.next;
        if cursor.is_none() {
            break;
        }
        // A job that is pushed meanwhile is newer than the position of the scan.
        b.push(job("q").id(&format!("late{}", steps.len()))).await;
    }
    assert_eq!(steps.iter().sum::<u64>(), 7);
    assert_eq!(&steps[..2], [3, 3], "newest first, at most `max`");
    for n in 0..7 {
        b.is(&format!("j{n}"), JobState::Cancelled).await;
    }
    b.is("late1", JobState::Ready).await;
    b.is("other", JobState::Ready).await;
    let no = b
        .refused(
            Code::InvalidField,
            CancelJobs { filter: of_queue("q"), max: 3, cursor: Some("x".to_owned()) },
        )
        .await;
    assert_eq!(no.pointer.as_deref(), Some("/cursor"));
}

pub(crate) async fn a_bulk_call_looks_at_ten_thousand_jobs(b: &mut Bench) {
    let kind = |kind: &str, name: &str, many: usize| -> Vec<_> {
        jobs("q", name, many).into_iter().map(|job| job.kind(kind)).collect()
    };
    b.push_all(kind("x", "x", 3)).await;
    for n in 0..LIST_SCAN_MAX / MOST {
        b.push_all(kind("y", &format!("y{n}-"), MOST)).await;
    }
    let filter = || JobFilter { kind: Some("x".to_owned()), ..JobFilter::default() };
    let first = b.ok(delete(filter())).await;
    assert_eq!((first.done, first.more), (0, true), "it stops, and says so");
    let second = b.ok(DeleteJobs { cursor: first.next, ..delete(filter()) }).await;
    assert_eq!(second, DoneMany::all(3));
    b.no_job("x0").await;
    let listed = b.ok(ListJobs { filter: filter(), ..ListJobs::default() }).await;
    assert!(listed.items.is_empty());
}

pub(crate) async fn more_than_a_portion_is_changed_in_one_call(b: &mut Bench) {
    let label = |job: tenure_core::job::NewJob| job.label("run", "7").needs([need("lock:x")]);
    b.push_all(jobs("q", "j", 700).into_iter().map(label).collect()).await;
    let filter = || with_label("run", "7");
    assert_eq!(b.ok(cancel(filter())).await, DoneMany::all(700));
    assert_eq!(b.ok(retry_all(filter())).await, DoneMany::all(700));
    // Newest first is also the order in which they are ready again.
    let lease = b.take("q").await;
    assert_eq!(job_of(&lease), "j699");
    let done = b.ok(DeleteJobs { max: 600, ..delete(filter()) }).await;
    assert_eq!((done.done, done.more), (600, true));
    let rest = b.ok(DeleteJobs { cursor: done.next, ..delete(filter()) }).await;
    assert_eq!(rest, DoneMany::all(99), "all but the one that runs");
    b.settle(succeeded(&lease)).await;
    assert_eq!(b.limit("lock:x").await.waiting, 0);
}

pub(crate) async fn a_bulk_delete_passes_over_what_runs(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(job("q").id("blocked").needs([need("closed")])).await;
    b.none("q").await;
    b.push_all(jobs("q", "j", 3)).await;
    let leases = b.take_all("q", 2).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.push(job("q").id("scheduled").delay(s(60))).await;
    let running = JobFilter { states: vec![JobState::Running], ..of_queue("q") };
    assert_eq!(b.ok(delete(running)).await, DoneMany::all(0));
    assert_eq!(b.ok(delete(of_queue("q"))).await, DoneMany::all(4));
    for id in ["blocked", "j1", "j2", "scheduled"] {
        b.no_job(id).await;
    }
    b.is("j0", JobState::Running).await;
    assert_eq!(b.limit("closed").await.waiting, 0);
    b.settle(succeeded(&leases[0])).await;
    assert_eq!(b.ok(delete(of_queue("q"))).await, DoneMany::all(1));
    let stats = b.ok(GetStats).await;
    assert_eq!(stats.jobs.values().sum::<u64>(), 0, "nothing is left of them");
}

pub(crate) async fn a_bulk_delete_frees_ids_and_keys(b: &mut Bench) {
    let held = || tenure_core::job::Unique {
        hold: Some(s(600)),
        ..unique("k", tenure_core::job::OnConflict::Keep)
    };
    b.push(job("q").id("a").unique(held())).await;
    b.push(job("q").id("b")).await;
    let lease = b.take_job("q", "a").await;
    b.settle(succeeded(&lease)).await;
    assert_eq!(b.ok(delete(of_queue("q"))).await, DoneMany::all(2));
    let again = b.push(job("q").id("a").unique(held())).await;
    assert!(!again.duplicate, "neither its id nor its key is taken");
    b.push(job("q").id("b")).await;
    b.take_all("q", 2).await;
}

pub(crate) async fn a_bulk_cancel_counts_a_running_job_once(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let lease = b.take("q").await;
    assert_eq!(b.ok(cancel(of_queue("q"))).await, DoneMany::all(3), "asked is done");
    assert!(b.is("j0", JobState::Running).await.cancel_requested);
    assert_eq!(b.ok(cancel(of_queue("q"))).await, DoneMany::all(0));
    b.settle(released(&lease)).await;
    b.is("j0", JobState::Cancelled).await;
}

pub(crate) async fn a_bulk_call_passes_over_states_that_it_cannot_change(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let leases = b.take_all("q", 2).await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[1])).await;
    let of = |states: &[JobState]| JobFilter { states: states.to_vec(), ..JobFilter::default() };
    let done = b.ok(cancel(of(&[JobState::Succeeded, JobState::Failed]))).await;
    assert_eq!(done, DoneMany::all(0));
    assert_eq!(b.ok(retry_all(of(&[JobState::Succeeded, JobState::Ready]))).await.done, 0);
    assert_eq!(b.ok(retry_all(of(&[JobState::Succeeded, JobState::Failed]))).await.done, 1);
    assert_eq!(b.ok(retry_all(of_queue("q"))).await.done, 0, "what lives is not retried");
    b.is("j0", JobState::Succeeded).await;
    b.is("j1", JobState::Ready).await;
}

pub(crate) async fn a_bulk_retry_passes_over_a_job_whose_key_is_taken(b: &mut Bench) {
    let keyed = |id: &str| job("q").id(id).unique(unique("k", tenure_core::job::OnConflict::Keep));
    b.push(keyed("first")).await;
    b.cancel("first").await;
    b.push(keyed("second")).await;
    b.push(job("q").id("free")).await;
    b.cancel("free").await;
    assert_eq!(b.ok(retry_all(of_queue("q"))).await, DoneMany::all(1));
    b.is("first", JobState::Cancelled).await;
    b.is("free", JobState::Ready).await;
}

pub(crate) async fn a_cancel_retry_or_delete_without_a_filter_is_refused(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let filter = JobFilter::default;
    let cursor = || Some("7".to_owned());
    for no in [
        b.refused(Code::InvalidField, cancel(filter())).await,
        b.refused(Code::InvalidField, retry_all(filter())).await,
        b.refused(Code::InvalidField, delete(filter())).await,
        b.refused(Code::InvalidField, DeleteJobs { max: 1, cursor: cursor(), ..delete(filter()) })
            .await,
    ] {
        assert_eq!(no.pointer.as_deref(), Some(""), "{no}");
    }
    b.is("j0", JobState::Ready).await;
    b.is("j1", JobState::Ready).await;
}

pub(crate) async fn a_bulk_call_changes_only_what_matches_in_its_step(b: &mut Bench) {
    const JOBS: usize = 300;
    let label = |job: tenure_core::job::NewJob| job.label("run", "old");
    b.push_all(jobs("q", "j", JOBS).into_iter().map(label).collect()).await;
    let (engine, space) = (b.engine(), b.namespace.clone());
    // Every second job gets another label while the jobs with the old one are cancelled.
    let relabels = tokio::spawn(async move {
        let mut moved = BTreeSet::new();
        for n in (0..JOBS).step_by(2) {
            let id = format!("j{n}");
            let mut patch = PatchJob::new(job_ref(&id));
            let new = [("run".to_owned(), "new".to_owned())].into();
            patch.labels = Patch::Set(new);
            if engine.run(&space, patch).await.is_ok() {
                moved.insert(id);
            }
        }
        moved
    });
    let mut cursor = None;
    let mut done = 0;
    loop {
        let asked = CancelJobs { filter: with_label("run", "old"), max: MOST, cursor };
        let step = b.ok(asked).await;
        done += step.done;
        cursor = step.next;
        if cursor.is_none() {
            break;
        }
    }
    let moved = relabels.await.expect("nobody panics");
    let cancelled = {
        let states = vec![JobState::Cancelled];
        let page = Page { max: MOST, cursor: None };
        let filter = JobFilter { states, ..JobFilter::default() };
        let listed = b.ok(ListJobs { filter, page, full: false }).await;
        listed.items.into_iter().map(|job| (job.id.to_string(), job.labels["run"].clone()))
    };
    let cancelled: std::collections::BTreeMap<String, String> = cancelled.collect();
    assert_eq!(cancelled.len() as u64, done);
    assert!(cancelled.values().all(|run| run == "old"), "none that had the other label by then");
    for n in 0..JOBS {
        let id = format!("j{n}");
        let (was_moved, was_cancelled) = (moved.contains(&id), cancelled.contains_key(&id));
        assert!(was_moved != was_cancelled, "{id} is one of the two");
    }
}
