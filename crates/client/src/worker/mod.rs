//! Worker: takes jobs from queues and runs a handler for each.
//!
//! It decides nothing about jobs: the engine grants and ends them, the handler reports how a run went. It takes no more
//! jobs than it will have slots for when they arrive (`pace.rs`), and never works under a lease that it may not hold.

mod asked;
mod blocking;
mod caught;
mod ended_run;
mod execute;
mod job;
mod pace;
mod run;
mod settler;
mod spans;
mod stages;
mod take;
mod threads;
mod work;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::bounds::TTL_US_DEFAULT;
use tenure_core::job::JobState;
use tenure_core::names::{JobId, QueueName};
use tenure_core::refusal::Refusal;
use tenure_core::time::Span;
use tenure_engine_api::CallError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

pub use self::execute::{Execute, Executed};
use self::execute::{ExecuteAny, Executing, Handler};
pub use self::job::Job;
use self::job::Surroundings;
use self::run::WorkerContext;
use self::settler::Settler;
use self::stages::Stages;
use self::take::Taking;
use self::work::Work;
use crate::client::Client;
use crate::keeper::Stop;
use crate::observer::Observer;
use crate::outcome::SettleOutcome;

/// How long a worker drains by default.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);
/// How long a worker waits for the last answers, after all runs have ended and their leases are given back.
const FAREWELL_MAX: Duration = Duration::from_secs(5);

/// The order in which queues are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Order {
    /// The list is turned with each call, so that no queue starves another.
    #[default]
    Turning,
    /// As given: a later queue is served only while the earlier ones have no job that can run.
    Strict,
}

/// When a worker ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Until {
    #[default]
    Stopped,
    Empty,
    Idle,
}

/// The phases of a worker, from taking jobs to its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    /// Takes jobs and runs them.
    Working,
    /// Takes no more jobs; running ones may finish.
    Draining,
    /// Running jobs are stopped and given back.
    Stopping,
    /// The same, and jobs that are still stopping must hurry: see [`Job::hurried`].
    Now,
}

/// An event of a worker, for logs and metrics. It carries no payload.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A handler was started.
    Started {
        /// The job of the run.
        job: JobId,
    },
    /// A run must stop, or could not start.
    Stopped {
        /// The job of the run.
        job: JobId,
        /// The reason, which the handler also sees.
        stop: Stop,
    },
    /// The engine took an outcome.
    Settled {
        /// The job of the run.
        job: JobId,
        /// The state of the job after the settle.
        state: Option<JobState>,
    },
    /// The engine refused an outcome. A failed attempt with that error is settled instead; if that is refused too, the
    /// job is given back.
    OutcomeRefused {
        /// The job of the run.
        job: JobId,
        /// The engine's refusal of the outcome.
        refusal: Refusal,
    },
    /// The engine did not accept an outcome; the job runs again unless another outcome was settled.
    NotSettled {
        /// The job of the run.
        job: JobId,
        /// Why the outcome does not count.
        why: NotSettled,
    },
    /// The drain timeout is over: jobs that still run are stopped and given back.
    DrainTimedOut,
    /// A lease call failed, or a heartbeat was not answered; it is retried. Reported for every call that fails, and
    /// once for a call that is not answered in time. Also if the token has used up its bounds: the worker waits as long
    /// as the server says.
    Trouble {
        /// The failure of the last call.
        error: CallError,
        /// How long nothing has answered; zero after a refusal.
        away: Duration,
    },
    /// The engine answers again.
    Recovered,
}

/// Why the engine did not accept an outcome.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotSettled {
    /// The lease was lost.
    #[error("the lease was lost")]
    Lost,
    /// The lease had ended with another outcome.
    #[error("it was settled otherwise")]
    Otherwise,
    /// The call was refused or failed, even after a minute of retries.
    #[error(transparent)]
    Call(CallError),
}

/// Why a worker ended before it was stopped.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkError<F> {
    /// A lease call was refused, and no wait cures that.
    #[error(transparent)]
    Call(CallError),
    /// The engine was away for as long as [`Worker::exit_when_away`] allows.
    #[error(transparent)]
    Away(CallError),
    /// A job could not be executed, and no other one could be.
    #[error("a job could not be executed")]
    Execution(#[source] F),
}

/// Stops a worker. Cheap to clone.
#[derive(Clone)]
pub struct Stopper(Arc<watch::Sender<Phase>>);

impl Stopper {
    /// Takes no more jobs, lets running ones finish within the drain timeout, gives the rest back.
    pub fn drain(&self) {
        self.raise(Phase::Draining);
    }
    /// Stops running jobs and gives them back; jobs that are still stopping must hurry ([`Job::hurried`]).
    pub fn now(&self) {
        self.raise(Phase::Now);
    }
    fn raise(&self, to: Phase) {
        self.0.send_if_modified(|phase| {
            let more = *phase < to;
            *phase = to.max(*phase);
            more
        });
    }
}

/// The result of a worker's run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Worked {
    /// Jobs that were granted to it and not given back before they began.
    pub jobs: u64,
}

/// A worker, to be set up and run.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
/// use tenure::{Job, Order, SettleOutcome};
///
/// client.push("mail").payload(&"ann@example.com")?.await?;
/// let worker = client
///     .worker(["urgent", "mail"])
///     .order(Order::Strict)
///     .concurrency(8)
///     .ttl(Duration::from_secs(10))
///     .drain_timeout(Duration::from_secs(60))
///     .stop_grace(Duration::from_secs(1))
///     .exit_when_away(Duration::from_secs(300))
///     .observe(|event| println!("{event:?}"))
///     .max_jobs(1);
///
/// // At a signal: no more jobs, and those that run may end. A second one stops them.
/// let stopper = worker.stopper();
/// tokio::spawn(async move {
///     wait_for_a_signal().await;
///     stopper.drain();
///     wait_for_a_signal().await;
///     stopper.now();
/// });
/// let worked = worker
///     .run(async |job: Job| {
///         let to: String = job.payload()?;
///         Ok::<_, serde_json::Error>(SettleOutcome::succeeded_with(&to.len()))
///     })
///     .await?;
/// assert_eq!(worked.jobs, 1);
/// # Ok(()) });
/// # async fn wait_for_a_signal() { std::future::pending::<()>().await }
/// ```
pub struct Worker {
    client: Client,
    queues: Vec<QueueName>,
    /// The first invalid name among them: the worker refuses to run.
    wrong: Option<Refusal>,
    order: Order,
    concurrency: usize,
    ttl: Span,
    drain_timeout: Duration,
    grace: Duration,
    until: Until,
    max_jobs: Option<u64>,
    /// How long to wait for an engine that does not answer; `None`: without an end.
    away_max: Option<Duration>,
    observer: Observer<Event>,
    phase: Arc<watch::Sender<Phase>>,
}

impl Client {
    /// A worker for these queues, to be run: names, or [`Handlers::queues`](crate::Handlers::queues). An invalid name
    /// is refused by its run.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// client.push("mail").await?;
    /// let worker = client.worker(["mail", "reports"]).concurrency(4).until_empty();
    /// let worked = worker.run(async |job| println!("{}", job.id())).await?;
    /// assert_eq!(worked.jobs, 1);
    /// # Ok(()) });
    /// ```
    pub fn worker<Q: AsRef<str>>(&self, queues: impl IntoIterator<Item = Q>) -> Worker {
        let queues = queues.into_iter().map(|queue| QueueName::parse(queue.as_ref())).collect();
        Worker::of(self.clone(), queues)
    }
}

impl Worker {
    /// For 1 to 32 queues; one job at a time unless set otherwise.
    pub fn new(client: Client, queues: Vec<QueueName>) -> Self {
        Worker::of(client, Ok(queues))
    }
    /// For queues whose names may be invalid.
    pub(crate) fn of(client: Client, queues: Result<Vec<QueueName>, Refusal>) -> Self {
        let (queues, wrong) = match queues {
            Ok(queues) => (queues, None),
            Err(no) => (Vec::new(), Some(no)),
        };
        Worker {
            client,
            queues,
            wrong,
            order: Order::default(),
            concurrency: 1,
            ttl: Span::from_us(TTL_US_DEFAULT),
            drain_timeout: DRAIN_TIMEOUT,
            grace: Duration::ZERO,
            until: Until::default(),
            max_jobs: None,
            away_max: None,
            observer: Observer::default(),
            phase: Arc::new(watch::Sender::new(Phase::Working)),
        }
    }
    /// Jobs that run at once; at least 1. With more than one, jobs of a backlog are leased ahead: as many as end while
    /// a lease call is under way, at most four per slot, and each for at most 20 ms.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs.max(1);
        self
    }
    /// How long a job stays held after this process died: `1s` to `1h`, 30 s unless set.
    pub fn ttl(mut self, ttl: impl Into<Span>) -> Self {
        self.ttl = ttl.into();
        self
    }
    /// The order in which queues are asked; they take turns unless set.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }
    /// How long running jobs may take to finish once it drains; 25 s unless set.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }
    /// How long a handler may take to end by itself after [`Job::stopped`]; it is dropped at once unless set. It never
    /// lasts beyond 0.95 of the ttl after the last answered heartbeat. With [`Worker::execute`]: how long an execution
    /// may take to end; a stopped worker waits for it, and then for the answers to its last settles.
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
    /// Ends when nothing runs here and no job of its queues can run now. Jobs that wait for a limit, a resource or a
    /// later moment are left: for a test, in which time stands still meanwhile.
    pub fn until_idle(mut self) -> Self {
        self.until = Until::Idle;
        self
    }
    /// Ends after this many jobs.
    pub fn max_jobs(mut self, jobs: u64) -> Self {
        self.max_jobs = Some(jobs);
        self
    }
    /// Ends when the engine has not answered for this long, with the last fault as its error; as with
    /// [`Stopper::drain`], running jobs may finish. Unless set it waits for the engine without an end.
    pub fn exit_when_away(mut self, longest: Duration) -> Self {
        self.away_max = Some(longest);
        self
    }
    /// Receives the worker's events; it must not block.
    pub fn observe(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(observer);
        self
    }
    /// A handle that stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.phase.clone())
    }

    /// Runs `handler` for one job after the other, `concurrency` at once, until it is stopped. Slots are tasks on the
    /// caller's Tokio runtime; a panic of a handler is a failed attempt.
    ///
    /// While the engine is away, the worker retries, also if it was never there: a worker may be started before its
    /// server. The observer receives [`Event::Trouble`] and [`Event::Recovered`], and [`Worker::exit_when_away`] bounds
    /// the wait. Running jobs go on while their leases last, and their outcomes are delivered when the engine is back.
    ///
    /// # Errors
    /// A lease call was refused, or the engine was away for too long. Running jobs were finished as when draining.
    pub async fn run<H, F, O>(self, handler: H) -> Result<Worked, CallError>
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output = O> + Send + 'static,
        O: Into<SettleOutcome> + Send + 'static,
    {
        let handler = Handler::new(handler, self.grace);
        self.execute(handler).await.map_err(|error| match error {
            WorkError::Call(error) | WorkError::Away(error) => error,
            WorkError::Execution(never) => match never {},
        })
    }

    /// The same, but with an [`Execute`] instead of a task for each job: for work that cannot be dropped to stop it,
    /// such as a process. A panic in it ends the worker with that panic.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::{Execute, Executed, Job, SettleOutcome};
    ///
    /// struct Convert;
    /// impl Execute for Convert {
    ///     type Failure = std::io::Error;
    ///
    ///     async fn execute(&self, job: Job) -> Executed<std::io::Error> {
    ///         let mut child = std::process::Command::new("true");
    ///         match child.spawn() {
    ///             // No job would fare better: the worker ends with this.
    ///             Err(why) => Executed { outcome: Some(SettleOutcome::released()), failure: Some(why) },
    ///             Ok(mut child) => match child.wait() {
    ///                 Ok(status) if status.success() => SettleOutcome::succeeded().into(),
    ///                 Ok(status) => SettleOutcome::failed(status).into(),
    ///                 Err(why) => SettleOutcome::failed(why).into(),
    ///             },
    ///         }
    ///     }
    /// }
    ///
    /// client.push("convert").await?;
    /// assert_eq!(client.worker(["convert"]).until_empty().execute(Convert).await?.jobs, 1);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Worker::run`], or the first failure of an execution. Either way it takes no more jobs, and running ones
    /// were finished as when draining.
    pub async fn execute<E: Execute>(self, execute: E) -> Result<Worked, WorkError<E::Failure>> {
        let executing = Arc::new(Executing::new(execute));
        let ended = self.work(executing.clone()).await;
        match (ended, executing.failure()) {
            (Err(WorkError::Call(error)), _) => Err(WorkError::Call(error)),
            (Err(WorkError::Away(error)), _) => Err(WorkError::Away(error)),
            (Err(WorkError::Execution(never)), _) => match never {},
            (Ok(_), Some(failure)) => Err(WorkError::Execution(failure)),
            (Ok(worked), None) => Ok(worked),
        }
    }

    async fn work(mut self, execute: Arc<dyn ExecuteAny>) -> Result<Worked, WorkError<Infallible>> {
        if let Some(no) = self.wrong.take() {
            return Err(WorkError::Call(no.into()));
        }
        let around = Surroundings {
            phase: self.phase.subscribe(),
            queues: self.queues.clone(),
            observer: self.observer.clone(),
            client: self.client.clone(),
        };
        let context = Arc::new(WorkerContext {
            execute,
            keeper: self.client.keeper().map_err(WorkError::Call)?,
            settler: Settler {
                client: self.client.clone(),
                stages: Arc::new(Stages::new(self.concurrency)),
                around: Arc::new(around),
            },
            stopper: self.stopper(),
        });
        let clock = context.keeper.clock().clone();
        let mut work = Work::new(context, self.ttl);
        let ended = Taking::of(&self, clock).take(&self, &mut work).await;
        work.give_back_waiting();
        let jobs = work.jobs;
        self.drain(work).await;
        ended?;
        Ok(Worked { jobs })
    }

    /// Waits for the running jobs, then stops those that are left and waits for their end.
    async fn drain(&self, mut work: Work) {
        let mut phase = self.phase.subscribe();
        let until = Instant::now() + self.drain_timeout;
        tokio::select! {
            () = work.finish() => return,
            () = sleep_until(until) => self.observer.tell(|| Event::DrainTimedOut),
            _ = phase.wait_for(|phase| *phase >= Phase::Stopping) => {}
        }
        self.stopper().raise(Phase::Stopping);
        if timeout(self.grace + FAREWELL_MAX, work.finish()).await.is_err() {
            // A handler that cannot be dropped (it blocks) keeps its lease for as long as it runs.
            tokio::spawn(async move { work.finish().await });
        }
    }
}

#[cfg(test)]
mod tests;
