//! Asking for leases again and again: how long one call waits, and what to do about one that was
//! not answered.

use std::time::{Duration, Instant};

use tenure_core::bounds::WAIT_US_MAX;
use tenure_core::refusal::Code;
use tenure_core::time::Span;
use tenure_engine::{CallError, Fault};

/// The first pause after a call that was not answered; each is twice the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The longest that one lease call waits: a sixth of the ttl, so that a grant is always read while
/// it is fresh.
pub fn slice(ttl: Span) -> Span {
    Span::from_us((ttl.us() / 6).min(WAIT_US_MAX))
}

/// How asking goes: whether there was ever an answer, and since when there is none.
#[derive(Debug, Default)]
pub struct Asking {
    met: bool,
    away_since: Option<Instant>,
    pause: Duration,
}

impl Asking {
    /// An answer came, after so long, to a call that would have waited for `wait`. Answers how long
    /// to hold back: an engine that drains answers at once, and must not be asked in a tight circle.
    pub fn answered(&mut self, granted: bool, wait: Span, took: Duration) -> Duration {
        if self.away_since.take().is_some() {
            crate::output::tell("the store answers again");
        }
        self.met = true;
        if granted || took >= wait.std() / 2 {
            self.pause = Duration::ZERO;
            return Duration::ZERO;
        }
        self.next_pause()
    }

    /// No answer came. Answers how long to hold back before asking again, or the error if that is
    /// of no use: it is a real no, or there never was an answer.
    pub fn failed(&mut self, error: CallError) -> Result<Duration, CallError> {
        let passing = match &error {
            CallError::Fault(Fault::Unavailable(_) | Fault::Unknown(_)) => true,
            CallError::Refused(no) => matches!(
                no.code,
                Code::Draining
                    | Code::StoreFull
                    | Code::Overloaded
                    | Code::StoreUnavailable
                    | Code::OutcomeUnknown
            ),
            CallError::Fault(_) => false,
        };
        if !passing || !self.met {
            return Err(error);
        }
        if self.away_since.is_none() {
            self.away_since = Some(Instant::now());
            crate::output::tell(&format!("{error}; asking again until it answers"));
        }
        Ok(self.next_pause())
    }

    /// For how long there has been no answer.
    pub fn away(&self) -> Duration {
        self.away_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn next_pause(&mut self) -> Duration {
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, PAUSE_MAX);
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::refusal::Refusal;

    fn away() -> CallError {
        CallError::Fault(Fault::Unavailable("x".into()))
    }

    #[test]
    fn who_never_had_an_answer_gives_up_and_who_had_one_asks_again() {
        let mut asking = Asking::default();
        assert!(asking.failed(away()).is_err());
        asking.answered(false, Span::from_s(5), Duration::from_secs(5));
        assert_eq!(asking.failed(away()), Ok(PAUSE_FIRST));
        assert_eq!(asking.failed(away()), Ok(PAUSE_FIRST * 2));
        let no = CallError::Refused(Refusal::new(Code::InvalidField, "no", ""));
        assert!(asking.failed(no).is_err());
    }

    #[test]
    fn an_empty_answer_that_comes_at_once_is_not_asked_for_in_a_tight_circle() {
        let mut asking = Asking::default();
        let (wait, soon) = (Span::from_s(5), Duration::from_millis(1));
        assert_eq!(asking.answered(false, wait, soon), PAUSE_FIRST);
        assert_eq!(asking.answered(true, wait, soon), Duration::ZERO);
        assert_eq!(asking.answered(false, wait, wait.std()), Duration::ZERO);
    }
}
