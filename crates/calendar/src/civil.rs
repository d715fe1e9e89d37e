//! Days of the Gregorian calendar, counted from 1970-01-01, which is day 0. Only arithmetic: no zone, no clock.

/// Seconds of a day, without the days of the clock change.
pub(crate) const DAY_S: i64 = 86_400;

/// A date, as a calendar on the wall shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Date {
    pub year: i64,
    /// From 1 (January) to 12.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
}

impl Date {
    /// The date of a day.
    pub fn of_day(number: i64) -> Self {
        // Years here begin in March, so that the day which leap years add is their last one. An era is 400 of them.
        let shifted = number + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096).div_euclid(365);
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Date { year, month: month as u32, day: day as u32 }
    }

    /// The day of this date.
    pub fn day_number(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let from_march = (i64::from(self.month) + 9) % 12;
        let of_year = (153 * from_march + 2) / 5 + i64::from(self.day) - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
        era * 146_097 + of_era - 719_468
    }

    /// The first day of the month after this date's.
    pub fn next_month(self) -> Self {
        match self.month {
            12 => Date { year: self.year + 1, month: 1, day: 1 },
            month => Date { year: self.year, month: month + 1, day: 1 },
        }
    }

    /// The number of days in this date's month.
    pub fn days_of_month(self) -> u32 {
        match self.month {
            4 | 6 | 9 | 11 => 30,
            2 if self.is_in_leap_year() => 29,
            2 => 28,
            _ => 31,
        }
    }

    fn is_in_leap_year(self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }
}

/// The weekday of a day: 0 is Sunday.
pub(crate) fn weekday(number: i64) -> u32 {
    // 1970-01-01 was a Thursday.
    (number + 4).rem_euclid(7) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_a_calendar() {
        let mut expected = jiff::civil::date(1968, 1, 1);
        let first = Date { year: 1968, month: 1, day: 1 }.day_number();
        assert_eq!(first, -731);
        for number in first..=(first + 300 * 366) {
            let date = Date::of_day(number);
            let (year, month, day) = (expected.year(), expected.month(), expected.day());
            assert_eq!(
                (date.year, date.month, date.day),
                (i64::from(year), month as u32, day as u32)
            );
            assert_eq!(date.day_number(), number);
            assert_eq!(weekday(number), expected.weekday().to_sunday_zero_offset() as u32);
            assert_eq!(date.days_of_month(), expected.days_in_month() as u32);
            let next = date.next_month();
            let start = expected.first_of_month().checked_add(jiff::Span::new().months(1)).unwrap();
            assert_eq!(
                (next.year, next.month, next.day),
                (i64::from(start.year()), start.month() as u32, 1)
            );
            expected = expected.tomorrow().unwrap();
        }
    }
}
