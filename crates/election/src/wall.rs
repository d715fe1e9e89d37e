//! The wall clock of a machine on Redis: it starts at Redis's time, and continues by the own monotonic clock.
//!
//! No lease ends by it: leases end by the monotonic clock alone.

use tenure_core::time::{Moment, Span};

/// The clock is corrected by at most one microsecond in as many as these: a millisecond a second.
const US_PER_CORRECTED_US: u64 = 1_000;
/// A difference beyond this is a leap, not a drift.
const LEAP: Span = Span::from_ms(100);

/// A wall clock that never goes back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Wall {
    moment: Moment,
    at: Span,
    /// Time that has passed and corrected nothing yet, less than [`US_PER_CORRECTED_US`] microseconds: replies may come
    /// closer together than that.
    rest: Span,
}

impl Wall {
    /// Shows `moment` when the monotonic clock shows `at`.
    pub fn begin(moment: Moment, at: Span) -> Self {
        Wall { moment, at, rest: Span::ZERO }
    }

    /// The moment when the monotonic clock shows `at`.
    pub fn at(&self, at: Span) -> Moment {
        self.moment.plus(Span::from_us(at.us().saturating_sub(self.at.us())))
    }

    /// Takes Redis's time from a reply. Returns the size of a leap ahead, if there was one; the clock does not follow a
    /// step back.
    pub fn hear(&mut self, time: Moment, at: Span) -> Option<Span> {
        let passed = at.us().saturating_sub(self.at.us()).saturating_add(self.rest.us());
        let most = passed / US_PER_CORRECTED_US;
        self.rest = Span::from_us(passed % US_PER_CORRECTED_US);
        let now = self.at(at);
        let (ahead, behind) = (time.since(now), now.since(time));
        self.at = at;
        if ahead > LEAP {
            self.moment = time;
            return Some(ahead);
        }
        self.moment = if behind > LEAP {
            now
        } else if behind > Span::ZERO {
            now.minus(Span::from_us(behind.us().min(most)))
        } else {
            now.plus(Span::from_us(ahead.us().min(most)))
        };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Moment = Moment::from_us(1_000_000_000);

    #[test]
    fn drift_is_followed_by_a_millisecond_a_second() {
        for (time_ms, shown_us) in [(2_000, 2_000_000), (2_050, 2_002_000), (1_950, 1_998_000)] {
            let mut wall = Wall::begin(S, Span::ZERO);
            assert_eq!(wall.hear(S.plus(Span::from_ms(time_ms)), Span::from_s(2)), None);
            assert_eq!(wall.at(Span::from_s(2)), S.plus(Span::from_us(shown_us)), "{time_ms}");
        }
    }

    #[test]
    fn drift_is_followed_however_often_redis_replies() {
        let mut wall = Wall::begin(S, Span::ZERO);
        for reply in 1..=20_000 {
            let at = Span::from_us(reply * 500);
            assert_eq!(wall.hear(S.plus(at).plus(Span::from_ms(27)), at), None);
        }
        let end = Span::from_s(10);
        assert_eq!(wall.at(end), S.plus(end).plus(Span::from_ms(10)));
    }

    #[test]
    fn a_leap_ahead_is_told_and_one_back_is_not_followed() {
        let mut wall = Wall::begin(S, Span::ZERO);
        let ahead = wall.hear(S.plus(Span::from_s(9)), Span::from_s(1));
        assert_eq!(ahead, Some(Span::from_s(8)));
        assert_eq!(wall.hear(S, Span::from_s(2)), None);
        assert_eq!(wall.at(Span::from_s(2)), S.plus(Span::from_s(10)));
    }
}
