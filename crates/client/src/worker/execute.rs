//! The interface between the loop, which takes, holds and settles jobs, and the code that executes each of them.
//!
//! [`Worker::run`](super::Worker::run) executes jobs as futures in this process, below; `tenure work`
//! executes them as processes.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::caught::{self, Panicked};
use super::job::Job;
use crate::keeper::{Stop, lock};
use crate::lease_clock::LOOK;
use crate::outcome::SettleOutcome;

/// The result of running one job.
#[derive(Debug)]
pub struct Executed<F> {
    /// How its lease ends. `None` leaves that to the engine: the lease was lost, or its time is over.
    pub outcome: Option<SettleOutcome>,
    /// A failure that every other job would meet too. The worker takes no more jobs, and ends with it.
    pub failure: Option<F>,
}

impl<F> From<SettleOutcome> for Executed<F> {
    fn from(outcome: SettleOutcome) -> Self {
        Executed { outcome: Some(outcome), failure: None }
    }
}

/// The way to execute one job.
pub trait Execute: Send + Sync + 'static {
    /// Why no job can be executed at all.
    type Failure: Send + 'static;

    /// Executes one job, whose lease is extended meanwhile. Nothing else stops it: when [`Job::stopped`] completes it
    /// must end, and no part of it may run after [`Job::hard_limit`].
    fn execute(&self, job: Job) -> impl Future<Output = Executed<Self::Failure>> + Send;
}

/// An [`Execute`] without its types, so that the loop is compiled once, and not for each handler of each program.
pub trait ExecuteAny: Send + Sync {
    /// [`Execute::execute`] in a box; the failure itself stays behind.
    fn execute(&self, job: Job) -> Pin<Box<dyn Future<Output = Executed<()>> + Send + '_>>;
}

/// Executes jobs, and keeps the first reason why none can be executed.
pub struct Executing<E: Execute> {
    execute: E,
    failure: Mutex<Option<E::Failure>>,
}

impl<E: Execute> Executing<E> {
    pub(super) fn new(execute: E) -> Self {
        Executing { execute, failure: Mutex::new(None) }
    }

    pub(super) fn failure(&self) -> Option<E::Failure> {
        lock(&self.failure).take()
    }
}

impl<E: Execute> ExecuteAny for Executing<E> {
    fn execute(&self, job: Job) -> Pin<Box<dyn Future<Output = Executed<()>> + Send + '_>> {
        Box::pin(async move {
            let Executed { outcome, failure } = self.execute.execute(job).await;
            let failure = failure.map(|why| {
                lock(&self.failure).get_or_insert(why);
            });
            Executed { outcome, failure }
        })
    }
}

/// Executes each job as a future, which is dropped when it must stop.
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
        if let Some(why) = job.sealed() {
            // A retry would read the same.
            return SettleOutcome::failed_for_good(why).into();
        }
        let told = job.clone();
        let threads = job.threads();
        // Called inside the future, so that a panic of the call counts as one of the run.
        let mut handling = pin!(Some(async { (self.handle)(told).await.into() }));
        let outcome = tokio::select! {
            biased;
            done = poll_fn(|cx| caught::poll(handling.as_mut(), cx)) => Some(outcome(done)),
            stop = job.stopped() => {
                let outcome = wind_up(handling.as_mut(), &job, self.grace).await;
                match stop {
                    // The lease is still held, and no code works on the job any more.
                    Stop::Cancelled | Stop::Shutdown => {
                        Some(outcome.unwrap_or_else(SettleOutcome::released))
                    }
                    // The engine has ended the run. If the handler finished all the same, it may still count.
                    Stop::Lost | Stop::Deadline => outcome,
                }
            }
        };
        // It may have left a thread behind that still works.
        threads.ended().await;
        Executed { outcome, failure: None }
    }
}

/// Lets a handler that must stop finish within the grace, but never beyond the time at which another holder could have
/// its lease; then drops it. A thread cannot be dropped: while one runs, the handler is waited for, since it may return
/// an outcome when the thread has ended.
async fn wind_up<F: Future<Output = SettleOutcome>>(
    mut handling: Pin<&mut Option<F>>,
    job: &Job,
    grace: Duration,
) -> Option<SettleOutcome> {
    let grace = Instant::now() + grace;
    loop {
        // The limit moves while the lease is extended, and comes nearer while the machine is suspended.
        let until = grace.min(Instant::from_std(job.hard_limit()));
        let works = job.threads().any();
        if until <= Instant::now() && !works {
            return caught::drop_in_place(handling).err().map(|panic| outcome(Err(panic)));
        }
        tokio::select! {
            biased;
            done = poll_fn(|cx| caught::poll(handling.as_mut(), cx)) => return Some(outcome(done)),
            () = sleep_until(until.min(Instant::now() + LOOK)), if !works => {}
            () = job.threads().ended(), if works => {}
        }
    }
}

/// The outcome of a handler that returned or panicked.
fn outcome(done: Result<SettleOutcome, Panicked>) -> SettleOutcome {
    done.unwrap_or_else(|panic| SettleOutcome::failed(format!("the handler panicked: {panic}")))
}
