//! Faults of a text that is not a cron expression: the field, its content, and the forms that it may have.

use std::borrow::Cow;
use std::fmt;

use tenure_core::refusal::Refusal;
use tenure_core::sentences::TimingRefusal;

use super::shorthands::SHORTHANDS;

/// A field of a cron expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CronField {
    /// The first of six fields, 0 to 59; second 0 where there are five.
    Second,
    /// The minute of the hour, 0 to 59.
    Minute,
    /// The hour of the day, 0 to 23.
    Hour,
    /// The day of the month, 1 to 31.
    Day,
    /// 1 to 12, or `JAN` to `DEC`.
    Month,
    /// 0 to 7, with 0 and 7 for Sunday, or `SUN` to `SAT`.
    Weekday,
}

impl CronField {
    /// Its least and greatest number.
    pub fn range(self) -> (u32, u32) {
        match self {
            CronField::Second | CronField::Minute => (0, 59),
            CronField::Hour => (0, 23),
            CronField::Day => (1, 31),
            CronField::Month => (1, 12),
            CronField::Weekday => (0, 7),
        }
    }

    /// The word that sentences use for it.
    pub fn as_str(self) -> &'static str {
        match self {
            CronField::Second => "second",
            CronField::Minute => "minute",
            CronField::Hour => "hour",
            CronField::Day => "day",
            CronField::Month => "month",
            CronField::Weekday => "weekday",
        }
    }

    /// The forms that it may have.
    fn forms(self) -> &'static str {
        match self {
            CronField::Second | CronField::Minute | CronField::Hour => {
                "use *, a number, a range such as 1-5, a step such as */5 or 10-40/5, or a list of these, as in 0,30"
            }
            CronField::Day => {
                "use * or ?, a number, a range such as 1-5, a step such as */5 or 10-20/5, L (the last day), 15W (the \
                 workday nearest to the 15th), or a list of these, as in 1,15"
            }
            CronField::Month => {
                "use *, a number or a name from JAN to DEC, a range such as JAN-MAR, a step such as */3, or a list of \
                 these, as in JAN,JUL"
            }
            CronField::Weekday => {
                "use * or ?, a number (0 and 7 are Sunday) or a name from SUN to SAT, a range such as MON-FRI, a step, \
                 5#2 (the second Friday), 5L (the last Friday), or a list of these, as in 1,3,5"
            }
        }
    }
}

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule of cron expressions that a text breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CronFault {
    /// It does not have five or six fields, but this many.
    Fields(usize),
    /// It begins with `@` and is not one of the five shorthands.
    Shorthand,
    /// This field has no such form.
    Form(CronField),
    /// A number is outside the range of this field.
    Outside(CronField),
    /// A range of this field ends before it begins. Ranges do not wrap.
    Backwards(CronField),
    /// A step of this field is 0, or greater than the field's greatest number.
    Step(CronField),
}

/// The error of a text that is not a cron expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CronError {
    /// The rule that the text breaks, with the field.
    pub fault: CronFault,
    /// The part of the text that breaks it, cut to 80 letters.
    pub part: String,
}

impl CronError {
    pub(super) fn new(fault: CronFault, part: &str) -> Self {
        const SHOWN: usize = 80;
        CronError { fault, part: part.chars().take(SHOWN).collect() }
    }

    /// The right form for the likely meaning of this part, if that is known.
    fn advice(&self, field: CronField) -> Cow<'static, str> {
        let part = self.part.as_str();
        let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        match part.split_once('/') {
            Some((from, step)) if number(from) && number(step) => {
                let (_, last) = field.range();
                format!("write {from}-{last}/{step}, or */{step}").into()
            }
            _ if part.chars().any(|c| c.is_ascii_lowercase()) => {
                format!("names and letters are capitals; {}", field.forms()).into()
            }
            _ => field.forms().into(),
        }
    }
}

impl From<CronError> for Refusal {
    fn from(error: CronError) -> Self {
        let name = |field: CronField| field.as_str().into();
        let shown = error.part.clone();
        match error.fault {
            CronFault::Fields(given) => TimingRefusal::CronFields { given },
            CronFault::Shorthand => {
                let known = SHORTHANDS.iter().map(|(name, _)| (*name).into()).collect();
                TimingRefusal::CronShorthand { shown, known }
            }
            CronFault::Form(field) => {
                TimingRefusal::CronForm { field: name(field), shown, form: error.advice(field) }
            }
            CronFault::Outside(field) => {
                let (min, max) = field.range();
                let (min, max) = (i64::from(min), i64::from(max));
                TimingRefusal::CronOutside { field: name(field), shown, min, max }
            }
            CronFault::Backwards(field) => {
                TimingRefusal::CronBackwards { field: name(field), shown }
            }
            CronFault::Step(field) => {
                let max = i64::from(field.range().1);
                TimingRefusal::CronStep { field: name(field), shown, max }
            }
        }
        .into()
    }
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Refusal::from(self.clone()).detail)
    }
}
impl std::error::Error for CronError {}
