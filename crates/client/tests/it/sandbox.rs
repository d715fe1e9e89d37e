//! A store for tests, used as by a user's own test.
#![cfg(feature = "testing")]

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenure::core::job::{JobState, Outcome};
use tenure::tasks::{Handlers, Task, TaskError};
use tenure::testing::Sandbox;
use tenure::{Job, JobRef, Moment, Need, SettleOutcome, Span};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Count {
    down: u32,
}

impl Task for Count {
    const KIND: &'static str = "count";
    const QUEUE: &'static str = "counts";
}

/// Pushes the next lower number.
async fn count(count: Count) -> Result<SettleOutcome, TaskError> {
    let done = SettleOutcome::succeeded_with(&count.down);
    let Some(down) = count.down.checked_sub(1) else { return Ok(done) };
    Ok(done.then_task(&Count { down }))
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread")]
async fn it_is_empty_and_its_own_and_stands_where_it_was_put() {
    let start: Moment = "2027-01-01T00:00:00Z".parse().unwrap();
    let (one, other) = (Sandbox::at(start).unwrap(), Sandbox::at(start).unwrap());
    one.client().push("mail").await.unwrap();
    assert_eq!(one.pushed("mail").await.unwrap().len(), 1);
    assert_eq!(other.pushed("mail").await.unwrap().len(), 0);
    assert_eq!(one.now(), start);
    assert_eq!(one.advance(HOUR).await.unwrap(), start.plus(HOUR.into()));
    assert_eq!((one.now(), other.now()), (start.plus(HOUR.into()), start));
    let tenant = one.client_in("tenant-7".parse().unwrap());
    tenant.push("mail").await.unwrap();
    assert_eq!(one.pushed("mail").await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_handlers_push_is_run_too() {
    let sandbox = Sandbox::new().unwrap();
    sandbox.client().push_task(&Count { down: 3 }).unwrap().await.unwrap();
    let worked = sandbox.run_until_idle(&Handlers::new().on(count)).await.unwrap();
    assert_eq!(worked.jobs, 4);
    let pushed: Vec<Count> = sandbox.tasks().await.unwrap();
    assert_eq!(pushed, [3, 2, 1, 0].map(|down| Count { down }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_time_or_for_a_limit_leaves_it_idle() {
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.limit("api").rate(1, HOUR).burst(1).set().await.unwrap();
    for down in 0..2 {
        let task = Count { down };
        client.push_task(&task).unwrap().need(Need::limit("api")).await.unwrap();
    }
    client.push_task(&Count { down: 9 }).unwrap().delay(2 * HOUR).await.unwrap();
    let handlers = Handlers::new().on(|_: Count| async { Ok::<_, TaskError>(()) });
    let began = Instant::now();
    let run = async || sandbox.run_until_idle(&handlers).await.unwrap().jobs;
    assert_eq!(run().await, 1);
    sandbox.advance(HOUR).await.unwrap();
    assert_eq!(run().await, 1);
    assert_eq!(run().await, 0);
    sandbox.advance(HOUR).await.unwrap();
    assert_eq!(run().await, 1);
    assert!(began.elapsed() < HOUR, "the time of the test is no time of the store");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_of_retries_is_seen_to_its_end_in_no_time() {
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.push_task(&Count { down: 0 }).unwrap().id("j").await.unwrap();
    let handlers = Handlers::new().on(|_: Count| async { Err::<(), _>("broken") });
    let mut runs = 0;
    let job = || client.get_job(JobRef::parse("j").unwrap());
    while job().await.unwrap().state != JobState::Failed {
        runs += sandbox.run_until_idle(&handlers).await.unwrap().jobs;
        sandbox.advance(HOUR).await.unwrap();
    }
    assert_eq!(runs, 20, "the policy of a job that states none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_runs_while_the_clock_passes_its_ttl_is_lost() {
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.push_task(&Count { down: 0 }).unwrap().id("j").await.unwrap();
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel::<Job>();
    let handlers = Handlers::new().on(move |_: Count, job: Job| {
        let _ = begun.send(job);
        std::future::pending::<Result<(), TaskError>>()
    });
    let worker = client.worker(handlers.queues().unwrap()).ttl(Span::from_s(5));
    let stopper = worker.stopper();
    let working = tokio::spawn(worker.run_tasks(handlers));
    let running = has_begun.recv().await.unwrap();
    sandbox.advance(HOUR).await.unwrap();
    // Its next heartbeat learns that the lease is lost.
    assert_eq!(running.stopped().await, tenure::Stop::Lost);
    stopper.now();
    working.await.unwrap().unwrap();
    // The worker may have leased it again before it was stopped, and gave it back, which sets `lost` to 0.
    let errors = client.get_job(JobRef::parse("j").unwrap()).await.unwrap().errors;
    assert_eq!(errors.iter().map(|error| error.outcome).collect::<Vec<_>>(), [Outcome::Lost]);
}
