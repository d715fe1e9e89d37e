//! Cron expressions: their grammar, and the moments that they name in a zone.
//!
//! The walk and the grammar are our own ([decision 065](../../../docs/decisions/065-own-cron-on-jiff.md)).

mod days;
mod fault;
mod parse;
mod shorthands;
mod walk;

use std::str::FromStr;

pub use fault::{CronError, CronFault, CronField};

use days::Days;

/// A cron expression. A field of numbers is a set: a bit for each number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    days: Days,
}

impl Cron {
    /// Reads an expression of five fields (minute, hour, day, month, weekday) or six (second first), or a shorthand
    /// such as `@daily`.
    ///
    /// # Errors
    /// A form that the contract does not list is refused, with its field.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        parse::parse(text)
    }

    /// The time of day of a *fixed* expression, in seconds of the wall clock; `None` unless its second, minute and hour
    /// name one value each.
    fn fixed(&self) -> Option<i64> {
        let one = |bits: u64| (bits.count_ones() == 1).then(|| i64::from(bits.trailing_zeros()));
        Some(one(self.hours)? * 3_600 + one(self.minutes)? * 60 + one(self.seconds)?)
    }
}

impl FromStr for Cron {
    type Err = CronError;
    fn from_str(text: &str) -> Result<Self, CronError> {
        Cron::parse(text)
    }
}

#[cfg(test)]
mod tests;
