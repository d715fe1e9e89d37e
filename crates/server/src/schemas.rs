//! The schemas that the OpenAPI document names: what bodies may say, and what answers show.
//!
//! Fields are named once, here, for people and generators; what is true of a value is decided by
//! the readers of `tenure_core`. A test sends every field that a body has here to those readers.

use serde_json::{Map, Value, json};
use tenure_core::bounds::{ITEMS_MAX, LIST_MAX, PRIORITY_MAX, PRIORITY_MIN, QUEUES_MAX};
use tenure_core::job::JobState;

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

const NEW_JOB: &[(&str, &str)] = &[
    ("id", "key"),
    ("queue", "name"),
    ("kind", "name"),
    ("payload", "any"),
    ("run_at", "moment"),
    ("delay", "duration"),
    ("priority", "integer"),
    ("group", "key"),
    ("needs", "Need[]"),
    ("unique", "Unique"),
    ("retry", "Retry"),
    ("timeout", "duration"),
    ("expires_at", "moment"),
    ("retain", "duration"),
    ("labels", "object"),
];

const JOB: &[(&str, &str)] = &[
    ("id", "key"),
    ("queue", "name"),
    ("kind", "string"),
    ("state", "JobState"),
    ("payload", "any"),
    ("priority", "integer"),
    ("group", "key?"),
    ("needs", "Need[]"),
    ("attempt", "integer"),
    ("lost", "integer"),
    ("run_at", "moment"),
    ("created_at", "moment"),
    ("started_at", "moment?"),
    ("finished_at", "moment?"),
    ("expires_at", "moment?"),
    ("result", "any"),
    ("error", "string?"),
    ("errors", "JobError[]"),
    ("progress", "any"),
    ("unique", "Unique?"),
    ("labels", "object"),
    ("lease", "string?"),
    ("cancel_requested", "boolean"),
    ("retry", "Retry"),
    ("timeout", "duration?"),
    ("retain", "duration?"),
];

const LATER: &[(&str, &str)] = &[("for", "duration"), ("until", "moment")];

const QUEUE_SETTINGS: &[(&str, &str)] = &[
    ("needs", "Need[]"),
    ("retry", "Retry?"),
    ("timeout", "duration?"),
    ("retain", "duration?"),
    ("max_waiting", "integer?"),
    ("shares", "object"),
];

const LIMIT_SETTINGS: &[(&str, &str)] =
    &[("concurrency", "integer?"), ("rate", "Rate?"), ("gap", "duration?")];

const POOL_SETTINGS: &[(&str, &str)] = &[
    ("quarantine", "duration"),
    ("cooldown", "duration"),
    ("rate", "Rate?"),
    ("max_uses", "integer?"),
    ("pick", "string"),
];

/// What bodies may say: schema and fields.
pub(crate) const BODIES: &[(&str, &[(&str, &str)])] = &[
    ("NewJob", NEW_JOB),
    (
        "JobPatch",
        &[
            ("run_at", "moment?"),
            ("delay", "duration?"),
            ("priority", "integer?"),
            ("payload", "any"),
            ("needs", "Need[]?"),
            ("group", "key?"),
            ("labels", "object?"),
            ("timeout", "duration?"),
            ("expires_at", "moment?"),
        ],
    ),
    (
        "JobFilter",
        &[
            ("queue", "name"),
            ("state", "string"),
            ("kind", "string"),
            ("label", "string"),
            ("max", "integer"),
        ],
    ),
    ("RetryOne", &[("finished_at", "moment")]),
    (
        "LeaseCall",
        &[
            ("queues", "name[]"),
            ("needs", "Need[]"),
            ("max", "integer"),
            ("wait", "duration"),
            ("ttl", "duration"),
            ("worker", "WorkerName"),
            ("request_id", "key"),
            ("place", "key"),
        ],
    ),
    ("ExtendCall", &[("leases", "ExtendItem[]"), ("ttl", "duration")]),
    ("SettleCall", &[("settle", "SettleItem[]")]),
    ("QueueSettings", QUEUE_SETTINGS),
    ("LimitSettings", LIMIT_SETTINGS),
    ("PoolSettings", POOL_SETTINGS),
    ("Later", LATER),
    ("Observation", &[("external", "integer"), ("for", "duration")]),
    ("NewResource", &[("id", "key"), ("data", "any"), ("tags", "name[]"), ("slots", "integer")]),
    ("ResourcePatch", &[("data", "any"), ("tags", "name[]?"), ("slots", "integer?")]),
    ("Ban", &[("reason", "string")]),
];

/// What answers show, and what stands in bodies: schema and fields.
const SHOWN: &[(&str, &[(&str, &str)])] = &[
    ("Job", JOB),
    (
        "JobError",
        &[("attempt", "integer"), ("at", "moment"), ("error", "string"), ("outcome", "string")],
    ),
    (
        "Unique",
        &[("key", "key"), ("until", "string"), ("for", "duration?"), ("on_conflict", "string")],
    ),
    ("Retry", &[("max_attempts", "integer"), ("max_lost", "integer"), ("backoff", "Backoff")]),
    (
        "Backoff",
        &[
            ("kind", "string"),
            ("base", "duration"),
            ("max", "duration"),
            ("delays", "duration[]"),
            ("jitter", "boolean"),
        ],
    ),
    (
        "Need",
        &[
            ("limit", "name"),
            ("weight", "integer"),
            ("cost", "integer"),
            ("pool", "name"),
            ("tag", "name"),
            ("prefer", "key"),
            ("id", "key"),
            ("count", "integer"),
        ],
    ),
    ("Rate", &[("count", "integer"), ("per", "duration"), ("burst", "integer")]),
    ("DoneMany", &[("done", "integer"), ("more", "boolean")]),
    (
        "Explained",
        &[
            ("id", "key"),
            ("state", "JobState"),
            ("summary", "string"),
            ("reasons", "Reason[]"),
            ("lease", "RunningLease"),
        ],
    ),
    (
        "Reason",
        &[
            ("kind", "string"),
            ("name", "string?"),
            ("in_use", "integer?"),
            ("capacity", "integer?"),
            ("holders", "Holder[]"),
            ("position", "integer?"),
            ("ahead", "integer?"),
            ("earliest", "moment?"),
            ("detail", "string"),
        ],
    ),
    ("Holder", &[("lease", "string"), ("holder", "string"), ("job", "key?"), ("since", "moment")]),
    (
        "RunningLease",
        &[("lease", "string"), ("holder", "string"), ("since", "moment"), ("expires_at", "moment")],
    ),
    ("Leased", &[("leases", "Lease[]"), ("next_at", "moment?"), ("reasons", "Reason[]")]),
    (
        "Lease",
        &[
            ("lease", "string?"),
            ("fence", "integer"),
            ("holder", "string"),
            ("granted_at", "moment"),
            ("expires_at", "moment"),
            ("deadline", "moment?"),
            ("job", "Job?"),
            ("resources", "LeasedResource[]"),
            ("limits", "name[]"),
        ],
    ),
    ("LeasedResource", &[("pool", "name"), ("id", "key"), ("data", "any"), ("tags", "name[]")]),
    (
        "LeaseSummary",
        &[
            ("lease", "string"),
            ("fence", "integer"),
            ("holder", "string"),
            ("granted_at", "moment"),
            ("expires_at", "moment"),
            ("deadline", "moment?"),
            ("job", "key?"),
            ("queue", "name?"),
            ("resources", "HeldResource[]"),
            ("limits", "name[]"),
            ("cancel_requested", "boolean"),
        ],
    ),
    ("HeldResource", &[("pool", "name"), ("id", "key")]),
    ("Extended", &[("extended", "ExtendedLease[]"), ("lost", "string[]"), ("cancel", "string[]")]),
    ("ExtendedLease", &[("lease", "string"), ("expires_at", "moment")]),
    (
        "SettleItem",
        &[
            ("lease", "string"),
            ("outcome", "string"),
            ("result", "any"),
            ("error", "string"),
            ("retry_in", "duration"),
            ("final", "boolean"),
            ("for", "duration"),
            ("until", "moment"),
            ("resources", "ResourceVerdict[]"),
            ("limits", "LimitVerdict[]"),
            ("push", "NewJob[]"),
        ],
    ),
    (
        "ResourceVerdict",
        &[
            ("pool", "name"),
            ("id", "key"),
            ("verdict", "string"),
            ("for", "duration"),
            ("until", "moment"),
            ("reason", "string"),
        ],
    ),
    ("LimitVerdict", &[("limit", "name"), ("pause", "duration"), ("spent", "integer")]),
    ("Settled", &[("settled", "SettledLease[]")]),
    (
        "SettledLease",
        &[
            ("lease", "string"),
            ("ok", "boolean"),
            ("state", "JobState"),
            ("run_at", "moment"),
            ("code", "string"),
            ("pushed", "PushedJob[]"),
        ],
    ),
    (
        "QueueCounts",
        &[
            ("ready", "integer"),
            ("blocked", "integer"),
            ("scheduled", "integer"),
            ("dependent", "integer"),
            ("running", "integer"),
        ],
    ),
    ("Waiter", &[("job", "key?"), ("queue", "name?"), ("since", "moment")]),
    (
        "Resource",
        &[
            ("id", "key"),
            ("data", "any"),
            ("tags", "name[]"),
            ("slots", "integer"),
            ("state", "string"),
            ("reason", "string?"),
            ("in_use", "integer"),
            ("until", "moment?"),
            ("retiring", "boolean"),
            ("holders", "Holder[]"),
            ("uses", "integer"),
            ("last_used_at", "moment?"),
        ],
    ),
    (
        "Synced",
        &[
            ("added", "integer"),
            ("updated", "integer"),
            ("unchanged", "integer"),
            ("retired", "integer"),
            ("retiring", "integer"),
        ],
    ),
    (
        "Worker",
        &[
            ("id", "key"),
            ("host", "string?"),
            ("pid", "integer?"),
            ("version", "string?"),
            ("queues", "name[]"),
            ("leases", "integer"),
            ("last_seen_at", "moment"),
        ],
    ),
    ("StoreStats", &[("kind", "string"), ("bytes", "integer")]),
    (
        "Stats",
        &[
            ("jobs", "object"),
            ("queues", "object"),
            ("leases", "integer"),
            ("oldest_ready_at", "moment?"),
            ("store", "StoreStats"),
        ],
    ),
    ("Audit", &[("ok", "boolean"), ("checked", "integer"), ("faults", "string[]")]),
    ("Health", &[("status", "string")]),
    (
        "Ready",
        &[("status", "string"), ("store", "string"), ("draining", "boolean"), ("detail", "string")],
    ),
    ("Version", &[("version", "string"), ("commit", "string"), ("contract", "integer")]),
    ("Document", &[]),
    (
        "Problem",
        &[
            ("type", "string"),
            ("title", "string"),
            ("status", "integer"),
            ("code", "string"),
            ("detail", "string"),
            ("hint", "string"),
            ("pointer", "string"),
            ("index", "integer"),
            ("line", "integer"),
            ("job", "key"),
        ],
    ),
];

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
