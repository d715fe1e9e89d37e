//! Ids of progress reports: a caller names the report that it has seen, and waits for another one. Nothing of it is
//! stored, since an id follows from the report.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha1::{Digest, Sha1};

use crate::secret::Json;
use crate::sentences::NameRefusal;

/// Distinguishes the reports of a job: the first 64 bits of SHA-1 over the JSON. The same report has the same id, also
/// after a restart. Clients treat the text as opaque.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProgressId(u64);

crate::schemas!(ProgressId = crate::view::text());

impl ProgressId {
    /// The id of a holder's report.
    pub fn of(progress: &Json) -> Self {
        let digest = Sha1::digest(progress.text().as_bytes());
        let head = digest.iter().take(8);
        ProgressId(head.fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }
}

impl fmt::Display for ProgressId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ProgressId {
    type Err = NameRefusal;
    /// Takes only the form that [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, NameRefusal> {
        let id = u64::from_str_radix(text, 16).ok().map(ProgressId);
        id.filter(|id| id.to_string() == text).ok_or(NameRefusal::ProgressId)
    }
}

impl Serialize for ProgressId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProgressId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(|_| serde::de::Error::custom("no id of a progress"))
    }
}

/// The progress of a job that a caller has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgressSeen {
    /// Nothing: the job had reported nothing, or the caller did not look.
    Nothing,
    /// The report with this id.
    Id(ProgressId),
}

impl ProgressSeen {
    /// True if a job with this report has something new for the caller.
    pub fn is_behind(self, progress: Option<ProgressId>) -> bool {
        match self {
            ProgressSeen::Nothing => progress.is_some(),
            ProgressSeen::Id(seen) => progress != Some(seen),
        }
    }
}

impl fmt::Display for ProgressSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgressSeen::Nothing => f.write_str("none"),
            ProgressSeen::Id(id) => id.fmt(f),
        }
    }
}

impl FromStr for ProgressSeen {
    type Err = NameRefusal;
    fn from_str(text: &str) -> Result<Self, NameRefusal> {
        match text {
            "none" => Ok(ProgressSeen::Nothing),
            id => id.parse().map(ProgressSeen::Id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_in_no_other_form() {
        let id = ProgressId::of(&Json::parse("\"abc\"").unwrap());
        for seen in [ProgressSeen::Id(id), ProgressSeen::Id(ProgressId(7)), ProgressSeen::Nothing] {
            assert_eq!(seen.to_string().parse(), Ok(seen));
        }
        for text in ["", "null", "7", "000000000000000G", "+000000000000007", "0000000000000007 "] {
            assert_eq!(text.parse::<ProgressSeen>(), Err(NameRefusal::ProgressId), "{text:?}");
        }
    }

    #[test]
    fn a_caller_is_behind_what_it_has_not_seen() {
        let (one, two) = (ProgressId(1), ProgressId(2));
        for (seen, progress, is_behind) in [
            (ProgressSeen::Nothing, None, false),
            (ProgressSeen::Nothing, Some(one), true),
            (ProgressSeen::Id(one), Some(one), false),
            (ProgressSeen::Id(one), Some(two), true),
            // A push that replaced the job removed its report.
            (ProgressSeen::Id(one), None, true),
        ] {
            assert_eq!(seen.is_behind(progress), is_behind, "{seen} of {progress:?}");
        }
    }
}
