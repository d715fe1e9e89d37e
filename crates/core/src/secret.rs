//! JSON that is carried without being interpreted, and text that must not be seen.
//!
//! Neither type prints its content: payloads and resource data reach no log, error, event or list.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Replaces a secret in texts that people see.
pub const HIDDEN: &str = "•••";

/// Any JSON value, kept as the text in which it arrived, without white space around it.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The value `null`, which is not an absent value.
    pub fn null() -> Self {
        Json(RawValue::NULL.to_owned())
    }
    /// Takes JSON text; `None` if it is not JSON.
    pub fn parse(text: &str) -> Option<Self> {
        RawValue::from_string(text.trim_ascii().to_owned()).ok().map(Json)
    }
    /// Takes any value that can be written as JSON.
    ///
    /// Not every type that derives `Serialize` can be written: a map with tuples as keys cannot, nor can a type whose
    /// own code refuses. The caller gets the error, since a `null` in its place would be a job without its payload.
    /// Text and whole numbers always succeed: see the `From`s. A number that is not finite is `null`, as everywhere in
    /// JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, NotJson> {
        serde_json::value::to_raw_value(value).map(Json).map_err(|why| NotJson(why.to_string()))
    }
    /// Reads the value as this type.
    ///
    /// # Errors
    /// The value is not of that form. The message may quote a part of it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }
    /// The text of the value.
    pub fn text(&self) -> &str {
        self.0.get()
    }
    /// True if it is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }
}

/// A value without a form as JSON: the message of the type that refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotJson(String);

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotJson(why) = self;
        write!(f, "the value cannot be written as JSON: {why}; use text as the keys of every map")
    }
}
impl std::error::Error for NotJson {}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        let Ok(json) = Json::of(&text) else { unreachable!("text can always be written") };
        json
    }
}
impl From<i64> for Json {
    fn from(number: i64) -> Self {
        let Ok(json) = Json::of(&number) else { unreachable!("a number can always be written") };
        json
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
crate::schemas!(Json = serde_json::json!({}));

/// A token, or an address with a password: it prints as `•••`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
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
        f.write_str(HIDDEN)
    }
}
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_cannot_be_written_is_an_error_and_never_null() {
        let by_pair = BTreeMap::from([((1, 2), "x")]);
        let no = Json::of(&by_pair).unwrap_err();
        assert!(no.to_string().contains("key must be a string"), "{no}");
        assert!(Json::of(&None::<u8>).unwrap().is_null(), "nothing is null");
        assert_eq!(Json::from("a\"b").text(), r#""a\"b""#);
        assert_eq!(Json::from(-1).text(), "-1");
    }
}
