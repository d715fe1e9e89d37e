//! For tests of your own code: a store in memory whose clock the test moves.
//!
//! Cargo feature `testing`, for the `dev-dependencies`. Programs in other languages have the same as
//! `tenure serve --store memory: --test-clock`.
//!
//! ```
//! # #[tokio::main(flavor = "multi_thread", worker_threads = 1)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use serde::{Deserialize, Serialize};
//! use tenure::tasks::{Handlers, Task, TaskError};
//! use tenure::testing::Sandbox;
//! use tenure::{CallError, Client};
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct Remind {
//!     user: u64,
//! }
//!
//! impl Task for Remind {
//!     const KIND: &'static str = "remind";
//!     const QUEUE: &'static str = "mail";
//! }
//!
//! // The code under test: it pushes, and it handles.
//! async fn signed_up(client: &Client, user: u64) -> Result<(), Box<dyn std::error::Error>> {
//!     client.push_task(&Remind { user })?.delay(Duration::from_secs(86_400)).await?;
//!     Ok(())
//! }
//! async fn remind(remind: Remind) -> Result<String, TaskError> {
//!     Ok(format!("reminded {}", remind.user))
//! }
//!
//! let sandbox = Sandbox::new()?;
//! signed_up(&sandbox.client(), 7).await?;
//! assert_eq!(sandbox.tasks::<Remind>().await?, [Remind { user: 7 }]);
//!
//! // Nothing runs before its time.
//! let handlers = Handlers::new().on(remind);
//! assert_eq!(sandbox.run_until_idle(&handlers).await?.jobs, 0);
//!
//! sandbox.advance(Duration::from_secs(86_400)).await?;
//! assert_eq!(sandbox.run_until_idle(&handlers).await?.jobs, 1);
//! let job = &sandbox.pushed("mail").await?[0];
//! assert_eq!(job.result.as_ref().unwrap().text(), "\"reminded 7\"");
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::bounds::LIST_MAX;
use tenure_core::job::JobView;
use tenure_core::names::{Namespace, QueueName};
use tenure_core::requests::{JobFilter, ListJobs, Page};
use tenure_core::time::Moment;
use tenure_engine::{Location, MovedEngine, Options};
use tenure_engine_api::{CallError, Clock, MovedTime, SystemClock};

use crate::asking::broken;
use crate::client::Client;
use crate::codec::Codec;
use crate::connect::ConnectError;
use crate::tasks::{Handlers, Task};
use crate::worker::Worked;

/// A store in memory for one test. Its time stands still until [`Sandbox::advance`] moves it, and it is gone with the
/// last of its clients.
///
/// Heartbeats and the waits of calls use real time: if the clock moves beyond the ttl of a running job, its worker
/// loses the job, as if it had been away that long.
#[derive(Clone)]
pub struct Sandbox {
    engine: Arc<MovedEngine>,
    client: Client,
}

impl Sandbox {
    /// An empty store, at the present time of this machine.
    ///
    /// # Errors
    /// The system cannot create a temporary folder, or start threads.
    pub fn new() -> Result<Self, ConnectError> {
        Sandbox::at(SystemClock.now())
    }

    /// An empty store at this moment: for code that depends on the day, such as a schedule.
    ///
    /// # Errors
    /// As [`Sandbox::new`].
    pub fn at(moment: impl Into<Moment>) -> Result<Self, ConnectError> {
        let engine = MovedEngine::open(moment.into(), Options::new(Location::Memory))?;
        let engine = Arc::new(engine);
        let client = Client::new(engine.clone(), Namespace::main());
        Ok(Sandbox { engine, client })
    }

    /// The same store with a codec, for its clients and the handlers that it runs: see [`Client::codec`].
    pub fn codec(self, codec: impl Codec) -> Self {
        Sandbox { client: self.client.codec(codec), ..self }
    }

    /// A client, for the code under test.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client in another namespace of the same store.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sandbox = tenure::testing::Sandbox::new()?;
    /// let of_tenant = sandbox.client_in("tenant-7".parse()?);
    /// # Ok(()) }
    /// ```
    pub fn client_in(&self, namespace: Namespace) -> Client {
        let mut client = Client::new(self.engine.clone(), namespace);
        client.codec = self.client.codec.clone();
        client
    }

    /// The present time of the store.
    pub fn now(&self) -> Moment {
        self.engine.now()
    }

    /// Moves the clock forward by `span`, and returns the new time. Everything that falls due on the way is done before
    /// this returns, each at its own time: delays and retries, occurrences of schedules, leases that end.
    ///
    /// # Errors
    /// The moment would be after the year 2255; or the store has stopped.
    pub async fn advance(&self, span: Duration) -> Result<Moment, CallError> {
        self.engine.advance(span.into()).await
    }

    /// Runs these handlers, one job at a time, until no job of their queues can run now. Jobs that wait for a later
    /// moment, for a limit or for a resource are left; jobs that a handler pushes are run too.
    ///
    /// # Errors
    /// As [`Worker::run`](crate::Worker::run).
    pub async fn run_until_idle<S>(&self, handlers: &Handlers<S>) -> Result<Worked, CallError>
    where
        S: Send + Sync + 'static,
    {
        let queues = handlers.queues()?;
        if queues.is_empty() {
            return Ok(Worked::default());
        }
        self.client.worker(queues).until_idle().run_tasks(handlers.clone()).await
    }

    /// The kept jobs of a queue, in the order in which they were pushed, with their payloads and results. A job that
    /// has succeeded is kept for an hour of the clock, or for its `retain`.
    ///
    /// # Errors
    /// A name that a queue cannot have.
    pub async fn pushed(&self, queue: &str) -> Result<Vec<JobView>, CallError> {
        let filter = JobFilter { queue: Some(QueueName::parse(queue)?), ..JobFilter::default() };
        let mut list = ListJobs { filter, page: Page { max: LIST_MAX, cursor: None }, full: true };
        let mut jobs = Vec::new();
        loop {
            let listed = self.client.run(list.clone()).await?;
            jobs.extend(listed.items.into_iter().map(|job| self.client.shown_job(job)));
            match listed.next {
                Some(next) => list.page.cursor = Some(next),
                None => break,
            }
        }
        // A list has the newest first.
        jobs.reverse();
        Ok(jobs)
    }

    /// The tasks of one type among [`Sandbox::pushed`] of its queue.
    ///
    /// # Errors
    /// A job of this kind has a payload of another form.
    pub async fn tasks<T: Task>(&self) -> Result<Vec<T>, CallError> {
        let jobs = self.pushed(T::QUEUE).await?;
        let of_kind = jobs.iter().filter(|job| job.kind == T::KIND);
        let read = |job: &JobView| {
            let text = job.payload.as_ref().map_or("null", |payload| payload.text());
            let task = serde_json::from_str(text);
            task.map_err(|why| broken(&format!("job {} is no {:?}: {why}", job.id, T::KIND)))
        };
        of_kind.map(read).collect()
    }
}

/// Runs an example of this documentation with a client of a store of its own.
///
/// # Panics
/// It fails.
#[doc(hidden)]
pub fn example(run: impl AsyncFnOnce(Client) -> Result<(), Box<dyn std::error::Error>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed = match runtime {
        Err(why) => why.to_string(),
        Ok(runtime) => match runtime.block_on(async { run(Sandbox::new()?.client()).await }) {
            Ok(()) => return,
            Err(why) => why.to_string(),
        },
    };
    panic!("the example failed: {failed}");
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").field("now", &self.now()).finish_non_exhaustive()
    }
}
