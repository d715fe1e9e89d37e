//! Takes jobs from queues and runs a handler for each.
//!
//! It decides nothing about jobs: the engine grants and ends, the handler says how a run went. It
//! never takes more than it has free slots, and never works on a lease that it does not surely
//! hold.

mod job;
mod run;
mod settler;
mod slots;
mod take;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::bounds::TTL_US_DEFAULT;
use tenure_core::job::JobState;
use tenure_core::lease::LeaseView;
use tenure_core::names::{JobId, QueueName};
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

pub use self::job::Job;
use self::run::Shared;
use self::settler::Settler;
use self::slots::Slots;
use self::take::{Asked, Taking};
use crate::client::Client;
use crate::keeper::Stop;
use crate::observer::Observer;
use crate::outcome::SettleOutcome;

/// How long a worker drains if nothing else is said.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);
/// When all handlers were dropped and their leases given back, so long is waited for the answers.
const FAREWELL_MAX: Duration = Duration::from_secs(5);

/// In which order queues are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The list is turned with each call, so that no queue starves another.
    #[default]
    Turning,
    /// As given: a later queue is served only when the earlier ones have nothing that may go.
    Strict,
}

/// When a worker ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Until {
    #[default]
    Stopped,
    Empty,
}

/// How far a worker is on its way to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Working,
    Draining,
    Now,
}

/// Something that happened, for logs and figures. It carries no payload.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A handler was started.
    Started {
        /// For this job.
        job: JobId,
    },
    /// A run must stop, or could not start.
    Stopped {
        /// Of this job.
        job: JobId,
        /// Why.
        stop: Stop,
    },
    /// The engine took an outcome.
    Settled {
        /// Of this job.
        job: JobId,
        /// What became of it.
        state: Option<JobState>,
    },
    /// The engine did not take an outcome: the lease was lost, or it could not be told.
    NotSettled {
        /// Of this job.
        job: JobId,
        /// Why, in a few words or a code.
        why: String,
    },
    /// Jobs could not be asked for; it is tried again. Reported for every call that fails.
    Trouble(CallError),
    /// The engine answers again.
    Recovered,
}

/// Stops a worker. Cheap to clone.
#[derive(Clone)]
pub struct Stopper(Arc<watch::Sender<Phase>>);

impl Stopper {
    /// Takes no more jobs, finishes what runs within the drain timeout, gives the rest back.
    pub fn drain(&self) {
        self.raise(Phase::Draining);
    }
    /// Stops what runs and gives it back, now.
    pub fn now(&self) {
        self.raise(Phase::Now);
    }
    fn raise(&self, to: Phase) {
        self.0.send_if_modified(|phase| {
            let more = *phase == Phase::Working || (*phase == Phase::Draining && to == Phase::Now);
            if more {
                *phase = to;
            }
            more
        });
    }
}

/// What a worker did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Worked {
    /// Jobs that were granted to it.
    pub jobs: u64,
}

/// A worker, to be set up and run.
pub struct Worker {
    client: Client,
    queues: Vec<QueueName>,
    order: Order,
    concurrency: usize,
    ttl: Span,
    drain_timeout: Duration,
    grace: Duration,
    until: Until,
    max_jobs: Option<u64>,
    observer: Observer<Event>,
    phase: Arc<watch::Sender<Phase>>,
}

impl Worker {
    /// For 1 to 32 queues; one job at a time unless set otherwise.
    pub fn new(client: Client, queues: Vec<QueueName>) -> Self {
        Worker {
            client,
            queues,
            order: Order::default(),
            concurrency: 1,
            ttl: Span::from_us(TTL_US_DEFAULT),
            drain_timeout: DRAIN_TIMEOUT,
            grace: Duration::ZERO,
            until: Until::default(),
            max_jobs: None,
            observer: Observer::default(),
            phase: Arc::new(watch::Sender::new(Phase::Working)),
        }
    }
    /// Jobs that run at once; at least 1.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs.max(1);
        self
    }
    /// How long a job is held on after this process died: `1s` to `1h`, 30 s unless set.
    pub fn ttl(mut self, ttl: Span) -> Self {
        self.ttl = ttl;
        self
    }
    /// In which order queues are asked; they take turns unless set.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }
    /// How long running jobs may take to finish once it drains; 25 s unless set.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }
    /// How long a handler may take to end by itself after [`Job::stopped`]; it is dropped at once
    /// unless set. It never lasts beyond 0.95 of the ttl after the last answered heartbeat.
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }
    /// Ends when nothing runs here and no job of its queues is ready or blocked; it does not wait for
    /// jobs that are scheduled for later, nor for paused queues. See [`crate::until_empty`].
    pub fn until_empty(mut self) -> Self {
        self.until = Until::Empty;
        self
    }
    /// Ends after so many jobs.
    pub fn max_jobs(mut self, jobs: u64) -> Self {
        self.max_jobs = Some(jobs);
        self
    }
    /// Is told what happens; it must not block.
    pub fn observe(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(observer);
        self
    }
    /// What stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.phase.clone())
    }

    /// Runs `handler` for one job after the other, `concurrency` at once, until it is stopped. Each
    /// is a task on the caller's Tokio runtime; a panic in it is a failed attempt.
    ///
    /// While the engine is away it is asked again and again, if it ever answered.
    ///
    /// # Errors
    /// Asking for jobs was refused, or the engine was not there the first time. What ran was
    /// finished as when draining.
    pub async fn run<H, F, O>(self, handler: H) -> Result<Worked, CallError>
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output = O> + Send + 'static,
        O: Into<SettleOutcome> + Send + 'static,
    {
        let shared = Arc::new(Shared {
            handler,
            keeper: self.client.keeper()?,
            settler: Settler::start(self.client.clone()),
            phase: self.phase.subscribe(),
            observer: self.observer.clone(),
            ttl: self.ttl,
            grace: self.grace,
        });
        let mut running = JoinSet::new();
        let slots = Slots::new(self.concurrency);
        let start = |running: &mut JoinSet<()>, asked: &Asked, leases: Vec<LeaseView>| {
            // All are at work before the first begins: it may end before the last has begun, and is not to be
            // settled alone.
            let at_work: Vec<_> =
                leases.iter().map(|_| (slots.take(), shared.settler.working())).collect();
            for (lease, at_work) in leases.into_iter().zip(at_work) {
                running.spawn(run::run(shared.clone(), lease, asked.at, at_work));
            }
        };
        let mut taking = Taking::of(&self);
        let ended = taking.take(&self, &mut running, &slots, start).await;
        self.drain(&mut running).await;
        ended.map(|()| Worked { jobs: taking.jobs })
    }

    /// Waits for what runs, then for what is told to stop.
    async fn drain(&self, running: &mut JoinSet<()>) {
        let mut phase = self.phase.subscribe();
        let until = Instant::now() + self.drain_timeout;
        tokio::select! {
            () = all_of(running) => return,
            () = sleep_until(until) => {}
            _ = phase.wait_for(|phase| *phase == Phase::Now) => {}
        }
        self.stopper().now();
        if timeout(self.grace + FAREWELL_MAX, all_of(running)).await.is_err() {
            // A handler that cannot be dropped (it blocks) keeps its lease for as long as it runs.
            running.detach_all();
        }
    }
}

async fn all_of(running: &mut JoinSet<()>) {
    while running.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests;
