//! Says when the store is slow: a commit, a sync or a call that took longer than a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Seldom;

/// What takes longer is told. A disk or a network that is well takes a hundredth of it.
pub const SLOW: Duration = Duration::from_secs(1);

/// The lines about one thing that may be slow.
#[derive(Debug, Default)]
pub struct SlowLines {
    state: Mutex<SlowState>,
}

#[derive(Debug, Default)]
struct SlowState {
    lines: Seldom,
    longest: Duration,
}

impl SlowLines {
    /// `what` took so long: a line if that is slow, and none was written lately.
    pub fn took(&self, what: &str, took: Duration) {
        if took < SLOW {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.longest = state.longest.max(took);
        state.lines.happened(1);
        if let Some(times) = state.lines.due(Instant::now()) {
            let longest_ms = std::mem::take(&mut state.longest).as_millis() as u64;
            let threshold_ms = SLOW.as_millis() as u64;
            tracing::warn!(what, times, longest_ms, threshold_ms, "the store is slow");
        }
    }
}
