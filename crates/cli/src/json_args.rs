//! What is said as JSON on the command line or in a file: payloads, data, needs, retries, shares.
//!
//! What can be seen here to be wrong is wrong usage, exit 2. The forms themselves are the core's;
//! nothing said here is ever written back into a message, since it may be secret.

use std::io::Read;
use std::path::Path;

use tenure_core::bounds::{
    BODY_BYTES_MAX, GAUGE_URL_BYTES_MAX, PAYLOAD_BYTES_MAX, RESOURCE_DATA_BYTES_MAX,
};
use tenure_core::decode;
use tenure_core::job::{Labels, Need};
use tenure_core::json::Document;
use tenure_core::names::ResourceId;
use tenure_core::refusal::Refusal;
use tenure_core::secret::Json;

use crate::exit::{Failure, USAGE};

/// A refusal of something that the command line can see itself: wrong usage.
pub fn usage(what: &str, no: &Refusal) -> Failure {
    let failure = Failure::new(USAGE, format!("{what}: {}", no.detail));
    if no.hint.is_empty() { failure } else { failure.hint(no.hint.clone()) }
}

/// The payload of a job: JSON, `-` for stdin, `@FILE` for a file; absent is null.
pub fn payload(said: Option<&str>) -> Result<Json, Failure> {
    json("PAYLOAD", said, PAYLOAD_BYTES_MAX)
}

/// The data of a resource.
pub fn data(said: Option<&str>) -> Result<Json, Failure> {
    json("--data", said, RESOURCE_DATA_BYTES_MAX)
}

fn json(what: &str, said: Option<&str>, most: usize) -> Result<Json, Failure> {
    let (what, bytes) = match said {
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
    let wrong = |why: String| {
        Failure::usage(format!("{what} is not JSON: {why}"))
            .hint("a string needs its quotes: '\"text\"'")
    };
    Document::parse(bytes).map_err(|error| wrong(error.to_string()))?;
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    Json::parse(text).ok_or_else(|| wrong("it cannot be read".to_owned()))
}

/// All of a file, or of stdin (`-`); at most `most` bytes and a little, so that no mistaken file
/// fills the memory before the store refuses it.
pub fn read_all(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    // White space around a payload does not count; a body's size of it is enough.
    let most = most.saturating_add(BODY_BYTES_MAX) as u64;
    let (what, read) = if path == Path::new("-") {
        ("stdin".to_owned(), std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes))
    } else {
        let read = std::fs::File::open(path).and_then(|f| f.take(most + 1).read_to_end(&mut bytes));
        (format!("'{}'", path.display()), read)
    };
    match read {
        Ok(read) if read as u64 > most => {
            Err(Failure::usage(format!("{what} is larger than {most} bytes")))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::file(format!("cannot read {what}"), &error)),
    }
}

/// An address, or with `@FILE` the one in a file, where a password is not seen by other users of the machine.
pub fn address(said: &str) -> Result<String, Failure> {
    let Some(path) = said.strip_prefix('@') else { return Ok(said.to_owned()) };
    let bytes = read_all(path.as_ref(), GAUGE_URL_BYTES_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("the address is not UTF-8"))?;
    Ok(text.trim().to_owned())
}

/// Needs as `limit:…`, `pool:…` or JSON.
pub fn needs(said: &[String]) -> Result<Vec<Need>, Failure> {
    said.iter().map(|text| decode::one_need(text).map_err(|no| usage("--need", &no))).collect()
}

/// A need as the command line takes it.
pub fn need_text(need: &Need) -> String {
    let counted = |name: &str, n: u32| if n == 1 { String::new() } else { format!(",{name}={n}") };
    let named = |name: &str, id: &Option<ResourceId>| {
        id.as_ref().map(|id| format!(",{name}={id}")).unwrap_or_default()
    };
    match need {
        Need::Limit { limit, weight, cost } => {
            format!("limit:{limit}{}{}", counted("weight", *weight), counted("cost", *cost))
        }
        Need::Pool { pool, tag, prefer, id, count } => {
            let tag = tag.as_ref().map(|tag| format!("#{tag}")).unwrap_or_default();
            let (prefer, id) = (named("prefer", prefer), named("id", id));
            format!("pool:{pool}{tag}{prefer}{id}{}", counted("count", *count))
        }
    }
}

/// Labels as pairs; no key may stand twice.
pub fn labels(said: &[(String, String)]) -> Result<Labels, Failure> {
    let mut labels = Labels::new();
    for (key, value) in said {
        if labels.insert(key.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format!("the label '{key}' is given twice")));
        }
    }
    Ok(labels)
}

/// Entries of `after` in the forms of the API: what begins with a brace is JSON, all else is an id or `key:KEY`.
pub fn parents(said: &[String]) -> Result<Vec<Json>, Failure> {
    let parent = |text: &String| match text.trim_start().starts_with('{') {
        true => checked_json("--after", text.as_bytes()),
        false => Ok(Json::from(text.as_str())),
    };
    said.iter().map(parent).collect()
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
    fn a_need_is_shown_as_it_is_said() {
        for text in [
            "limit:site:example.com",
            "limit:gpu,weight=2",
            "limit:api,weight=2,cost=5",
            "pool:accounts",
            "pool:accounts#cn,prefer=139",
            "pool:accounts,id=139",
            "pool:accounts,count=3",
        ] {
            let said = needs(&[text.to_owned()]).unwrap();
            assert_eq!(need_text(&said[0]), text);
        }
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
