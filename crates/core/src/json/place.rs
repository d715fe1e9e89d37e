//! Errors of texts that are not JSON, with their place. They repeat only keys of the text.

use std::borrow::Cow;
use std::fmt;

use crate::bounds::JSON_DEPTH_MAX;
use crate::refusal::Refusal;
use crate::sentences::{BodyRefusal, Phrase, cut};

/// The error of a text that is not the JSON of the contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadJson {
    /// The problem, in a few words.
    pub what: Cow<'static, str>,
    /// The next step for the caller.
    pub hint: Cow<'static, str>,
    /// Byte of the text, from 0.
    pub offset: usize,
    /// Number of the line, from 1.
    pub line: usize,
    /// Character of the line, from 1.
    pub column: usize,
}

const HINT: &str = "send one JSON value, as RFC 8259 writes it";

impl BadJson {
    /// `bytes` up to `offset` must be UTF-8 for the column to count characters; it always is.
    fn new(
        what: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
        bytes: &[u8],
        offset: usize,
    ) -> Self {
        let before = bytes.get(..offset).unwrap_or(bytes);
        let lines = before.iter().filter(|c| **c == b'\n').count();
        let line_start = before.iter().rposition(|c| *c == b'\n').map_or(0, |at| at + 1);
        // Continuation bytes of a character are not counted.
        let characters = before[line_start..].iter().filter(|c| **c & 0xC0 != 0x80).count();
        BadJson {
            what: what.into(),
            hint: hint.into(),
            offset,
            line: lines + 1,
            column: characters + 1,
        }
    }

    pub(super) fn utf8(bytes: &[u8], offset: usize) -> Self {
        BadJson::new("this byte is not UTF-8", "encode the body in UTF-8", bytes, offset)
    }

    pub(super) fn syntax(what: &'static str, text: &str, offset: usize) -> Self {
        if offset >= text.len() {
            let what = format!("it ends where {what}");
            return BadJson::new(what, "send the whole body", text.as_bytes(), text.len());
        }
        BadJson::new(what, HINT, text.as_bytes(), offset)
    }

    pub(super) fn with_hint(
        what: &'static str,
        hint: &'static str,
        text: &str,
        offset: usize,
    ) -> Self {
        BadJson::new(what, hint, text.as_bytes(), offset)
    }

    pub(super) fn too_deep(text: &str, offset: usize) -> Self {
        BadJson::new(
            format!("it is nested deeper than {JSON_DEPTH_MAX} levels"),
            format!("nest at most {JSON_DEPTH_MAX} levels; the outermost object is level 1"),
            text.as_bytes(),
            offset,
        )
    }

    pub(super) fn twice(key: &str, text: &str, offset: usize) -> Self {
        BadJson::new(
            format!("the key {:?} stands twice in one object", cut(key)),
            "write each key of an object once",
            text.as_bytes(),
            offset,
        )
    }
}

impl BadJson {
    /// The refusal `bad_json` of a text with the name `what`.
    pub fn refusal_of(self, what: impl Into<Phrase>) -> Refusal {
        let BadJson { what: wrong, hint: advice, offset, line, column } = self;
        BodyRefusal::NotJson { what: what.into(), wrong, line, column, offset, advice }.into()
    }

    /// The refusal `bad_json` of a line of NDJSON; only the caller knows its number.
    pub fn refusal_of_line(self) -> Refusal {
        let BadJson { what: wrong, hint: advice, offset, column, .. } = self;
        BodyRefusal::LineNotJson { wrong, column, offset, advice }.into()
    }

    /// The same for a line that is a payload typed by a person, where missing quotes are the likely slip.
    pub fn refusal_of_payload_line(self) -> Refusal {
        let BadJson { what: wrong, offset, column, .. } = self;
        BodyRefusal::PayloadLineNotJson { wrong, column, offset }.into()
    }
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadJson { what, offset, line, column, .. } = self;
        write!(f, "{what} (line {line}, column {column}, byte {offset})")
    }
}
impl std::error::Error for BadJson {}

impl From<BadJson> for Refusal {
    fn from(bad: BadJson) -> Refusal {
        bad.refusal_of("the body")
    }
}
