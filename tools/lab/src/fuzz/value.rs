//! JSON values that a schema describes, and ways to break them.
//!
//! Names, ids and keys come from small sets, so that calls meet objects that other calls made.

use serde_json::{Map, Value, json};

use super::document::Document;
use crate::chance::Chance;

const DURATIONS: [&str; 9] = ["0s", "1ms", "100ms", "500ms", "1s", "5s", "1m30s", "24h", "3650d"];
const WAITS: [&str; 4] = ["0s", "1ms", "50ms", "300ms"];
const TTLS: [&str; 4] = ["1s", "5s", "30s", "1h"];
const MOMENTS: [&str; 4] = [
    "2000-01-01T00:00:00Z",
    "2026-12-01T09:55:00+02:00",
    "2099-01-01T00:00:00.123456Z",
    "2255-06-01T00:00:00Z",
];
const LIMITS: [&str; 8] =
    ["l0", "l1", "site:a", "site:b", "site:*", "lock:x", "queue:q0", "lock:*"];
const WORDS: [&str; 8] = ["", "a", "größe", "x y", "0", "null", "key:k1", "…"];
const STATES: [&str; 5] = ["ready", "blocked", "scheduled", "failed", "succeeded,failed"];
/// Deeper than any schema of the contract.
const DEPTH_MAX: usize = 6;

pub fn pick<'t>(chance: &mut Chance, all: &[&'t str]) -> &'t str {
    all[chance.within(0, all.len() as u64) as usize]
}

fn numbered(chance: &mut Chance, prefix: &str, n: u64) -> String {
    format!("{prefix}{}", chance.within(0, n))
}

/// A value for a name in a path, or for a field of this name; `None`: by its schema.
pub fn word(chance: &mut Chance, field: &str, leases: &[String]) -> Option<String> {
    Some(match field {
        "queue" | "queues" => numbered(chance, "q", 4),
        "limit" => pick(chance, &LIMITS).to_owned(),
        "pool" => numbered(chance, "p", 3),
        "prefer" => numbered(chance, "r", 6),
        "lease" | "leases" => match leases.len() {
            0 => "nothing".to_owned(),
            n => leases[chance.within(0, n as u64) as usize].clone(),
        },
        "wait" => pick(chance, &WAITS).to_owned(),
        "ttl" => pick(chance, &TTLS).to_owned(),
        "state" => pick(chance, &STATES).to_owned(),
        "outcome" => {
            pick(chance, &["succeeded", "failed", "snoozed", "released", "lost"]).to_owned()
        }
        "verdict" => pick(chance, &["ok", "cool", "ban"]).to_owned(),
        "on_conflict" => pick(chance, &["keep", "replace", "reject"]).to_owned(),
        "until" => {
            if chance.percent(50) {
                pick(chance, &["end", "start"]).to_owned()
            } else {
                pick(chance, &MOMENTS).to_owned()
            }
        }
        "flow" => numbered(chance, "f", 4),
        "ref" => numbered(chance, "ref", 3),
        "job" | "after" => {
            if chance.percent(80) {
                numbered(chance, "j", 40)
            } else {
                numbered(chance, "key:k", 6)
            }
        }
        "key" => numbered(chance, "k", 6),
        "group" => numbered(chance, "g", 5),
        "tag" | "tags" => numbered(chance, "t", 3),
        "worker" => numbered(chance, "w", 4),
        "request_id" | "place" => numbered(chance, "rq", 30),
        "pick" => pick(chance, &["lru", "random"]).to_owned(),
        _ => return None,
    })
}

/// A value that fits a schema; `field` is the name of its field.
pub fn value(
    chance: &mut Chance,
    document: &Document,
    (schema, field): (&Value, &str),
    leases: &[String],
    depth: usize,
) -> Value {
    let schema = document.resolved(schema);
    for several in ["oneOf", "anyOf"] {
        if let Some(all) = schema[several].as_array().filter(|all| !all.is_empty()) {
            let one = &all[chance.within(0, all.len() as u64) as usize];
            return value(chance, document, (one, field), leases, depth);
        }
    }
    if let Some(one) = schema.get("const") {
        return one.clone();
    }
    if let Some(all) = schema["enum"].as_array().filter(|all| !all.is_empty()) {
        return all[chance.within(0, all.len() as u64) as usize].clone();
    }
    match schema["type"].as_str() {
        Some("null") => Value::Null,
        Some("boolean") => json!(chance.percent(50)),
        Some("integer") => {
            let from = schema["minimum"].as_i64().unwrap_or(0);
            let to = schema["maximum"].as_i64().unwrap_or(20);
            json!(from + chance.within(0, (to - from).max(1) as u64) as i64)
        }
        Some("array") => {
            let n = if chance.percent(5) { 40 } else { chance.within(1, 4) };
            let one = |_| value(chance, document, (&schema["items"], field), leases, depth + 1);
            Value::Array((0..n).map(one).collect())
        }
        Some("object") if schema["properties"].is_object() && depth < DEPTH_MAX => {
            let mut fields = Map::new();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                let often = match name.as_str() {
                    // Without these most calls would do nothing; with those only errors would come.
                    "queues" | "leases" | "settle" | "lease" | "outcome" | "id" | "concurrency"
                    | "key" | "count" | "per" | "kind" => 85,
                    // A settle with a lease call must have one.
                    "request_id" => 70,
                    "needs" | "run_at" | "pool" | "rate" | "place" => 12,
                    "timeout" | "expires_at" | "retain" | "max_waiting" | "after" | "ref" => 8,
                    _ => 35,
                };
                if chance.percent(often) {
                    let one = value(chance, document, (schema, name), leases, depth + 1);
                    fields.insert(name.clone(), one);
                }
            }
            Value::Object(fields)
        }
        Some("object") => {
            let n = chance.within(0, 3);
            let one = |_| (numbered(chance, "g", 3), json!(chance.within(1, 9)));
            Value::Object((0..n).map(one).collect())
        }
        Some("string") => Value::String(match word(chance, field, leases) {
            Some(word) => word,
            None if schema["format"] == "date-time" => pick(chance, &MOMENTS).to_owned(),
            None if schema["examples"].is_array() => pick(chance, &DURATIONS).to_owned(),
            None if field == "id" => numbered(chance, "j", 40),
            None => pick(chance, &WORDS).to_owned(),
        }),
        // Anything: payloads, data, results.
        _ => match chance.within(0, 5) {
            0 => Value::Null,
            1 => json!(pick(chance, &WORDS)),
            2 => json!([1, {"a": [true]}]),
            3 => json!("x".repeat(chance.within(0, 3_000) as usize)),
            _ => json!({"url": "https://example.com/", "n": chance.within(0, 100)}),
        },
    }
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| json!([inner]))
}

/// A value of the wrong kind for its place.
fn strange(chance: &mut Chance) -> Value {
    match chance.within(0, 18) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(1.5),
        5 => json!(u64::MAX),
        6 => json!(i64::MIN),
        7 => json!(1e300),
        8 => json!(""),
        9 => json!(" "),
        10 => json!("\u{0}"),
        11 => json!("a/b?c#d,e"),
        12 => json!("x".repeat(chance.within(100, 5_000) as usize)),
        13 => json!("x".repeat(300_000)),
        14 => json!([]),
        15 => json!({}),
        16 => nested(chance.within(2, 80) as usize),
        _ => json!("\u{1F600}\u{202E}é"),
    }
}

/// Breaks a value at one place.
pub fn broken(chance: &mut Chance, value: &mut Value) {
    let inside = chance.percent(80);
    match value {
        Value::Object(fields) if inside && !fields.is_empty() => {
            let at = chance.within(0, fields.len() as u64) as usize;
            let Some(name) = fields.keys().nth(at).cloned() else { return };
            match chance.within(0, 6) {
                0 => {
                    fields.insert("nothing_like_it".to_owned(), strange(chance));
                }
                1 => {
                    fields.remove(&name);
                }
                2 => {
                    fields.insert(format!("{name} "), strange(chance));
                }
                3 => {
                    fields.insert(name, strange(chance));
                }
                _ => {
                    if let Some(inner) = fields.get_mut(&name) {
                        broken(chance, inner);
                    }
                }
            }
        }
        Value::Array(items) if inside && !items.is_empty() => {
            let at = chance.within(0, items.len() as u64) as usize;
            match chance.within(0, 5) {
                0 => items.clear(),
                1 => items.push(strange(chance)),
                // Not a large item: a request stays within some megabytes.
                2 if items[at].to_string().len() < 5_000 => {
                    let again = items[at].clone();
                    items.resize(items.len() + chance.within(1, 1_100) as usize, again);
                }
                _ => broken(chance, &mut items[at]),
            }
        }
        other => *other = strange(chance),
    }
}
