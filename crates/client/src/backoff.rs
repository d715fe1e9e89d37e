//! The pauses between the attempts of a call.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The first pause between two attempts; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest pause between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Growing pauses with random jitter, so that a crowd of clients does not come back at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: FIRST_WAIT, longest: LONGEST_WAIT }
    }
}

impl Backoff {
    /// The next pause: between half of it and the whole.
    pub(crate) fn wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.longest);
        // Each RandomState has a new seed, which is random enough here.
        let chance = RandomState::new().build_hasher().finish() as u32;
        whole / 2 + (whole / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }
}
