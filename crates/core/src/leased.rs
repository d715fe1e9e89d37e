//! Removes leased secrets from the errors and progress that a holder reports, since lists, events and pages show these.
//!
//! The rule is that of docs/guides/pools.md, and workers in other languages follow it too: a string of at least six
//! characters from the data of the leased resources becomes `•••`, and so does the login of any address, since
//! libraries print the addresses that they were given. A shorter string occurs in too many texts by accident.

use serde_json::Value;

use crate::lease::LeasedResource;
use crate::secret::{HIDDEN, Json};

const SECRET_CHARACTERS_MIN: usize = 6;

/// A text without the secrets of these resources, and without the logins of addresses.
pub fn without_leased(text: &str, resources: &[LeasedResource]) -> String {
    without(text, &secrets(resources))
}

/// The same for the texts and names in JSON; numbers stay as they are. In the written form, a secret of digits would
/// match inside a number, and one that ends in a backslash would take a quote along.
pub fn json_without_leased(json: &Json, resources: &[LeasedResource]) -> Json {
    if resources.is_empty() {
        return json.clone();
    }
    let secrets = secrets(resources);
    let shown = serde_json::from_str(json.text()).map(|value| value_without(value, &secrets));
    // Text that is not JSON, or is nested too deeply to be read, may still contain secrets.
    shown
        .ok()
        .and_then(|shown| Json::parse(&shown.to_string()))
        .unwrap_or_else(|| Json::from(HIDDEN))
}

fn without(text: &str, secrets: &[String]) -> String {
    let mut shown = text.to_owned();
    for secret in secrets {
        // Also in the form that JSON writes, since errors quote it.
        let written = serde_json::to_string(secret).unwrap_or_default();
        for form in [secret.as_str(), written.trim_matches('"')] {
            if shown.contains(form) {
                shown = shown.replace(form, HIDDEN);
            }
        }
    }
    without_logins(&shown)
}

fn value_without(value: Value, secrets: &[String]) -> Value {
    match value {
        Value::String(text) => Value::String(without(&text, secrets)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| value_without(item, secrets)).collect())
        }
        Value::Object(fields) => {
            let shown = fields
                .into_iter()
                .map(|(name, value)| (without(&name, secrets), value_without(value, secrets)));
            Value::Object(shown.collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

/// The strings to hide, the longest first.
fn secrets(resources: &[LeasedResource]) -> Vec<String> {
    let mut found = Vec::new();
    for resource in resources {
        if let Ok(data) = serde_json::from_str(resource.data.text()) {
            strings(&data, &mut found);
        }
    }
    found.retain(|secret| secret.chars().count() >= SECRET_CHARACTERS_MIN);
    found.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    found.dedup();
    found
}

fn strings(data: &Value, into: &mut Vec<String>) {
    match data {
        Value::String(text) => {
            for login in logins(text).into_iter().map(|(from, to)| &text[from..to]) {
                into.push(login.to_owned());
                into.extend(
                    login
                        .split_once(':')
                        .into_iter()
                        .flat_map(|(user, password)| [user.to_owned(), password.to_owned()]),
                );
            }
            into.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Ranges of the logins in a text: between `://` and the last `@` before the path.
fn logins(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let from = at + "://".len();
        let rest = &text[from..];
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"');
        let authority = &rest[..rest.find(ends).unwrap_or(rest.len())];
        if let Some(login) = authority.rfind('@').filter(|login| *login > 0) {
            found.push((from, from + login));
        }
    }
    found
}

fn without_logins(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    for (from, to) in logins(text) {
        shown.push_str(&text[done..from]);
        shown.push_str(HIDDEN);
        done = to;
    }
    shown.push_str(&text[done..]);
    shown
}

#[cfg(test)]
mod tests {
    use crate::names::{PoolName, ResourceId};

    use super::*;

    fn held(data: &str) -> Vec<LeasedResource> {
        let (pool, id) = (PoolName::parse("accounts").unwrap(), ResourceId::parse("a").unwrap());
        vec![LeasedResource { pool, id, data: Json::parse(data).unwrap(), tags: Vec::new() }]
    }

    const DATA: &str = r#"{"proxy":"http://anna:s3cret-of-anna@10.0.0.9:3128","pin":"1234","keys":["k-0123456"],"n":7}"#;

    #[test]
    fn leased_data_is_hidden_in_a_text() {
        for (text, shown) in [
            ("no route to http://anna:s3cret-of-anna@10.0.0.9:3128", "no route to •••"),
            ("407 for s3cret-of-anna", "407 for •••"),
            ("407 for anna:s3cret-of-anna", "407 for •••"),
            ("key k-0123456 is over", "key ••• is over"),
            ("pin 1234 is short", "pin 1234 is short"),
            ("another ftp://bob:pw@host/x@y", "another ftp://•••@host/x@y"),
            ("two http://a@h and http://b:c@h", "two http://•••@h and http://•••@h"),
            ("nothing of it, a@b.example", "nothing of it, a@b.example"),
        ] {
            assert_eq!(without_leased(text, &held(DATA)), shown);
        }
    }

    #[test]
    fn progress_stays_json_whatever_a_secret_looks_like() {
        for (data, progress, shown) in [
            (
                r#"{"pw":"quote \" and ü"}"#,
                r#"{"by":"quote \" and ü","n":1}"#,
                r#"{"by":"•••","n":1}"#,
            ),
            (
                r#"{"pin":"100000"}"#,
                r#"{"done":100000,"pin":"100000"}"#,
                r#"{"done":100000,"pin":"•••"}"#,
            ),
            (r#"{"pw":"secret\\"}"#, r#"{"at":"secret\\"}"#, r#"{"at":"•••"}"#),
            (r#"{"pw":"nuance"}"#, r#"["a\nuance",1.5,null]"#, r#"["a\nuance",1.5,null]"#),
            (r#"{"pw":"germany"}"#, r#"{"germany":1}"#, r#"{"•••":1}"#),
        ] {
            let progress = Json::parse(progress).unwrap();
            assert_eq!(json_without_leased(&progress, &held(data)).text(), shown);
        }
    }
}
