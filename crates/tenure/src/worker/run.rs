//! One job: held, handled, stopped if it must be, and settled.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::lease::LeaseView;
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};

use super::job::Job;
use super::settler::{Settler, Working};
use super::slots::Slot;
use super::{Event, Phase};
use crate::keeper::{Keeper, Stop};
use crate::observer::Observer;
use crate::outcome::SettleOutcome;

/// What every job of a worker needs.
pub struct Shared<H> {
    pub handler: H,
    pub keeper: Keeper,
    pub settler: Settler,
    pub phase: watch::Receiver<Phase>,
    pub observer: Observer<Event>,
    pub ttl: Span,
    pub grace: Duration,
}

/// Runs one granted job to its end. `asked` is when its lease call was first sent. It was counted as being
/// at work before this was started, so that outcomes of jobs that came together are gathered.
pub async fn run<H, F, O>(
    shared: Arc<Shared<H>>,
    mut lease: LeaseView,
    asked: Instant,
    (slot, working): (Slot, Working),
) where
    H: Fn(Job) -> F + Send + Sync + 'static,
    F: Future<Output = O> + Send + 'static,
    O: Into<SettleOutcome> + Send + 'static,
{
    let tell = |event: Event| shared.observer.tell(&event);
    let Some(view) = lease.job.take() else {
        // A lease without a job was not asked for: nobody can work on it.
        if let Some(id) = lease.lease {
            shared.keeper.release(id);
        }
        return;
    };
    let id = view.id.clone();
    let held = match shared.keeper.hold(&lease, shared.ttl, asked.into_std()).await {
        Ok(held) => held,
        Err(stop) => return tell(Event::Stopped { job: id, stop }),
    };
    let job = Job::new(lease, view, held, shared.phase.clone());
    tell(Event::Started { job: id.clone() });

    // A task of its own: a panic ends the run and not the worker.
    let mut handler = tokio::spawn({
        let (shared, job) = (shared.clone(), job.clone());
        async move { (shared.handler)(job).await.into() }
    });
    let said = tokio::select! {
        biased;
        done = &mut handler => outcome(done),
        stop = job.stopped() => {
            tell(Event::Stopped { job: id.clone(), stop });
            let said = wind_up(&mut handler, &job, shared.grace).await;
            match stop {
                // It is held still, and nobody works on it any more.
                Stop::Cancelled | Stop::Shutdown => {
                    Some(said.unwrap_or_else(SettleOutcome::released))
                }
                // It is the engine's by now. What was finished all the same may still count.
                Stop::Lost | Stop::Deadline => said,
            }
        }
    };
    drop(working);
    if let Some(said) = said {
        settle(&shared, &job, said, slot).await;
    }
    job.held().let_go();
}

async fn settle<H>(shared: &Shared<H>, job: &Job, said: SettleOutcome, slot: Slot) {
    let lease = || job.lease_id().to_owned();
    let mut done = shared.settler.settle(said.of(lease()), Some(slot)).await;
    if let Err(CallError::Refused(no)) = &done {
        // The outcome itself is what the engine does not take, so that is what went wrong.
        let failed = SettleOutcome::failed(format!("the outcome was refused: {no}"));
        done = shared.settler.settle(failed.of(lease()), None).await;
    }
    let job = job.id().clone();
    shared.observer.tell(&match done {
        Ok(settled) if settled.ok => Event::Settled { job, state: settled.state },
        Ok(settled) => {
            let code = settled.code.map_or("lease_lost", |code| code.as_str());
            Event::NotSettled { job, why: code.to_owned() }
        }
        Err(error) => Event::NotSettled { job, why: error.to_string() },
    });
}

/// Lets a handler that was told to stop finish within the grace, but never beyond the moment at
/// which its lease could be somebody else's; then drops it, and waits until it is gone.
async fn wind_up(
    handler: &mut JoinHandle<SettleOutcome>,
    job: &Job,
    grace: Duration,
) -> Option<SettleOutcome> {
    let grace = Instant::now() + grace;
    loop {
        // The limit moves while the lease is extended, and stands still once it is lost.
        let until = grace.min(Instant::from_std(job.hard_limit()));
        if until <= Instant::now() {
            handler.abort();
            return match handler.await {
                // It ended in the same moment.
                Ok(said) => Some(said),
                Err(gone) if gone.is_cancelled() => None,
                Err(gone) => outcome(Err(gone)),
            };
        }
        tokio::select! {
            biased;
            done = &mut *handler => return outcome(done),
            () = sleep_until(until) => {}
        }
    }
}

/// What a handler's end means; `None` if its runtime took it away.
fn outcome(done: Result<SettleOutcome, JoinError>) -> Option<SettleOutcome> {
    match done {
        Ok(said) => Some(said),
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
