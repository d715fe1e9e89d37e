//! JSON that is carried but not understood, and text that must not be seen.
//!
//! Neither type prints what it holds: payloads and resource data reach no log, error, event or list.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Any JSON value, kept as the text that came (without the white space around it).
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// `null`.
    pub fn null() -> Self {
        Json(RawValue::NULL.to_owned())
    }
    /// From JSON text; `None` if it is not JSON.
    pub fn parse(text: &str) -> Option<Self> {
        RawValue::from_string(text.trim_ascii().to_owned()).ok().map(Json)
    }
    /// From anything that can be written as JSON.
    pub fn of(value: &impl Serialize) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Json::null(), Json)
    }
    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }
}
impl Default for Json {
    fn default() -> Self {
        Json::null()
    }
}
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
impl Eq for Json {}
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.text().len())
    }
}
impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(d).map(Json)
    }
}

/// A token, or an address with a password: prints `•••`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text in.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }
    /// The text, for the one place that must have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•••")
    }
}
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•••")
    }
}
