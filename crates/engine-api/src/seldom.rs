//! Rate-limited log lines for events that may happen a thousand times a second: one at once, then at most one in a
//! while, with the number of events since. So a log stays readable, and a line costs next to nothing.

use std::time::{Duration, Instant};

/// The time between two lines of one kind.
const APART: Duration = Duration::from_secs(10);

/// The log lines of one kind.
#[derive(Debug, Clone)]
pub struct Seldom {
    apart: Duration,
    /// When the last line was written.
    last: Option<Instant>,
    /// Number of events since that line.
    untold: u64,
}

impl Default for Seldom {
    fn default() -> Self {
        Seldom::every(APART)
    }
}

impl Seldom {
    /// Allows at most one line in this time.
    pub fn every(apart: Duration) -> Self {
        Seldom { apart, last: None, untold: 0 }
    }

    /// Counts `times` more events.
    pub fn happened(&mut self, times: u64) {
        self.untold += times;
    }

    /// The number of events for a line that is due now; `None`: no line is due.
    pub fn due(&mut self, now: Instant) -> Option<u64> {
        let rests = self.last.is_some_and(|last| now.saturating_duration_since(last) < self.apart);
        if self.untold == 0 || rests {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.untold))
    }

    /// The number of events that no line has reported yet.
    pub fn untold(&self) -> u64 {
        self.untold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let (mut seldom, start) = (Seldom::every(Duration::from_secs(60)), Instant::now());
        let mut told = |seconds, times| {
            seldom.happened(times);
            seldom.due(start + Duration::from_secs(seconds))
        };
        assert_eq!(told(0, 0), None);
        assert_eq!(told(0, 3), Some(3));
        assert_eq!(told(1, 1), None);
        assert_eq!(told(59, 1), None);
        assert_eq!(told(60, 0), Some(2), "what is left is told later");
        assert_eq!(told(180, 0), None);
        assert_eq!(told(180, 1), Some(1));
    }
}
