//! Spans, and the bounded queue in which they wait.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::job::Outcome;
use tenure_core::names::{JobId, Namespace, QueueName};
use tenure_core::time::Moment;
use tenure_core::trace::TraceParent;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Spans that wait for the exporter; further ones are dropped.
const QUEUED_MAX: usize = 4096;

/// The work that a span measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpanOf {
    /// The server stored this many jobs of one call.
    Push { jobs: usize },
    /// A job was due and not granted yet.
    Wait { attempt: u32 },
    /// A job was granted and its run ended with this outcome.
    Run { attempt: u32, outcome: Outcome },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServerSpan {
    pub id: u64,
    /// The span in which the job was pushed.
    pub parent: TraceParent,
    pub of: SpanOf,
    pub namespace: Namespace,
    pub queue: QueueName,
    /// `None` for a push of several jobs.
    pub job: Option<JobId>,
    pub start: Moment,
    pub end: Moment,
}

/// The entrance of the queue. Clones share it.
#[derive(Clone, Debug)]
pub struct SpanQueue {
    out: Sender<ServerSpan>,
    counts: Arc<SpanCounts>,
    /// Ids are drawn from a keyed hash of a counter: different in each process, and never twice in one.
    ids: Arc<RandomState>,
}

#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    made: AtomicU64,
    dropped: AtomicU64,
}

impl SpanCounts {
    /// Spans that were dropped since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

/// A queue, its exit, and its counters.
pub(crate) fn queue() -> (SpanQueue, Receiver<ServerSpan>, Arc<SpanCounts>) {
    let (out, come) = channel(QUEUED_MAX);
    let counts = Arc::new(SpanCounts::default());
    let ids = Arc::new(RandomState::new());
    (SpanQueue { out, counts: counts.clone(), ids }, come, counts)
}

impl SpanQueue {
    /// An id for a span.
    pub(crate) fn id(&self) -> u64 {
        let made = self.counts.made.fetch_add(1, Ordering::Relaxed);
        // 0 stands for no span.
        self.ids.hash_one(made).max(1)
    }

    /// Adds a span if there is room, and counts it as dropped otherwise.
    pub(crate) fn put(&self, span: ServerSpan) {
        if self.out.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether somebody decided to keep this trace.
pub(crate) fn is_sampled(trace: &TraceParent) -> bool {
    let flags = trace.as_str().rsplit('-').next();
    flags.and_then(|flags| u8::from_str_radix(flags, 16).ok()).is_some_and(|flags| flags & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trace_with_its_flag_is_sampled() {
        for (flags, is) in [("00", false), ("01", true), ("02", false), ("03", true)] {
            let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
            assert_eq!(is_sampled(&TraceParent::parse(&text).unwrap()), is, "{flags}");
        }
    }
}
