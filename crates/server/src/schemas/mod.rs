//! The schemas that the OpenAPI document names: what bodies may say, and what answers show.
//!
//! Fields are named once, here, for people and generators; what is true of a value is decided by
//! the readers of `tenure_core`. A test sends every field that a body has here to those readers.

mod bodies;
mod events;
mod flows;
mod shown;

use serde_json::{Map, Value, json};
use tenure_core::bounds::{
    CATCH_UP_MAX, ITEMS_MAX, LIST_MAX, OWNER_BYTES_MAX, PREVIEW_MAX, PRIORITY_MAX, PRIORITY_MIN,
    QUEUES_MAX, SCHEDULE_ID_BYTES_MAX,
};
use tenure_core::job::JobState;

pub(crate) use self::bodies::BODIES;
use self::bodies::{GAUGE, LIMIT_BOUNDS, POOL_SETTINGS, QUEUE_SETTINGS, SCHEDULE_SETTINGS};
use self::shown::{JOB, SHOWN};

/// Fields of an object: the name, and the type by a word.
type Fields = &'static [(&'static str, &'static str)];

/// Sentences of the document: schema, field, and what its value means.
type Sentences = &'static [(&'static str, &'static str, &'static str)];

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
        "owner" => json!({"type": "string", "maxLength": OWNER_BYTES_MAX}),
        "schedule" => json!({"type": "string", "maxLength": SCHEDULE_ID_BYTES_MAX}),
        "key" => json!({"type": "string", "maxLength": 256}),
        "duration" => json!({"type": "string", "examples": ["500ms", "1m30s"]}),
        "moment" => json!({"type": "string", "format": "date-time"}),
        "any" => json!({}),
        other => flows::word(other)
            .unwrap_or_else(|| json!({"$ref": format!("#/components/schemas/{other}")})),
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

/// An object in which each of these fields may be null: back to its default.
fn patch(fields: &[(&str, &str)]) -> Value {
    let words: Vec<(&str, String)> = fields
        .iter()
        .map(|(name, word)| (*name, format!("{}?", word.trim_end_matches('?'))))
        .collect();
    let fields: Vec<(&str, &str)> =
        words.iter().map(|(name, word)| (*name, word.as_str())).collect();
    object(&fields)
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

/// Adds these schemas, each with its fields.
fn add_objects(all: &mut Map<String, Value>, objects: &[(&str, Fields)]) {
    for (name, fields) in objects {
        all.insert((*name).to_owned(), object(fields));
    }
}

fn describe_all(all: &mut Map<String, Value>, sentences: Sentences) {
    for (schema, field, sentence) in sentences {
        describe(all, schema, field, sentence);
    }
}

/// Beside a reference, too: JSON Schema 2020-12, which OpenAPI 3.1 takes, lets words stand there.
fn describe(all: &mut Map<String, Value>, schema: &str, field: &str, sentence: &str) {
    let pointer = format!("/properties/{field}");
    if let Some(field) = all.get_mut(schema).and_then(|schema| schema.pointer_mut(&pointer)) {
        field["description"] = sentence.into();
    }
}

/// All schemas by name.
pub(crate) fn all() -> Map<String, Value> {
    let mut all = Map::new();
    add_objects(&mut all, BODIES);
    add_objects(&mut all, SHOWN);
    let flags =
        [("duplicate", "boolean"), ("replaced", "boolean"), ("workers", "integer")].as_slice();
    let holders = [
        ("in_use", "integer"),
        ("resting", "integer"),
        ("external", "integer"),
        ("gauge", "ReadGauge?"),
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
        ("skipped", "integer"),
    ];
    let schedule = [
        ("id", "schedule"),
        ("summary", "string"),
        ("next_at", "moment?"),
        ("next", "moment[]"),
        ("moved", "boolean"),
        ("paused", "boolean"),
        ("paused_until", "moment?"),
        ("ended", "boolean"),
        ("unfinished", "integer"),
        ("last", "LastFired?"),
        ("last_ended", "LastEnded?"),
        ("last_succeeded_at", "moment?"),
        ("fired", "integer"),
        ("skipped", "integer"),
        ("missed", "integer"),
        ("created_at", "moment"),
        ("changed_at", "moment"),
    ];
    let item = [[("id", "schedule")].as_slice(), SCHEDULE_SETTINGS].concat();
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
        ("Limit", joined(&limit, LIMIT_BOUNDS)),
        ("ReadGauge", joined(&[("reading", "GaugeReading?")], GAUGE)),
        ("OnStale", json!({"type": "string", "enum": ["keep", "hold"]})),
        ("Pool", joined(&pool, POOL_SETTINGS)),
        ("Schedule", joined(&schedule, SCHEDULE_SETTINGS)),
        ("SchedulePatch", patch(SCHEDULE_SETTINGS)),
        ("ScheduleItem", object(&item)),
        ("ScheduleSet", json!({"type": "array", "items": of("ScheduleItem")})),
        ("Schedules", list("Schedule")),
        ("Overlap", json!({"type": "string", "enum": ["skip", "queue", "allow"]})),
        ("CatchUp", json!({"type": "string", "enum": ["none", "last", "all"]})),
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
    flows::add(&mut all);
    events::add(&mut all);
    bound(&mut all, "NewJob", "priority", PRIORITY_MIN, PRIORITY_MAX);
    bound(&mut all, "JobFilter", "max", 1, LIST_MAX as i64);
    bound(&mut all, "LeaseCall", "max", 1, ITEMS_MAX as i64);
    bound(&mut all, "PreviewCall", "count", 1, PREVIEW_MAX as i64);
    bound(&mut all, "ScheduleSettings", "catch_up_max", 1, CATCH_UP_MAX);
    bound(&mut all, "ScheduledJob", "priority", PRIORITY_MIN, PRIORITY_MAX);
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
