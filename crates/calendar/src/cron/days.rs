//! Days of a month that an expression names.

use crate::civil::{Date, weekday};

/// The day and the weekday of an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Days {
    /// `None`: left open, by `*` or `?`.
    pub of_month: Option<OfMonth>,
    /// `None`: left open, by `*` or `?`.
    pub of_week: Option<OfWeek>,
    /// Where both are given: the way to join them.
    pub together: Together,
}

/// The way to join a day and a weekday that are both given. Cron decides by the first character of each field, so
/// `1,*/2` and `*/2,1` name the same days and mean different things beside a weekday.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Together {
    /// One of the two fields begins with `*`, as in `*/2`: a day must fit both.
    Both,
    /// Neither does: a day that fits one of them is enough.
    Either,
}

impl Together {
    pub fn of(day: &str, weekday: &str) -> Self {
        let begins_with_a_star = |field: &str| field.starts_with('*');
        if begins_with_a_star(day) || begins_with_a_star(weekday) {
            Together::Both
        } else {
            Together::Either
        }
    }
}

/// Days by their place in the month.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OfMonth {
    /// Bit 1 is the first.
    pub numbers: u32,
    /// `L` is given: the last day, whatever its number.
    pub last: bool,
    /// `15W`, bit 15: the workday (Monday to Friday) of this month that is nearest to the day; none in a month without
    /// that day.
    pub nearest_workday: u32,
}

/// Days by their weekday; bit 0 is Sunday.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OfWeek {
    /// Every one of the month.
    pub every: u8,
    /// `5#2`: the first of the month, the second and so on.
    pub nth: [u8; 5],
    /// `5L`: the last of the month.
    pub last: u8,
}

const SUNDAY: u32 = 0;
const SATURDAY: u32 = 6;

impl Days {
    /// The days of a month; bit 1 is the first.
    pub fn of(&self, month: Date) -> u32 {
        let shape = MonthShape::of(month);
        let all = shape.all();
        match (&self.of_month, &self.of_week) {
            (None, None) => all,
            (Some(days), None) => days.of(shape) & all,
            (None, Some(days)) => days.of(shape) & all,
            (Some(day), Some(weekday)) => {
                let (day, weekday) = (day.of(shape), weekday.of(shape));
                all & match self.together {
                    Together::Both => day & weekday,
                    Together::Either => day | weekday,
                }
            }
        }
    }
}

/// The length of a month and its first weekday, which decide its days.
#[derive(Clone, Copy)]
struct MonthShape {
    length: u32,
    /// The weekday of the first.
    begins: u32,
}

impl MonthShape {
    fn of(month: Date) -> Self {
        let first = Date { day: 1, ..month };
        MonthShape { length: month.days_of_month(), begins: weekday(first.day_number()) }
    }

    /// A bit for each day, from 1.
    fn all(self) -> u32 {
        u32::MAX >> (31 - self.length) & !1
    }

    fn weekday(self, day: u32) -> u32 {
        (self.begins + day - 1) % 7
    }

    /// The first day with this weekday.
    fn first(self, weekday: u32) -> u32 {
        1 + (weekday + 7 - self.begins) % 7
    }
}

impl OfMonth {
    fn of(&self, month: MonthShape) -> u32 {
        let mut days = self.numbers;
        if self.last {
            days |= 1 << month.length;
        }
        for day in (1..=month.length).filter(|day| self.nearest_workday >> day & 1 == 1) {
            days |= 1 << nearest_workday(month, day);
        }
        days
    }
}

fn nearest_workday(month: MonthShape, day: u32) -> u32 {
    match month.weekday(day) {
        // Not across the month's edge: there the second nearest workday counts.
        SATURDAY if day == 1 => 3,
        SATURDAY => day - 1,
        SUNDAY if day == month.length => day - 2,
        SUNDAY => day + 1,
        _ => day,
    }
}

impl OfWeek {
    fn of(&self, month: MonthShape) -> u32 {
        let mut days = 0;
        for weekday in 0..7 {
            let is_in = |set: u8| set >> weekday & 1 == 1;
            let first = month.first(weekday);
            for (nth, day) in (first..=month.length).step_by(7).enumerate() {
                let is_last = day + 7 > month.length;
                if is_in(self.every) || is_in(self.nth[nth]) || is_last && is_in(self.last) {
                    days |= 1 << day;
                }
            }
        }
        days
    }
}
