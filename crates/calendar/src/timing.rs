//! The timing of one schedule: a cron expression in its zone, or an interval, between its start and its end.

use tenure_core::bounds::HORIZON_US;
use tenure_core::moments::{interval_anchor, interval_next, round_up};
use tenure_core::refusal::Refusal;
use tenure_core::schedule::TimingSpec;
use tenure_core::sentences::TimingRefusal;
use tenure_core::time::{Moment, Span};

use crate::cron::Cron;
use crate::zone::Zone;

/// The timing of a schedule, ready to compute moments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Decides the jitter of each moment.
    pub(crate) id: String,
    rhythm: Rhythm,
    /// Whole seconds: a moment may be this one.
    starts_at: Option<Moment>,
    /// A moment may be this one.
    ends_at: Option<Moment>,
    pub(crate) jitter: Span,
}

/// The source of the moments, without start and end.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Rhythm {
    Cron(Cron, Zone),
    Interval { anchor: Moment, every: Span },
}

impl Timing {
    /// Reads the timing in `spec`, for the schedule `id`.
    ///
    /// # Errors
    /// The form of the expression is not allowed, or it has neither an expression nor an interval (`invalid_field` at
    /// `/cron`), or the zone does not exist (`unknown_zone` at `/zone`).
    pub fn of(spec: &TimingSpec, id: &str) -> Result<Self, Refusal> {
        let rhythm = match (&spec.cron, spec.every) {
            (None, Some(every)) => {
                Rhythm::Interval { anchor: interval_anchor(id, every, spec.starts_at), every }
            }
            (cron, _) => {
                let cron = Cron::parse(cron.as_deref().unwrap_or_default());
                let cron = cron.map_err(|error| Refusal::from(error).at("/cron"))?;
                let zone = match &spec.zone {
                    None => Zone::utc(),
                    Some(name) => {
                        Zone::parse(name).map_err(|error| Refusal::from(error).at("/zone"))?
                    }
                };
                Rhythm::Cron(cron, zone)
            }
        };
        Ok(Timing {
            id: id.to_owned(),
            rhythm,
            starts_at: spec.starts_at.map(round_up),
            ends_at: spec.ends_at,
            jitter: spec.jitter,
        })
    }

    /// The first moment after `after`, if there is one within ten years of it.
    pub fn next_after(&self, after: Moment) -> Option<Moment> {
        self.next_within(after, horizon(after))
    }

    /// The moments after `after`, ascending, each within ten years of the one before it.
    pub fn moments_after(&self, after: Moment) -> impl Iterator<Item = Moment> {
        std::iter::successors(self.next_after(after), |moment| self.next_after(*moment))
    }

    /// The first moment after `after`.
    ///
    /// # Errors
    /// No moment follows within ten years: `never_fires`, at the field that leaves no room for one (`/cron`, `/every`,
    /// `/starts_at` or `/ends_at`).
    pub fn first_after(&self, after: Moment) -> Result<Moment, Refusal> {
        let never = |pointer| Refusal::from(TimingRefusal::NeverFires).at(pointer);
        self.next_after(after).ok_or_else(|| {
            let endless = Timing { ends_at: None, ..self.clone() };
            if endless.next_after(after).is_some() {
                return never("/ends_at");
            }
            match (&self.rhythm, self.starts_at) {
                (_, Some(start)) if start > horizon(after) => never("/starts_at"),
                (Rhythm::Cron(..), _) => never("/cron"),
                (Rhythm::Interval { .. }, _) => never("/every"),
            }
        })
    }

    /// The first moment after `after` and not after `until`.
    pub(crate) fn next_within(&self, after: Moment, until: Moment) -> Option<Moment> {
        let until = self.ends_at.map_or(until, |end| until.min(end));
        // One second before the start, so that the start itself may be a moment.
        let before_start = |start: Moment| start.minus(Span::from_s(1));
        let from = self.starts_at.map_or(after, |start| after.max(before_start(start)));
        let next = match &self.rhythm {
            Rhythm::Cron(cron, zone) => cron.next_within(zone, from, until)?,
            Rhythm::Interval { anchor, every } => interval_next(*anchor, *every, from),
        };
        (next <= until).then_some(next)
    }
}

/// The last moment at which the next moment after `after` may lie.
pub(crate) fn horizon(after: Moment) -> Moment {
    after.plus(Span::from_us(HORIZON_US))
}

#[cfg(test)]
mod tests {
    use tenure_core::refusal::Code;

    use super::*;

    fn at(text: &str) -> Moment {
        text.parse().unwrap()
    }

    fn cron(cron: &str, zone: &str) -> TimingSpec {
        let (cron, zone) = (Some(cron.to_owned()), Some(zone.to_owned()));
        TimingSpec { cron, zone, ..TimingSpec::default() }
    }

    fn every(seconds: u64) -> TimingSpec {
        TimingSpec { every: Some(Span::from_s(seconds)), ..TimingSpec::default() }
    }

    fn moments(spec: &TimingSpec, after: &str, count: usize) -> Vec<Moment> {
        Timing::of(spec, "news-42").unwrap().moments_after(at(after)).take(count).collect()
    }

    #[test]
    fn cron_is_read_in_its_zone_and_intervals_start_at_an_anchor() {
        let spec = cron("0 9 * * 1-5", "Europe/Berlin");
        let expected = ["2026-11-30T08:00:00Z", "2026-12-01T08:00:00Z"].map(at);
        assert_eq!(moments(&spec, "2026-11-28T00:00:00Z", 2), expected);
        let spec = TimingSpec { cron: Some("0 9 * * *".to_owned()), ..TimingSpec::default() };
        assert_eq!(moments(&spec, "2026-11-28T00:00:00Z", 1), [at("2026-11-28T09:00:00Z")]);
        // The phase of this id and interval is 526 s.
        let expected = ["1970-01-01T00:08:46Z", "1970-01-01T00:23:46Z"].map(at);
        assert_eq!(moments(&every(900), "1970-01-01T00:00:00Z", 2), expected);
        let spec = TimingSpec { starts_at: Some(at("2026-12-01T08:00:00.25Z")), ..every(900) };
        let expected = ["2026-12-01T08:00:01Z", "2026-12-01T08:15:01Z"].map(at);
        assert_eq!(moments(&spec, "2026-11-28T00:00:00Z", 2), expected);
    }

    #[test]
    fn a_start_and_an_end_may_be_moments() {
        let (start, end) = (at("2026-12-01T09:00:00Z"), at("2026-12-03T09:00:00Z"));
        let between = |spec: TimingSpec, start, end| TimingSpec {
            starts_at: Some(start),
            ends_at: Some(end),
            ..spec
        };
        let all = |spec| moments(&spec, "2026-11-01T00:00:00Z", 9);
        for spec in [cron("0 9 * * *", "UTC"), every(86_400)] {
            let expected = ["2026-12-01T09:00:00Z", "2026-12-02T09:00:00Z", "2026-12-03T09:00:00Z"];
            assert_eq!(all(between(spec.clone(), start, end)), expected.map(at));
            let early_end = end.minus(Span::from_us(1));
            assert_eq!(all(between(spec, start, early_end)), expected.map(at)[..2]);
        }
        // A start with a fraction of a second is rounded up, beyond the moment of that second.
        let late = start.plus(Span::from_us(1));
        let found = all(between(cron("0 9 * * *", "UTC"), late, end));
        assert_eq!(found, ["2026-12-02T09:00:00Z", "2026-12-03T09:00:00Z"].map(at));
        // A fixed moment in a gap comes at the gap's end, which is later than the start.
        let start = at("2027-03-28T02:45:00+01:00");
        let end = at("2027-03-28T23:00:00+02:00");
        let found = all(between(cron("30 2 * * *", "Europe/Berlin"), start, end));
        assert_eq!(found, [at("2027-03-28T03:00:00+02:00")][..0]);
    }

    #[test]
    fn a_timing_without_a_moment_within_ten_years_never_fires() {
        let now = at("2026-12-01T08:00:00Z");
        let never = |spec: TimingSpec, pointer: &str| {
            let no = Timing::of(&spec, "a").unwrap().first_after(now).unwrap_err();
            assert_eq!(
                (no.code, no.pointer.as_deref()),
                (Code::NeverFires, Some(pointer)),
                "{spec:?}"
            );
        };
        let daily = || cron("0 9 * * *", "Europe/Berlin");
        never(cron("0 0 30 2 *", "UTC"), "/cron");
        for spec in [daily(), every(900)] {
            never(TimingSpec { ends_at: Some(now), ..spec.clone() }, "/ends_at");
            never(
                TimingSpec { ends_at: Some(at("2020-01-01T00:00:00Z")), ..spec.clone() },
                "/ends_at",
            );
            let far = Some(at("2036-12-02T08:00:00Z"));
            never(TimingSpec { starts_at: far, ..spec.clone() }, "/starts_at");
            let near = Some(at("2036-11-30T08:00:00Z"));
            let spec = TimingSpec { starts_at: near, ..spec };
            assert!(Timing::of(&spec, "a").unwrap().first_after(now).is_ok(), "{spec:?}");
        }
        let (starts_at, ends_at) =
            (Some(at("2030-01-01T00:00:00Z")), Some(at("2029-01-01T00:00:00Z")));
        never(TimingSpec { starts_at, ends_at, ..daily() }, "/ends_at");
        let first = Timing::of(&every(3_650 * 86_400), "a").unwrap().first_after(now);
        assert!(first.is_ok(), "the longest interval");
    }

    #[test]
    fn what_core_cannot_check_is_refused_with_its_place() {
        for (spec, code, pointer) in [
            (cron("0 9 * *", "UTC"), Code::InvalidField, "/cron"),
            (cron("5/15 * * * *", "UTC"), Code::InvalidField, "/cron"),
            (cron("0 9 * * *", ""), Code::UnknownZone, "/zone"),
            (cron("0 9 * * *", "+01:00"), Code::UnknownZone, "/zone"),
            (TimingSpec::default(), Code::InvalidField, "/cron"),
        ] {
            let no = Timing::of(&spec, "a").unwrap_err();
            assert_eq!((no.code, no.pointer.as_deref()), (code, Some(pointer)), "{spec:?}");
        }
    }
}
