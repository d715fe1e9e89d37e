//! Values that come as text, in a string of a body or in a query, and the bounds of numbers.
//!
//! The refusals made here have no pointer yet: only the caller knows where the text stood.

use std::ops::RangeInclusive;

use crate::bounded::{self, Spans};
use crate::refusal::Refusal;
use crate::sentences::{Phrase, ValueRefusal, cut};
use crate::time::{Moment, Span, TimeError};

/// A duration within bounds.
pub(super) fn span(text: &str, bounds: Spans) -> Result<Span, Refusal> {
    match text.parse::<Span>() {
        Ok(span) => bounds.check(span, || cut(text)).map(|()| span),
        Err(TimeError::Range) => Err(bounds.refuse(cut(text))),
        Err(TimeError::Form) => Err(ValueRefusal::NotADuration { shown: cut(text) }.into()),
    }
}

/// A moment. One before 1970 is the first one: what it is for is over all the same.
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

/// A whole number as JSON writes it, within bounds. `1.0` and `1e2` are no whole numbers here: who
/// sends them does not know what it counts.
pub(super) fn integer(text: &str, bounds: RangeInclusive<i64>) -> Result<i64, Refusal> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = !digits.is_empty()
        && digits.bytes().all(|c| c.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if !whole {
        let (shown, min, max) = (cut(text), *bounds.start(), *bounds.end());
        return Err(ValueRefusal::NotAWholeNumber { shown, min, max }.into());
    }
    // What does not even fit the type is outside of every bound.
    match text.parse::<i64>() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => Err(bounded::number_outside(cut(text), &bounds)),
    }
}

/// One of some words; `what` is what they are, with its article.
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

/// Words of ours, as sentences take them.
pub(super) fn phrases(words: impl IntoIterator<Item = &'static str>) -> Vec<Phrase> {
    words.into_iter().map(Phrase::Borrowed).collect()
}
