//! JSON on the command line or in a file: payloads, data, needs, retries, shares.
//!
//! An error that can be seen here is wrong usage, exit 2. The forms themselves are the core's; no value is ever written
//! back into a message, since it may be secret.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};
use tenure_core::bounds::{GAUGE_URL_BYTES_MAX, PAYLOAD_BYTES_MAX, RESOURCE_DATA_BYTES_MAX};
use tenure_core::decode;
use tenure_core::job::{Labels, Need};
use tenure_core::json::Document;
use tenure_core::names::Group;
use tenure_core::refusal::Refusal;
use tenure_core::secret::Json;
use tenure_core::time::Span;

use crate::args::jobs::SayArgs;
use crate::exit::{Failure, USAGE};
use crate::input::read_all;

/// A refusal that the command line itself can predict: wrong usage.
pub fn usage(what: &str, no: &Refusal) -> Failure {
    let failure = Failure::new(USAGE, format!("{what}: {}", no.detail));
    if no.hint.is_empty() { failure } else { failure.hint(no.hint.clone()) }
}

/// The payload of a job: JSON, `-` for stdin, `@FILE` for a file; absent is null.
pub fn payload(option: Option<&str>) -> Result<Json, Failure> {
    json("PAYLOAD", option, PAYLOAD_BYTES_MAX)
}

/// The data of a resource.
pub fn data(option: Option<&str>) -> Result<Json, Failure> {
    json("--data", option, RESOURCE_DATA_BYTES_MAX)
}

fn json(what: &str, option: Option<&str>, most: usize) -> Result<Json, Failure> {
    let (what, bytes) = match option {
        None => return Ok(Json::null()),
        Some("-") => ("stdin".to_owned(), read_all(Path::new("-"), most)?),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => (format!("'{path}'"), read_all(Path::new(path), most)?),
            None => (what.to_owned(), text.as_bytes().to_vec()),
        },
    };
    checked_json(&what, &bytes)
}

/// Bytes that must be one JSON document.
pub fn checked_json(what: &str, bytes: &[u8]) -> Result<Json, Failure> {
    Document::parse(bytes).map_err(|error| not_json(what, bytes, &error.to_string()))?;
    let text = std::str::from_utf8(bytes).map_err(|_| not_json(what, bytes, "it is not UTF-8"))?;
    Json::parse(text).ok_or_else(|| not_json(what, bytes, "it cannot be read"))
}

/// Says why a text is no JSON: the most useful advice first, and the line and column only where they help.
fn not_json(what: &str, bytes: &[u8], why: &str) -> Failure {
    const TEXT: &str = "a text needs its quotes: '\"text\"'";
    match bytes.trim_ascii_start() {
        [] => Failure::usage(format!("{what} is empty, and must be JSON"))
            .hint("leave it out for null; an empty text is '\"\"'"),
        [b'-', b'-', ..] => {
            Failure::usage(format!("{what} begins like an option, and must be JSON"))
                .hint("put options before the --: everything after it is an argument")
        }
        [b'{' | b'[' | b'"', ..] => Failure::usage(format!("{what} is not JSON: {why}"))
            .hint("put names and texts in double quotes: '{\"to\":\"ann\"}'"),
        _ => Failure::usage(format!("{what} is not JSON: {TEXT}"))
            .hint(format!("or fix the JSON: {why}")),
    }
}

/// An address, or with `@FILE` the one in a file, where other users of the machine do not see its password.
pub fn address(option: &str) -> Result<String, Failure> {
    let Some(path) = option.strip_prefix('@') else { return Ok(option.to_owned()) };
    let bytes = read_all(path.as_ref(), GAUGE_URL_BYTES_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("the address is not UTF-8"))?;
    Ok(text.trim().to_owned())
}

/// A retry: JSON as the API takes it, or short: `5`, or fields with their values.
pub fn retry(option: Option<&str>) -> Result<Option<Json>, Failure> {
    let Some(text) = option else { return Ok(None) };
    if text.trim_start().starts_with('{') {
        return checked_json("--retry", text.as_bytes()).map(Some);
    }
    let retry = short_retry(text)?;
    Json::of(&retry).map(Some).map_err(Failure::bug)
}

/// Fields of a retry itself, and those of its backoff.
const RETRY_FIELDS: [&str; 3] = ["max_attempts", "max_lost", "max_snoozes"];
const BACKOFF_FIELDS: [&str; 5] = ["kind", "base", "max", "delays", "jitter"];

fn short_retry(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut retry = Map::new();
    let mut backoff = Map::new();
    if let Ok(attempts) = text.trim().parse::<u64>() {
        retry.insert("max_attempts".into(), attempts.into());
        return Ok(retry);
    }
    for part in text.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim());
        let list = match name {
            name if RETRY_FIELDS.contains(&name) => &mut retry,
            name if BACKOFF_FIELDS.contains(&name) => &mut backoff,
            _ => {
                let fields = [&RETRY_FIELDS[..], &BACKOFF_FIELDS].concat().join(", ");
                return Err(Failure::usage(format!("--retry: '{name}' is no field of a retry"))
                    .hint(format!("write --retry 5, or --retry max_attempts=5,base=10s; the fields are {fields}")));
            }
        };
        let value = match (name, value) {
            ("delays", delays) => delays.split('/').map(str::trim).collect(),
            // A number or a truth as such; the reader of the whole retry decides about all other values.
            (_, value) => serde_json::from_str(value)
                .ok()
                .filter(|value: &Value| value.is_number() || value.is_boolean())
                .unwrap_or_else(|| value.into()),
        };
        if list.insert(name.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("--retry: '{name}' is given twice")));
        }
    }
    if backoff.contains_key("delays") {
        backoff.entry("kind").or_insert_with(|| "list".into());
    }
    if !backoff.is_empty() {
        retry.insert("backoff".into(), backoff.into());
    }
    Ok(retry)
}

/// Needs as `limit:…`, `pool:…` or JSON.
pub fn needs(options: &[String]) -> Result<Vec<Need>, Failure> {
    options.iter().map(|text| decode::one_need(text).map_err(|no| usage("--need", &no))).collect()
}

/// Fields of a job beside its payload, as the API takes them. One that is not given is null, which is its default.
#[derive(Serialize)]
pub struct SaidFields<'a> {
    kind: Option<&'a str>,
    priority: Option<i8>,
    group: Option<&'a Group>,
    needs: Option<Vec<Need>>,
    timeout: Option<Span>,
    retain: Option<Span>,
    labels: Labels,
}

impl<'a> SaidFields<'a> {
    /// As the options say them. The retry is apart: see [`retry`].
    pub fn of(say: &'a SayArgs) -> Result<Self, Failure> {
        let needs = needs(&say.needs)?;
        Ok(SaidFields {
            kind: say.kind.as_deref(),
            priority: say.priority,
            group: say.group.as_ref(),
            needs: Some(needs).filter(|needs| !needs.is_empty()),
            timeout: say.timeout,
            retain: say.retain,
            labels: labels(&say.labels)?,
        })
    }
}

/// Labels as pairs; no key may stand twice.
fn labels(pairs: &[(String, String)]) -> Result<Labels, Failure> {
    let mut labels = Labels::new();
    for (key, value) in pairs {
        if labels.insert(key.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format!("the label '{key}' is given twice")));
        }
    }
    Ok(labels)
}

/// Entries of `after` in the forms of the API: a text that begins with a brace is JSON, any other is an id or
/// `key:KEY`.
pub fn parents(options: &[String]) -> Result<Vec<Json>, Failure> {
    let parent = |text: &String| {
        if text.trim_start().starts_with('{') {
            checked_json("--after", text.as_bytes())
        } else {
            Ok(Json::from(text.as_str()))
        }
    };
    options.iter().map(parent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_is_wrong_usage_and_is_not_repeated() {
        for text in ["secret", "{'a':1}", "{\"a\":1,\"a\":2}", "1 2", ""] {
            let failure = payload(Some(text)).unwrap_err();
            assert_eq!(failure.code, USAGE, "{text}");
            assert!(!failure.sentence.unwrap().contains("secret"));
        }
        assert_eq!(payload(None).unwrap(), Json::null());
        assert_eq!(payload(Some(" [1] ")).unwrap().text(), "[1]");
    }

    #[test]
    fn what_helps_most_is_said_first() {
        for (text, sentence, hint) in [
            (
                "hello",
                "PAYLOAD is not JSON: a text needs its quotes: '\"text\"'",
                "or fix the JSON: ",
            ),
            ("", "PAYLOAD is empty, and must be JSON", "null"),
            ("--at", "PAYLOAD begins like an option, and must be JSON", "before the --"),
            ("{'a':1}", "PAYLOAD is not JSON: ", "double quotes"),
        ] {
            let failure = payload(Some(text)).unwrap_err();
            assert!(failure.sentence.unwrap().starts_with(sentence), "{text}");
            assert!(failure.hint.unwrap().contains(hint), "{text}");
        }
    }

    #[test]
    fn a_retry_may_be_short() {
        for (text, want) in [
            ("5", r#"{"max_attempts":5}"#),
            ("max_attempts=0, max_lost=1", r#"{"max_attempts":0,"max_lost":1}"#),
            (
                "max_attempts=5,base=1s,max=1h,jitter=false",
                r#"{"backoff":{"base":"1s","jitter":false,"max":"1h"},"max_attempts":5}"#,
            ),
            ("kind=fixed,base=10s", r#"{"backoff":{"base":"10s","kind":"fixed"}}"#),
            ("delays=1s/10s/1m", r#"{"backoff":{"delays":["1s","10s","1m"],"kind":"list"}}"#),
            (r#" {"max_attempts":5}"#, r#"{"max_attempts":5}"#),
        ] {
            assert_eq!(retry(Some(text)).unwrap().unwrap().text().trim(), want, "{text}");
        }
        for (text, part) in [
            ("attempts=5", "'attempts' is no field of a retry"),
            ("", "'' is no field"),
            ("base=1s,base=2s", "'base' is given twice"),
            ("{", "--retry is not JSON"),
        ] {
            let failure = retry(Some(text)).unwrap_err();
            assert!(failure.code == USAGE && failure.sentence.unwrap().contains(part), "{text}");
        }
        assert_eq!(retry(None).unwrap(), None);
    }

    #[test]
    fn a_payload_may_be_a_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, b"{\"a\":1}\n").unwrap();
        let said = format!("@{}", file.path().display());
        assert_eq!(payload(Some(&said)).unwrap().text(), "{\"a\":1}");
        assert_eq!(payload(Some("@/nowhere/at/all")).unwrap_err().code, USAGE);
    }
}
