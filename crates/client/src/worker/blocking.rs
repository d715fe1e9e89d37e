//! Code of a handler that blocks, on a thread of its own.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::job::Job;

impl Job {
    /// Runs code that blocks or computes on a thread of its own, and returns its result. A panic in it counts as one of
    /// the handler.
    ///
    /// Heartbeats and other jobs go on. Code on a thread cannot be stopped from outside: give it a clone of this job,
    /// and let it check [`Job::stop`] now and then. As long as it runs, the job holds its slot and, unless it was lost,
    /// its lease, even after the handler has ended or was dropped.
    ///
    /// ```no_run
    /// # async fn example(job: tenure::Job) -> Result<(), std::io::Error> {
    /// let told = job.clone();
    /// let primes = job
    ///     .blocking(move || {
    ///         let is_prime = |n: &u64| (2..*n).all(|d| n % d > 0);
    ///         (2..1_000_000).filter(is_prime).take_while(|_| told.stop().is_none()).count()
    ///     })
    ///     .await?;
    /// # let _ = primes;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn blocking<F, T>(&self, work: F) -> impl Future<Output = io::Result<T>> + Send + use<F, T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let running = self.threads().begin();
        let runtime = Handle::try_current().ok();
        let span = tracing::Span::current();
        let thread = thread::Builder::new().name("tenure-handler".to_owned()).spawn(move || {
            let _running = running;
            // So that it may block on a future, or spawn a task.
            let _entered = runtime.as_ref().map(Handle::enter);
            // If the handler was dropped, nothing receives the result.
            let _ = tell.send(catch_unwind(AssertUnwindSafe(|| span.in_scope(work))));
        });
        async move {
            thread?;
            match told.await {
                Ok(Ok(done)) => Ok(done),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => Err(io::Error::other("the thread ended without an answer")),
            }
        }
    }
}
