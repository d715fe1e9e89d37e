//! Limits how long pages wait for a store that does not answer.
//!
//! A person looks at a page and can look again, and a page reads several times. So all its reads together wait for a
//! few seconds, where a client's call waits as long as a takeover may take.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A read of a page is refused after this if nobody answers it.
const READS_WAIT: Duration = Duration::from_secs(3);
/// The least time for a read, after earlier reads went unanswered.
const SHORTEST: Duration = Duration::from_millis(200);

/// Since when the store has answered no read of a page.
#[derive(Default)]
pub(crate) struct Silence(Mutex<Option<Instant>>);

impl Silence {
    /// How long a read that begins now may wait for an answer.
    pub fn left(&self, now: Instant) -> Duration {
        let since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        READS_WAIT.saturating_sub(silent).max(SHORTEST)
    }

    /// Records the end of a read that began then.
    pub fn ended(&self, began: Instant, is_answered: bool) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *since =
            if is_answered { None } else { Some(since.map_or(began, |since| since.min(began))) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reads_of_a_page_wait_together_until_one_is_answered() {
        let (silence, began) = (Silence::default(), Instant::now());
        let after = |s: u64| began + Duration::from_secs(s);
        assert_eq!(silence.left(began), READS_WAIT);
        silence.ended(began, false);
        silence.ended(after(1), false);
        assert_eq!(silence.left(after(2)), Duration::from_secs(1));
        assert_eq!(silence.left(after(60)), SHORTEST);
        silence.ended(after(60), true);
        assert_eq!(silence.left(after(61)), READS_WAIT);
    }
}
