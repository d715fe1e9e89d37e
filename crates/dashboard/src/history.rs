//! The data of the pictures on the overview and on queues, minute by minute.

use tenure_core::names::{Namespace, QueueName};
use tenure_core::time::{Moment, Span};

/// The events of one minute, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Minute {
    /// The start of the minute.
    pub at: Moment,
    /// Jobs that were pushed, without duplicates.
    pub pushed: u64,
    /// Jobs that were granted again because the holder of their last run was gone.
    pub lost: u64,
    /// Runs that ended with success.
    pub succeeded: u64,
    /// Failed runs, for good or not.
    pub failed: u64,
    /// The age of the oldest ready job of the namespace; zero if no job was ready, `None` if nobody looked. Not known
    /// for a single queue.
    pub oldest_ready: Option<Span>,
    /// Half of the granted jobs had waited no longer than this since they were due; `None` if no job was granted.
    pub half_waited: Option<Span>,
    /// 95 % of them had waited no longer than this.
    pub most_waited: Option<Span>,
    /// Half of the runs that succeeded or failed took no longer than this; `None` if no duration is known.
    pub half_ran: Option<Span>,
    /// 95 % of them took no longer than this.
    pub most_ran: Option<Span>,
}

/// The source of the minutes. The dashboard calls it for each drawing of the overview and of a queue, so the answer
/// should come from memory.
pub trait History: Send + Sync + 'static {
    /// The last `minutes` minutes of a namespace, or of one of its queues, oldest first, without unknown minutes.
    fn minutes(
        &self,
        namespace: &Namespace,
        queue: Option<&QueueName>,
        minutes: usize,
    ) -> Vec<Minute>;

    /// The namespaces with counts, by name.
    fn namespaces(&self) -> Vec<Namespace>;
}
