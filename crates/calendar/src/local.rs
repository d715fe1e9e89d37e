//! Local times as people write them, by the wall clock and without an offset: `2026-12-01 09:55`, `09:55`, `tomorrow
//! 09:55`.
//!
//! It reads no clock: the present time and the zone are arguments.

use tenure_core::time::Moment;

use crate::civil::{DAY_S, Date};
use crate::zone::{ClockReading, Zone};

/// A date and a time of day, or a time of a day that depends on today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalTime {
    day: Day,
    /// Seconds since the clock showed midnight.
    second: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Day {
    /// This day, counted in days since 1970-01-01.
    Number(i64),
    /// This many days after today; a negative number is before today.
    FromToday(i64),
    /// The nearest day on which the time lies in the wanted direction.
    Nearest,
}

/// The direction of a time that names no day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Toward {
    /// Ahead: the next time that the clock shows it.
    Ahead,
    /// Behind: the last time that the clock showed it.
    Behind,
}

impl LocalTime {
    /// Reads `DATE TIME`, `TIME`, and `TIME` after `today`, `tomorrow` or `yesterday`. A date is `2026-12-01`, a time
    /// `09:55`, `9:55` or `09:55:30`; a space or a `T` stands between them. `None` for any other form, and for a date
    /// or a time that no clock shows.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (day, time) = match text.split_once([' ', 'T']) {
            None => (Day::Nearest, text),
            Some(("today", time)) => (Day::FromToday(0), time),
            Some(("tomorrow", time)) => (Day::FromToday(1), time),
            Some(("yesterday", time)) => (Day::FromToday(-1), time),
            Some((date, time)) => (Day::Number(day_number(date)?), time),
        };
        Some(LocalTime { day, second: second_of_day(time.trim_start())? })
    }

    /// The moments at which the clock of a zone shows this time.
    pub fn reading(&self, zone: &Zone, now: Moment, toward: Toward) -> ClockReading {
        let today = zone.wall_clock(now).shown().div_euclid(DAY_S);
        let on = |day: i64| zone.reading(day * DAY_S + self.second);
        match self.day {
            Day::Number(day) => on(day),
            Day::FromToday(days) => on(today + days),
            Day::Nearest => {
                let is_near = |reading: &ClockReading| match (toward, reading) {
                    (Toward::Ahead, ClockReading::Once(at) | ClockReading::Never(_, at)) => {
                        *at > now
                    }
                    (Toward::Ahead, ClockReading::Twice(_, later)) => *later > now,
                    (Toward::Behind, ClockReading::Once(at) | ClockReading::Twice(at, _)) => {
                        *at <= now
                    }
                    (Toward::Behind, ClockReading::Never(at, _)) => *at <= now,
                };
                let next = if toward == Toward::Ahead { 1 } else { -1 };
                Some(on(today)).filter(is_near).unwrap_or_else(|| on(today + next))
            }
        }
    }
}

fn day_number(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let date = Date { year: digits(year)?, month: digits(month)? as u32, day: digits(day)? as u32 };
    let known = (1..=12).contains(&date.month) && (1..=date.days_of_month()).contains(&date.day);
    known.then(|| date.day_number())
}

fn second_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hour, minute) = (digits(parts.next()?)?, parts.next()?);
    let second = parts.next();
    let is_whole =
        parts.next().is_none() && minute.len() == 2 && second.is_none_or(|s| s.len() == 2);
    let (minute, second) = (digits(minute)?, second.map_or(Some(0), digits)?);
    let known = is_whole && hour < 24 && minute < 60 && second < 60;
    known.then_some(hour * 3_600 + minute * 60 + second)
}

/// A number of one to four digits and nothing else.
fn digits(text: &str) -> Option<i64> {
    let known = (1..=4).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    known.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        text.parse().unwrap()
    }

    /// Reads `text` in Berlin on 2026-12-01 at noon there.
    fn read(text: &str, toward: Toward) -> Option<ClockReading> {
        let zone = Zone::parse("Europe/Berlin").unwrap();
        let now = moment("2026-12-01T12:00:00+01:00");
        LocalTime::parse(text).map(|time| time.reading(&zone, now, toward))
    }

    #[test]
    fn a_time_is_read_by_the_clock_on_the_wall() {
        for (text, ahead, behind) in [
            ("2026-12-24 18:00", "2026-12-24T18:00:00+01:00", "2026-12-24T18:00:00+01:00"),
            ("2026-07-01T09:55:30", "2026-07-01T09:55:30+02:00", "2026-07-01T09:55:30+02:00"),
            ("09:55", "2026-12-02T09:55:00+01:00", "2026-12-01T09:55:00+01:00"),
            ("12:00", "2026-12-02T12:00:00+01:00", "2026-12-01T12:00:00+01:00"),
            ("23:59", "2026-12-01T23:59:00+01:00", "2026-11-30T23:59:00+01:00"),
            ("today 9:00", "2026-12-01T09:00:00+01:00", "2026-12-01T09:00:00+01:00"),
            ("tomorrow 9:00", "2026-12-02T09:00:00+01:00", "2026-12-02T09:00:00+01:00"),
            ("yesterday 23:00:01", "2026-11-30T23:00:01+01:00", "2026-11-30T23:00:01+01:00"),
        ] {
            assert_eq!(
                read(text, Toward::Ahead),
                Some(ClockReading::Once(moment(ahead))),
                "{text}"
            );
            assert_eq!(
                read(text, Toward::Behind),
                Some(ClockReading::Once(moment(behind))),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_on_no_clock_is_no_time() {
        for text in [
            "",
            "9",
            "24:00",
            "12:60",
            "12:5",
            "12:00:60",
            "12:00:00:00",
            "-1:00",
            "2026-12-01",
            "2026-02-30 09:00",
            "2026-13-01 09:00",
            "26-12-01 09:00",
            "2026-12-01-1 09:00",
            "soon",
            "tomorrow",
            "someday 09:00",
            "2026-12-01 09:00 Z",
            "09:00+01:00",
            "+9:00",
        ] {
            assert_eq!(LocalTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn where_the_clock_is_set_both_readings_are_told() {
        let both = ClockReading::Twice(
            moment("2026-10-25T02:30:00+02:00"),
            moment("2026-10-25T02:30:00+01:00"),
        );
        assert_eq!(read("2026-10-25 02:30", Toward::Ahead), Some(both));
        let none = ClockReading::Never(
            moment("2026-03-29T02:30:00+02:00"),
            moment("2026-03-29T02:30:00+01:00"),
        );
        assert_eq!(read("2026-03-29 02:30", Toward::Ahead), Some(none));
    }
}
