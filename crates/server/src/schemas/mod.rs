//! The schemas that the OpenAPI document names: what bodies may say, and what answers show.
//!
//! Fields are named once, here, for people and generators; what is true of a value is decided by
//! the readers of `tenure_core`. A test sends every field that a body has here to those readers.

mod bodies;
mod shown;

use serde_json::{Map, Value, json};
use tenure_core::bounds::{ITEMS_MAX, LIST_MAX, PRIORITY_MAX, PRIORITY_MIN, QUEUES_MAX};
use tenure_core::job::JobState;

pub(crate) use self::bodies::BODIES;
use self::bodies::{LIMIT_SETTINGS, POOL_SETTINGS, QUEUE_SETTINGS};
use self::shown::{JOB, SHOWN};

/// Fields of an object: the name, and the type by a word.
type Fields = &'static [(&'static str, &'static str)];

/// A type of a field, by a word.
fn of(word: &str) -> Value {
    if let Some(item) = word.strip_suffix("[]") {
        return json!({"type": "array", "items": of(item)});
    }
    if let Some(inner) = word.strip_suffix('?') {
        return json!({"anyOf": [of(inner), {"type": "null"}]});
    }
    match word {
        "string" | "boolean" | "integer" | "object" => json!({"type": word}),
        "name" => json!({"type": "string", "maxLength": 128}),
        "key" => json!({"type": "string", "maxLength": 256}),
        "duration" => json!({"type": "string", "examples": ["500ms", "1m30s"]}),
        "moment" => json!({"type": "string", "format": "date-time"}),
        "any" => json!({}),
        schema => json!({"$ref": format!("#/components/schemas/{schema}")}),
    }
}

/// An object with these fields.
fn object(fields: &[(&str, &str)]) -> Value {
    let fields: Map<String, Value> =
        fields.iter().map(|(name, word)| ((*name).to_owned(), of(word))).collect();
    json!({"type": "object", "properties": fields})
}

fn list(item: &str) -> Value {
    object(&[("items", &format!("{item}[]")), ("next", "string?"), ("partial", "boolean")])
}

/// One, or an array of so many.
fn one_or_many(item: &str) -> Value {
    let many = json!({"type": "array", "items": of(item), "minItems": 1, "maxItems": ITEMS_MAX});
    json!({"oneOf": [of(item), many]})
}

/// Fields with others behind them.
fn joined(first: &[(&str, &str)], rest: &[(&str, &str)]) -> Value {
    object(&[first, rest].concat())
}

/// All schemas by name.
pub(crate) fn all() -> Map<String, Value> {
    let mut all = Map::new();
    for (name, fields) in BODIES.iter().chain(SHOWN) {
        all.insert((*name).to_owned(), object(fields));
    }
    let flags =
        [("duplicate", "boolean"), ("replaced", "boolean"), ("workers", "integer")].as_slice();
    let holders = [
        ("in_use", "integer"),
        ("resting", "integer"),
        ("external", "integer"),
        ("waiting", "integer"),
        ("over_limit", "integer"),
        ("paused_until", "moment?"),
        ("holders", "Holder[]"),
        ("line", "Waiter[]"),
    ];
    let limit = [[("name", "name"), ("template", "name?")].as_slice(), &holders].concat();
    let states: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    let worker =
        object(&[("id", "key"), ("host", "string"), ("pid", "integer"), ("version", "string")]);
    let extend = object(&[("lease", "string"), ("progress", "any")]);
    let queue = [
        ("name", "name"),
        ("paused", "boolean"),
        ("paused_until", "moment?"),
        ("counts", "QueueCounts"),
        ("oldest_ready_at", "moment?"),
        ("workers", "integer"),
    ];
    let pool = [
        ("name", "name"),
        ("available", "integer"),
        ("leased", "integer"),
        ("cooling", "integer"),
        ("banned", "integer"),
        ("waiting", "integer"),
    ];
    let resources = json!({"type": "array", "items": of("Resource")});
    let pushed = json!({"type": "array", "items": of("PushedJob")});
    for (name, schema) in [
        ("JobState", json!({"type": "string", "enum": states})),
        ("NewJobs", one_or_many("NewJob")),
        ("PushedJob", joined(JOB, flags)),
        ("PushedJobs", json!({"oneOf": [of("PushedJob"), pushed]})),
        ("WorkerName", json!({"oneOf": [of("key"), worker]})),
        ("ExtendItem", json!({"oneOf": [of("string"), extend]})),
        ("ResourceSet", json!({"type": "array", "items": of("NewResource")})),
        ("NewResources", one_or_many("NewResource")),
        ("Resources", json!({"oneOf": [of("Resource"), resources]})),
        ("Queue", joined(&queue, QUEUE_SETTINGS)),
        ("Limit", joined(&limit, LIMIT_SETTINGS)),
        ("Pool", joined(&pool, POOL_SETTINGS)),
        ("Jobs", list("Job")),
        ("Leases", list("LeaseSummary")),
        ("Queues", list("Queue")),
        ("Limits", list("Limit")),
        ("Pools", list("Pool")),
        ("ResourceList", list("Resource")),
        ("Workers", list("Worker")),
    ] {
        all.insert(name.to_owned(), schema);
    }
    bound(&mut all, "NewJob", "priority", PRIORITY_MIN, PRIORITY_MAX);
    bound(&mut all, "JobFilter", "max", 1, LIST_MAX as i64);
    bound(&mut all, "LeaseCall", "max", 1, ITEMS_MAX as i64);
    if let Some(queues) = all["LeaseCall"].pointer_mut("/properties/queues") {
        queues["minItems"] = 1.into();
        queues["maxItems"] = QUEUES_MAX.into();
    }
    all
}

fn bound(all: &mut Map<String, Value>, schema: &str, field: &str, min: i64, max: i64) {
    let field =
        all.get_mut(schema).and_then(|schema| schema.pointer_mut(&format!("/properties/{field}")));
    if let Some(field) = field {
        field["minimum"] = min.into();
        field["maximum"] = max.into();
    }
}
