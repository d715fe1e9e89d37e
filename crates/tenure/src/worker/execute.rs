//! How one job is executed: the seam between the loop, which takes jobs, holds and settles them, and
//! what is done with each.
//!
//! [`Worker::run`](super::Worker::run) executes jobs as futures in this process, below; `tenure work`
//! executes them as processes.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::caught::{self, Panicked};
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

/// Executes each job as a future that is dropped when it must stop.
pub struct Handler<H> {
    handle: H,
    /// How long the future may take to end by itself before it is dropped.
    grace: Duration,
}

impl<H> Handler<H> {
    /// Runs `handle` for each job.
    pub fn new(handle: H, grace: Duration) -> Self {
        Handler { handle, grace }
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
        let told = job.clone();
        let threads = job.threads();
        // Called inside of the future, so that a panic of the call is one of the run.
        let mut handling = pin!(Some(async { (self.handle)(told).await.into() }));
        let outcome = tokio::select! {
            biased;
            done = poll_fn(|cx| caught::poll(handling.as_mut(), cx)) => Some(outcome(done)),
            stop = job.stopped() => {
                let outcome = wind_up(handling.as_mut(), &job, self.grace).await;
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
        // It may have left a thread behind, which works on.
        threads.ended().await;
        Executed { outcome, failure: None }
    }
}

/// Lets a handler that was told to stop finish within the grace, but never beyond the moment at
/// which its lease could be somebody else's; then drops it. A thread cannot be dropped: as long as one runs the handler
/// is waited for, since it may have something to say when the thread has ended.
async fn wind_up<F: Future<Output = SettleOutcome>>(
    mut handling: Pin<&mut Option<F>>,
    job: &Job,
    grace: Duration,
) -> Option<SettleOutcome> {
    let grace = Instant::now() + grace;
    loop {
        // The limit moves while the lease is extended, and stands still once it is lost.
        let until = grace.min(Instant::from_std(job.hard_limit()));
        let works = job.threads().any();
        if until <= Instant::now() && !works {
            return caught::drop_in_place(handling).err().map(|panic| outcome(Err(panic)));
        }
        tokio::select! {
            biased;
            done = poll_fn(|cx| caught::poll(handling.as_mut(), cx)) => return Some(outcome(done)),
            () = sleep_until(until), if !works => {}
            () = job.threads().ended(), if works => {}
        }
    }
}

/// What a handler's end means.
fn outcome(done: Result<SettleOutcome, Panicked>) -> SettleOutcome {
    done.unwrap_or_else(|panic| SettleOutcome::failed(format!("the handler panicked: {panic}")))
}
