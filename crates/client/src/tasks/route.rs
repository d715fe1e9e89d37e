//! One way from a job to its outcome: a handler, or a handler wrapped in layers.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tower_service::Service;

use super::failure::TaskError;
use crate::keeper::lock;
use crate::outcome::SettleOutcome;
use crate::worker::Job;

/// Why a service returned no outcome; it becomes the error of a failed attempt.
type ServiceError = Box<dyn Error + Send + Sync>;

type HandlingFuture = Pin<Box<dyn Future<Output = Result<SettleOutcome, ServiceError>> + Send>>;

/// A handler as a tower [`Service`] from a [`Job`] to its outcome; the type that a layer of
/// [`Handlers::layer`](super::Handlers::layer) wraps. Cheap to clone, and always ready.
#[derive(Clone)]
pub struct Handling {
    call: Arc<dyn Fn(Job) -> HandlingFuture + Send + Sync>,
}

impl Handling {
    pub(super) fn new<F, R>(handle: F) -> Self
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output = SettleOutcome> + Send + 'static,
    {
        let call = move |job| -> HandlingFuture {
            let outcome = handle(job);
            Box::pin(async move { Ok(outcome.await) })
        };
        Handling { call: Arc::new(call) }
    }

    /// A handler from a layered service. Each run has a clone of it.
    pub(super) fn of_service<V>(service: V) -> Self
    where
        V: Service<Job, Response = SettleOutcome> + Clone + Send + 'static,
        V::Error: Into<ServiceError>,
        V::Future: Send,
    {
        // Services are often not `Sync`.
        let service = Mutex::new(service);
        let call = move |job| -> HandlingFuture {
            let mut service = lock(&service).clone();
            Box::pin(async move {
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
                service.call(job).await.map_err(Into::into)
            })
        };
        Handling { call: Arc::new(call) }
    }

    /// Runs one job; an error of the service is a failed attempt.
    pub(super) async fn run(&self, job: Job) -> SettleOutcome {
        match (self.call)(job).await {
            Ok(outcome) => outcome,
            Err(error) => TaskError::from(error).into_outcome(),
        }
    }
}

impl Service<Job> for Handling {
    type Response = SettleOutcome;
    type Error = ServiceError;
    type Future = HandlingFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ServiceError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, job: Job) -> HandlingFuture {
        (self.call)(job)
    }
}

impl fmt::Debug for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handling").finish_non_exhaustive()
    }
}
