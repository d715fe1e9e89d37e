//! Moments of an interval, the jitter of any moment, and the id of the job that a moment makes.
//!
//! This part of a schedule's timing is plain arithmetic, so the state machine does it itself. Cron and zones need a
//! calendar; they are in `tenure-calendar`, which the state machine does not know. Moments are whole seconds of UTC.

use crate::bounds::{SECOND_US, STARTED_LATELY_US};
use crate::spread::{head, share};
use crate::time::{Moment, Span};

/// The first whole second at or after `moment`: it makes a `starts_at`, or the moment of a `next_in`, a moment of a
/// schedule.
pub fn round_up(moment: Moment) -> Moment {
    match moment.us() % SECOND_US {
        0 => moment,
        rest => moment.plus(Span::from_us(SECOND_US - rest)),
    }
}

/// The distance from 1970 to the first moment of an interval without `starts_at`: less than `every`, whole seconds,
/// decided by the schedule's id. A million intervals that are synced at once fall due evenly, and a second sync of the
/// same intervals moves none.
pub fn interval_phase(id: &str, every: Span) -> Span {
    Span::from_s(share(head(id), every.us() / SECOND_US))
}

/// The moment from which an interval counts: its `starts_at`, or its own phase. A moment that a `next_in` set replaces
/// both until the timing changes; the state machine sees to that.
pub fn interval_anchor(id: &str, every: Span, starts_at: Option<Moment>) -> Moment {
    starts_at.map_or_else(|| Moment::ZERO.plus(interval_phase(id, every)), round_up)
}

/// The first moment `anchor + k * every` (k from 0) that is later than `after`. `every` is at least a second.
pub fn interval_next(anchor: Moment, every: Span, after: Moment) -> Moment {
    if after < anchor {
        return anchor;
    }
    let every = every.us().max(SECOND_US);
    let steps = after.since(anchor).us() / every + 1;
    anchor.plus(Span::from_us(steps.saturating_mul(every)))
}

/// The first cursor of a new timing, behind which its moments count: now, or just before a start of the last minute
/// that the schedule did not have before (`started_at`), so that "from now on" fires at once.
pub fn first_cursor(starts_at: Option<Moment>, started_at: Option<Moment>, now: Moment) -> Moment {
    let lately =
        |start: &Moment| *start <= now && now.since(*start) <= Span::from_us(STARTED_LATELY_US);
    match starts_at.filter(lately) {
        Some(start) if starts_at != started_at => start.minus(Span::from_us(1)),
        _ => now,
    }
}

/// The id of the job that a schedule makes at a moment: `news-42@2026-12-01T08:00:00Z`.
pub fn moment_id(id: &str, moment: Moment) -> String {
    // The text of a moment is ASCII, and its seconds end at the nineteenth letter.
    let mut second = moment.to_string();
    second.truncate("2026-12-01T08:00:00".len());
    format!("{id}@{second}Z")
}

/// The delay of a moment of a schedule: less than `span`, and always the same for one moment.
pub fn jitter_offset(id: &str, moment: Moment, span: Span) -> Span {
    if span == Span::ZERO {
        return Span::ZERO;
    }
    Span::from_us(share(head(&moment_id(id, moment)), span.us()))
}

/// The due time of a moment of a schedule: at most `jitter` late, and always before `next`, the moment that follows it.
/// So due times keep the order of their moments. The last moment has only `jitter` as its bound.
pub fn due(id: &str, moment: Moment, next: Option<Moment>, jitter: Span) -> Moment {
    let span = next.map_or(jitter, |next| jitter.min(next.since(moment)));
    moment.plus(jitter_offset(id, moment, span))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Moment {
        text.parse().unwrap()
    }

    #[test]
    fn starts_are_rounded_up_to_the_second() {
        for (text, rounded) in [
            ("2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z"),
            ("2026-12-01T08:00:00.000001Z", "2026-12-01T08:00:01Z"),
            ("2026-12-31T23:59:59.999999Z", "2027-01-01T00:00:00Z"),
        ] {
            assert_eq!(round_up(at(text)), at(rounded), "{text}");
        }
    }

    /// The expected numbers were computed apart from this code.
    #[test]
    fn the_phase_of_an_interval_comes_from_its_id() {
        for (id, every_s, phase_s) in [
            ("news-42", 900, 526),
            ("news-42", 1, 0),
            ("feed", 86_400, 34_344),
            ("ü", 315_360_000, 183_122_797),
        ] {
            assert_eq!(interval_phase(id, Span::from_s(every_s)), Span::from_s(phase_s), "{id}");
        }
        let anchor = interval_anchor("news-42", Span::from_s(900), None);
        assert_eq!(anchor, Moment::from_us(526_000_000));
        let start = at("2026-12-01T08:00:00.5Z");
        let anchor = interval_anchor("news-42", Span::from_s(900), Some(start));
        assert_eq!(anchor, at("2026-12-01T08:00:01Z"));
    }

    #[test]
    fn the_next_moment_of_an_interval_is_strictly_later() {
        let (anchor, every) = (at("2026-12-01T08:00:00Z"), Span::from_s(900));
        for (after, next) in [
            ("1970-01-01T00:00:00Z", "2026-12-01T08:00:00Z"),
            ("2026-12-01T07:59:59.999999Z", "2026-12-01T08:00:00Z"),
            ("2026-12-01T08:00:00Z", "2026-12-01T08:15:00Z"),
            ("2026-12-01T08:14:59.999999Z", "2026-12-01T08:15:00Z"),
            ("2026-12-01T08:15:00Z", "2026-12-01T08:30:00Z"),
        ] {
            assert_eq!(interval_next(anchor, every, at(after)), at(next), "{after}");
        }
        assert_eq!(interval_next(anchor, every, Moment::MAX), Moment::MAX);
    }

    #[test]
    fn the_job_of_a_moment_is_named_by_whole_seconds() {
        let id = moment_id("news-42", at("2026-12-01T09:00:00+01:00"));
        assert_eq!(id, "news-42@2026-12-01T08:00:00Z");
        assert_eq!(moment_id("", Moment::MAX), "@2255-06-05T23:47:34Z");
    }

    /// The expected numbers were computed apart from this code.
    #[test]
    fn the_jitter_of_a_moment_comes_from_the_id_of_its_job() {
        for (id, moment, span_us, offset_us) in [
            ("news-42", "2026-12-01T08:00:00Z", 30_000_000, 12_576_134),
            ("news-42", "2026-12-02T08:00:00Z", 30_000_000, 27_129_862),
            ("feed", "1970-01-01T00:00:00Z", 86_400_000_000, 75_223_613_065),
            ("feed", "1970-01-01T00:00:00Z", 0, 0),
        ] {
            let offset = jitter_offset(id, at(moment), Span::from_us(span_us));
            assert_eq!(offset, Span::from_us(offset_us), "{id} at {moment}");
        }
    }

    #[test]
    fn the_last_moment_has_only_the_jitter_as_its_bound() {
        let (moment, next) = (at("1970-01-01T00:00:00Z"), at("1970-01-01T00:00:01Z"));
        let jitter = Span::from_s(86_400);
        assert_eq!(due("feed", moment, None, jitter), Moment::from_us(75_223_613_065));
        assert_eq!(due("feed", moment, Some(next), jitter), Moment::from_us(870_643));
    }

    proptest! {
        #[test]
        fn due_moments_keep_the_order_of_their_moments(
            id in "[a-z]{1,8}", from in 0u64..4_000_000_000, gap in 1u64..100_000, jitter in 0u64..86_400_000_000,
        ) {
            let [first, second] = [from, from + gap].map(|s| Moment::from_us(s * SECOND_US));
            let jitter = Span::from_us(jitter);
            let due_first = due(&id, first, Some(second), jitter);
            prop_assert!(first <= due_first && due_first < second);
            prop_assert!(due(&id, second, None, jitter) >= second);
        }

        #[test]
        fn no_moment_of_an_interval_is_left_out(
            anchor in 0u64..2_000_000_000, every in 1u64..315_360_000, after in 0u64..4_000_000_000_000_000,
        ) {
            let (anchor, every) = (Moment::from_us(anchor * SECOND_US), Span::from_s(every));
            let after = Moment::from_us(after);
            let next = interval_next(anchor, every, after);
            prop_assert!(next > after && next >= anchor);
            prop_assert_eq!(next.since(anchor).us() % every.us(), 0);
            prop_assert!(next == anchor || next.minus(every) <= after);
        }
    }
}
