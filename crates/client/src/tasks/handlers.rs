//! The handlers of a worker, one for each kind, and the rule for kinds without a handler.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::names::QueueName;
use tenure_core::refusal::Refusal;
use tenure_engine_api::CallError;
use tower_layer::Layer;
use tower_service::Service;

use super::Task;
use super::arguments::FromRun;
use super::failure::{Success, TaskError};
use super::route::Handling;
use crate::outcome::SettleOutcome;
use crate::worker::{Job, Worked, Worker};

/// The fate of a job whose kind has no handler.
///
/// Giving it back untouched is not an option: this worker would be granted it again at once, and do nothing else.
/// [`Handlers::otherwise`] can do so all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum UnknownKind {
    /// A failed attempt, retried by the job's `retry` settings: another worker may know the kind.
    #[default]
    Fail,
    /// A final failure: the job is not retried.
    FailForGood,
    /// It runs again after this long, at least 100 ms, and costs no attempt: for a time in which old and new workers
    /// run side by side.
    Snooze(Duration),
}

type OutcomeFuture = Pin<Box<dyn Future<Output = SettleOutcome> + Send>>;

/// A function that handles the tasks of one type: `async fn(T, …) -> Result<R, E>`, or for [`Handlers::on_blocking`]
/// the same without `async`. Its first argument is the [`Task`]; up to four more are made by [`FromRun`]. `R` is a
/// [`Success`], `E` is any error, or a [`TaskError`].
///
/// `X` only tells the compiler the types of the arguments. Only functions and closures implement this.
pub trait TaskHandler<X, S>: Clone + Send + Sync + 'static {
    /// The type of its tasks.
    type Task: Task;

    /// Runs it for one job.
    fn handle(&self, task: Self::Task, job: Job, state: Arc<S>) -> OutcomeFuture;
}

/// Arguments of an `async` function; a type of its own, so that the compiler tells them from those of one that blocks.
#[derive(Debug)]
pub struct Async<X>(PhantomData<X>);

/// Arguments of a function that blocks; see [`Async`].
#[derive(Debug)]
pub struct Blocking<X>(PhantomData<X>);

/// How a handler's answer ends its lease.
fn ended<R: Success, E: Into<TaskError>>(answer: Result<R, E>) -> SettleOutcome {
    match answer {
        Ok(done) => done.into_outcome(),
        Err(error) => error.into().into_outcome(),
    }
}

/// The argument of a handler, made for this run, or the outcome that ends the run.
fn argument<A: FromRun<S>, S>(job: &Job, state: &S) -> Result<A, SettleOutcome> {
    A::from_run(job, state).map_err(|why| why.into().into_outcome())
}

macro_rules! task_handler {
    ($($argument:ident)*) => {
        impl<F, O, R, E, T, S, $($argument),*> TaskHandler<Async<(T, $($argument,)*)>, S> for F
        where
            F: Fn(T, $($argument),*) -> O + Clone + Send + Sync + 'static,
            O: Future<Output = Result<R, E>> + Send,
            R: Success,
            E: Into<TaskError>,
            T: Task,
            S: Send + Sync + 'static,
            $($argument: FromRun<S> + Send,)*
        {
            type Task = T;

            // A handler without arguments uses neither.
            #[allow(unused_variables, non_snake_case)]
            fn handle(&self, task: T, job: Job, state: Arc<S>) -> OutcomeFuture {
                let handler = self.clone();
                Box::pin(async move {
                    $(
                        let $argument = match argument::<$argument, S>(&job, &state) {
                            Ok(argument) => argument,
                            Err(outcome) => return outcome,
                        };
                    )*
                    ended(handler(task, $($argument),*).await)
                })
            }
        }

        impl<F, R, E, T, S, $($argument),*> TaskHandler<Blocking<(T, $($argument,)*)>, S> for F
        where
            F: Fn(T, $($argument),*) -> Result<R, E> + Clone + Send + Sync + 'static,
            R: Success,
            E: Into<TaskError>,
            T: Task,
            S: Send + Sync + 'static,
            $($argument: FromRun<S> + Send + 'static,)*
        {
            type Task = T;

            #[allow(unused_variables, non_snake_case)]
            fn handle(&self, task: T, job: Job, state: Arc<S>) -> OutcomeFuture {
                let handler = self.clone();
                Box::pin(async move {
                    $(
                        let $argument = match argument::<$argument, S>(&job, &state) {
                            Ok(argument) => argument,
                            Err(outcome) => return outcome,
                        };
                    )*
                    let work = move || ended(handler(task, $($argument),*));
                    match job.blocking(work).await {
                        Ok(outcome) => outcome,
                        Err(why) => SettleOutcome::failed(format_args!("no thread: {why}")),
                    }
                })
            }
        }
    };
}

task_handler!();
task_handler!(A1);
task_handler!(A1 A2);
task_handler!(A1 A2 A3);
task_handler!(A1 A2 A3 A4);

/// The handlers of a worker and the state that they share. Cheap to clone.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
/// use serde::{Deserialize, Serialize};
/// use tenure::tasks::UnknownKind;
/// use tenure::{Handlers, Job, SettleOutcome, Task, TaskError};
/// use tower::timeout::TimeoutLayer;
///
/// #[derive(Serialize, Deserialize)]
/// struct Mail(String);
/// impl Task for Mail {
///     const KIND: &'static str = "mail";
/// }
/// #[derive(Serialize, Deserialize)]
/// struct Resize(String);
/// impl Task for Resize {
///     const KIND: &'static str = "resize";
/// }
///
/// async fn send(mail: Mail) -> Result<SettleOutcome, TaskError> {
///     // Stored in the same step as the outcome, or neither.
///     Ok(SettleOutcome::succeeded().then_task(&Resize(mail.0)))
/// }
/// // It computes, so it gets a thread of its own, and looks now and then whether it must stop.
/// fn resize(_: Resize, job: Job) -> Result<(), TaskError> {
///     if job.stop().is_some() {
///         return Err(TaskError::release());
///     }
///     Ok(())
/// }
///
/// let handlers = Handlers::new().on(send).on_blocking(resize);
/// let handlers = handlers.layer(TimeoutLayer::new(Duration::from_secs(60)));
/// // Another release of this program may know the kind.
/// let patient = handlers.clone().unknown_kinds(UnknownKind::Snooze(Duration::from_secs(60)));
/// let curious = handlers.otherwise(async |job: Job| Ok::<_, TaskError>(job.kind().to_owned()));
///
/// client.push("default").task(&Mail("ann@example.com".to_owned()))?.await?;
/// let worker = client.worker(curious.queues()?).until_idle();
/// assert_eq!(worker.run_tasks(curious).await?.jobs, 2);
/// # Ok(()) });
/// ```
pub struct Handlers<S = ()> {
    state: Arc<S>,
    routes: BTreeMap<&'static str, Handling>,
    queues: Vec<&'static str>,
    otherwise: Handling,
}

impl Handlers<()> {
    /// Handlers without shared state.
    pub fn new() -> Self {
        Handlers::with_state(())
    }
}

impl Default for Handlers<()> {
    fn default() -> Self {
        Handlers::new()
    }
}

impl<S: Send + Sync + 'static> Handlers<S> {
    /// Handlers that share this: a handler gets a clone of it as an argument [`State<S>`](super::State), and parts of
    /// it by [`FromRun`].
    pub fn with_state(state: S) -> Self {
        let otherwise = Handling::new(|job| of_unknown(UnknownKind::default(), job));
        Handlers { state: Arc::new(state), routes: BTreeMap::new(), queues: Vec::new(), otherwise }
    }

    /// Handles the tasks of one type with an `async` function: see [`TaskHandler`]. If its job must stop, it is dropped
    /// at its next await, at once or after the worker's grace.
    ///
    /// # Panics
    /// This kind has a handler already.
    pub fn on<X, H>(self, handler: H) -> Self
    where
        H: TaskHandler<Async<X>, S>,
    {
        self.route::<Async<X>, H>(handler)
    }

    /// Handles the tasks of one type with a function that blocks or computes. It runs on a thread of its own, as by
    /// [`Job::blocking`]: it cannot be dropped, so it should check [`Job::stop`] now and then.
    ///
    /// # Panics
    /// This kind has a handler already.
    pub fn on_blocking<X, H>(self, handler: H) -> Self
    where
        H: TaskHandler<Blocking<X>, S>,
    {
        self.route::<Blocking<X>, H>(handler)
    }

    fn route<X, H: TaskHandler<X, S>>(mut self, handler: H) -> Self {
        let (kind, queue) = (H::Task::KIND, H::Task::QUEUE);
        let state = self.state.clone();
        let handling = Handling::new(move |job: Job| {
            let (handler, state) = (handler.clone(), state.clone());
            async move {
                match job.payload::<H::Task>() {
                    Ok(task) => handler.handle(task, job, state).await,
                    // A retry would have the same text.
                    Err(why) => SettleOutcome::failed_for_good(format_args!(
                        "the payload is no {kind:?}: {why}"
                    )),
                }
            }
        });
        assert!(self.routes.insert(kind, handling).is_none(), "two handlers for kind {kind:?}");
        if !self.queues.contains(&queue) {
            self.queues.push(queue);
        }
        self
    }

    /// The fate of a job whose kind has no handler; [`UnknownKind::Fail`] by default.
    pub fn unknown_kinds(mut self, unknown: UnknownKind) -> Self {
        self.otherwise = Handling::new(move |job| of_unknown(unknown, job));
        self
    }

    /// Handles the jobs whose kind has no handler of its own.
    pub fn otherwise<H, O, R, E>(mut self, handler: H) -> Self
    where
        H: Fn(Job) -> O + Send + Sync + 'static,
        O: Future<Output = Result<R, E>> + Send + 'static,
        R: Success,
        E: Into<TaskError>,
    {
        self.otherwise = Handling::new(move |job| {
            let answer = handler(job);
            async move { ended(answer.await) }
        });
        self
    }

    /// Wraps the handlers registered before this call in a tower layer: the last one added is the outermost. It wraps a
    /// [`Handling`]. An error of the layered service is a failed attempt.
    ///
    /// A layer that drops the future of its service, such as one for a timeout, ends an `async` handler; the run of a
    /// blocking function ends only when that function returns.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Handling>,
        L::Service: Service<Job, Response = SettleOutcome> + Clone + Send + 'static,
        <L::Service as Service<Job>>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        <L::Service as Service<Job>>::Future: Send,
    {
        for route in self.routes.values_mut() {
            *route = Handling::of_service(layer.layer(route.clone()));
        }
        self
    }

    /// The queues of the handled tasks, in the order of registration.
    ///
    /// # Errors
    /// A [`Task::QUEUE`] that is not a valid name.
    pub fn queues(&self) -> Result<Vec<QueueName>, Refusal> {
        self.queues.iter().map(|queue| QueueName::parse(queue)).collect()
    }

    async fn handle(&self, job: Job) -> SettleOutcome {
        self.routes.get(job.kind()).unwrap_or(&self.otherwise).run(job).await
    }
}

async fn of_unknown(unknown: UnknownKind, job: Job) -> SettleOutcome {
    let error = format_args!("this worker has no handler for kind {:?}", job.kind()).to_string();
    match unknown {
        UnknownKind::Fail => SettleOutcome::failed(error),
        UnknownKind::FailForGood => SettleOutcome::failed_for_good(error),
        UnknownKind::Snooze(wait) => SettleOutcome::snoozed(wait),
    }
}

impl<S> Clone for Handlers<S> {
    fn clone(&self) -> Self {
        Handlers {
            state: self.state.clone(),
            routes: self.routes.clone(),
            queues: self.queues.clone(),
            otherwise: self.otherwise.clone(),
        }
    }
}

impl<S> fmt::Debug for Handlers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.routes.keys()).finish()
    }
}

impl Worker {
    /// Runs each job with the handler of its kind, as [`Worker::run`].
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_tasks<S>(self, handlers: Handlers<S>) -> Result<Worked, CallError>
    where
        S: Send + Sync + 'static,
    {
        self.run(move |job| {
            let handlers = handlers.clone();
            async move { handlers.handle(job).await }
        })
        .await
    }
}
