//! Tasks: jobs with a kind and a typed payload, and the handlers that a worker registers for them.
//!
//! A [`Task`] has the kind and the queue of its jobs. [`Handlers`] has a function for each kind, and their shared
//! state; [`Worker::run_tasks`](crate::Worker::run_tasks) runs them. It is a layer on the worker's one loop: nothing
//! here leases, extends or settles.
//!
//! A handler learns about its run from the [`Job`](crate::Job), an optional second argument:
//!
//! | | |
//! | --- | --- |
//! | must it stop? | [`stopped`](crate::Job::stopped) to wait for, [`stop`](crate::Job::stop) to look at, [`deadline`](crate::Job::deadline) |
//! | which run is it? | [`id`](crate::Job::id), [`attempt`](crate::Job::attempt), [`fence`](crate::Job::fence), [`view`](crate::Job::view) |
//! | what does it hold? | [`resource`](crate::Job::resource), [`lease`](crate::Job::lease) |
//! | what came before? | [`parents`](crate::Job::parents) with their results, the progress in [`view`](crate::Job::view) |
//! | what does it say on its way? | [`set_progress`](crate::Job::set_progress), [`verdict`](crate::Job::verdict), [`pause`](crate::Job::pause), [`spent`](crate::Job::spent) |
//! | does it block? | [`blocking`](crate::Job::blocking), or [`Handlers::on_blocking`] |
//!
//! ```
//! # #[cfg(feature = "embedded")]
//! # #[tokio::main(flavor = "multi_thread", worker_threads = 1)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use serde::{Deserialize, Serialize};
//! use tenure::tasks::{Handlers, State, Task, TaskError};
//! use tenure::{Client, Job};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Welcome {
//!     to: String,
//! }
//!
//! impl Task for Welcome {
//!     const KIND: &'static str = "mail.welcome";
//!     const QUEUE: &'static str = "mail";
//! }
//!
//! #[derive(Clone)]
//! struct Mailer {
//!     from: String,
//! }
//!
//! // `?` on any error is a failed attempt: the job is tried again by its policy.
//! async fn welcome(mail: Welcome, job: Job, State(mailer): State<Mailer>) -> Result<String, TaskError> {
//!     if !mail.to.contains('@') {
//!         return Err(TaskError::for_good("this is no address"));
//!     }
//!     Ok(format!("from {} to {}, attempt {}", mailer.from, mail.to, job.attempt()))
//! }
//!
//! let client = Client::connect("memory:").await?;
//! client.push_task(&Welcome { to: "ann@example.com".to_owned() })?.await?;
//!
//! let mailer = Mailer { from: "team@example.com".to_owned() };
//! let handlers = Handlers::with_state(mailer).on(welcome);
//! let worker = client.worker(handlers.queues()?).concurrency(4).until_empty();
//! assert_eq!(worker.run_tasks(handlers).await?.jobs, 1);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "embedded"))]
//! # fn main() {}
//! ```

mod arguments;
mod failure;
mod handlers;
mod route;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::job::NewJob;
use tenure_core::names::QueueName;
use tenure_core::secret::{Json, NotJson};

pub use self::arguments::{FromRun, State};
pub use self::failure::{Success, TaskError};
pub use self::handlers::{Async, Blocking, Handlers, TaskHandler, UnknownKind};
pub use self::route::Handling;
use crate::client::Client;
use crate::need::Need;
use crate::outcome::SettleOutcome;
use crate::push::Pushing;

/// A type whose values are pushed as jobs, and passed to a handler.
///
/// Serde writes its values as JSON. A job may outlive the program that pushed it, so a field that is added later needs
/// `#[serde(default)]`.
pub trait Task: Serialize + DeserializeOwned + Send + 'static {
    /// The `kind` of its jobs, unique among the tasks of the same workers, such as `"mail.welcome"`.
    const KIND: &'static str;

    /// The queue into which [`Client::push_task`] pushes it.
    const QUEUE: &'static str = "default";

    /// The needs of its job, from its own values; if empty, those of its queue apply.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use tenure::{Need, Task};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Visit {
    ///     host: String,
    /// }
    /// impl Task for Visit {
    ///     const KIND: &'static str = "visit";
    ///     fn needs(&self) -> Vec<Need> {
    ///         vec![Need::limit(format!("site:{}", self.host))]
    ///     }
    /// }
    /// ```
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }
}

impl Client {
    /// Stores a job for this task in the queue of its type, once the [`Pushing`] is awaited; see [`Client::push`].
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn push_task<T: Task>(&self, task: &T) -> Result<Pushing, NotJson> {
        self.push(T::QUEUE).task(task)
    }
}

impl SettleOutcome {
    /// Stores a job for this task in the queue of its type in the same step as the outcome, both or neither. A task
    /// that cannot be a job makes it a failed attempt that says so: a job that looks done must not have lost its
    /// follow-up.
    pub fn then_task<T: Task>(self, task: &T) -> Self {
        let lost = |why: &dyn fmt::Display| {
            SettleOutcome::failed(format_args!("the follow-up {:?} is lost: {why}", T::KIND))
        };
        let needs = task.needs().into_iter().map(Need::checked).collect::<Result<Vec<_>, _>>();
        match (QueueName::parse(T::QUEUE), Json::of(task), needs) {
            (Ok(queue), Ok(payload), Ok(needs)) => {
                let mut job = NewJob::new(queue);
                (job.kind, job.payload) = (T::KIND.to_owned(), payload);
                job.needs = Some(needs).filter(|needs| !needs.is_empty());
                self.then(job)
            }
            (Err(no), _, _) | (_, _, Err(no)) => lost(&no.detail),
            (_, Err(why), _) => lost(&why),
        }
    }
}

impl Pushing {
    /// Makes it a job for this task: sets its kind, its payload and its needs. The queue stays as it is.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn task<T: Task>(self, task: &T) -> Result<Self, NotJson> {
        Ok(task.needs().into_iter().fold(self.kind(T::KIND).payload(task)?, Pushing::need))
    }
}
