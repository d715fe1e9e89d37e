//! When work "until the queues are empty" is at its end: one rule, for [`crate::Worker`] and for
//! `tenure work --until-empty`.
//!
//! It ends when it runs nothing itself, was granted nothing, and no job of its queues is ready or
//! blocked. A job that waits for a limit or a resource is therefore waited for. What is scheduled
//! for later is not, or a retry an hour ahead would hold the work for an hour; nor what others run;
//! nor a queue that is paused, since nobody may take from it.
//!
//! It looks, and changes nothing.

use tenure_core::names::QueueName;
use tenure_core::refusal::Code;
use tenure_core::requests::GetQueue;
use tenure_core::time::Span;
use tenure_seam::CallError;

use crate::asking::slice;
use crate::client::Client;

/// The longest that one lease call waits for something new before it is looked again.
const LOOK_EVERY: Span = Span::from_ms(500);

/// How long the next lease call waits. Not at all, if its answer says whether there is something to
/// do; for a while, if something runs here that may push more, or something was there that may go
/// soon.
pub fn patience(ttl: Span, more_may_come: bool) -> Span {
    if more_may_come { slice(ttl).min(LOOK_EVERY) } else { Span::ZERO }
}

/// Whether no job of these queues is ready or blocked, paused queues left out. A queue that is not
/// there is empty.
///
/// # Errors
/// As [`Client::run`], but for `queue_not_found`.
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
