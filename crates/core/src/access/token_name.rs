//! The name of a token, as a value.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest name of a token, in bytes.
const NAME_BYTES_MAX: usize = 48;

/// The name of a token: 1 to 48 characters of a-z, 0-9 and `-`. It is no secret, and tells nothing about the token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TokenName(Arc<str>);

crate::schemas!(TokenName = crate::view::text());

impl TokenName {
    /// Reads a name, also one that is reserved for tokens without a name of their own; `None` if no token can have it.
    pub fn known(text: &str) -> Option<Self> {
        TokenName::of(&text.into())
    }

    /// The same without a copy of the text.
    pub(super) fn of(text: &Arc<str>) -> Option<Self> {
        let is_first = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_good = text.len() <= NAME_BYTES_MAX
            && text.bytes().next().is_some_and(is_first)
            && text.bytes().all(|c| is_first(c) || c == b'-');
        is_good.then(|| TokenName(text.clone()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for TokenName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TokenName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        TokenName::known(&text).ok_or_else(|| serde::de::Error::custom("no name of a token"))
    }
}
