//! Counts the jobs of `tenure work` while they run, however they are executed, reports them, and sets when the schedule
//! of a successful job is next due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tenure::{Execute, Executed, Job};
use tenure_core::time::Span;

use crate::child::outcome;
use crate::cmd::work_lines::JobLines;

/// Executes jobs as `inner` does.
pub struct Counting<E> {
    /// Executes each job once it is counted.
    pub inner: E,
    /// Jobs that are executed now.
    pub running: Arc<AtomicU64>,
    /// How long after a success the job's schedule is next due, if its outcome does not state it.
    pub next_in: Option<Span>,
    /// How they are reported to people or programs.
    pub lines: JobLines,
}

impl<E: Execute> Execute for Counting<E> {
    type Failure = E::Failure;

    async fn execute(&self, job: Job) -> Executed<E::Failure> {
        let _counted = Counted::new(&self.running);
        let begun = Instant::now();
        self.lines.started(&job);
        let Executed { outcome, failure } = self.inner.execute(job.clone()).await;
        self.lines.ended(&job, outcome.as_ref(), begun.elapsed());
        let outcome = outcome.map(|outcome| outcome::next_in(outcome, self.next_in));
        Executed { outcome, failure }
    }
}

/// Counts a job while this lives.
struct Counted(Arc<AtomicU64>);

impl Counted {
    fn new(count: &Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count.clone())
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
