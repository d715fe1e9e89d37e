//! Executions that are more than a task: their failures, and how they learn that they must stop.

use std::sync::Mutex;

use tenure_core::requests::Request;

use super::*;
use crate::worker::stages::Stages;
use tenure_testkit::fake::{Fake, Says, granted, is_lease, well};

/// Executes jobs with a closure of the test.
struct Scripted<F>(F);

impl<F, E, R> Execute for Scripted<F>
where
    F: Fn(Job) -> R + Send + Sync + 'static,
    R: Future<Output = Executed<E>> + Send + 'static,
    E: Send + 'static,
{
    type Failure = E;
    fn execute(&self, job: Job) -> impl Future<Output = Executed<E>> + Send {
        (self.0)(job)
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_executed_is_released_and_ends_the_work() {
    // A second call waits beside the job, and would be granted it again.
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted(1..=2),
        call => well(call),
    });
    let execute = Scripted(|job: Job| async move {
        if job.lease_id() == "l2" {
            tokio::time::sleep(s(3)).await;
            return Executed::from(SettleOutcome::succeeded());
        }
        Executed { outcome: Some(SettleOutcome::released()), failure: Some("not found") }
    });
    let ended = worker(&fake).concurrency(3).execute(execute).await;
    assert_eq!(ended, Err(WorkError::Execution("not found")));
    let settles = fake.settles();
    let ended: Vec<_> = settles.iter().map(|items| ends(items)).collect();
    assert_eq!(ended, [[("l1".to_owned(), "released")], [("l2".to_owned(), "succeeded")]]);
    let waiting = fake.leases().iter().filter(|(_, lease)| lease.wait > Span::ZERO).count();
    assert!(waiting <= 2, "nothing was asked for after the failure");
}

/// The thread of a worker may stand still between the answer and the look at its slots.
#[tokio::test(start_paused = true)]
async fn a_job_with_a_free_slot_is_not_given_back_as_late() {
    let fake = Fake::new(once(1..=2));
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let (seen, stopper) = (jobs.clone(), Arc::new(Mutex::new(None::<Stopper>)));
    let stops = stopper.clone();
    let execute = Scripted(move |job: Job| {
        lock(&seen).push(job);
        if lock(&seen).len() == 2 {
            lock(&stops).as_ref().unwrap().drain();
        }
        async { Executed::<Infallible>::from(SettleOutcome::succeeded()) }
    });
    let work = worker(&fake).concurrency(2);
    *lock(&stopper) = Some(work.stopper());
    work.execute(execute).await.unwrap();
    let (stages, begun) = (Stages::new(1), Instant::now());
    stages.arrived(std::mem::take(&mut *lock(&jobs)), begun);
    let ids = |jobs: Vec<Job>| jobs.iter().map(|job| job.lease_id().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(stages.late(begun + s(1))), ["l2"], "it has no slot");
    assert_eq!(ids(stages.fill_slots()), ["l1"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_stop_hurries_what_the_drain_timeout_has_stopped() {
    let fake = Fake::new(once(1..=1));
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = told.clone();
    let work = worker(&fake)
        .drain_timeout(s(10))
        .stop_grace(s(60))
        .observe(move |event| lock(&seen).push(event.clone()));
    let stopper = work.stopper();
    let begun = Instant::now();
    let execute = Scripted(move |job: Job| async move {
        assert_eq!(job.stopped().await, Stop::Shutdown);
        assert_eq!(begun.elapsed().as_secs(), 10);
        tokio::select! {
            () = job.hurried() => {}
            () = tokio::time::sleep(s(50)) => unreachable!("nobody was in haste"),
        }
        Executed::<()>::from(SettleOutcome::released())
    });
    let run = tokio::spawn(work.execute(execute));
    fake.until(is_lease, 1).await;
    stopper.drain();
    tokio::time::sleep(s(12)).await;
    stopper.now();
    run.await.unwrap().unwrap();
    assert_eq!(begun.elapsed().as_secs(), 12);
    assert!(lock(&told).contains(&Event::DrainTimedOut));
}

#[tokio::test(start_paused = true)]
async fn what_is_granted_after_a_stop_is_given_back_and_not_run() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => {
            let Says::Now(answer) = granted([1]) else { unreachable!() };
            Says::After(s(1), answer)
        }
        call => well(call),
    });
    let work = worker(&fake);
    let stopper = work.stopper();
    let run = tokio::spawn(work.execute(Scripted(|job: Job| async move {
        panic!("job {} was run", job.id());
        #[expect(unreachable_code, reason = "says the type")]
        Executed::<()>::from(SettleOutcome::succeeded())
    })));
    fake.until(is_lease, 1).await;
    stopper.now();
    assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 0 }));
    assert_eq!(ends(&fake.settles()[0]), [("l1".to_owned(), "released")]);
}

#[tokio::test(start_paused = true)]
#[should_panic = "a bug"]
async fn a_panic_of_an_execution_does_not_go_unseen() {
    let fake = Fake::new(once(1..=1));
    let panics = Scripted(|job: Job| async move {
        assert!(job.lease_id().is_empty(), "a bug");
        Executed::<()>::from(SettleOutcome::succeeded())
    });
    let _ = worker(&fake).max_jobs(1).execute(panics).await;
}
