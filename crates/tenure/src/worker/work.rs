//! The tasks of a worker: slots that run jobs, and calls that deliver outcomes or give jobs back.
//!
//! It asks for nothing and decides nothing about jobs; it does what is due, turn by turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tenure_core::lease::{LeaseView, SettleItem};
use tenure_core::time::Span;
use tenure_seam::CallError;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::execute::Execute;
use super::job::Job;
use super::run::{WorkerContext, fill_slot};
use super::settler::{EndedRun, Riding};
use super::stages::Stages;
use super::take::Asked;
use crate::call_off::{give_back, settle_back};
use crate::outcome::SettleOutcome;

/// Calls that deliver outcomes. They go on if the worker is dropped: what a handler has said is to be heard.
#[derive(Default)]
struct Deliveries(JoinSet<()>);

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.0.detach_all();
    }
}

/// See the module.
pub struct Work<E: Execute> {
    context: Arc<WorkerContext<E>>,
    ttl: Span,
    /// Slots, and jobs that are given back.
    tasks: JoinSet<()>,
    deliveries: Deliveries,
    /// Jobs that were granted so far, without those that were given back before they began.
    pub jobs: u64,
}

/// What a turn did.
pub struct Turn {
    /// Outcomes are to be sent.
    pub sends: bool,
    /// When something is due again.
    pub next: Option<Instant>,
}

impl<E: Execute> Work<E> {
    /// Nothing runs yet. Jobs are leased with this ttl.
    pub fn new(context: Arc<WorkerContext<E>>, ttl: Span) -> Self {
        let (tasks, deliveries) = (JoinSet::new(), Deliveries::default());
        Work { context, ttl, tasks, deliveries, jobs: 0 }
    }

    /// Where the jobs are.
    pub fn stages(&self) -> &Stages {
        &self.context.settler.stages
    }

    /// Why heartbeats are not answered.
    pub fn heartbeat_trouble(&self) -> watch::Receiver<Option<CallError>> {
        self.context.keeper.trouble()
    }

    /// Whether nothing runs, waits or is on its way.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.deliveries.0.is_empty() && self.stages().is_empty()
    }

    /// Does what is due but to send outcomes: ends tasks, gives back what has waited for too long.
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

    /// The outcomes that are gathered, to be sent with a lease call; what is beyond one call is sent now.
    pub fn rides(&mut self) -> Option<Riding> {
        let mut batches = self.stages().send_all();
        let said = batches.pop()?;
        for said in batches {
            self.deliver(said);
        }
        Some(Riding::of(self.context.settler.clone(), said))
    }

    /// Sends the outcomes that are gathered.
    pub fn send_outcomes(&mut self) {
        for said in self.stages().send_all() {
            self.deliver(said);
        }
    }

    fn deliver(&mut self, said: Vec<EndedRun>) {
        let mut call: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(self.context.settler.clone().deliver(said));
        // Sent in this very moment, before what is asked for next.
        if poll_once(&mut call).is_none() {
            self.deliveries.0.spawn(call);
        }
    }

    /// Takes granted jobs into care; `asked` is when their call was first sent.
    pub fn arrived(&mut self, leases: Vec<LeaseView>, asked: Instant, now: Instant) {
        if leases.is_empty() {
            return;
        }
        self.jobs += leases.len() as u64;
        // A lease without a job was not asked for: nobody can work on it.
        let (mut leases, strange): (Vec<LeaseView>, Vec<LeaseView>) =
            leases.into_iter().partition(|lease| lease.lease.is_some() && lease.job.is_some());
        if !strange.is_empty() {
            let client = self.context.settler.client.clone();
            self.tasks.spawn(async move { give_back(&client, strange).await });
        }
        let held = self.context.keeper.hold_all(&leases, self.ttl, asked.into_std());
        let jobs = leases.iter_mut().map(|lease| lease.job.take()).collect::<Vec<_>>();
        let whole = leases.into_iter().zip(jobs).zip(held);
        let jobs = whole.filter_map(|((lease, job), held)| {
            Some(Job::new(lease, job?, held, self.context.settler.around.clone()))
        });
        self.stages().arrived(jobs, now);
    }

    /// Lets those run that have waited longest, as far as slots are free.
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

    /// Nothing of these was used: no attempt, and no token of a rate.
    fn give_back_unrun(&mut self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        self.jobs -= jobs.len() as u64;
        let client = self.context.settler.client.clone();
        self.tasks.spawn(async move {
            let items = jobs.iter().map(unrun).collect();
            settle_back(&client, items).await;
            // Extended until that is answered.
            drop(jobs);
        });
    }

    /// Gives back what a call is granted in the moment of a stop, among what runs.
    pub fn give_back(&mut self, call: impl Future<Output = Asked> + Send + 'static) {
        let client = self.context.settler.client.clone();
        self.tasks.spawn(async move {
            give_back(&client, call.await.granted()).await;
        });
    }

    /// Returns when there may be something to do: at `until`, or before.
    pub async fn event(&mut self, until: Option<Instant>) {
        tokio::select! {
            () = self.context.settler.stages.changed() => {}
            Some(ended) = self.tasks.join_next() => passed_on(ended),
            Some(ended) = self.deliveries.0.join_next() => passed_on(ended),
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
        }
    }

    /// Goes on with what runs until nothing is left.
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

impl<E: Execute> Drop for Work<E> {
    fn drop(&mut self) {
        // A worker that is dropped sends what was said all the same.
        self.stages().close();
        if tokio::runtime::Handle::try_current().is_ok() {
            for said in self.stages().send_again().into_iter().chain(self.stages().send_all()) {
                tokio::spawn(self.context.settler.clone().deliver(said));
            }
        }
    }
}

/// How the lease of a job ends that never began.
fn unrun(job: &Job) -> SettleItem {
    let limits = job.lease().limits.iter().cloned();
    limits
        .fold(SettleOutcome::released(), |said, limit| said.spent(limit, 0))
        .of(job.lease_id().to_owned())
}

/// Polls a future that is polled again later, so that what it does at first is done now.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Passes a panic on: one in an [`Execute`] or an observer is a bug that must not go unseen.
fn passed_on(ended: Result<(), JoinError>) {
    if let Err(gone) = ended
        && let Ok(panic) = gone.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
