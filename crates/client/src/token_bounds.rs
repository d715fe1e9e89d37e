//! Waits where the token of the caller has used up its `calls` or `in_flight`: the server refuses the call, nothing
//! happens, and it says how long to wait. So a bound costs time and no work.
//!
//! Other refusals with 429 stay refusals: a full queue or a full line is not about this caller.

use std::time::Duration;

use tenure_core::bounds::REQUEST_US;
use tenure_core::refusal::Refusal;
use tenure_engine_api::CallError;
use tokio::time::{Instant, sleep};

/// No call is made again later than this after the first time.
pub const WAITS_MAX: Duration = Duration::from_micros(REQUEST_US);
/// The wait where a refusal says none: that of a lease call beside settles stands in a good answer, without the header.
const WAIT: Duration = Duration::from_secs(1);

/// How long to wait before the refused call is made again; `None` unless the token has used up its bounds.
#[doc(hidden)]
pub fn wait_after(no: &Refusal) -> Option<Duration> {
    no.caller.as_ref()?;
    Some(no.retry_after_s.map_or(WAIT, Duration::from_secs))
}

/// The same for a call that failed in any way.
#[doc(hidden)]
pub fn wait_after_error(error: &CallError) -> Option<Duration> {
    match error {
        CallError::Refused(no) => wait_after(no),
        CallError::Fault(_) => None,
    }
}

/// Makes a call, and makes it again for as long as `wait` finds that the token must wait and [`WAITS_MAX`] permits it.
///
/// # Errors
/// Those of the call. A wait that would be too long is not begun.
#[doc(hidden)]
pub async fn waited_for<T, E>(
    call: impl AsyncFn() -> Result<T, E>,
    wait: impl Fn(&E) -> Option<Duration>,
) -> Result<T, E> {
    let begun = Instant::now();
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match wait(&error) {
            Some(wait) if begun.elapsed() + wait <= WAITS_MAX => sleep(wait).await,
            _ => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tenure_core::refusal::Code;
    use tenure_core::sentences::{AccessRefusal, LeaseRefusal, QueueRefusal};

    fn too_many(wait_s: u64) -> Refusal {
        let (caller, calls) = ("crawler".to_owned(), "2/1s".to_owned());
        AccessRefusal::TooManyCalls { caller, calls, wait_s }.into()
    }

    #[test]
    fn a_full_line_or_queue_is_no_bound_of_a_token() {
        let queue = tenure_core::names::QueueName::parse("q").unwrap();
        let full: Refusal = QueueRefusal::Full { queue, most: 1, waiting: 1 }.into();
        let line: Refusal = LeaseRefusal::LineFull { most: 10_000 }.into();
        let many: Refusal =
            AccessRefusal::TooManyInFlight { caller: "crawler".to_owned(), most: 4 }.into();
        let mut in_a_settle = too_many(7).below("/lease");
        in_a_settle.retry_after_s = None;
        for (no, wait_s) in [
            (too_many(7), Some(7)),
            (in_a_settle, Some(1)),
            (many, Some(1)),
            (line, None),
            (full, None),
            (Refusal::heard(Code::LineFull, "no", ""), None),
        ] {
            assert_eq!(wait_after(&no), wait_s.map(Duration::from_secs), "{no}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_made_again_after_the_wait_and_within_a_minute() {
        for (wait_s, refusals, calls, took_s) in
            [(7, 3, 4, Ok(21)), (25, 9, 3, Err(50)), (61, 1, 1, Err(0))]
        {
            let (begun, made) = (Instant::now(), AtomicU64::new(0));
            let call = async || match made.fetch_add(1, Ordering::Relaxed) {
                before if before < refusals => Err(too_many(wait_s)),
                _ => Ok(()),
            };
            let took = |is_done: bool| match (is_done, begun.elapsed().as_secs()) {
                (true, took_s) => Ok(took_s),
                (false, took_s) => Err(took_s),
            };
            assert_eq!(took(waited_for(call, wait_after).await.is_ok()), took_s, "{wait_s} s");
            assert_eq!(made.load(Ordering::Relaxed), calls);
        }
    }
}
