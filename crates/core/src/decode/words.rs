//! Values in text, from a string of a body or from a query, and the bounds of numbers.
//!
//! A refusal from here has no pointer yet: only the caller knows the place of the text.

use std::ops::RangeInclusive;

use crate::bounded::{self, Spans};
use crate::refusal::Refusal;
use crate::sentences::{Phrase, ValueRefusal, cut};
use crate::time::{Moment, Span, TimeError};

/// Reads a duration within bounds.
pub(super) fn span(text: &str, bounds: Spans) -> Result<Span, Refusal> {
    match text.parse::<Span>() {
        Ok(span) => bounds.check(span, || cut(text)).map(|()| span),
        Err(TimeError::Range) => Err(bounds.refuse(cut(text))),
        Err(TimeError::Form) => Err(ValueRefusal::NotADuration { shown: cut(text) }.into()),
    }
}

/// Reads a moment. One before 1970 becomes the first one, since both are past.
pub(super) fn moment(text: &str) -> Result<Moment, Refusal> {
    match text.parse::<Moment>() {
        Ok(moment) => bounded::moment(moment, || cut(text)).map(|()| moment),
        Err(TimeError::Range) if text.get(..4).is_some_and(|year| year <= "1970") => {
            Ok(Moment::ZERO)
        }
        Err(TimeError::Range) => Err(ValueRefusal::MomentTooFar { shown: cut(text) }.into()),
        Err(TimeError::Form) => Err(ValueRefusal::NotAMoment { shown: cut(text) }.into()),
    }
}

/// Reads a whole number in the form of JSON, within bounds. `1.0` and `1e2` are no whole numbers
/// here: a caller that sends them may not know that they count things.
pub(super) fn integer(text: &str, bounds: RangeInclusive<i64>) -> Result<i64, Refusal> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = !digits.is_empty()
        && digits.bytes().all(|c| c.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if !whole {
        let (shown, min, max) = (cut(text), *bounds.start(), *bounds.end());
        return Err(ValueRefusal::NotAWholeNumber { shown, min, max }.into());
    }
    // A number that does not fit the type is outside of every bound.
    match text.parse::<i64>() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => Err(bounded::number_outside(cut(text), &bounds)),
    }
}

/// Reads one of some words; `what` is their name, with its article.
pub(super) fn one_of<T: Copy>(
    text: &str,
    what: &'static str,
    words: &[(&'static str, T)],
) -> Result<T, Refusal> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let words = phrases(words.iter().map(|(word, _)| *word));
    Err(ValueRefusal::NotOneOf { shown: cut(text), what: what.into(), words }.into())
}

/// Words of the program, as sentences take them.
pub(super) fn phrases(words: impl IntoIterator<Item = &'static str>) -> Vec<Phrase> {
    words.into_iter().map(Phrase::Borrowed).collect()
}
