//! JSON reader over bytes, strict: everything that comes from outside is read here, and nowhere else.
//!
//! Own code, because the contract asks for four things that no well-kept library gives together: a
//! key that appears twice is an error (also after unescaping, also inside payloads), level 65 is an
//! error, the exact text of opaque parts (payload, result, data, progress) is kept without encoding
//! it again, and every value has a place, so that a refusal can point at each field.
//!
//! A body is read once, from the front, without recursion and without an allocation per value, into
//! a flat list of spans ([`Document`]); a [`Node`] is a place in that list. Nothing here knows the
//! fields of a request, and no error text carries a value that was read (only keys).
//!
//! The grammar is RFC 8259, in UTF-8, with lone surrogates refused. Numbers keep their text: one
//! that no double can hold (`1e999`) is JSON, and the reader of a field decides if it fits.

mod keys;
mod parse;
mod place;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::ops::Range;

use crate::secret::Json;

pub use place::BadJson;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Null,
    Bool,
    /// A number; its text is kept.
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// Its name with the article, for sentences.
    pub const fn noun(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Null,
    True,
    False,
    Number,
    /// A string, or a key, without escapes: its meaning is the text between the quotes.
    Plain,
    /// A string, or a key, with escapes.
    Escaped,
    Array,
    Object,
}

/// One value: the range of its text, and the index of its next sibling in the list. The members of
/// an object are a key and a value in turn.
#[derive(Clone, Copy)]
struct Slot {
    start: u32,
    end: u32,
    next: u32,
    tag: Tag,
}

/// A whole, well-formed JSON text.
pub struct Document<'a> {
    text: &'a str,
    slots: Vec<Slot>,
}

impl<'a> Document<'a> {
    /// Reads one JSON value and nothing after it.
    ///
    /// The error has the problem and its place; it becomes the refusal `bad_json`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BadJson> {
        let text = std::str::from_utf8(bytes).map_err(|e| BadJson::utf8(bytes, e.valid_up_to()))?;
        Ok(Document { text, slots: parse::parse(text)? })
    }

    pub fn root(&self) -> Node<'_> {
        Node { document: self, at: 0 }
    }

    fn slot(&self, at: u32) -> Slot {
        // A document always has slots, and every index comes from the list itself.
        self.slots[at as usize]
    }
}

impl std::fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Document({} bytes, {} slots)", self.text.len(), self.slots.len())
    }
}

/// One value of a document.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document<'d>,
    at: u32,
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({:?}, {:?})", self.kind(), self.span())
    }
}

impl<'d> Node<'d> {
    fn slot(self) -> Slot {
        self.document.slot(self.at)
    }

    pub fn kind(self) -> Kind {
        match self.slot().tag {
            Tag::Null => Kind::Null,
            Tag::True | Tag::False => Kind::Bool,
            Tag::Number => Kind::Number,
            Tag::Plain | Tag::Escaped => Kind::String,
            Tag::Array => Kind::Array,
            Tag::Object => Kind::Object,
        }
    }

    /// True if it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Its bytes in the source.
    pub fn span(self) -> Range<usize> {
        let slot = self.slot();
        slot.start as usize..slot.end as usize
    }

    /// Its exact text, without white space around it; a string has its quotes.
    pub fn text(self) -> &'d str {
        &self.document.text[self.span()]
    }

    /// The content of a string; `None` for any other type.
    pub fn string(self) -> Option<Cow<'d, str>> {
        let inner = || self.text().get(1..self.text().len() - 1).unwrap_or_default();
        match self.slot().tag {
            Tag::Plain => Some(Cow::Borrowed(inner())),
            Tag::Escaped => Some(Cow::Owned(text::unescape(inner()))),
            _ => None,
        }
    }

    /// The value of a boolean; `None` for any other type.
    pub fn boolean(self) -> Option<bool> {
        match self.slot().tag {
            Tag::True => Some(true),
            Tag::False => Some(false),
            _ => None,
        }
    }

    /// The values of an array, in order; empty for any other type.
    pub fn items(self) -> impl Iterator<Item = Node<'d>> {
        let slot = self.slot();
        let (at, end) = if slot.tag == Tag::Array { (self.at + 1, slot.next) } else { (0, 0) };
        Siblings { document: self.document, at, end }
    }

    /// The members of an object, in order; empty for any other type.
    pub fn members(self) -> impl Iterator<Item = (Cow<'d, str>, Node<'d>)> {
        let slot = self.slot();
        let (at, end) = if slot.tag == Tag::Object { (self.at + 1, slot.next) } else { (0, 0) };
        let mut both = Siblings { document: self.document, at, end };
        std::iter::from_fn(move || {
            let key = both.next()?;
            Some((key.string().unwrap_or_default(), both.next()?))
        })
    }

    /// The value of a member; `None` without such a member, and for any other type.
    pub fn member(self, name: &str) -> Option<Node<'d>> {
        self.members().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The value as it was sent, to be carried without being interpreted. `None` only if the other
    /// reader of JSON in this crate disagrees with this one, which would be a bug.
    pub fn json(self) -> Option<Json> {
        Json::parse(self.text())
    }
}

struct Siblings<'d> {
    document: &'d Document<'d>,
    at: u32,
    end: u32,
}

impl<'d> Iterator for Siblings<'d> {
    type Item = Node<'d>;
    fn next(&mut self) -> Option<Node<'d>> {
        if self.at >= self.end {
            return None;
        }
        let node = Node { document: self.document, at: self.at };
        self.at = node.slot().next;
        Some(node)
    }
}
