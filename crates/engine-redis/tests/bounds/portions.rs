//! What one call of a caller asks for may be more than one step of the store should do: then it is several
//! steps, and no step keeps the server busy for long.

use tenure_core::job::{NewJob, When};
use tenure_core::lease::{Ending, LeaseView, SettleItem};
use tenure_core::names::{RequestId, WorkerId};
use tenure_core::requests::{
    CancelJobs, DeleteJobs, DoneMany, JobFilter, Lease, ListFailures, Push, PushAnswer, RetryJobs,
    Settle,
};
use tenure_core::time::Span;
use tenure_engine::Clock;
use tenure_testkit::redis::wanted;

use crate::world::{Work, World, job, queue, site, waits};

/// As many as one call may ask for.
const MOST: usize = 1_000;
/// How many jobs one step of a call on many changes.
const PORTION: usize = tenure_core::bounds::MANY_PORTION;
/// How many grants go the long way in one step (`bounds::TICK_MAX`).
const GRANTS: usize = tenure_core::bounds::TICK_MAX;

impl World {
    async fn pass(&self, span: Span) {
        self.clock.advance(span);
        self.set().await;
    }

    /// Jobs that were delayed and are due: each has a life of its own, so none is granted the short way.
    async fn push_delayed(&self) {
        let delayed = |n| NewJob { when: When::In(Span::from_s(1)), ..job("q", n, Vec::new()) };
        self.push((0..MOST).map(delayed).collect()).await;
        self.pass(Span::from_s(2)).await;
    }

    /// The longest that a function took since the statistics began, in ms.
    fn longest(&self) -> f64 {
        let all = self.server.must(&["SLOWLOG", "GET", "-1"]);
        let us = all.list().iter().filter_map(|entry| {
            let entry = entry.list();
            let word = entry.get(3)?.list().first()?.text();
            word.starts_with("FCALL").then(|| entry.get(2)?.text().parse::<f64>().ok()).flatten()
        });
        us.fold(0.0, f64::max) / 1_000.0
    }
}

fn asks(request: &str) -> Lease {
    let mut lease = Lease::jobs(vec![queue("q")], MOST);
    lease.worker.id = WorkerId::parse("w").ok();
    lease.request_id = RequestId::parse(request).ok();
    lease
}

fn names(leases: &[LeaseView]) -> Vec<&str> {
    leases.iter().map(|lease| lease.lease.as_deref().expect("it has an id")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_call_is_filled_step_by_step_and_is_one_call() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.push_delayed().await;
    let (leased, work) = world.cost(asks("r1")).await;
    assert_eq!(leased.leases.len(), MOST);
    assert!(work.calls as usize >= MOST / GRANTS, "{work:?}");
    assert!(work.commands < (40 + 4 * GRANTS as u64) * work.calls, "{work:?}");
    let fences = leased.leases.windows(2).all(|pair| pair[0].fence < pair[1].fence);
    assert!(fences, "in the order of the line");
    // A repeat is the same call: all that it was granted, and nothing more.
    world.push(vec![job("q", MOST, Vec::new())]).await;
    let again = world.ok(asks("r1")).await;
    assert_eq!(names(&again.leases), names(&leased.leases));
    world.is_whole().await;
    world.succeed(&leased.leases).await;
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_that_ran_out_together_are_reaped_step_by_step() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.limit("site:*", 1).await;
    let timed = |n| NewJob { timeout: Some(Span::from_s(30)), ..job("q", n, vec![site(n)]) };
    world.push((0..MOST).map(timed).collect()).await;
    assert_eq!(world.take("q", MOST).await.0.len(), MOST);
    let late = world.clock.now().plus(Span::from_s(60));
    world.server.must(&["SET", "tenure:{default}now", &late.us().to_string()]);
    let (ticks, most) = world.settle().await;
    assert!(ticks as usize >= MOST / GRANTS, "{ticks}");
    assert!(most < 3 * GRANTS as u64, "{most} commands");
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_a_push_makes_is_not_looked_for() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    let jobs = (0..MOST).map(|n| job(&format!("own-{n}"), n, Vec::new())).collect();
    let (_, work) = world.cost(Push { jobs, answer: PushAnswer::Ids }).await;
    assert_eq!(work.calls, 1, "all or none");
    // In the library of the tests each is looked for all the same, to find out that nothing is there.
    assert!(work.commands < 15 * MOST as u64, "{work:?}");
    world.is_whole().await;
}

fn of_queue() -> JobFilter {
    JobFilter { queue: Some(queue("q")), ..JobFilter::default() }
}

/// A call on many jobs is several steps, and none of them is of more than a portion.
#[tokio::test(flavor = "multi_thread")]
async fn many_jobs_are_changed_step_by_step() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.limit("site:*", 1).await;
    let keyed = |n| job("q", n, vec![site(n)]);
    world.push((0..MOST).map(keyed).collect()).await;
    let (max, cursor) = (MOST, None);
    // Looks, of which each ends sooner where jobs have needs of their own, and the portions that they found.
    let steps = MOST.div_ceil(PORTION) as u64;
    let is_bounded = |done: DoneMany, work: Work| {
        assert_eq!(done.done, MOST as u64);
        assert!(work.calls > steps && work.calls <= 4 * steps, "{work:?}");
        assert!(work.commands < (60 + 12 * PORTION as u64) * work.calls, "{work:?}");
    };
    let (done, work) =
        world.cost(CancelJobs { filter: of_queue(), max, cursor: cursor.clone() }).await;
    is_bounded(done, work);
    world.settle().await;
    world.is_whole().await;
    let (done, work) =
        world.cost(RetryJobs { filter: of_queue(), max, cursor: cursor.clone() }).await;
    is_bounded(done, work);
    world.settle().await;
    let (done, work) = world.cost(DeleteJobs { filter: of_queue(), max, cursor }).await;
    is_bounded(done, work);
    world.settle().await;
    world.is_whole().await;
    assert_eq!(world.size("ch"), 0, "no row is left");
}

/// Jobs that a filter does not mean are looked at by several steps too, and 10,000 are enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_many_jobs_looks_at_ten_thousand() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    for n in 0..11 {
        let jobs = (n * MOST..(n + 1) * MOST).map(|n| job("other", n, Vec::new())).collect();
        world.ok(Push { jobs, answer: PushAnswer::Ids }).await;
    }
    let cancel = |cursor| CancelJobs { filter: of_queue(), max: 1, cursor };
    let (done, work) = world.cost(cancel(None)).await;
    assert_eq!((done.done, done.more), (0, true));
    assert!((10..=12).contains(&work.calls), "{work:?}");
    assert!(work.commands < 200 * work.calls, "{work:?}");
    let (rest, work) = world.cost(cancel(done.next)).await;
    assert_eq!(rest, DoneMany::all(0));
    assert!(work.calls <= 3, "{work:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_counted_step_by_step() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.push((0..MOST).map(|n| job("q", n, Vec::new())).collect()).await;
    let (leases, _) = world.take("q", MOST).await;
    let failed = |lease: &LeaseView| {
        let ending = Ending::Failed { error: "http 502".to_owned(), retry_in: None, last: true };
        SettleItem::new(lease.lease.clone().expect("it has an id"), ending)
    };
    for some in leases.chunks(500) {
        world.ok(Settle::of(some.iter().map(failed).collect())).await;
    }
    // However many jobs there are that have not failed.
    world.push((MOST..3 * MOST).map(|n| job("q", n, Vec::new())).collect()).await;
    let (found, work) = world.cost(ListFailures::default()).await;
    assert_eq!((found.items.len(), found.items[0].count), (1, MOST as u64));
    let steps = MOST.div_ceil(PORTION) as u64;
    assert!((steps..=steps + 1).contains(&work.calls), "{work:?}");
    assert!(work.commands < 60 * work.calls, "{work:?}");
}

/// The figures: `cargo test -p tenure-engine-redis --test bounds -- --ignored --nocapture`, on a machine that
/// does nothing else.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures time"]
async fn how_long_one_step_keeps_the_server() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.server.must(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    world.server.must(&["CONFIG", "SET", "slowlog-max-len", "10000"]);
    let say = |what: &str| {
        println!("{what:<44} {:8.1} ms at the longest", world.longest());
        world.server.must(&["SLOWLOG", "RESET"]);
    };
    world.limit("site:*", 1).await;
    world.push_delayed().await;
    say("1,000 delayed jobs are pushed and due");
    let leased = world.ok(asks("r1")).await.leases;
    say("1,000 delayed jobs are leased");
    world.succeed(&leased).await;
    say("1,000 leases are settled");
    let own = |n: usize| job(&format!("own-{n}"), n, Vec::new());
    let jobs = (MOST..2 * MOST).map(own).collect();
    world.ok(Push { jobs, answer: PushAnswer::Ids }).await;
    say("1,000 jobs into 1,000 new queues");
    let keyed = |n: usize| job("q", n, vec![site(n)]);
    let jobs = (2 * MOST..3 * MOST).map(keyed).collect();
    world.ok(Push { jobs, answer: PushAnswer::Ids }).await;
    say("1,000 jobs that need 1,000 new keys");
    world.ok(asks("r2")).await;
    say("1,000 of them are leased");
    let later = world.clock.now().plus(Span::from_s(3_600));
    world.server.must(&["SET", "tenure:{default}now", &later.us().to_string()]);
    world.settle().await;
    say("1,000 leases ran out");
    world.ok(CancelJobs { filter: waits(), max: MOST, cursor: None }).await;
    say("1,000 jobs are cancelled");
    world.ok(RetryJobs { filter: of_queue(), max: MOST, cursor: None }).await;
    say("1,000 jobs are retried");
    world.ok(DeleteJobs { filter: of_queue(), max: MOST, cursor: None }).await;
    say("1,000 jobs are deleted");
    world.ok(ListFailures::default()).await;
    say("failures are counted");
}
