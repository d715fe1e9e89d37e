//! Templates of needs: a queue's need such as `site:{payload.host}` is filled in from the payload of each job.
//!
//! Only needs in the settings of a queue are templates. A limit that a job names itself is taken literally.

use std::borrow::Cow;

use serde_json::Value;

use crate::bounded;
use crate::job::Need;
use crate::names::{LimitName, QueueName};
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::sentences::{NeedRefusal, cut};

const BEGIN: &str = "{payload";

/// Refuses a text that begins like a placeholder and is not one; the pointer is `/INDEX/limit`.
pub fn check_templates(needs: &[Need]) -> Result<(), Refusal> {
    for (index, need) in needs.iter().enumerate() {
        let Need::Limit { limit, .. } = need else { continue };
        let mut rest = limit.as_str();
        while let Some(at) = rest.find(BEGIN) {
            let Some((_, after)) = placeholder(&rest[at..]) else {
                let no = NeedRefusal::NotATemplate { limit: limit.clone() };
                return Err(Refusal::from(no).at(format!("/{index}/limit")));
            };
            rest = after;
        }
    }
    Ok(())
}

/// True if a payload fills in one of these.
pub fn has_templates(needs: &[Need]) -> bool {
    needs.iter().any(is_template)
}

fn is_template(need: &Need) -> bool {
    matches!(need, Need::Limit { limit, .. } if limit.as_str().contains(BEGIN))
}

/// The needs that a job with this payload gets from its queue. Two that become the same limit are one need, with the
/// larger weight and cost.
///
/// # Errors
/// The payload lacks a field, or the value is no valid name of a limit; the pointer is that of the field in a job.
pub fn filled<'n>(
    needs: &'n [Need],
    payload: &Json,
    queue: &QueueName,
) -> Result<Cow<'n, [Need]>, Refusal> {
    if !has_templates(needs) {
        return Ok(Cow::Borrowed(needs));
    }
    // A payload is JSON. One that nests too deeply to be read has no field that could be used.
    let payload: Value = payload.read().unwrap_or_default();
    let mut done: Vec<Need> = Vec::with_capacity(needs.len());
    for need in needs {
        let Need::Limit { limit, weight, cost } = need else {
            done.push(need.clone());
            continue;
        };
        let name = if is_template(need) { name(limit, &payload, queue)? } else { limit.clone() };
        let same = done.iter_mut().find_map(|other| match other {
            Need::Limit { limit, weight, cost } if *limit == name => Some((weight, cost)),
            Need::Limit { .. } | Need::Pool { .. } => None,
        });
        match same {
            Some((w, c)) => (*w, *c) = ((*w).max(*weight), (*c).max(*cost)),
            None => done.push(Need::Limit { limit: name, weight: *weight, cost: *cost }),
        }
    }
    Ok(Cow::Owned(done))
}

/// The name of a limit with its placeholders filled in.
fn name(template: &LimitName, payload: &Value, queue: &QueueName) -> Result<LimitName, Refusal> {
    let (mut text, mut rest) = (String::new(), template.as_str());
    let mut pointer = String::new();
    while let Some(at) = rest.find(BEGIN) {
        text.push_str(&rest[..at]);
        let Some((path, after)) = placeholder(&rest[at..]) else {
            // An earlier release accepted it as a name.
            text.push_str(BEGIN);
            rest = &rest[at + BEGIN.len()..];
            continue;
        };
        pointer = format!("/payload/{}", path.replace('~', "~0").replace('.', "/"));
        let value = path.split('.').try_fold(payload, |value, field| value.get(field));
        let (queue, field) = (queue.clone(), path.to_owned());
        let no = match value {
            None | Some(Value::Null) => NeedRefusal::PayloadLacks { queue, field },
            Some(Value::String(value)) if value.is_empty() => {
                NeedRefusal::PayloadLacks { queue, field }
            }
            Some(Value::String(value)) => {
                text.push_str(value);
                rest = after;
                continue;
            }
            Some(Value::Number(number)) if !number.is_f64() => {
                text.push_str(&number.to_string());
                rest = after;
                continue;
            }
            Some(Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                NeedRefusal::PayloadNoText { queue, field }
            }
        };
        return Err(Refusal::from(no).at(pointer));
    }
    text.push_str(rest);
    let parsed = LimitName::parse(&text).and_then(|limit| {
        bounded::no_template(&limit)?;
        Ok(limit)
    });
    parsed.map_err(|no| {
        if pointer.is_empty() {
            no
        } else {
            let why = cut(&no.detail).to_owned();
            let no = NeedRefusal::PayloadNoName { queue: queue.clone(), why };
            Refusal::from(no).at(pointer)
        }
    })
}

/// The path in a placeholder at the beginning of a text, and the text behind it.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (path, after) = text.strip_prefix(BEGIN)?.strip_prefix('.')?.split_once('}')?;
    let good = path.split('.').all(|field| !field.is_empty() && !field.contains('{'));
    good.then_some((path, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Code;

    fn limit(name: &str, weight: u32) -> Need {
        Need::Limit { limit: LimitName::parse(name).unwrap(), weight, cost: 1 }
    }

    fn of(needs: &[Need], payload: &str) -> Result<Vec<Need>, Refusal> {
        let payload = Json::parse(payload).unwrap();
        filled(needs, &payload, &QueueName::parse("crawl").unwrap()).map(Cow::into_owned)
    }

    #[test]
    fn placeholders_are_filled_in_from_the_payload() {
        for (template, payload, name) in [
            ("site:{payload.host}", r#"{"host":"example.com"}"#, "site:example.com"),
            ("site:{payload.page.host}", r#"{"page":{"host":"a"}}"#, "site:a"),
            ("site:{payload.a}-{payload.b}!", r#"{"a":"x","b":7}"#, "site:x-7!"),
            ("site:{host}", "null", "site:{host}"),
            ("site:plain", "null", "site:plain"),
            ("site:{payload.größe}", r#"{"größe":"{payload.x}"}"#, "site:{payload.x}"),
        ] {
            assert_eq!(of(&[limit(template, 2)], payload).unwrap(), [limit(name, 2)], "{template}");
        }
    }

    #[test]
    fn a_payload_that_lacks_the_field_is_refused_at_it() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for (template, payload, pointer, part) in [
            ("site:{payload.host}", "null", "/payload/host", "\"host\""),
            ("site:{payload.host}", "{}", "/payload/host", "no \"host\""),
            ("site:{payload.host}", r#"{"host":null}"#, "/payload/host", "no \"host\""),
            ("site:{payload.host}", r#"{"host":""}"#, "/payload/host", "no \"host\""),
            ("site:{payload.host}", r#"{"host":["a"]}"#, "/payload/host", "text"),
            ("site:{payload.host}", r#"{"host":1.5}"#, "/payload/host", "text"),
            ("site:{payload.host}", r#"{"host":true}"#, "/payload/host", "text"),
            ("site:{payload.a.b}", r#"{"a":"b"}"#, "/payload/a/b", "\"a.b\""),
            ("site:{payload.host}", r#"{"host":"a/b"}"#, "/payload/host", "'/'"),
            ("site:{payload.host}", r#"{"host":"*"}"#, "/payload/host", "template"),
            ("site:{payload.host}", r#"{"host":"a "}"#, "/payload/host", "space"),
            ("site:{payload.host}", &deep, "/payload/host", "no \"host\""),
        ] {
            let no = of(&[limit(template, 1)], payload).unwrap_err();
            assert_eq!(
                (no.code, no.pointer.as_deref()),
                (Code::InvalidField, Some(pointer)),
                "{no}"
            );
            assert!(no.detail.contains(part) && no.detail.contains("crawl"), "{}", no.detail);
        }
    }

    #[test]
    fn two_needs_that_become_one_limit_are_one_need() {
        let needs = [limit("site:{payload.from}", 1), limit("site:{payload.to}", 3)];
        assert_eq!(of(&needs, r#"{"from":"a","to":"a"}"#).unwrap(), [limit("site:a", 3)]);
        assert_eq!(of(&needs, r#"{"from":"a","to":"b"}"#).unwrap().len(), 2);
    }

    #[test]
    fn what_only_looks_like_a_placeholder_is_refused_in_settings() {
        for name in [
            "site:{payload}",
            "site:{payload.}",
            "site:{payload.a",
            "site:{payload.a..b}",
            "site:{payloads.a}",
        ] {
            let no = check_templates(&[limit("a", 1), limit(name, 1)]).unwrap_err();
            assert_eq!((no.code, no.pointer.as_deref()), (Code::InvalidField, Some("/1/limit")));
        }
        for name in ["site:{payload.a}{payload.b.c}", "site:{a}", "site:{", "site:payload"] {
            assert!(check_templates(&[limit(name, 1)]).is_ok(), "{name}");
        }
    }
}
