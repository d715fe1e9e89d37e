//! Trace context of a push: the `traceparent` of W3C Trace Context (<https://www.w3.org/TR/trace-context/>). Tenure
//! carries it from the push to the holder and does not interpret it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::refusal::Refusal;
use crate::sentences::NameRefusal;

/// Bytes of a `traceparent` of version 00.
const BYTES: usize = 55;

/// A `traceparent` of version 00: the trace, the span that caused the push, and the trace's flags.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct TraceParent(Box<str>);

crate::schemas!(TraceParent = crate::view::text());

impl TraceParent {
    /// Reads a field of a body: version 00, in lower-case hexadecimal.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if is_of_version_0(text) {
            Ok(TraceParent(text.into()))
        } else {
            Err(NameRefusal::TraceParent.into())
        }
    }

    /// Reads a header as the specification demands: of a later version only the known part counts, and a malformed
    /// header counts as absent.
    pub fn of_header(text: &str) -> Option<Self> {
        let (known, rest) = text.split_at_checked(BYTES)?;
        let version = known.get(..2)?;
        let later = version != "00" && version != "ff" && is_hex(version);
        if !(rest.is_empty() || later && rest.starts_with('-')) {
            return None;
        }
        let known = if later { format!("00{}", &known[2..]) } else { known.to_owned() };
        TraceParent::parse(&known).ok()
    }

    /// The text that is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_of_version_0(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |bytes: usize| parts.next().filter(|part| part.len() == bytes && is_hex(part));
    // All zeros mean no trace and no span.
    let some = |part: &str| part.bytes().any(|byte| byte != b'0');
    next(2) == Some("00")
        && next(32).is_some_and(some)
        && next(16).is_some_and(some)
        && next(2).is_some()
        && text.len() == BYTES
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TraceParent {
    type Err = Refusal;
    fn from_str(text: &str) -> Result<Self, Refusal> {
        TraceParent::parse(text)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        TraceParent::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn one_of_version_0_is_carried_as_it_is() {
        assert_eq!(TraceParent::parse(GOOD).unwrap().as_str(), GOOD);
        assert_eq!(TraceParent::of_header(GOOD).unwrap().as_str(), GOOD);
    }

    #[test]
    fn what_is_not_well_formed_is_none() {
        for text in [
            "",
            "00",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "0ü-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        ] {
            assert!(TraceParent::parse(text).is_err(), "{text}");
            assert!(TraceParent::of_header(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_header_of_a_later_version_counts_for_what_is_known_of_it() {
        let known = GOOD.replacen("00", "01", 1);
        for later in [known.clone(), format!("{known}-more")] {
            assert!(TraceParent::parse(&later).is_err());
            assert_eq!(TraceParent::of_header(&later).unwrap().as_str(), GOOD);
        }
        assert!(TraceParent::of_header(&format!("{known}more")).is_none());
    }
}
