//! One job: held, executed, and settled.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use tenure_core::lease::LeaseView;
use tenure_core::refusal::Code;
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::execute::{Execute, Executed};
use super::job::Job;
use super::settler::{Settler, Working};
use super::slots::Slot;
use super::{Event, NotSettled, Phase, Stopper};
use crate::call_off::give_back;
use crate::client::Client;
use crate::keeper::{Keeper, lock};
use crate::observer::Observer;
use crate::outcome::SettleOutcome;

/// What every job of a worker needs.
pub struct WorkerContext<E: Execute> {
    pub execute: E,
    pub client: Client,
    pub keeper: Keeper,
    pub settler: Settler,
    pub phase: watch::Receiver<Phase>,
    pub stopper: Stopper,
    pub observer: Observer<Event>,
    pub ttl: Span,
    /// The first reason why no job can be executed.
    pub failure: Mutex<Option<E::Failure>>,
}

/// Runs one granted job to its end. `asked` is when its lease call was first sent. It was counted as being
/// at work before this was started, so that outcomes of jobs that came together are gathered.
pub async fn run<E: Execute>(
    shared: Arc<WorkerContext<E>>,
    mut lease: LeaseView,
    asked: Instant,
    (slot, working): (Slot, Working),
) {
    let tell = |event: Event| shared.observer.tell(&event);
    let Some(view) = lease.job.take() else {
        // A lease without a job was not asked for: nobody can work on it.
        return give_back(&shared.client, vec![lease]).await;
    };
    let id = view.id.clone();
    let held = match shared.keeper.confirm(&lease, shared.ttl, asked.into_std()).await {
        Ok(held) => held,
        Err(stop) => {
            tell(Event::Stopped { job: id, stop });
            // Awaited: a process that ends does not wait for what the keeper gives back.
            return give_back(&shared.client, vec![lease]).await;
        }
    };
    let job = Job::new(lease, view, held, shared.phase.clone());
    tell(Event::Started { job: id.clone() });
    let executed = {
        let mut executing = pin!(shared.execute.execute(job.clone()));
        tokio::select! {
            biased;
            executed = &mut executing => executed,
            stop = job.stopped() => {
                tell(Event::Stopped { job: id, stop });
                executing.await
            }
        }
    };
    let Executed { outcome, failure } = executed;
    if let Some(failure) = failure {
        lock(&shared.failure).get_or_insert(failure);
        // Before the job is given back: otherwise it would be granted to the call that waits here.
        shared.stopper.drain();
    }
    drop(working);
    if let Some(outcome) = outcome {
        settle(&shared, &job, outcome, slot).await;
    }
    job.held().let_go();
}

/// Delivers the outcome. One that the engine does not take is replaced: first by a failed attempt that
/// says so, then the job is given back, so that it does not count as lost.
async fn settle<E: Execute>(
    shared: &WorkerContext<E>,
    job: &Job,
    outcome: SettleOutcome,
    slot: Slot,
) {
    let id = || job.id().clone();
    let mut slot = Some(slot);
    let mut outcome = outcome;
    let mut refusals = 0;
    let done = loop {
        let item = outcome.of(job.lease_id().to_owned());
        match shared.settler.settle(item, slot.take()).await {
            Err(CallError::Refused(no)) if no.code.status() < 500 && refusals < 2 => {
                refusals += 1;
                outcome = match refusals {
                    1 => SettleOutcome::failed(format!(
                        "the outcome was refused: {}; {}",
                        no.detail, no.hint
                    )),
                    _ => SettleOutcome::released(),
                };
                shared.observer.tell(&Event::OutcomeRefused { job: id(), refusal: no });
            }
            done => break done,
        }
    };
    shared.observer.tell(&match done {
        Ok(settled) if settled.ok => Event::Settled { job: id(), state: settled.state },
        Ok(settled) if settled.code == Some(Code::AlreadySettled) => {
            Event::NotSettled { job: id(), why: NotSettled::Otherwise }
        }
        Ok(_) => Event::NotSettled { job: id(), why: NotSettled::Lost },
        Err(error) => Event::NotSettled { job: id(), why: NotSettled::Call(error) },
    });
}
