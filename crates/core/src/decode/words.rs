//! Values that come as text, in a string of a body or in a query, and the bounds of numbers.
//!
//! The refusals made here have no pointer yet: only the caller knows where the text stood.

use std::ops::RangeInclusive;

use super::at::cut;
use super::nearest;
use crate::bounds::SPAN_US_MAX;
use crate::refusal::{Code, Refusal};
use crate::time::{Moment, Span, TimeError};

pub(super) const SPAN_HINT: &str = "write a duration as a string of whole numbers with units, largest first, such as \"5m\", \
     \"90s\", \"2h30m\" or \"500ms\"";
pub(super) const MOMENT_HINT: &str = "write a moment as an RFC 3339 string with its offset, such as \"2026-12-01T09:55:00Z\" or \
     \"2026-12-01T17:55:00+08:00\"";

/// Least and greatest duration of a field.
#[derive(Clone, Copy)]
pub(super) struct Spans {
    pub min_us: u64,
    pub max_us: u64,
}

impl Spans {
    /// Any duration.
    pub const ANY: Spans = Spans { min_us: 0, max_us: SPAN_US_MAX };
    /// Any duration but none.
    pub const SOME: Spans = Spans { min_us: 1, max_us: SPAN_US_MAX };

    fn words(self) -> String {
        let (min, max) = (Span::from_us(self.min_us), Span::from_us(self.max_us));
        match self.min_us {
            0 => format!("at most \"{max}\""),
            1 => format!("more than \"0s\" and at most \"{max}\""),
            _ => format!("\"{min}\" to \"{max}\""),
        }
    }
}

/// A duration within bounds.
pub(super) fn span(text: &str, bounds: Spans) -> Result<Span, Refusal> {
    let out = || {
        let shown = cut(text);
        Refusal::new(
            Code::OutOfBounds,
            format!("the duration {shown:?} is outside its bounds"),
            format!("use {}", bounds.words()),
        )
    };
    match text.parse::<Span>() {
        Ok(span) if (bounds.min_us..=bounds.max_us).contains(&span.us()) => Ok(span),
        Ok(_) | Err(TimeError::Range) => Err(out()),
        Err(TimeError::Form) => Err(Refusal::new(
            Code::InvalidField,
            format!("{:?} is not a duration", cut(text)),
            SPAN_HINT,
        )),
    }
}

/// A moment. One before 1970 is the first one: what it is for is over all the same.
pub(super) fn moment(text: &str) -> Result<Moment, Refusal> {
    match text.parse::<Moment>() {
        Ok(moment) => Ok(moment),
        Err(TimeError::Range) if text.get(..4).is_some_and(|year| year <= "1970") => {
            Ok(Moment::ZERO)
        }
        Err(TimeError::Range) => Err(Refusal::new(
            Code::OutOfBounds,
            format!("the moment {:?} is too far ahead", cut(text)),
            "use a moment before the year 2255",
        )),
        Err(TimeError::Form) => Err(Refusal::new(
            Code::InvalidField,
            format!("{:?} is not a moment with an offset", cut(text)),
            MOMENT_HINT,
        )),
    }
}

/// A whole number as JSON writes it, within bounds. `1.0` and `1e2` are no whole numbers here: who
/// sends them does not know what it counts.
pub(super) fn integer(text: &str, bounds: RangeInclusive<i64>) -> Result<i64, Refusal> {
    let (min, max) = (bounds.start(), bounds.end());
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = !digits.is_empty()
        && digits.bytes().all(|c| c.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if !whole {
        return Err(Refusal::new(
            Code::InvalidField,
            format!("{:?} is not a whole number", cut(text)),
            format!("use a whole number from {min} to {max}, without a point or an exponent"),
        ));
    }
    // What does not even fit the type is outside of every bound.
    match text.parse::<i64>() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => Err(Refusal::new(
            Code::OutOfBounds,
            format!("{} is outside its bounds", cut(text)),
            format!("use a whole number from {min} to {max}"),
        )),
    }
}

/// One of some words; `what` is what they are, with its article.
pub(super) fn one_of<T: Copy>(
    text: &str,
    what: &str,
    words: &[(&'static str, T)],
) -> Result<T, Refusal> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(Refusal::new(
        Code::InvalidField,
        format!("{:?} is not {what}", cut(text)),
        format!("{}use {}", did_you_mean(text, &all), listed(&all, "or")),
    ))
}

/// `did you mean "queue"? `, or nothing.
pub(super) fn did_you_mean(name: &str, names: &[&str]) -> String {
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean {near:?}? "),
        None => String::new(),
    }
}

/// `"a", "b" or "c"`.
pub(super) fn listed(names: &[&str], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} {word} {last}", before.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// A text of at most so many bytes.
pub(super) fn short(text: &str, max: usize) -> Result<&str, Refusal> {
    if text.len() > max {
        return Err(Refusal::new(
            Code::OutOfBounds,
            format!("a text of {} bytes is longer than {max}", text.len()),
            format!("use at most {max} bytes"),
        ));
    }
    Ok(text)
}
