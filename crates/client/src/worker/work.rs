//! The tasks of a worker: slots that run jobs, and calls that deliver outcomes or give jobs back.
//!
//! It makes no lease calls and decides nothing about jobs; each turn does the work that is due.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tenure_core::lease::{LeaseView, SettleItem};
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine_api::CallError;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::asked::Asked;
use super::ended_run::EndedRun;
use super::job::Job;
use super::run::{WorkerContext, fill_slot};
use super::settler::Riding;
use super::stages::Stages;
use crate::call_off::{give_back, settle_back, take_back};
use crate::lease_clock::LeaseTime;
use crate::outcome::SettleOutcome;

/// Calls that deliver outcomes. They go on if the worker is dropped: no outcome of a handler may be lost.
#[derive(Default)]
struct Deliveries(JoinSet<()>);

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.0.detach_all();
    }
}

/// The running tasks of one worker, and its count of jobs.
pub struct Work {
    context: Arc<WorkerContext>,
    ttl: Span,
    /// Slots, and calls that give jobs back.
    tasks: JoinSet<()>,
    deliveries: Deliveries,
    /// The number of granted jobs, without those that were given back before they began.
    pub jobs: u64,
}

/// The result of one turn.
pub struct Turn {
    /// Whether outcomes must be sent.
    pub sends: bool,
    /// When something is due next.
    pub next: Option<Instant>,
}

impl Work {
    /// Before the first job. Jobs are leased with this ttl.
    pub fn new(context: Arc<WorkerContext>, ttl: Span) -> Self {
        let (tasks, deliveries) = (JoinSet::new(), Deliveries::default());
        Work { context, ttl, tasks, deliveries, jobs: 0 }
    }

    /// The stages of the worker's jobs.
    pub fn stages(&self) -> &Stages {
        &self.context.settler.stages
    }

    /// Why heartbeats are not answered.
    pub fn heartbeat_trouble(&self) -> watch::Receiver<Option<CallError>> {
        self.context.keeper.trouble()
    }

    /// Whether nothing runs, waits or is under way.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.deliveries.0.is_empty() && self.stages().is_empty()
    }

    /// Does all due work except sending outcomes: ends tasks, gives back jobs that have waited for too long.
    pub fn turn(&mut self, now: Instant) -> Turn {
        while let Some(ended) = self.tasks.try_join_next() {
            passed_on(ended);
        }
        while let Some(ended) = self.deliveries.0.try_join_next() {
            passed_on(ended);
        }
        for batch in self.stages().send_again() {
            self.deliveries.0.spawn(self.context.settler.clone().deliver(batch));
        }
        let late = self.stages().late(now);
        self.give_back_unrun(late);
        let sends_at = self.stages().sends_at(now);
        let sends = sends_at.is_some_and(|at| at <= now);
        let next = [sends_at.filter(|_| !sends), self.stages().late_at()];
        Turn { sends, next: next.into_iter().flatten().min() }
    }

    /// The gathered outcomes, to be sent with a lease call; those beyond one call are sent now.
    pub fn rides(&mut self) -> Option<Riding> {
        let mut batches = self.stages().send_all();
        let said = batches.pop()?;
        for said in batches {
            self.deliver(said);
        }
        Some(Riding::of(self.context.settler.clone(), said))
    }

    /// Sends the gathered outcomes.
    pub fn send_outcomes(&mut self) {
        for said in self.stages().send_all() {
            self.deliver(said);
        }
    }

    fn deliver(&mut self, said: Vec<EndedRun>) {
        let mut call: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(self.context.settler.clone().deliver(said));
        // Sent at once, before the next lease call.
        if poll_once(&mut call).is_none() {
            self.deliveries.0.spawn(call);
        }
    }

    /// Starts heartbeats for granted jobs; `asked` is when their call was first sent.
    pub fn arrived(&mut self, leases: Vec<LeaseView>, asked: LeaseTime, now: Instant) {
        if leases.is_empty() {
            return;
        }
        self.jobs += leases.len() as u64;
        // A lease without a job was not asked for: it cannot be worked on.
        let (mut leases, strange): (Vec<LeaseView>, Vec<LeaseView>) =
            leases.into_iter().partition(|lease| lease.lease.is_some() && lease.job.is_some());
        if !strange.is_empty() {
            let client = self.context.settler.client.clone();
            self.tasks.spawn(async move { give_back(&client, strange).await });
        }
        let held = self.context.keeper.hold_all(&leases, self.ttl, asked);
        let jobs = leases.iter_mut().map(|lease| lease.job.take()).collect::<Vec<_>>();
        let whole = leases.into_iter().zip(jobs).zip(held);
        let jobs = whole.filter_map(|((lease, job), held)| {
            Some(Job::new(lease, job?, held, self.context.settler.around.clone()))
        });
        self.stages().arrived(jobs, now);
    }

    /// Runs the jobs that have waited longest, as far as slots are free.
    pub fn fill_slots(&mut self, now: Instant) {
        for job in self.stages().fill_slots() {
            self.tasks.spawn(fill_slot(self.context.clone(), job, now));
        }
    }

    /// Gives back all jobs that have not begun.
    pub fn give_back_waiting(&mut self) {
        let waiting = self.stages().all_waiting();
        self.give_back_unrun(waiting);
    }

    /// These spent nothing: no attempt, and no token of a rate.
    fn give_back_unrun(&mut self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        self.jobs -= jobs.len() as u64;
        let client = self.context.settler.client.clone();
        self.tasks.spawn(async move {
            let items = jobs.iter().map(unrun).collect();
            settle_back(&client, items).await;
            // Extended until the answer is here.
            drop(jobs);
        });
    }

    /// Gives back the grants of a call that ends at a stop, in a task of its own.
    pub fn give_back(&mut self, call: impl Future<Output = Asked> + Send + 'static) {
        let client = self.context.settler.client.clone();
        self.tasks.spawn(async move {
            give_back(&client, call.await.granted()).await;
        });
    }

    /// Gives back the grants of a call whose answer is lost, in a task of its own.
    pub fn take_back(&mut self, lease: Lease) {
        // Repeated by that task, which bounds how long a worker that ends waits for it.
        let client = self.context.settler.client.once();
        self.tasks.spawn(async move { take_back(&client, lease).await });
    }

    /// Returns when there may be work: at `until`, or before.
    pub async fn event(&mut self, until: Option<Instant>) {
        tokio::select! {
            () = self.context.settler.stages.changed() => {}
            Some(ended) = self.tasks.join_next() => passed_on(ended),
            Some(ended) = self.deliveries.0.join_next() => passed_on(ended),
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
        }
    }

    /// Continues until all tasks have ended.
    pub async fn finish(&mut self) {
        loop {
            let turn = self.turn(Instant::now());
            if turn.sends {
                self.send_outcomes();
            }
            if self.is_idle() {
                return;
            }
            self.event(turn.next).await;
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // If the worker is dropped, its outcomes are still sent.
        self.stages().close();
        if tokio::runtime::Handle::try_current().is_ok() {
            for said in self.stages().send_again().into_iter().chain(self.stages().send_all()) {
                tokio::spawn(self.context.settler.clone().deliver(said));
            }
        }
    }
}

/// The end of a lease whose job never began.
fn unrun(job: &Job) -> SettleItem {
    let limits = job.lease().limits.iter().cloned();
    limits
        .fold(SettleOutcome::released(), |said, limit| said.spent(limit, 0))
        .of(job.lease_id().to_owned())
}

/// Polls a future once before it is polled again later, so that its first step is done now.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Resumes a panic: one in an [`Execute`](super::Execute) or an observer is a bug that must not go unnoticed.
fn passed_on(ended: Result<(), JoinError>) {
    if let Err(gone) = ended
        && let Ok(panic) = gone.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
