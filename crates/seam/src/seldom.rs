//! Log lines about what may happen a thousand times a second: one at once, then at most one in a while, which says how many
//! there were. So a log stays readable, and a line costs nothing beside what it is about.

use std::time::{Duration, Instant};

/// Between two lines of one kind.
const APART: Duration = Duration::from_secs(10);

/// The lines of one kind.
#[derive(Debug, Clone)]
pub struct Seldom {
    apart: Duration,
    /// When the last line was written.
    last: Option<Instant>,
    /// What happened since, and was not told.
    untold: u64,
}

impl Default for Seldom {
    fn default() -> Self {
        Seldom::every(APART)
    }
}

impl Seldom {
    /// At most a line in this time.
    pub fn every(apart: Duration) -> Self {
        Seldom { apart, last: None, untold: 0 }
    }

    /// It happened `times` more.
    pub fn happened(&mut self, times: u64) {
        self.untold += times;
    }

    /// How many a line is to tell of now; `None`: no line now.
    pub fn due(&mut self, now: Instant) -> Option<u64> {
        let rests = self.last.is_some_and(|last| now.saturating_duration_since(last) < self.apart);
        if self.untold == 0 || rests {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.untold))
    }

    /// What happened and was told by no line yet.
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
