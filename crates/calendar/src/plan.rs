//! Plans: the next moments of a schedule, computed by a process with a calendar and sent to an engine without one.

use std::collections::VecDeque;

use tenure_core::bounds::{PLAN_AHEAD, PLAN_SCAN_MAX};
use tenure_core::moments::due;
use tenure_core::schedule::PlannedMoment;
use tenure_core::time::Moment;

use crate::timing::{Timing, horizon};

/// The moments that follow the last one that an engine knows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Planned {
    /// In ascending order, all after the last moment that the engine knows.
    pub moments: Vec<PlannedMoment>,
    /// No moment follows these: the schedule ends, or has no other moment within ten years.
    pub last: bool,
}

impl Timing {
    /// Continues from `after`, the last moment that the engine knows, up to `now`, the engine's time, and 8 moments
    /// beyond; computes at most 10,000 moments. Of the moments up to `now` it keeps the newest `keeps`, and counts the
    /// others in `passed` of the one that follows them.
    pub fn plan(&self, after: Moment, now: Moment, keeps: usize) -> Planned {
        let mut kept = VecDeque::new();
        let mut ahead = 0;
        let mut next = self.next_of_plan(after, now);
        for _ in 0..PLAN_SCAN_MAX {
            let Some(moment) = next else { break };
            if ahead == PLAN_AHEAD {
                break;
            }
            next = self.next_of_plan(moment, now);
            // Most of a backlog is dropped, so due times are computed at the end.
            kept.push_back(ScannedMoment { moment, next, passed: 0 });
            if moment > now {
                ahead += 1;
            } else if kept.len() > keeps.max(1) {
                // The moments up to now came first, so the oldest one is among them.
                let passed = kept.pop_front().map_or(0, |oldest| oldest.passed + 1);
                if let Some(oldest) = kept.front_mut() {
                    oldest.passed += passed;
                }
            }
        }
        let planned = |ScannedMoment { moment, next, passed }| PlannedMoment {
            moment,
            due: due(&self.id, moment, next, self.jitter),
            passed,
        };
        Planned { moments: kept.into_iter().map(planned).collect(), last: next.is_none() }
    }

    /// The moment after `after`. A schedule that rested for years is not over: the ten years count from now.
    fn next_of_plan(&self, after: Moment, now: Moment) -> Option<Moment> {
        self.next_within(after, horizon(after.max(now)))
    }
}

/// A moment of an unfinished plan.
struct ScannedMoment {
    moment: Moment,
    /// The moment after it, which bounds its jitter.
    next: Option<Moment>,
    passed: u64,
}

#[cfg(test)]
mod tests {
    use tenure_core::moments::jitter_offset;
    use tenure_core::schedule::TimingSpec;
    use tenure_core::time::Span;

    use super::*;

    fn at(text: &str) -> Moment {
        text.parse().unwrap()
    }

    fn cron(cron: &str) -> TimingSpec {
        TimingSpec { cron: Some(cron.to_owned()), ..TimingSpec::default() }
    }

    fn plan(spec: &TimingSpec, after: &str, now: &str, keeps: usize) -> Planned {
        Timing::of(spec, "news-42").unwrap().plan(at(after), at(now), keeps)
    }

    fn moments(planned: &Planned) -> Vec<Moment> {
        planned.moments.iter().map(|planned| planned.moment).collect()
    }

    #[test]
    fn a_plan_reaches_eight_moments_beyond_now() {
        let hourly = cron("@hourly");
        let planned = plan(&hourly, "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z", 1);
        let hour = |hours: u64| at("2026-12-01T08:00:00Z").plus(Span::from_s(hours * 3_600));
        assert_eq!(moments(&planned), (1..=8).map(hour).collect::<Vec<_>>());
        assert!(planned.moments.iter().all(|one| one.passed == 0 && one.due == one.moment));
        assert!(!planned.last);
        // Known moments are not planned again, even if they lie beyond now.
        let planned = plan(&hourly, "2026-12-01T15:00:00Z", "2026-12-01T08:00:00Z", 1);
        assert_eq!(moments(&planned), (8..=15).map(hour).collect::<Vec<_>>());
    }

    #[test]
    fn of_a_backlog_the_newest_is_kept_and_the_others_are_counted() {
        let hourly = cron("@hourly");
        // 09:00, 10:00, 11:00 and 12:00 are not after now, which is 12:00 itself.
        let (after, now) = ("2026-12-01T08:00:00Z", "2026-12-01T12:00:00Z");
        let planned = plan(&hourly, after, now, 1);
        assert_eq!(planned.moments.len(), 9);
        assert_eq!((planned.moments[0].moment, planned.moments[0].passed), (at(now), 3));
        assert!(planned.moments[1..].iter().all(|one| one.passed == 0));
        let planned = plan(&hourly, after, now, 3);
        assert_eq!(planned.moments.len(), 11);
        let first = planned.moments[0];
        assert_eq!((first.moment, first.passed), (at("2026-12-01T10:00:00Z"), 1));
        let planned = plan(&hourly, after, now, 100);
        assert_eq!(planned.moments.len(), 12);
        assert!(planned.moments.iter().all(|one| one.passed == 0));
    }

    #[test]
    fn a_long_backlog_is_planned_in_portions_and_no_moment_is_lost() {
        let every_second = cron("* * * * * *");
        let (mut after, now) = (at("2026-12-01T00:00:00Z"), at("2026-12-01T12:00:00Z"));
        let timing = Timing::of(&every_second, "a").unwrap();
        let mut counted = 0;
        let mut portions = 0;
        while after <= now {
            let planned = timing.plan(after, now, 5);
            assert!(planned.moments.len() <= 13 && !planned.last);
            counted += planned.moments.iter().map(|one| one.passed + 1).sum::<u64>();
            after = planned.moments.last().unwrap().moment;
            portions += 1;
        }
        assert_eq!(after, now.plus(Span::from_s(8)));
        assert_eq!((counted, portions), (12 * 3_600 + 8, 5));
    }

    #[test]
    fn a_plan_says_when_no_moment_follows() {
        let ends_at = Some(at("2026-12-01T10:00:00Z"));
        let spec = TimingSpec { ends_at, ..cron("@hourly") };
        let planned = plan(&spec, "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z", 1);
        assert_eq!(moments(&planned), ["2026-12-01T09:00:00Z", "2026-12-01T10:00:00Z"].map(at));
        assert!(planned.last);
        let planned = plan(&spec, "2026-12-01T10:00:00Z", "2026-12-01T10:00:00Z", 1);
        assert_eq!(planned, Planned { moments: Vec::new(), last: true });
        // Eight moments ahead, and the eighth is the last one.
        let ends_at = Some(at("2026-12-01T16:00:00Z"));
        let spec = TimingSpec { ends_at, ..cron("@hourly") };
        let planned = plan(&spec, "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z", 1);
        assert_eq!((planned.moments.len(), planned.last), (8, true));
        let never = plan(&cron("0 0 30 2 *"), "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z", 1);
        assert_eq!(never, Planned { moments: Vec::new(), last: true });
    }

    #[test]
    fn the_ten_years_count_from_now_if_the_last_occurrence_is_old() {
        let starts_at = Some(at("2035-01-01T00:00:00Z"));
        let spec = TimingSpec { starts_at, ..cron("@daily") };
        let planned = plan(&spec, "2020-01-01T00:00:00Z", "2026-12-01T00:00:00Z", 1);
        assert_eq!(planned.moments[0].moment, at("2035-01-01T00:00:00Z"));
    }

    #[test]
    fn a_due_moment_has_its_jitter_and_stays_before_the_next_moment() {
        let spec = TimingSpec { jitter: Span::from_s(86_400), ..cron("@hourly") };
        let hour = Span::from_s(3_600);
        let planned = plan(&spec, "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z", 1);
        for one in &planned.moments {
            let offset = jitter_offset("news-42", one.moment, hour);
            assert_eq!(one.due, one.moment.plus(offset));
        }
        // The jitter of a moment before dropped ones is bounded by the moment that directly follows it.
        let planned = plan(&spec, "2026-12-01T08:00:00Z", "2026-12-01T12:30:00Z", 1);
        let first = planned.moments[0];
        assert_eq!(first.due, first.moment.plus(jitter_offset("news-42", first.moment, hour)));
        // The jitter of the last moment has no other bound, and may lead beyond the end.
        let ends_at = Some(at("2026-12-01T09:00:00Z"));
        let spec = TimingSpec { ends_at, ..spec };
        let last = plan(&spec, "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z", 1).moments[0];
        let offset = jitter_offset("news-42", last.moment, Span::from_s(86_400));
        assert_eq!(last.due, last.moment.plus(offset));
    }
}
