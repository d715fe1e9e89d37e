//! Parser: one pass over a text, with a stack of its own that is at most as deep as a body may be nested.

use std::borrow::Cow;

use super::keys::Keys;
use super::place::BadJson;
use super::text::{escape_end, number_end, plain_end, unescape};
use super::{Slot, Tag};
use crate::bounds::JSON_DEPTH_MAX;

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    slots: Vec<Slot>,
    /// Indexes in `slots` of the arrays and objects that are open.
    open: Vec<usize>,
    keys: Keys<'a>,
}

/// Reads one value and nothing after it.
pub(super) fn parse(text: &str) -> Result<Vec<Slot>, BadJson> {
    if u32::try_from(text.len()).is_err() {
        let hint = "send it in parts, or as NDJSON";
        return Err(BadJson::with_hint("it is longer than 4 GiB", hint, text, 0));
    }
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
        // This guess spares small bodies every growth and costs large ones little.
        slots: Vec::with_capacity((text.len() / 8).clamp(8, 4_096)),
        open: Vec::with_capacity(8),
        keys: Keys::default(),
    };
    parser.run()?;
    Ok(parser.slots)
}

impl<'a> Parser<'a> {
    fn run(&mut self) -> Result<(), BadJson> {
        loop {
            if self.value()? {
                continue;
            }
            if !self.after_value()? {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn wrong(&self, what: &'static str) -> BadJson {
        BadJson::syntax(what, self.text, self.at)
    }

    fn push(&mut self, tag: Tag, start: usize) {
        let next = self.slots.len() as u32 + 1;
        self.slots.push(Slot { start: start as u32, end: self.at as u32, next, tag });
    }

    /// Reads a value. True if it began an array or object that is not empty: then its first value
    /// comes next.
    fn value(&mut self) -> Result<bool, BadJson> {
        self.skip_space();
        let start = self.at;
        match self.peek() {
            Some(b'"') => {
                let tag = self.string()?;
                self.push(tag, start);
            }
            Some(b'-' | b'0'..=b'9') => {
                self.at = number_end(self.bytes, start)
                    .map_err(|(what, at)| BadJson::syntax(what, self.text, at))?;
                self.push(Tag::Number, start);
            }
            Some(b'{') => return self.open(Tag::Object),
            Some(b'[') => return self.open(Tag::Array),
            Some(b't') => self.literal("true", Tag::True)?,
            Some(b'f') => self.literal("false", Tag::False)?,
            Some(b'n') => self.literal("null", Tag::Null)?,
            Some(0xEF) if start == 0 && self.text.starts_with('\u{FEFF}') => {
                let hint = "send the body without a byte order mark";
                return Err(BadJson::with_hint("a byte order mark stands", hint, self.text, 0));
            }
            _ => return Err(self.wrong("a value is expected")),
        }
        Ok(false)
    }

    fn literal(&mut self, word: &str, tag: Tag) -> Result<(), BadJson> {
        let start = self.at;
        if !self.bytes[start..].starts_with(word.as_bytes()) {
            return Err(self.wrong("a value is expected"));
        }
        self.at += word.len();
        self.push(tag, start);
        Ok(())
    }

    fn open(&mut self, tag: Tag) -> Result<bool, BadJson> {
        if self.open.len() == JSON_DEPTH_MAX {
            return Err(BadJson::too_deep(self.text, self.at));
        }
        self.open.push(self.slots.len());
        self.push(tag, self.at);
        self.at += 1;
        self.skip_space();
        if tag == Tag::Object {
            self.keys.open();
            if self.peek() == Some(b'}') {
                self.close();
                return Ok(false);
            }
            self.key()?;
        } else if self.peek() == Some(b']') {
            self.close();
            return Ok(false);
        }
        Ok(true)
    }

    fn close(&mut self) {
        self.at += 1;
        let next = self.slots.len() as u32;
        if let Some(slot) = self.open.pop().and_then(|at| self.slots.get_mut(at)) {
            slot.end = self.at as u32;
            slot.next = next;
            if slot.tag == Tag::Object {
                self.keys.close();
            }
        }
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<(), BadJson> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a key in double quotes is expected"));
        }
        let tag = self.string()?;
        let inner = &self.text[start + 1..self.at - 1];
        let key = match tag {
            Tag::Escaped => Cow::Owned(unescape(inner)),
            _ => Cow::Borrowed(inner),
        };
        self.keys.add(key).map_err(|key| BadJson::twice(&key, self.text, start))?;
        self.push(tag, start);
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.wrong("':' is expected"));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string, whose opening quote is at `at`.
    fn string(&mut self) -> Result<Tag, BadJson> {
        let mut tag = Tag::Plain;
        self.at += 1;
        loop {
            self.at = plain_end(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(tag);
                }
                Some(b'\\') => {
                    tag = Tag::Escaped;
                    self.at = escape_end(self.bytes, self.at)
                        .map_err(|(what, at)| BadJson::syntax(what, self.text, at))?;
                }
                Some(_) => {
                    let what = "a control character stands in a string";
                    let hint = "write control characters as escapes, such as \\n or \\u0000";
                    return Err(BadJson::with_hint(what, hint, self.text, self.at));
                }
                None => {
                    let what = "it ends inside a string";
                    return Err(BadJson::with_hint(
                        what,
                        "send the whole body",
                        self.text,
                        self.at,
                    ));
                }
            }
        }
    }

    /// Continues after a value. True if another value comes next, false at the end of the text.
    fn after_value(&mut self) -> Result<bool, BadJson> {
        loop {
            self.skip_space();
            let innermost = self.open.last().and_then(|at| self.slots.get(*at)).map(|s| s.tag);
            match (innermost, self.peek()) {
                (None, None) => return Ok(false),
                (None, Some(_)) => {
                    let hint = "send one JSON value and nothing after it";
                    let what = "something stands after the end";
                    return Err(BadJson::with_hint(what, hint, self.text, self.at));
                }
                (Some(Tag::Object), Some(b',')) => {
                    self.at += 1;
                    self.skip_space();
                    self.key()?;
                    return Ok(true);
                }
                (Some(Tag::Object), Some(b'}')) => self.close(),
                (Some(Tag::Object), _) => return Err(self.wrong("',' or '}' is expected")),
                (Some(_), Some(b',')) => {
                    self.at += 1;
                    return Ok(true);
                }
                (Some(_), Some(b']')) => self.close(),
                (Some(_), _) => return Err(self.wrong("',' or ']' is expected")),
            }
        }
    }
}
