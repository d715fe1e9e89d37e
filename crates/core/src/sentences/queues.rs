//! Refusals of calls that name a queue, or push to one that is full.

use super::table::refusals;
use crate::count::counted;
use crate::names::QueueName;

refusals! {
    /// A queue that does not fit the call.
    QueueRefusal:

    NotFound QueueNotFound { queue: QueueName }
        detail("there is no queue {queue:?}")
        hint("a queue is there from its first use; list the queues to see those that are there");

    NotEmpty NotEmpty { queue: QueueName, unfinished: u64 }
        detail("queue {queue:?} has {}", counted(unfinished, "unfinished job", "unfinished jobs"))
        hint("cancel its jobs, or wait until they are finished; then delete it");

    Full QueueFull { queue: QueueName, most: u32, waiting: u64 }
        detail("queue {queue:?} takes {most} waiting jobs, and {waiting} wait")
        hint("push again later, add workers, or raise the queue's \"max_waiting\"")
        retry_after_s(1);
}
