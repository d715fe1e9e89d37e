//! One slot: a task that runs one job, and then the jobs that wait for a slot.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::Instrument;

use super::ended_run::EndedRun;
use super::execute::{ExecuteAny, Executed};
use super::job::Job;
use super::settler::Settler;
use super::spans;
use super::{Event, Phase, Stopper};
use crate::call_off::give_back;
use crate::keeper::{Held, Keeper, Stop};
use crate::outcome::SettleOutcome;

/// How long a slot runs jobs that never suspend before it yields to other tasks of its thread.
const YIELD_AFTER: Duration = Duration::from_micros(200);

/// State that every job of a worker needs.
pub struct WorkerContext {
    pub execute: Arc<dyn ExecuteAny>,
    pub keeper: Keeper,
    pub settler: Settler,
    pub stopper: Stopper,
}

/// Runs a job that got a slot, and then the jobs that wait for one. `began`: when the first job got the slot.
pub async fn fill_slot(context: Arc<WorkerContext>, first: Job, mut began: Instant) {
    let mut next = Some(first);
    // When this task last yielded to others.
    let mut alone_since = Instant::now();
    while let Some(job) = next {
        let mut suspended = false;
        let outcome = {
            let mut running = pin!(run(&context, &job));
            poll_fn(|cx| {
                let polled = running.as_mut().poll(cx);
                suspended |= polled.is_pending();
                polled
            })
            .await
        };
        job.run_is_over();
        if outcome.is_none() {
            Held::let_go([job.held()]);
        }
        let said = outcome.map(|outcome| EndedRun::of(job, outcome));
        let now = Instant::now();
        // Once the worker stops, waiting jobs are given back.
        let takes = *context.settler.around.phase.borrow() == Phase::Working;
        next = context.settler.stages.ended(said, now - began, now, takes);
        began = now;
        if suspended {
            alone_since = now;
        } else if next.is_some() && now - alone_since >= YIELD_AFTER {
            yield_now().await;
            alone_since = Instant::now();
        }
    }
}

/// How the job's lease ends; `None` leaves that to the engine.
async fn run(context: &WorkerContext, job: &Job) -> Option<SettleOutcome> {
    if !job.held().was_sure()
        && let Err(stop) = job.held().sure().await
    {
        job.tell_stopped(stop);
        // Awaited: a process that ends does not wait for the keeper's releases.
        give_back(&context.settler.client, vec![job.lease().clone()]).await;
        return None;
    }
    // It may have waited for its slot.
    if let Some(stop) = job.held().stop() {
        job.tell_stopped(stop);
        return (stop == Stop::Cancelled).then(SettleOutcome::released);
    }
    context.settler.around.observer.tell(|| Event::Started { job: job.id().clone() });
    let span = spans::run(job);
    let executing = context.execute.execute(job.clone()).instrument(span.clone());
    let Executed { outcome, failure } = executing.await;
    spans::ended(&span, outcome.as_ref());
    if failure.is_some() {
        // Before the job is given back: otherwise the call that waits here would be granted it.
        context.stopper.drain();
    }
    outcome
}
