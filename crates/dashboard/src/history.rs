//! What the pictures of the overview and of queues are drawn from, minute by minute.

use tenure_core::names::{Namespace, QueueName};
use tenure_core::time::{Moment, Span};

/// What happened in one minute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Minute {
    /// Its begin.
    pub at: Moment,
    /// Jobs that were pushed and not there already.
    pub pushed: u64,
    /// Jobs that were granted again since the holder of their last run was gone.
    pub lost: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed, for good or not.
    pub failed: u64,
    /// For how long the oldest ready job of the namespace had been ready; zero if none was, `None` if nobody looked. Of a queue it
    /// is not known.
    pub oldest_ready: Option<Span>,
    /// Half of the jobs that were granted had waited no longer than this since they were due; `None` if none was granted.
    pub half_waited: Option<Span>,
    /// 95 % of them had waited no longer than this.
    pub most_waited: Option<Span>,
    /// Half of the runs that succeeded or failed took no longer than this; `None` if of none is known how long it took.
    pub half_ran: Option<Span>,
    /// 95 % of them took no longer than this.
    pub most_ran: Option<Span>,
}

/// Who counts. The dashboard asks it for each drawing of the overview and of a queue, so the answer should come from memory.
pub trait History: Send + Sync + 'static {
    /// The last `minutes` minutes of a namespace, or of a queue of it, oldest first, without those of which nothing is known.
    fn minutes(
        &self,
        namespace: &Namespace,
        queue: Option<&QueueName>,
        minutes: usize,
    ) -> Vec<Minute>;

    /// The namespaces of which it counts something, by name.
    fn namespaces(&self) -> Vec<Namespace>;
}
