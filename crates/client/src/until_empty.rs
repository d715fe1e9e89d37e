//! Decides when work "until the queues are empty" ends: one rule, for [`crate::Worker`] and for
//! `tenure work --until-empty`.
//!
//! It ends when the worker runs nothing itself, was granted nothing, and no job of its queues is
//! ready or blocked. So it waits for jobs that lack a limit or a resource. It ignores jobs that are
//! scheduled for later, or a retry an hour ahead would hold the work for an hour; jobs that other
//! workers run; and paused queues, since their jobs cannot be taken.
//!
//! It only reads, and changes nothing.

use tenure_core::names::QueueName;
use tenure_core::refusal::Code;
use tenure_core::requests::GetQueue;
use tenure_core::time::Span;
use tenure_engine_api::CallError;

use crate::asking::slice;
use crate::client::Client;

/// The longest wait of one lease call before the queues are checked again.
const LOOK_EVERY: Span = Span::from_ms(500);

/// How long the next lease call waits. Zero if its answer decides whether the work is done; longer
/// if a job that runs here may push more, or a job that was there may soon be free to run.
pub fn patience(ttl: Span, more_may_come: bool) -> Span {
    if more_may_come { slice(ttl).min(LOOK_EVERY) } else { Span::ZERO }
}

/// Whether no job of these queues is ready or blocked, ignoring paused queues. A missing queue
/// counts as empty.
///
/// # Errors
/// As [`Client::run`], except `queue_not_found`.
pub async fn is_empty(client: &Client, queues: &[QueueName]) -> Result<bool, CallError> {
    for queue in queues {
        match client.run(GetQueue { queue: queue.clone() }).await {
            Ok(view) if !view.paused && view.counts.ready + view.counts.blocked > 0 => {
                return Ok(false);
            }
            Ok(_) => {}
            Err(error) if error.code() == Some(Code::QueueNotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
