//! Rules of bounds: durations, numbers and lengths that a field accepts.

use std::ops::RangeInclusive;

use crate::bounds::{
    CATCH_UP_MAX, COUNT_MAX, EVERY_US_MIN, GAUGE_EVERY_US_MAX, GAUGE_EVERY_US_MIN,
    GAUGE_LAG_US_MAX, GAUGE_STALE_US_MAX, JITTER_US_MAX, LABEL_KEY_BYTES_MAX,
    LABEL_VALUE_BYTES_MAX, LABELS_MAX, LIST_MAX, NAME_BYTES_MAX, PRIORITY_MAX, PRIORITY_MIN,
    SECOND_US, SHARES_MAX, SNOOZE_US_MIN, SPAN_US_MAX, TTL_US_MAX, TTL_US_MIN, WAIT_US_MAX,
};
use crate::names::LimitName;
use crate::refusal::Refusal;
use crate::sentences::{BodyRefusal, NameRefusal, TimingRefusal, ValueRefusal, cut};
use crate::time::{Moment, Span};

/// Least and greatest duration of a field.
#[derive(Clone, Copy)]
pub(crate) struct Spans {
    min_us: u64,
    max_us: u64,
}

impl Spans {
    /// Zero to 3,650 days.
    pub const ANY: Spans = Spans { min_us: 0, max_us: SPAN_US_MAX };
    /// Any duration except zero.
    pub const SOME: Spans = Spans { min_us: 1, max_us: SPAN_US_MAX };
    /// How long a lease lives without a heartbeat.
    pub const TTL: Spans = Spans { min_us: TTL_US_MIN, max_us: TTL_US_MAX };
    /// How long a call waits.
    pub const WAIT: Spans = Spans { min_us: 0, max_us: WAIT_US_MAX };
    /// How long a holder may snooze a job.
    pub const SNOOZE: Spans = Spans { min_us: SNOOZE_US_MIN, max_us: SPAN_US_MAX };
    /// The interval of a schedule; [`whole_seconds`] applies, too.
    pub const EVERY: Spans = Spans { min_us: EVERY_US_MIN, max_us: SPAN_US_MAX };
    /// The longest delay of a schedule's moment.
    pub const JITTER: Spans = Spans { min_us: 0, max_us: JITTER_US_MAX };
    /// How often a gauge is read.
    pub const GAUGE_EVERY: Spans = Spans { min_us: GAUGE_EVERY_US_MIN, max_us: GAUGE_EVERY_US_MAX };
    /// How long a run of ours may be missing in a gauge's count.
    pub const GAUGE_LAG: Spans = Spans { min_us: 0, max_us: GAUGE_LAG_US_MAX };
    /// How old a reading may become.
    pub const GAUGE_STALE: Spans = Spans { min_us: 0, max_us: GAUGE_STALE_US_MAX };

    /// Refuses a duration outside; `shown` is the caller's way of writing it.
    pub fn check(self, span: Span, shown: impl FnOnce() -> String) -> Result<(), Refusal> {
        if (self.min_us..=self.max_us).contains(&span.us()) {
            Ok(())
        } else {
            Err(self.refuse(shown()))
        }
    }

    /// The refusal of a duration outside.
    pub fn refuse(self, shown: String) -> Refusal {
        let (min, max) = (Span::from_us(self.min_us), Span::from_us(self.max_us));
        let bounds = match self.min_us {
            0 => format!("at most \"{max}\""),
            1 => format!("more than \"0s\" and at most \"{max}\""),
            _ => format!("\"{min}\" to \"{max}\""),
        };
        ValueRefusal::DurationOutside { shown, bounds }.into()
    }
}

/// Priority of a job.
pub(crate) const PRIORITY: RangeInclusive<i64> = PRIORITY_MIN..=PRIORITY_MAX;
/// A number of things, at least one.
pub(crate) const COUNT: RangeInclusive<i64> = 1..=COUNT_MAX;
/// A number of things, which may be zero.
pub(crate) const AMOUNT: RangeInclusive<i64> = 0..=COUNT_MAX;
/// Turns of a group.
pub(crate) const SHARES: RangeInclusive<i64> = 1..=SHARES_MAX;
/// Moments that a schedule catches up with.
pub(crate) const CATCH_UP_COUNT: RangeInclusive<i64> = 1..=CATCH_UP_MAX;
/// Items of a page, or jobs that one call on many changes.
pub(crate) const PAGE: RangeInclusive<i64> = 1..=LIST_MAX as i64;
/// The version of a set: a whole number that JSON carries exactly everywhere.
pub(crate) const VERSION: RangeInclusive<i64> = 0..=(1 << 53) - 1;

/// The refusal of a whole number outside of its bounds.
pub(crate) fn number_outside(shown: String, bounds: &RangeInclusive<i64>) -> Refusal {
    let (min, max) = (*bounds.start(), *bounds.end());
    ValueRefusal::NumberOutside { shown, min, max }.into()
}

/// Refuses a moment that no fence could reach; `shown` is the caller's way of writing it.
pub(crate) fn moment(moment: Moment, shown: impl FnOnce() -> String) -> Result<(), Refusal> {
    if moment <= Moment::LAST {
        Ok(())
    } else {
        Err(ValueRefusal::MomentTooFar { shown: shown() }.into())
    }
}

/// A text of at most `max` bytes.
pub(crate) fn short(text: &str, max: usize) -> Result<&str, Refusal> {
    if text.len() > max {
        return Err(ValueRefusal::TooLong { bytes: text.len(), most: max }.into());
    }
    Ok(text)
}

/// The kind of a job: short, and without characters that would break a line of a list.
pub(crate) fn kind(text: &str) -> Result<(), Refusal> {
    let short = short(text, NAME_BYTES_MAX)?;
    if short.chars().any(char::is_control) {
        Err(NameRefusal::KindControl { most: NAME_BYTES_MAX }.into())
    } else {
        Ok(())
    }
}

/// Refuses an interval with a fraction of a second; `shown` is the caller's way of writing it.
pub(crate) fn whole_seconds(span: Span, shown: impl FnOnce() -> String) -> Result<(), Refusal> {
    if span.us().is_multiple_of(SECOND_US) {
        Ok(())
    } else {
        Err(TimingRefusal::NotWholeSeconds { shown: cut(&shown()) }.into())
    }
}

/// The key of a label. The value is a [`short`] text of [`LABEL_VALUE_BYTES_MAX`].
pub(crate) fn label_key(key: &str) -> Result<(), BodyRefusal> {
    let (bytes, most) = (key.len(), LABEL_KEY_BYTES_MAX);
    if (1..=most).contains(&bytes) {
        Ok(())
    } else {
        Err(BodyRefusal::LabelKeyLength { bytes, most })
    }
}

/// The most bytes of a label's value.
pub(crate) const LABEL_VALUE: usize = LABEL_VALUE_BYTES_MAX;

/// The number of labels of a job.
pub(crate) fn labels(labels: usize) -> Result<(), BodyRefusal> {
    if labels <= LABELS_MAX {
        Ok(())
    } else {
        Err(BodyRefusal::TooManyLabels { labels, most: LABELS_MAX })
    }
}

/// A limit that can be held, so no template.
pub(crate) fn no_template(limit: &LimitName) -> Result<(), Refusal> {
    if !limit.is_template() {
        return Ok(());
    }
    let (shown, family) = (limit.to_string(), limit.family().to_owned());
    Err(NameRefusal::LimitTemplate { shown, family }.into())
}
