//! Redacts the data of a resource for lists: they show the keys, and never a value.
//!
//! Every engine uses this one function, so no engine shows a secret that another one hides.

use std::fmt;

use crate::secret::Json;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

const HIDDEN: &str = "•";

/// An object's keys with `"•"` for each value, and `"•"` for anything else except `null`, which reveals only that there
/// is no data.
pub fn redacted(data: &Json) -> Json {
    if data.is_null() {
        return Json::null();
    }
    let mut reader = serde_json::Deserializer::from_str(data.text());
    let keys = reader.deserialize_any(KeysAlone).unwrap_or(None);
    let Some(keys) = keys else { return Json::from(HIDDEN) };
    let shown = keys.iter().filter_map(|key| serde_json::to_string(key).ok());
    let shown: Vec<String> = shown.map(|key| format!("{key}:\"{HIDDEN}\"")).collect();
    Json::parse(&format!("{{{}}}", shown.join(","))).unwrap_or_else(|| Json::from(HIDDEN))
}

/// The keys of an object in their order; nothing of anything else.
struct KeysAlone;

impl<'de> Visitor<'de> for KeysAlone {
    type Value = Option<Vec<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, IgnoredAny)) = map.next_entry()? {
            keys.push(key);
        }
        Ok(Some(keys))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_and_values_never() {
        for (data, shown) in [
            (r#"{"user":"anna","pw":{"a":1}}"#, r#"{"user":"•","pw":"•"}"#),
            (r#"{"a\"b":1}"#, r#"{"a\"b":"•"}"#),
            ("{}", "{}"),
            (r#""secret""#, r#""•""#),
            ("[1,2]", r#""•""#),
            ("17", r#""•""#),
            ("-1.5e3", r#""•""#),
            ("true", r#""•""#),
            ("null", "null"),
        ] {
            assert_eq!(redacted(&Json::parse(data).unwrap()).text(), shown, "{data}");
        }
    }
}
