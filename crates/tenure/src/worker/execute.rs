//! How one job is executed: the seam between the loop, which takes jobs, holds and settles them, and
//! what is done with each.
//!
//! [`Worker::run`](super::Worker::run) executes jobs as tasks of this process, below; `tenure work`
//! executes them as processes.

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};

use super::job::Job;
use crate::keeper::Stop;
use crate::outcome::SettleOutcome;

/// What the run of one job came to.
#[derive(Debug)]
pub struct Executed<F> {
    /// How its lease ends. `None` leaves that to the engine: the lease was lost, or its time is over.
    pub outcome: Option<SettleOutcome>,
    /// Why no other job could be run any better. The worker takes no more jobs, and ends with this.
    pub failure: Option<F>,
}

impl<F> From<SettleOutcome> for Executed<F> {
    fn from(outcome: SettleOutcome) -> Self {
        Executed { outcome: Some(outcome), failure: None }
    }
}

/// How one job is executed.
pub trait Execute: Send + Sync + 'static {
    /// Why no job can be executed at all.
    type Failure: Send + 'static;

    /// Executes one job, whose lease is extended meanwhile. Nobody else stops it: when
    /// [`Job::stopped`] completes it must come to its end, and nothing of it may run after
    /// [`Job::hard_limit`].
    fn execute(&self, job: Job) -> impl Future<Output = Executed<Self::Failure>> + Send;
}

/// Executes each job as a task that is dropped when it must stop.
pub struct Handler<H> {
    handle: Arc<H>,
    /// How long the task may take to end by itself before it is dropped.
    grace: Duration,
}

impl<H> Handler<H> {
    /// Runs `handle` for each job.
    pub fn new(handle: H, grace: Duration) -> Self {
        Handler { handle: Arc::new(handle), grace }
    }
}

impl<H, F, O> Execute for Handler<H>
where
    H: Fn(Job) -> F + Send + Sync + 'static,
    F: Future<Output = O> + Send + 'static,
    O: Into<SettleOutcome> + Send + 'static,
{
    type Failure = Infallible;

    async fn execute(&self, job: Job) -> Executed<Infallible> {
        // A task of its own: a panic ends the run and not the worker.
        let mut task = tokio::spawn({
            let (handle, job) = (self.handle.clone(), job.clone());
            async move { handle(job).await.into() }
        });
        let outcome = tokio::select! {
            biased;
            done = &mut task => outcome(done),
            stop = job.stopped() => {
                let outcome = wind_up(&mut task, &job, self.grace).await;
                match stop {
                    // It is held still, and nobody works on it any more.
                    Stop::Cancelled | Stop::Shutdown => {
                        Some(outcome.unwrap_or_else(SettleOutcome::released))
                    }
                    // It is the engine's by now. What was finished all the same may still count.
                    Stop::Lost | Stop::Deadline => outcome,
                }
            }
        };
        Executed { outcome, failure: None }
    }
}

/// Lets a handler that was told to stop finish within the grace, but never beyond the moment at
/// which its lease could be somebody else's; then drops it, and waits until it is gone.
async fn wind_up(
    task: &mut JoinHandle<SettleOutcome>,
    job: &Job,
    grace: Duration,
) -> Option<SettleOutcome> {
    let grace = Instant::now() + grace;
    loop {
        // The limit moves while the lease is extended, and stands still once it is lost.
        let until = grace.min(Instant::from_std(job.hard_limit()));
        if until <= Instant::now() {
            task.abort();
            return match task.await {
                // It ended in the same moment.
                Ok(outcome) => Some(outcome),
                Err(gone) if gone.is_cancelled() => None,
                Err(gone) => outcome(Err(gone)),
            };
        }
        tokio::select! {
            biased;
            done = &mut *task => return outcome(done),
            () = sleep_until(until) => {}
        }
    }
}

/// What a handler's end means; `None` if its runtime took it away.
fn outcome(done: Result<SettleOutcome, JoinError>) -> Option<SettleOutcome> {
    match done {
        Ok(outcome) => Some(outcome),
        Err(gone) => {
            let panic = gone.try_into_panic().ok()?;
            Some(SettleOutcome::failed(format!("the handler panicked: {}", message(&*panic))))
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}
