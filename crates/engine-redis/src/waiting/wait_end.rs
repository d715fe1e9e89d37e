//! When the wait of a call is over.

use tenure_core::time::{Moment, Span};
use tokio::time::Instant;

use crate::options::Time;
use crate::shared::Shared;

/// The end of a wait: by this process's own watch, or by a test's clock.
#[derive(Clone, Copy)]
pub(crate) enum WaitEnd {
    Real(Instant),
    Moved(Moment),
}

impl WaitEnd {
    /// So long from now.
    pub(crate) fn after(shared: &Shared, wait: Span) -> Self {
        match shared.time {
            Time::Server => WaitEnd::Real(Instant::now() + wait.std()),
            Time::Testing | Time::TestingByHand => WaitEnd::Moved(shared.moved().plus(wait)),
        }
    }

    /// What is left of it, in µs.
    pub(crate) fn left(self, shared: &Shared) -> u64 {
        match self {
            WaitEnd::Real(end) => {
                end.saturating_duration_since(Instant::now()).as_micros().try_into().unwrap_or(0)
            }
            WaitEnd::Moved(end) => end.since(shared.moved()).us(),
        }
    }
}
