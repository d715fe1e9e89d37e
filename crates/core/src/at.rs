//! Places in a request: a path from the body to a value, which costs nothing until a refusal writes it down.

use std::fmt;
use std::ops::RangeInclusive;

use crate::bounded::{self, Spans};
use crate::refusal::Refusal;
use crate::sentences::{BodyRefusal, cut};
use crate::time::{Moment, Span};

/// A place, counted from the whole body. Its text is a pointer of RFC 6901.
#[derive(Clone, Copy, Debug)]
pub enum At<'p> {
    /// The whole body itself.
    Body,
    /// A member of the object at a place.
    Member(&'p At<'p>, &'p str),
    /// An item of the array at a place.
    Item(&'p At<'p>, usize),
}

impl At<'_> {
    /// The word that sentences use for it.
    pub(crate) fn label(&self) -> String {
        match self {
            At::Body => "the body".to_owned(),
            At::Member(_, name) => format!("{:?}", cut(name)),
            At::Item(At::Body, index) => format!("item {index}"),
            At::Item(of, index) => format!("item {index} of {}", of.label()),
        }
    }

    /// A refusal at this place.
    pub(crate) fn refuse(&self, case: impl Into<Refusal>) -> Refusal {
        case.into().at(self.to_string())
    }

    /// Adds this place to the refusal of a value.
    pub(crate) fn here<T>(&self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        result.map_err(|no| no.about(self.label()).at(self.to_string()))
    }

    /// Refuses a duration at this place that is outside its bounds.
    pub(crate) fn span(&self, span: Span, bounds: Spans) -> Result<(), Refusal> {
        self.here(bounds.check(span, || span.to_string()))
    }

    /// Refuses a moment at this place that cannot be given.
    pub(crate) fn moment(&self, moment: Moment) -> Result<(), Refusal> {
        self.here(bounded::moment(moment, || moment.to_string()))
    }

    /// Refuses a whole number at this place that is outside its bounds.
    pub(crate) fn number(
        &self,
        number: impl Into<i64>,
        bounds: RangeInclusive<i64>,
    ) -> Result<(), Refusal> {
        let number = number.into();
        if bounds.contains(&number) {
            return Ok(());
        }
        self.here(Err(bounded::number_outside(number.to_string(), &bounds)))
    }

    /// Refuses a text at this place that is longer than `most` bytes.
    pub(crate) fn text(&self, text: &str, most: usize) -> Result<(), Refusal> {
        self.here(bounded::short(text, most).map(drop))
    }

    /// Refuses JSON at this place that is longer than `most` bytes.
    pub(crate) fn content(&self, bytes: usize, most: usize) -> Result<(), Refusal> {
        if bytes <= most {
            return Ok(());
        }
        Err(self.refuse(BodyRefusal::ContentTooLong { label: self.label(), bytes, most }))
    }

    /// Refuses a list at this place with too few or too many items.
    pub(crate) fn items(&self, items: usize, count: RangeInclusive<usize>) -> Result<(), Refusal> {
        if count.contains(&items) {
            return Ok(());
        }
        let label = self.label();
        Err(self.refuse(match (*count.start(), *count.end()) {
            (0, most) => BodyRefusal::TooManyItems { label, items, most },
            (min, max) => BodyRefusal::ItemsOutside { label, items, min, max },
        }))
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Body => Ok(()),
            At::Member(of, name) => write!(f, "{of}/{}", escaped(name)),
            At::Item(of, index) => write!(f, "{of}/{index}"),
        }
    }
}

/// A name as a part of a pointer: `~` becomes `~0`, `/` becomes `~1`.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_rfc_6901() {
        let body = At::Body;
        let settle = At::Member(&body, "settle");
        let item = At::Item(&settle, 3);
        let labels = At::Member(&item, "labels");
        for (at, pointer) in [
            (body, ""),
            (settle, "/settle"),
            (item, "/settle/3"),
            (At::Member(&labels, "a/b~c"), "/settle/3/labels/a~1b~0c"),
            (At::Member(&labels, ""), "/settle/3/labels/"),
        ] {
            assert_eq!(at.to_string(), pointer);
        }
    }
}
