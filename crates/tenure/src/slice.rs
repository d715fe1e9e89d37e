//! A wait is asked for in slices, so that a grant is always read while it is fresh.
//!
//! Each slice that was answered is followed by one under a new request id; the first id of a wait
//! goes along as its place in line.

use std::time::Duration;

use tenure_core::bounds::WAIT_US_MAX;
use tenure_core::time::Span;

use crate::repeat::Backoff;

/// The longest wait that one lease call asks for: a sixth of the ttl.
pub fn slice(ttl: Span) -> Span {
    Span::from_us((ttl.us() / 6).min(WAIT_US_MAX))
}

/// How long to hold back after an answer with nothing in it. Nothing, if it came when its slice was
/// over; but an engine that drains answers at once, and must not be asked in a tight circle.
pub fn hold_back(asked_for: Span, took: Duration, backoff: &mut Backoff) -> Duration {
    if took < asked_for.std() / 2 {
        return backoff.wait();
    }
    *backoff = Backoff::default();
    Duration::ZERO
}
