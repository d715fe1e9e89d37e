//! What one call of a caller asks for may be more than one step of the store should do: then it is several
//! steps, and no step keeps the server busy for long.

use tenure_core::job::{NewJob, When};
use tenure_core::lease::LeaseView;
use tenure_core::names::{RequestId, WorkerId};
use tenure_core::requests::{CancelJobs, Lease, Push, PushAnswer};
use tenure_core::time::Span;
use tenure_engine::Clock;
use tenure_testkit::redis::wanted;

use crate::world::{World, job, queue, site, waits};

/// As many as one call may ask for.
const MOST: usize = 1_000;
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
    world.ok(CancelJobs { filter: waits(), max: MOST }).await;
    say("1,000 jobs are cancelled");
}
