//! Grammar of cron expressions: the forms of the contract, and no others. Libraries accept more (lower-case names,
//! ranges that wrap, years, `LW`), and each reads some of it in its own way; an unlisted form is refused here, so that
//! an expression means the same wherever it was copied from.

use super::days::{Days, OfMonth, OfWeek, Together};
use super::fault::{CronError, CronFault, CronField};
use super::shorthands::SHORTHANDS;
use super::{Cron, CronField::*};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Numbers of a field, a bit each.
type Bits = u64;

pub(super) fn parse(text: &str) -> Result<Cron, CronError> {
    let fields: Vec<&str> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    match fields.as_slice() {
        [name] if name.starts_with('@') => {
            let known = SHORTHANDS.iter().find(|(known, _)| known == name);
            parse(known.ok_or_else(|| CronError::new(CronFault::Shorthand, name))?.1)
        }
        [minute, hour, day, month, weekday] => {
            from_fields(["0", minute, hour, day, month, weekday])
        }
        [second, minute, hour, day, month, weekday] => {
            from_fields([second, minute, hour, day, month, weekday])
        }
        other => Err(CronError::new(CronFault::Fields(other.len()), text)),
    }
}

fn from_fields([second, minute, hour, day, month, weekday]: [&str; 6]) -> Result<Cron, CronError> {
    Ok(Cron {
        seconds: numbers(Second, second)?,
        minutes: numbers(Minute, minute)?,
        hours: numbers(Hour, hour)?,
        months: numbers(Month, month)?,
        days: Days {
            of_month: of_month(day)?,
            of_week: of_week(weekday)?,
            together: Together::of(day, weekday),
        },
    })
}

/// Reads a field of numbers alone.
fn numbers(field: CronField, text: &str) -> Result<Bits, CronError> {
    if text == "*" {
        let (min, max) = field.range();
        return Ok(stepped(min, max, 1));
    }
    text.split(',').try_fold(0, |bits, part| Ok(bits | plain(field, part)?))
}

fn of_month(text: &str) -> Result<Option<OfMonth>, CronError> {
    if is_any(text) {
        return Ok(None);
    }
    let mut days = OfMonth::default();
    for part in text.split(',') {
        if part == "L" {
            days.last = true;
        } else if let Some(number) = part.strip_suffix('W').filter(|number| is_number(number)) {
            days.nearest_workday |= 1 << value(Day, number, part)?;
        } else {
            days.numbers |= plain(Day, part)? as u32;
        }
    }
    Ok(Some(days))
}

fn of_week(text: &str) -> Result<Option<OfWeek>, CronError> {
    if is_any(text) {
        return Ok(None);
    }
    let mut days = OfWeek::default();
    for part in text.split(',') {
        if let Some(number) = part.strip_suffix('L').filter(|number| is_number(number)) {
            days.last |= sunday_once(1 << value(Weekday, number, part)?);
        } else if let Some((number, nth)) = part.split_once('#').filter(|(n, _)| is_number(n)) {
            let weekday = sunday_once(1 << value(Weekday, number, part)?);
            let nth = ["1", "2", "3", "4", "5"].iter().position(|known| *known == nth);
            let nth = nth.ok_or_else(|| CronError::new(CronFault::Form(Weekday), part))?;
            days.nth[nth] |= weekday;
        } else {
            days.every |= sunday_once(plain(Weekday, part)?);
        }
    }
    Ok(Some(days))
}

/// True if a day or weekday is left open.
fn is_any(text: &str) -> bool {
    matches!(text, "*" | "?")
}

/// Joins 7 and 0, which both mean Sunday.
fn sunday_once(bits: Bits) -> u8 {
    (bits | bits >> 7) as u8 & 0x7f
}

/// A number, a range, or a step of one of them or of `*`.
fn plain(field: CronField, part: &str) -> Result<Bits, CronError> {
    let form = || CronError::new(CronFault::Form(field), part);
    let (min, max) = field.range();
    let (base, step) = match part.split_once('/') {
        Some((base, step)) => (base, Some(step)),
        None => (part, None),
    };
    let range = match base.split_once('-') {
        Some((from, to)) => {
            let (from, mut to) = (value(field, from, part)?, (to, value(field, to, part)?));
            // Named as an end, Sunday is the seventh day: FRI-SUN does not wrap.
            if to.0 == WEEKDAYS[0] && from > 0 {
                to.1 = max;
            }
            if from > to.1 {
                return Err(CronError::new(CronFault::Backwards(field), part));
            }
            Some((from, to.1))
        }
        None if base == "*" => Some((min, max)),
        None => None,
    };
    match (range, step) {
        (Some((from, to)), Some(step)) if is_number(step) => match step.parse() {
            Ok(step) if (1..=max).contains(&step) => Ok(stepped(from, to, step)),
            _ => Err(CronError::new(CronFault::Step(field), part)),
        },
        // A `*` in a list adds nothing, or makes the rest of the list useless.
        (Some((from, to)), None) if base != "*" => Ok(stepped(from, to, 1)),
        (None, None) => Ok(1 << value(field, base, part)?),
        _ => Err(form()),
    }
}

/// A number of a field, or a name of one. `part` is the part of the field that contains it.
fn value(field: CronField, text: &str, part: &str) -> Result<u32, CronError> {
    let (min, max) = field.range();
    let names: &[&str] = match field {
        Month => &MONTHS,
        Weekday => &WEEKDAYS,
        _ => &[],
    };
    if let Some(at) = names.iter().position(|name| *name == text) {
        return Ok(min + at as u32);
    }
    if !is_number(text) {
        return Err(CronError::new(CronFault::Form(field), part));
    }
    let outside = || CronError::new(CronFault::Outside(field), part);
    text.parse().ok().filter(|number| (min..=max).contains(number)).ok_or_else(outside)
}

/// True for digits alone: `parse` would accept a sign too.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// The numbers from `from` to `to` by `step`, which is not 0.
fn stepped(from: u32, to: u32, step: u32) -> Bits {
    (from..=to).step_by(step as usize).fold(0, |bits, number| bits | 1 << number)
}
