//! Walk from one moment of an expression to the next.
//!
//! The wall clock of a zone runs evenly between two changes of its offset. In such a stretch the moments are those of a
//! clock without a zone, and a walk over months, days and the time of day finds the first one. So gaps and repeated
//! hours need no search, and the work is bounded by the months and changes up to the end of the walk.

use tenure_core::bounds::{HORIZON_US, SECOND_US};
use tenure_core::time::Moment;

use super::Cron;
use crate::civil::{DAY_S, Date};
use crate::zone::{Stretch, Zone};

impl Cron {
    /// The first moment after `after`, if there is one within ten years.
    pub fn next_after(&self, zone: &Zone, after: Moment) -> Option<Moment> {
        self.next_within(zone, after, Moment::from_us(after.us().saturating_add(HORIZON_US)))
    }

    /// The first moment after `after` and not after `until`.
    pub(crate) fn next_within(&self, zone: &Zone, after: Moment, until: Moment) -> Option<Moment> {
        let from = (after.us() / SECOND_US) as i64 + 1;
        let until = (until.us() / SECOND_US).min(LAST_S) as i64;
        let second = match self.fixed() {
            Some(time) => self.next_fixed(time, zone, from, until),
            None => self.next_of_wall_clock(zone, from, until),
        };
        second.map(|second| Moment::from_us(second as u64 * SECOND_US))
    }

    /// Follows the wall clock: a skipped time is left out, and a repeated time comes twice.
    fn next_of_wall_clock(&self, zone: &Zone, from: i64, until: i64) -> Option<i64> {
        let mut stretches = zone.stretches(from).take_while(|stretch| stretch.start <= until);
        stretches.find_map(|stretch| {
            let first = from.max(stretch.start) + stretch.offset;
            let last = until.min(stretch.end - 1) + stretch.offset;
            self.next_shown(first, last).map(|shown| shown - stretch.offset)
        })
    }

    /// Finds `time` on each of its days: the first time that the wall clock shows it, and the first instant after the
    /// gap if the wall clock skips it.
    fn next_fixed(&self, time: i64, zone: &Zone, from: i64, until: i64) -> Option<i64> {
        let mut stretches = zone.stretches(from).take_while(|stretch| stretch.start <= until);
        stretches.find_map(|stretch| {
            // A gap ends at the stretch's first second, which is the moment if the gap contains one.
            if stretch.start >= from && self.is_in_gap(time, stretch) {
                return Some(stretch.start);
            }
            // Repeated times had their moment when the wall clock showed them first.
            let shown_before = stretch.start.saturating_add(stretch.offset_before);
            let first = (from.max(stretch.start) + stretch.offset).max(shown_before);
            let last = until.min(stretch.end - 1) + stretch.offset;
            self.next_shown(first, last).map(|shown| shown - stretch.offset)
        })
    }

    /// True if the gap before this stretch contains a day's `time`. A day that is wholly in the gap does not exist, so
    /// nothing of it is made up.
    fn is_in_gap(&self, time: i64, stretch: Stretch) -> bool {
        if stretch.offset <= stretch.offset_before {
            return false;
        }
        let (mut first, end) =
            (stretch.start + stretch.offset_before, stretch.start + stretch.offset);
        while let Some(shown) = self.next_shown(first, end - 1) {
            let day = shown - time;
            if day < stretch.start + stretch.offset_before || day + DAY_S > end {
                return true;
            }
            first = shown + 1;
        }
        false
    }

    /// The first second from `first` to `last` that the expression names, by a wall clock without changes. Both are
    /// seconds since that clock showed 1970.
    fn next_shown(&self, first: i64, last: i64) -> Option<i64> {
        let today = first.div_euclid(DAY_S);
        let mut month = Date::of_day(today);
        let mut month_start = today - i64::from(month.day) + 1;
        // The walk over months begins on the first day of the search.
        let mut not_before = month.day;
        while month_start * DAY_S <= last {
            if self.months >> month.month & 1 == 1 {
                let mut days = self.days.of(month) & (u32::MAX << not_before);
                while days != 0 {
                    let day = month_start + i64::from(days.trailing_zeros()) - 1;
                    let since = if day == today { first.rem_euclid(DAY_S) } else { 0 };
                    if let Some(time) = self.next_time(since as u32) {
                        let shown = day * DAY_S + i64::from(time);
                        return (shown <= last).then_some(shown);
                    }
                    days &= days - 1;
                }
            }
            month_start += i64::from(month.days_of_month());
            month = month.next_month();
            not_before = 1;
        }
        None
    }

    /// The first time of day that is not before `since`, in seconds.
    fn next_time(&self, since: u32) -> Option<u32> {
        let (hour, minute, second) = (since / 3_600, since / 60 % 60, since % 60);
        let first = |bits: u64| bits.trailing_zeros();
        let at = |hour: u32, minute: u32, second: u32| hour * 3_600 + minute * 60 + second;
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = from(self.seconds, second)
            {
                return Some(at(hour, minute, second));
            }
            if let Some(minute) = from(self.minutes, minute + 1) {
                return Some(at(hour, minute, first(self.seconds)));
            }
        }
        let hour = from(self.hours, hour + 1)?;
        Some(at(hour, first(self.minutes), first(self.seconds)))
    }
}

/// The least number of a set that is at least `least`, which is at most 60.
fn from(bits: u64, least: u32) -> Option<u32> {
    let rest = bits >> least << least;
    (rest != 0).then(|| rest.trailing_zeros())
}

/// The last second that a moment can have.
const LAST_S: u64 = (1 << 53) / SECOND_US;
