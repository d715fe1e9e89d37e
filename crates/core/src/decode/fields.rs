//! Typed fields of a body: each is read, or refused with its place and the right form.
//!
//! A value here is a JSON node and its place. Nothing here knows a request.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::lines::line_too_long;
use super::words::{self, phrases};
use crate::at::At;
use crate::bounded::Spans;
use crate::bounds::LINE_BYTES_MAX;
use crate::json::{BadJson, Document, Kind, Node};
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::sentences::{BodyRefusal, Phrase, cut};
use crate::time::{Moment, Span};

/// A value, and its place in the body.
#[derive(Clone, Copy)]
pub(super) struct Value<'d, 'p> {
    pub node: Node<'d>,
    pub at: At<'p>,
}

/// Reads a body that is required. White space alone is an empty body.
pub(super) fn document(body: &[u8]) -> Result<Document<'_>, Refusal> {
    if is_empty(body) {
        return Err(Refusal::from(BodyRefusal::Empty).at(""));
    }
    Ok(Document::parse(body)?)
}

/// Reads a line of NDJSON, of at most 512 KiB.
pub(super) fn line(line: &[u8]) -> Result<Document<'_>, Refusal> {
    if line.len() > LINE_BYTES_MAX {
        return Err(line_too_long());
    }
    Document::parse(line).map_err(BadJson::refusal_of_line)
}

/// True if a body is empty or only white space.
pub(super) fn is_empty(body: &[u8]) -> bool {
    body.trim_ascii().is_empty()
}

impl<'d, 'p> Value<'d, 'p> {
    /// The value of the whole body.
    pub fn body(document: &'d Document<'_>) -> Self {
        Value { node: document.root(), at: At::Body }
    }

    /// A refusal at this place.
    pub fn refuse(&self, case: BodyRefusal) -> Refusal {
        self.at.refuse(case)
    }

    /// The refusal of a value of a wrong type; `case` gets its label and the type that was found.
    fn wrong_type(&self, case: impl FnOnce(String, Phrase) -> BodyRefusal) -> Refusal {
        self.refuse(case(self.at.label(), self.node.kind().noun().into()))
    }

    /// Adds this place to the refusal of a text.
    fn here<T>(&self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        self.at.here(result)
    }

    /// Reads a string of any length.
    pub fn string(&self) -> Result<Cow<'d, str>, Refusal> {
        let case = |label, noun| BodyRefusal::NotAString { label, noun };
        self.node.string().ok_or_else(|| self.wrong_type(case))
    }

    /// Reads a string of at most `max` bytes.
    pub fn short(&self, max: usize) -> Result<String, Refusal> {
        let text = self.string()?;
        self.at.text(&text, max)?;
        Ok(text.into_owned())
    }

    /// Reads a string with a parser: of a name, an id.
    pub fn parsed<T>(&self, parse: fn(&str) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.here(parse(&self.string()?))
    }

    /// Reads one of these words.
    pub fn one_of<T: Copy>(
        &self,
        what: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<T, Refusal> {
        let case = |label, noun| {
            let words = phrases(words.iter().map(|(word, _)| *word));
            BodyRefusal::NotAWord { label, noun, words }
        };
        let text = self.node.string().ok_or_else(|| self.wrong_type(case))?;
        self.here(words::one_of(&text, what, words))
    }

    /// Reads a duration within bounds.
    pub fn span(&self, bounds: Spans) -> Result<Span, Refusal> {
        let case = |label, noun| BodyRefusal::NotADuration { label, noun };
        let text = self.node.string().ok_or_else(|| self.wrong_type(case))?;
        self.here(words::span(&text, bounds))
    }

    /// Reads a moment of RFC 3339.
    pub fn moment(&self) -> Result<Moment, Refusal> {
        let case = |label, noun| BodyRefusal::NotAMoment { label, noun };
        let text = self.node.string().ok_or_else(|| self.wrong_type(case))?;
        self.here(words::moment(&text))
    }

    /// Reads a whole number within bounds, which must fit the type.
    pub fn integer<T: TryFrom<i64>>(&self, bounds: RangeInclusive<i64>) -> Result<T, Refusal> {
        if self.node.kind() != Kind::Number {
            let (min, max) = (*bounds.start(), *bounds.end());
            let case = |label, noun| BodyRefusal::NotAWholeNumber { label, noun, min, max };
            return Err(self.wrong_type(case));
        }
        let number = self.here(words::integer(self.node.text(), bounds))?;
        T::try_from(number)
            .map_err(|_| self.refuse(BodyRefusal::NumberOutside { label: self.at.label() }))
    }

    /// Reads `true` or `false`.
    pub fn boolean(&self) -> Result<bool, Refusal> {
        let case = |label, noun| BodyRefusal::NotABoolean { label, noun };
        self.node.boolean().ok_or_else(|| self.wrong_type(case))
    }

    /// Reads any JSON of at most `max` bytes, as it was sent.
    pub fn json(&self, max: usize) -> Result<Json, Refusal> {
        self.at.content(self.node.span().len(), max)?;
        let case = || BodyRefusal::ValueNotJson { label: self.at.label() };
        self.node.json().ok_or_else(|| self.refuse(case()))
    }

    /// Reads each item of an array of `count` items with `read`.
    pub fn each<T>(
        &self,
        count: RangeInclusive<usize>,
        read: impl FnMut(Value<'d, '_>) -> Result<T, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        if self.node.kind() != Kind::Array {
            return Err(self.wrong_type(|label, noun| BodyRefusal::NotAnArray { label, noun }));
        }
        self.items(count, read)
    }

    /// Like [`Value::each`], with the number of the item in a refusal.
    pub fn each_indexed<T>(
        &self,
        count: RangeInclusive<usize>,
        mut read: impl FnMut(Value<'d, '_>) -> Result<T, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        let mut index = 0;
        self.each(count, |item| {
            let value = read(item).map_err(|no| no.item(index))?;
            index += 1;
            Ok(value)
        })
    }

    fn items<T>(
        &self,
        count: RangeInclusive<usize>,
        mut read: impl FnMut(Value<'d, '_>) -> Result<T, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        // The items are counted first: nothing is read from an array that is too long.
        let length = self.node.items().count();
        self.at.items(length, count)?;
        let mut taken = Vec::with_capacity(length);
        for (index, node) in self.node.items().enumerate() {
            taken.push(read(Value { node, at: At::Item(&self.at, index) })?);
        }
        Ok(taken)
    }

    /// Reads each member of an object whose keys are not fields; `null` counts as absent.
    pub fn each_member<T>(
        &self,
        not_object: fn(String, Phrase) -> BodyRefusal,
        mut read: impl FnMut(&str, Value<'d, '_>) -> Result<T, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        if self.node.kind() != Kind::Object {
            return Err(self.wrong_type(not_object));
        }
        let mut taken = Vec::new();
        for (key, node) in self.node.members().filter(|(_, node)| !node.is_null()) {
            taken.push(read(&key, Value { node, at: At::Member(&self.at, &key) })?);
        }
        Ok(taken)
    }

    /// Reads an object of this shape. A member that is not one of its fields is refused.
    pub fn fields<const N: usize>(
        self,
        shape: &'static ObjectShape<N>,
    ) -> Result<Fields<'d, 'p, N>, Refusal> {
        self.opened(shape, shape.what, shape.answered, |_| true)
    }

    /// The same of an object that is called `what`, lacks a field of the shape, and is never an answer sent back.
    pub fn fields_without<const N: usize>(
        self,
        shape: &'static ObjectShape<N>,
        lacks: &'static str,
        what: &'static str,
    ) -> Result<Fields<'d, 'p, N>, Refusal> {
        self.opened(shape, what, |_| false, |field| field != lacks)
    }

    fn opened<const N: usize>(
        self,
        shape: &'static ObjectShape<N>,
        what: &'static str,
        answered: fn(&str) -> bool,
        has: impl Fn(&str) -> bool,
    ) -> Result<Fields<'d, 'p, N>, Refusal> {
        if self.node.kind() != Kind::Object {
            let case = |label, noun| BodyRefusal::NotAnObject { label, noun, what: what.into() };
            return Err(self.wrong_type(case));
        }
        let mut found = [None; N];
        for (key, node) in self.node.members() {
            match shape.fields.iter().position(|field| *field == key && has(field)) {
                Some(at) => found[at] = Some(node),
                None => {
                    let fields = phrases(shape.fields.into_iter().filter(|field| has(field)));
                    let (shown, what) = (cut(&key), what.into());
                    let case = if answered(&key) {
                        BodyRefusal::FieldAnswered { shown, what, fields }
                    } else {
                        BodyRefusal::FieldUnknown { shown, what, fields }
                    };
                    return Err(Refusal::from(case).at(At::Member(&self.at, &key).to_string()));
                }
            }
        }
        Ok(Fields { at: self.at, shape, what, found })
    }
}

/// The fields that an object may have.
pub(super) struct ObjectShape<const N: usize> {
    /// Name of the object, with its article.
    pub what: &'static str,
    /// All fields that a caller may set.
    pub fields: [&'static str; N],
    /// Whether answers show a field: the refusal tells a caller that sends an answer back that it cannot be set.
    pub answered: fn(&str) -> bool,
}

/// The fields of one object. `null` counts as absent.
pub(super) struct Fields<'d, 'p, const N: usize> {
    pub at: At<'p>,
    shape: &'static ObjectShape<N>,
    what: &'static str,
    found: [Option<Node<'d>>; N],
}

impl<'d, const N: usize> Fields<'d, '_, N> {
    /// A field as it was sent, `null` too; `None` if it is absent.
    pub fn raw(&self, name: &'static str) -> Option<Value<'d, '_>> {
        let at = self.shape.fields.iter().position(|field| *field == name);
        debug_assert!(at.is_some(), "{name} is not in the shape of {}", self.shape.what);
        let node = at.and_then(|at| self.found[at])?;
        Some(Value { node, at: At::Member(&self.at, name) })
    }

    /// A field as it was sent; `None` if it is absent or `null`.
    pub fn get(&self, name: &'static str) -> Option<Value<'d, '_>> {
        self.raw(name).filter(|value| !value.node.is_null())
    }

    /// A required field; `form` is a right example of it.
    pub fn required(
        &self,
        name: &'static str,
        form: &'static str,
    ) -> Result<Value<'d, '_>, Refusal> {
        self.get(name).ok_or_else(|| self.missing(name, form))
    }

    /// The refusal of an absent field.
    pub fn missing(&self, name: &'static str, form: &'static str) -> Refusal {
        let what = self.what.into();
        let case = BodyRefusal::FieldMissing { what, name: name.into(), form: form.into() };
        Refusal::from(case).at(At::Member(&self.at, name).to_string())
    }

    /// Refuses two fields that exclude each other; the pointer is that of `other`.
    pub fn not_both(&self, one: &'static str, other: &'static str) -> Result<(), Refusal> {
        if self.get(one).is_none() || self.get(other).is_none() {
            return Ok(());
        }
        let case = BodyRefusal::FieldsExclude { one: one.into(), other: other.into() };
        Err(self.conflict(other, case))
    }

    /// Refuses each of these fields if another field makes it meaningless: `because`.
    pub fn none_of(&self, names: &[&'static str], because: &str) -> Result<(), Refusal> {
        match names.iter().copied().find(|name| self.get(name).is_some()) {
            None => Ok(()),
            Some(name) => {
                let because = because.to_owned();
                Err(self.conflict(name, BodyRefusal::FieldWithout { name: name.into(), because }))
            }
        }
    }

    /// The refusal of a field that another field excludes.
    pub fn conflict(&self, name: &'static str, case: BodyRefusal) -> Refusal {
        Refusal::from(case).at(At::Member(&self.at, name).to_string())
    }
}
