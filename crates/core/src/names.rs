//! Names and ids, parsed once at the edge: every value of these types is well formed.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bounds::{
    FLOW_BYTES_MAX, ID_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX, OWNER_BYTES_MAX, REF_BYTES_MAX,
    SCHEDULE_ID_BYTES_MAX,
};
use crate::refusal::Refusal;
use crate::sentences::{NameRefusal, cut};

fn too_long(what: &'static str, bytes: usize, most: usize) -> Refusal {
    NameRefusal::TooLong { what: what.into(), bytes, most }.into()
}

/// A character that is invisible at the end of a text: white space of Unicode, or a character without width.
fn is_blank(c: char) -> bool {
    let no_width =
        |c| matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    c.is_whitespace() || no_width(c)
}

/// The blank at one end of a text, if there is one.
fn blank_at_end(text: &str) -> Option<char> {
    let mut ends = text.chars().next().into_iter().chain(text.chars().next_back());
    ends.find(|c| is_blank(*c))
}

fn check_name(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_known_name(what, text)?;
    match blank_at_end(text) {
        Some(character) => {
            let shown = cut(text);
            Err(NameRefusal::BlankAtEnd { what: what.into(), shown, character }.into())
        }
        None => Ok(()),
    }
}

/// Earlier releases took a name with a blank other than a space at its ends.
fn check_known_name(what: &'static str, text: &str) -> Result<(), Refusal> {
    let bad = |c: char| c.is_control() || matches!(c, '/' | '?' | '#' | ',');
    if text.is_empty() {
        return Err(NameRefusal::Empty { what: what.into() }.into());
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(too_long(what, text.len(), NAME_BYTES_MAX));
    }
    if text.starts_with(' ') || text.ends_with(' ') {
        let shown = cut(text);
        return Err(NameRefusal::BlankAtEnd { what: what.into(), shown, character: ' ' }.into());
    }
    match text.chars().find(|c| bad(*c)) {
        Some(character) => {
            Err(NameRefusal::Contains { what: what.into(), shown: cut(text), character }.into())
        }
        None => Ok(()),
    }
}

/// Checks a name that is a part of paths, in which clients resolve `.` and `..` before they send them.
fn check_path_name(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_name(what, text)?;
    match text {
        "." | ".." => Err(NameRefusal::Dots { what: what.into(), shown: text.to_owned() }.into()),
        _ => Ok(()),
    }
}

/// Checks ids and keys that may be as long as a key.
fn check_key(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_key_of(what, text, KEY_BYTES_MAX)
}

fn check_key_of(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    check_known_key_of(what, text, most)?;
    match blank_at_end(text) {
        Some(character) => {
            let shown = cut(text);
            Err(NameRefusal::KeyBlankAtEnd { what: what.into(), shown, character, most }.into())
        }
        None => Ok(()),
    }
}

fn check_known_key(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_known_key_of(what, text, KEY_BYTES_MAX)
}

/// Earlier releases took a key with a blank at its ends.
fn check_known_key_of(what: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(NameRefusal::KeyEmpty { what: what.into(), most }.into());
    }
    if text.len() > most {
        return Err(too_long(what, text.len(), most));
    }
    match control_in(text) {
        Some(character) => {
            Err(NameRefusal::KeyContains { what: what.into(), shown: cut(text), character, most }
                .into())
        }
        None => Ok(()),
    }
}

/// The first control character of a text, if there is one.
fn control_in(text: &str) -> Option<char> {
    // Nearly all ids of rows that are read are plain: without an early exit, the check runs over all bytes at once.
    let is_plain = text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if is_plain { None } else { text.chars().find(|c| c.is_control()) }
}

fn check_id(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_key(what, text)?;
    const _: () = assert!(ID_BYTES_MAX == KEY_BYTES_MAX, "ids and keys share one check");
    Ok(())
}

fn check_job_id(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_id(what, text)?;
    check_no_reference(text)
}

fn check_known_job_id(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_known_key(what, text)?;
    check_no_reference(text)
}

fn check_no_reference(text: &str) -> Result<(), Refusal> {
    if text.starts_with("key:") {
        return Err(NameRefusal::JobIdIsReference { shown: cut(text) }.into());
    }
    Ok(())
}

fn check_owner(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_key_of(what, text, OWNER_BYTES_MAX)
}

fn check_known_owner(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_known_key_of(what, text, OWNER_BYTES_MAX)
}

fn check_flow(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_key_of(what, text, FLOW_BYTES_MAX)
}

fn check_known_flow(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_known_key_of(what, text, FLOW_BYTES_MAX)
}

fn check_ref(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_key_of(what, text, REF_BYTES_MAX)
}

/// The id of a schedule begins the ids of its jobs, which may not begin with `key:`; and it is a part of paths, in
/// which clients resolve `.` and `..` before they send them.
fn check_schedule_id(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_key_of(what, text, SCHEDULE_ID_BYTES_MAX)?;
    check_known_schedule_id(what, text)
}

fn check_known_schedule_id(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_known_key_of(what, text, SCHEDULE_ID_BYTES_MAX)?;
    if text.starts_with("key:") || matches!(text, "." | "..") {
        return Err(NameRefusal::ScheduleIdReserved { shown: cut(text) }.into());
    }
    Ok(())
}

fn check_namespace(_: &'static str, text: &str) -> Result<(), Refusal> {
    let ok = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = text.as_bytes();
    let good = (1..=Namespace::BYTES_MAX).contains(&bytes.len())
        && ok(bytes[0])
        && bytes.iter().all(|c| ok(*c) || *c == b'-');
    if good {
        return Ok(());
    }
    Err(NameRefusal::NotNamespace { shown: cut(text) }.into())
}

fn check_limit(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_path_name(what, text)?;
    check_known_limit(what, text)
}

fn check_known_limit(what: &'static str, text: &str) -> Result<(), Refusal> {
    check_known_name(what, text)?;
    let (family, key) = match text.split_once(':') {
        Some((family, key)) => (family, Some(key)),
        None => (text, None),
    };
    let family_ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    if family.is_empty() || !family.chars().all(family_ok) {
        return Err(NameRefusal::LimitFamily { shown: cut(text) }.into());
    }
    match key {
        Some("") => Err(NameRefusal::LimitKeyEmpty { shown: cut(text) }.into()),
        Some(key) if key != "*" && key.contains('*') => {
            Err(NameRefusal::LimitStar { shown: cut(text) }.into())
        }
        _ => Ok(()),
    }
}

/// The check of a text that an earlier release accepted: the check of new texts, unless the type has a more lenient
/// one.
macro_rules! check_of_known {
    ($check:ident) => {
        $check
    };
    ($check:ident $known:ident) => {
        $known
    };
}

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident $what:literal $most:expr, $check:ident $(known $known:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// The most bytes that one may have.
            pub const BYTES_MAX: usize = $most;
            /// Parses it; a refusal has the reason and no pointer yet.
            pub fn parse(text: &str) -> Result<Self, Refusal> {
                $check($what, text)?;
                Ok($type(Arc::from(text)))
            }
            /// Parses a text that was accepted before: out of a store, or from an answer. An earlier release accepted
            /// some that are refused now, and data that is stored under them must stay readable.
            pub fn known(text: &str) -> Result<Self, Refusal> {
                check_of_known!($check $($known)?)($what, text)?;
                Ok($type(Arc::from(text)))
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $type {
            type Err = Refusal;

            fn from_str(text: &str) -> Result<Self, Refusal> {
                $type::parse(text)
            }
        }
        impl TryFrom<&str> for $type {
            type Error = Refusal;

            fn try_from(text: &str) -> Result<Self, Refusal> {
                $type::parse(text)
            }
        }
        impl TryFrom<String> for $type {
            type Error = Refusal;

            fn try_from(text: String) -> Result<Self, Refusal> {
                $type::parse(&text)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        crate::schemas!($type = serde_json::json!({"type": "string", "maxLength": $type::BYTES_MAX}));
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                $type::known(&text).map_err(|no| serde::de::Error::custom(no.detail))
            }
        }
    )*};
}

names! {
    /// The unit of isolation and of atomicity: names are unique within one.
    Namespace "namespace" 63, check_namespace;
    /// The name of a queue, at most 128 bytes.
    QueueName "queue name" NAME_BYTES_MAX, check_path_name known check_known_name;
    /// `family`, `family:key` or the template `family:*`.
    LimitName "limit name" NAME_BYTES_MAX, check_limit known check_known_limit;
    /// The name of a set of resources, at most 128 bytes.
    PoolName "pool name" NAME_BYTES_MAX, check_path_name known check_known_name;
    /// The id of one resource, unique in its pool; at most 256 bytes.
    ResourceId "resource id" KEY_BYTES_MAX, check_key known check_known_key;
    /// A word by which a need asks for resources of a pool.
    Tag "tag" NAME_BYTES_MAX, check_name known check_known_name;
    /// A tenant, a site: the groups of a queue share its turns.
    Group "group" KEY_BYTES_MAX, check_key known check_known_key;
    /// At most one job of the namespace holds a unique key.
    UniqueKey "unique key" KEY_BYTES_MAX, check_key known check_known_key;
    /// A job's id, chosen by the client or made by the engine; at most 256 bytes.
    JobId "job id" ID_BYTES_MAX, check_job_id known check_known_job_id;
    /// A schedule's id, chosen by the client: its jobs are called `ID@MOMENT`.
    ScheduleId "schedule id" SCHEDULE_ID_BYTES_MAX, check_schedule_id known check_known_schedule_id;
    /// The table outside from which a whole set of schedules is synced.
    Owner "owner" OWNER_BYTES_MAX, check_owner known check_known_owner;
    /// The flow of a job: its jobs are shown, awaited and cancelled as a whole.
    FlowName "flow" FLOW_BYTES_MAX, check_flow known check_known_flow;
    /// The name of an item within its call; it is never stored.
    Ref "ref" REF_BYTES_MAX, check_ref;
    /// A lease call's id, by which it can be repeated.
    RequestId "request id" ID_BYTES_MAX, check_id known check_known_key;
    /// The id of a process that leases; random per process.
    WorkerId "worker id" ID_BYTES_MAX, check_id known check_known_key;
}

impl Namespace {
    /// The namespace of a caller that names none: `default`.
    pub fn main() -> Self {
        Namespace(Arc::from("default"))
    }
}

impl QueueName {
    /// The limit that every job of this queue needs, once it is set; `None` if a limit cannot have such a name.
    pub fn limit(&self) -> Option<LimitName> {
        LimitName::parse(&format!("queue:{self}")).ok()
    }
}

impl LimitName {
    /// The part before the colon: `site` of `site:example.com`.
    pub fn family(&self) -> &str {
        self.0.split(':').next().unwrap_or(&self.0)
    }
    /// The part behind the colon: `example.com` of `site:example.com`.
    pub fn key(&self) -> Option<&str> {
        self.0.split_once(':').map(|(_, key)| key)
    }
    /// True for the form `family:*`.
    pub fn is_template(&self) -> bool {
        self.key() == Some("*")
    }
    /// The template whose settings hold if the limit has none; `None` for a template, and for a name without a key.
    pub fn template(&self) -> Option<LimitName> {
        match self.key() {
            Some(key) if key != "*" => Some(LimitName(Arc::from(format!("{}:*", self.family())))),
            _ => None,
        }
    }
}

/// The name of a job in a path: its id, or the unique key that it holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum JobRef {
    /// The job with this id.
    Id(JobId),
    /// The job that holds this key now.
    Key(UniqueKey),
}

impl JobRef {
    /// Parses `key:KEY` or an id. It names a job that exists, so it accepts what an earlier release accepted.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        match text.strip_prefix("key:") {
            Some(key) => UniqueKey::known(key).map(JobRef::Key),
            None => JobId::known(text).map(JobRef::Id),
        }
    }
}
impl FromStr for JobRef {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        JobRef::parse(text)
    }
}
impl Serialize for JobRef {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobRef::Id(id) => write!(f, "{id}"),
            JobRef::Key(key) => write!(f, "key:{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Code;

    #[test]
    fn a_name_is_checked_once_at_the_edge() {
        use Code::{InvalidField, OutOfBounds};
        for (text, no) in [
            ("crawl", None),
            ("größe b", None),
            ("a:b*c", None),
            ("", Some(InvalidField)),
            (" a", Some(InvalidField)),
            ("a ", Some(InvalidField)),
            ("a/b", Some(InvalidField)),
            ("a,b", Some(InvalidField)),
            ("a\nb", Some(InvalidField)),
            ("a\u{85}b", Some(InvalidField)),
        ] {
            assert_eq!(QueueName::parse(text).err().map(|no| no.code), no, "{text:?}");
        }
        for text in [".", ".."] {
            let no = Some(InvalidField);
            assert_eq!(QueueName::parse(text).err().map(|no| no.code), no, "{text:?}");
            assert_eq!(PoolName::parse(text).err().map(|no| no.code), no, "{text:?}");
            assert_eq!(LimitName::parse(text).err().map(|no| no.code), no, "{text:?}");
            // An earlier release accepted them, so stored ones are still read.
            assert!(QueueName::known(text).is_ok() && PoolName::known(text).is_ok());
            assert!(serde_json::from_value::<LimitName>(text.into()).is_ok());
            assert!(Tag::parse(text).is_ok(), "a tag stands in no path");
        }
        assert!(QueueName::parse("...").is_ok() && LimitName::parse("lock:..").is_ok());
        assert!(QueueName::parse(&"x".repeat(128)).is_ok());
        assert_eq!(QueueName::parse(&"x".repeat(129)).unwrap_err().code, OutOfBounds);
    }

    #[test]
    fn ids_and_names_have_no_blank_at_either_end() {
        fn check<T>(
            parse: fn(&str) -> Result<T, Refusal>,
            known: fn(&str) -> Result<T, Refusal>,
            spaces_refused: bool,
        ) {
            for blank in [
                ' ', '\u{a0}', '\u{ad}', '\u{1680}', '\u{180e}', '\u{2003}', '\u{200b}',
                '\u{200d}', '\u{200e}', '\u{2028}', '\u{202f}', '\u{2060}', '\u{3000}', '\u{feff}',
            ] {
                for text in [format!("{blank}a"), format!("a{blank}"), blank.to_string()] {
                    let no = parse(&text).err().unwrap_or_else(|| panic!("{text:?} is taken"));
                    assert_eq!(no.code, Code::InvalidField, "{text:?}");
                    assert!(no.detail.contains(&format!("{blank:?}")), "{}", no.detail);
                    assert!(no.hint.contains("space at either end"), "{}", no.hint);
                    // An earlier release accepted it, unless a name had a space, so a stored one is still read.
                    assert!(known(&text).is_ok() || spaces_refused && blank == ' ', "{text:?}");
                }
                assert!(parse(&format!("a{blank}b")).is_ok(), "{blank:?} between others");
            }
        }
        check(QueueName::parse, QueueName::known, true);
        let limit = LimitName::parse("site:a\u{200b}").unwrap_err();
        assert!(limit.detail.contains("'\\u{200b}'"), "{}", limit.detail);
        assert!(LimitName::known("site:a\u{200b}").is_ok());
        check(PoolName::parse, PoolName::known, true);
        check(Tag::parse, Tag::known, true);
        check(ResourceId::parse, ResourceId::known, false);
        check(Group::parse, Group::known, false);
        check(UniqueKey::parse, UniqueKey::known, false);
        check(JobId::parse, JobId::known, false);
        check(ScheduleId::parse, ScheduleId::known, false);
        check(Owner::parse, Owner::known, false);
        check(FlowName::parse, FlowName::known, false);
        check(RequestId::parse, RequestId::known, false);
        check(WorkerId::parse, WorkerId::known, false);
        assert!(Ref::parse("a ").is_err());
        assert!(
            JobRef::parse(" a").is_ok() && JobRef::parse("key:a ").is_ok(),
            "one that is there"
        );
    }

    #[test]
    fn a_limit_has_a_family_and_perhaps_a_key() {
        for text in ["scrapy", "site:example.com", "site:*", "site:a:b", "a.b_c-1"] {
            assert!(LimitName::parse(text).is_ok(), "{text}");
        }
        for text in ["", "Site:x", "site:", ":x", "site:a*", "*", "s*:x", "si te:x"] {
            assert!(LimitName::parse(text).is_err(), "{text}");
        }
        let name = LimitName::parse("site:a:b").unwrap();
        assert_eq!((name.family(), name.key()), ("site", Some("a:b")));
        assert_eq!(name.template().unwrap().as_str(), "site:*");
        assert_eq!(LimitName::parse("site:*").unwrap().template(), None);
    }

    #[test]
    fn a_job_is_named_by_id_or_key() {
        assert!(matches!(JobRef::parse("key:a"), Ok(JobRef::Key(_))));
        assert!(matches!(JobRef::parse("a"), Ok(JobRef::Id(_))));
        assert!(JobId::parse("key:a").is_err());
    }
}
