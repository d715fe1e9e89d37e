//! Forms of JSON values. A form reads values of one type from a body, checks those that a program made, writes them
//! into a body, and describes them.
//!
//! So a bound stands once: the reader of a server, the check of a request that never was a body, the body that a client
//! sends and the OpenAPI document take it from the same form.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::fields::Value;
use crate::at::At;
use crate::bounded::Spans;
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::time::{Moment, Span};

/// A form of values of the type `T`.
pub(crate) trait Form<T> {
    /// Reads a value, or refuses it at its place.
    fn read(&self, value: Value<'_, '_>) -> Result<T, Refusal>;
    /// Refuses a value that a program made and a reader would refuse. A type that holds only good values needs no check.
    fn check(&self, _value: &T, _at: &At<'_>) -> Result<(), Refusal> {
        Ok(())
    }
    /// Writes a value as a reader takes it.
    fn write<S: Serializer>(&self, value: &T, to: S) -> Result<S::Ok, S::Error>;
    /// Describes its values.
    fn kind(&self) -> ValueKind;
}

/// Description of the values that a field takes, for documents.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueKind {
    /// A text of at most this many bytes; `None`: of any length.
    Text(Option<usize>),
    /// A whole number within these bounds.
    Whole(RangeInclusive<i64>),
    /// A duration such as `1m30s`.
    Duration,
    /// A moment of RFC 3339.
    Moment,
    Boolean,
    /// Any JSON.
    Any,
    /// An object whose keys are not fields, with values of this kind.
    Map(Box<ValueKind>),
    /// One of these words.
    Words(Vec<&'static str>),
    /// A list with this many items.
    List(Box<ValueKind>, RangeInclusive<usize>),
    /// The object of this schema.
    Object(&'static str),
    /// A value of one of these kinds.
    OneOf(Vec<ValueKind>),
    /// A kind that has a schema of its own, under this name.
    Alias(&'static str, Box<ValueKind>),
}

/// A value with its form, to be written.
pub(crate) struct Written<'a, T, F>(pub &'a T, pub &'a F);

impl<T, F: Form<T>> Serialize for Written<'_, T, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.1.write(self.0, to)
    }
}

/// A whole number within bounds.
pub(crate) struct Whole(pub RangeInclusive<i64>);

impl<T: TryFrom<i64> + Into<i64> + Copy + Serialize> Form<T> for Whole {
    fn read(&self, value: Value<'_, '_>) -> Result<T, Refusal> {
        value.integer(self.0.clone())
    }
    fn check(&self, value: &T, at: &At<'_>) -> Result<(), Refusal> {
        at.number(*value, self.0.clone())
    }
    fn write<S: Serializer>(&self, value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Whole(self.0.clone())
    }
}

/// A number of things, which memory holds.
pub(crate) struct Number(pub RangeInclusive<i64>);

impl Form<usize> for Number {
    fn read(&self, value: Value<'_, '_>) -> Result<usize, Refusal> {
        value.integer(self.0.clone())
    }
    fn check(&self, value: &usize, at: &At<'_>) -> Result<(), Refusal> {
        at.number(i64::try_from(*value).unwrap_or(i64::MAX), self.0.clone())
    }
    fn write<S: Serializer>(&self, value: &usize, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Whole(self.0.clone())
    }
}

/// A duration within bounds.
pub(crate) struct Duration(pub Spans);

impl Form<Span> for Duration {
    fn read(&self, value: Value<'_, '_>) -> Result<Span, Refusal> {
        value.span(self.0)
    }
    fn check(&self, value: &Span, at: &At<'_>) -> Result<(), Refusal> {
        at.span(*value, self.0)
    }
    fn write<S: Serializer>(&self, value: &Span, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Duration
    }
}

/// A moment.
pub(crate) struct Time;

impl Form<Moment> for Time {
    fn read(&self, value: Value<'_, '_>) -> Result<Moment, Refusal> {
        value.moment()
    }
    fn check(&self, value: &Moment, at: &At<'_>) -> Result<(), Refusal> {
        at.moment(*value)
    }
    fn write<S: Serializer>(&self, value: &Moment, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Moment
    }
}

/// A text of at most this many bytes.
pub(crate) struct Text(pub usize);

impl Form<String> for Text {
    fn read(&self, value: Value<'_, '_>) -> Result<String, Refusal> {
        value.short(self.0)
    }
    fn check(&self, value: &String, at: &At<'_>) -> Result<(), Refusal> {
        at.text(value, self.0)
    }
    fn write<S: Serializer>(&self, value: &String, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(Some(self.0))
    }
}

/// A text by this rule, of at most this many bytes.
pub(crate) struct Ruled(pub fn(&str) -> Result<(), Refusal>, pub usize);

impl Form<String> for Ruled {
    fn read(&self, value: Value<'_, '_>) -> Result<String, Refusal> {
        let text = value.string()?;
        value.at.here((self.0)(&text))?;
        Ok(text.into_owned())
    }
    fn check(&self, value: &String, at: &At<'_>) -> Result<(), Refusal> {
        at.here((self.0)(value))
    }
    fn write<S: Serializer>(&self, value: &String, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(Some(self.1))
    }
}

/// A text that this function reads: a name, an id. Its type holds only good ones.
pub(crate) struct Name<T>(pub fn(&str) -> Result<T, Refusal>, pub Option<usize>);

impl<T: Serialize> Form<T> for Name<T> {
    fn read(&self, value: Value<'_, '_>) -> Result<T, Refusal> {
        value.parsed(self.0)
    }
    fn write<S: Serializer>(&self, value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(self.1)
    }
}

/// A text that something else judges, so that it may have any length.
pub(crate) const ANY_TEXT: Name<String> = Name(|text| Ok(text.to_owned()), None);

/// Any JSON of at most this many bytes, kept as it was sent.
pub(crate) struct Content(pub usize);

impl Form<Json> for Content {
    fn read(&self, value: Value<'_, '_>) -> Result<Json, Refusal> {
        value.json(self.0)
    }
    fn check(&self, value: &Json, at: &At<'_>) -> Result<(), Refusal> {
        at.content(value.text().len(), self.0)
    }
    fn write<S: Serializer>(&self, value: &Json, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Any
    }
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Form<bool> for Flag {
    fn read(&self, value: Value<'_, '_>) -> Result<bool, Refusal> {
        value.boolean()
    }
    fn write<S: Serializer>(&self, value: &bool, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(*value)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Boolean
    }
}

/// One of some words; the first text is their name, with its article.
pub(crate) struct Words<T: 'static>(pub &'static str, pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq + Debug> Form<T> for Words<T> {
    fn read(&self, value: Value<'_, '_>) -> Result<T, Refusal> {
        value.one_of(self.0, self.1)
    }
    fn write<S: Serializer>(&self, value: &T, to: S) -> Result<S::Ok, S::Error> {
        let word = self.1.iter().find(|(_, meaning)| meaning == value);
        let missing = || serde::ser::Error::custom(format!("{value:?} is not {}", self.0));
        to.serialize_str(word.ok_or_else(missing)?.0)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Words(self.1.iter().map(|(word, _)| *word).collect())
    }
}

/// A list with this many items of a form.
pub(crate) struct List<F>(pub RangeInclusive<usize>, pub F);

impl<T, F: Form<T>> Form<Vec<T>> for List<F> {
    fn read(&self, value: Value<'_, '_>) -> Result<Vec<T>, Refusal> {
        value.each(self.0.clone(), |item| self.1.read(item))
    }
    fn check(&self, value: &Vec<T>, at: &At<'_>) -> Result<(), Refusal> {
        at.items(value.len(), self.0.clone())?;
        let mut items = value.iter().enumerate();
        items.try_for_each(|(index, item)| self.1.check(item, &At::Item(at, index)))
    }
    fn write<S: Serializer>(&self, value: &Vec<T>, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(value.len()))?;
        value.iter().try_for_each(|item| list.serialize_element(&Written(item, &self.1)))?;
        list.end()
    }
    fn kind(&self) -> ValueKind {
        ValueKind::List(Box::new(self.1.kind()), self.0.clone())
    }
}

/// A value on the heap.
pub(crate) struct Boxed<F>(pub F);

impl<T, F: Form<T>> Form<Box<T>> for Boxed<F> {
    fn read(&self, value: Value<'_, '_>) -> Result<Box<T>, Refusal> {
        self.0.read(value).map(Box::new)
    }
    fn check(&self, value: &Box<T>, at: &At<'_>) -> Result<(), Refusal> {
        self.0.check(value, at)
    }
    fn write<S: Serializer>(&self, value: &Box<T>, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(value, to)
    }
    fn kind(&self) -> ValueKind {
        self.0.kind()
    }
}

/// A form whose kind has a schema of its own, under this name.
pub(crate) struct Alias<F>(pub &'static str, pub F);

impl<T, F: Form<T>> Form<T> for Alias<F> {
    fn read(&self, value: Value<'_, '_>) -> Result<T, Refusal> {
        self.1.read(value)
    }
    fn check(&self, value: &T, at: &At<'_>) -> Result<(), Refusal> {
        self.1.check(value, at)
    }
    fn write<S: Serializer>(&self, value: &T, to: S) -> Result<S::Ok, S::Error> {
        self.1.write(value, to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Alias(self.0, Box::new(self.1.kind()))
    }
}
