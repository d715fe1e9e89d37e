//! The schemas that the OpenAPI document names: what bodies may say, and what answers show.
//!
//! Fields are named once, here, for people and generators, each with what its value means: unit, range, what holds without
//! it. What is true of a value is decided by the readers of `tenure_core`. A test sends every field that a body has here to
//! those readers, and another one finds a field that says nothing.

mod bodies;
mod events;
mod flows;
mod leases;
mod shown;
mod things;

use serde_json::{Map, Value, json};
use tenure_core::bounds::{
    CATCH_UP_MAX, ITEMS_MAX, LIST_MAX, OWNER_BYTES_MAX, PREVIEW_MAX, PRIORITY_MAX, PRIORITY_MIN,
    QUEUES_MAX, SCHEDULE_ID_BYTES_MAX,
};
use tenure_core::job::JobState;
use tenure_core::refusal::Code;

pub(crate) use self::bodies::BODIES;
use self::bodies::{GAUGE, LIMIT_BOUNDS, POOL_SETTINGS, QUEUE_SETTINGS, SCHEDULE_SETTINGS};
use self::leases::LEASES;
use self::shown::{JOB, SHOWN};
use self::things::THINGS;

/// A field of an object: its name, its type by a word, and what its value means, for whoever reads the document.
type DescribedField = (&'static str, &'static str, &'static str);

/// Fields of an object.
type Fields = &'static [DescribedField];

/// Why something waits, as section 3 of the contract lists it. A client takes a word that it does not know as one more.
const REASON_KINDS: &[&str] = &[
    "waiting_on",
    "scheduled",
    "behind",
    "queue_paused",
    "no_worker",
    "workers_full",
    "limit",
    "rate",
    "gap",
    "limit_paused",
    "external",
    "pool",
    "reserved",
    "never_fits",
];

/// A type of a field, by a word.
fn of(word: &str) -> Value {
    if let Some(item) = word.strip_suffix("[]") {
        return json!({"type": "array", "items": of(item)});
    }
    if let Some(inner) = word.strip_suffix('?') {
        return json!({"anyOf": [of(inner), {"type": "null"}]});
    }
    if word.contains('|') {
        return words(&word.split('|').collect::<Vec<_>>());
    }
    match word {
        "ok" => words(&["ok"]),
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

/// One of these words.
fn words(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// An object with these fields.
fn object(fields: &[DescribedField]) -> Value {
    let fields = fields.iter().map(|(name, word, sentence)| (*name, of(word), *sentence));
    object_of(fields)
}

/// The sentence stands beside a reference, too: JSON Schema 2020-12, which OpenAPI 3.1 takes, lets words stand there.
fn object_of<'f>(fields: impl Iterator<Item = (&'f str, Value, &'f str)>) -> Value {
    let field = |(name, mut kind, sentence): (&str, Value, &str)| {
        kind["description"] = sentence.into();
        (name.to_owned(), kind)
    };
    json!({"type": "object", "properties": fields.map(field).collect::<Map<String, Value>>()})
}

fn list(item: &str) -> Value {
    let fields = [
        ("items", of(&format!("{item}[]")), "The items of this page."),
        ("next", of("string?"), "The cursor of the next page; null on the last one."),
        ("partial", of("boolean"), "true: only 10,000 rows were looked at; go on with next."),
    ];
    object_of(fields.into_iter())
}

/// An object in which each of these fields may be null: back to its default.
fn patch(fields: &[DescribedField]) -> Value {
    let nullable = |(name, word, sentence): &DescribedField| {
        (*name, of(&format!("{}?", word.trim_end_matches('?'))), *sentence)
    };
    object_of(fields.iter().map(nullable))
}

/// One, or an array of so many.
fn one_or_many(item: &str) -> Value {
    let many = json!({"type": "array", "items": of(item), "minItems": 1, "maxItems": ITEMS_MAX});
    json!({"oneOf": [of(item), many]})
}

/// Fields with others behind them.
fn joined(first: &[DescribedField], rest: &[DescribedField]) -> Value {
    object(&[first, rest].concat())
}

/// Adds these schemas, each with its fields.
fn add_objects(all: &mut Map<String, Value>, objects: &[(&str, Fields)]) {
    for (name, fields) in objects {
        all.insert((*name).to_owned(), object(fields));
    }
}

/// All schemas by name.
pub(crate) fn all() -> Map<String, Value> {
    let mut all = Map::new();
    add_objects(&mut all, BODIES);
    add_objects(&mut all, SHOWN);
    add_objects(&mut all, LEASES);
    add_objects(&mut all, THINGS);
    let flags = [
        ("duplicate", "boolean", "Whether the job was there already, and nothing was stored."),
        ("replaced", "boolean", "Whether a job that was there got the new content."),
        (
            "workers",
            "integer",
            "0 if nobody asked for the queue within the last minute; absent otherwise.",
        ),
    ]
    .as_slice();
    let holders = [
        ("in_use", "integer", "Permits of live leases, and those that rest."),
        ("resting", "integer", "How many of those permits rest."),
        ("external", "integer", "Permits that work outside uses, as observed or read."),
        ("gauge", "ReadGauge?", "The gauge and what it read; null without one."),
        ("waiting", "integer", "How many jobs and callers stand in its line."),
        (
            "over_limit",
            "integer",
            "Whether more is in use than the concurrency allows, as after it was lowered.",
        ),
        ("paused_until", "moment?", "Until when nothing is granted; null if it is not paused."),
        ("holders", "Holder[]", "Who holds permits, at most 20."),
        ("line", "Waiter[]", "Who waits in its line, the first 20; in GET of one limit alone."),
    ];
    let limit = [
        [
            ("name", "name", "The name of the limit: family or family:key."),
            (
                "template",
                "name?",
                "The template whose settings hold for it; null if it has its own.",
            ),
        ]
        .as_slice(),
        &holders,
    ]
    .concat();
    let states: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let worker = object(&[
        ("id", "key", "Random for each process, 1 to 256 bytes; anonymous if absent."),
        ("host", "string", "The host of the process, at most 256 bytes."),
        ("pid", "integer", "The id of the process on its host."),
        ("version", "string", "The version of the program, at most 256 bytes."),
    ]);
    let extend = object(&[
        ("lease", "string", "The id of the lease."),
        (
            "progress",
            "any",
            "What its holder reports, at most 4 KiB; shown with the job until the next report.",
        ),
    ]);
    let queue = [
        ("name", "name", "The name of the queue."),
        ("paused", "boolean", "Whether nothing is granted now."),
        ("paused_until", "moment?", "Until when it is paused; null if without end, or not paused."),
        ("counts", "QueueCounts", "Its jobs by state."),
        (
            "oldest_ready_at",
            "moment?",
            "Since when the oldest ready job is ready; null if none is.",
        ),
        ("workers", "integer", "How many workers asked for it within the last minute."),
        (
            "skipped",
            "integer",
            "How many moments of schedules into it were skipped because it was full.",
        ),
    ];
    let schedule = [
        ("id", "schedule", "The id of the schedule."),
        ("summary", "string", "In one sentence, what happens next."),
        (
            "next_at",
            "moment?",
            "The next moment, without its jitter; null if none is left or it is paused without end.",
        ),
        (
            "next",
            "moment[]",
            "The next five moments, or as many as are left; lists leave them out.",
        ),
        ("moved", "boolean", "Whether next_at was set by the next_in of a settle."),
        ("paused", "boolean", "Whether nothing fires now."),
        ("paused_until", "moment?", "Until when it is paused; null if without end, or not paused."),
        ("ended", "boolean", "Whether no moment is left."),
        ("unfinished", "integer", "How many of its jobs have not ended."),
        ("last", "LastFired?", "The last moment that fired; null if none did."),
        ("last_ended", "LastEnded?", "The job of it that ended last; null if none did."),
        ("last_succeeded_at", "moment?", "When a job of it succeeded last; null if none did."),
        ("fired", "integer", "How many moments made a job."),
        (
            "skipped",
            "integer",
            "How many moments were skipped: a job was unfinished, or the queue was full.",
        ),
        ("missed", "integer", "How many moments were too late, or too many."),
        ("created_at", "moment", "When the schedule was made."),
        ("changed_at", "moment", "When its timing was changed last."),
    ];
    let item = [
        [(
            "id",
            "schedule",
            "The id of the schedule, 1 to 200 bytes; it must not stand twice in the set.",
        )]
        .as_slice(),
        SCHEDULE_SETTINGS,
    ]
    .concat();
    let pool = [
        ("name", "name", "The name of the pool."),
        ("available", "integer", "How many resources have a free slot."),
        ("leased", "integer", "How many resources have a holder."),
        ("cooling", "integer", "How many resources rest."),
        ("banned", "integer", "How many resources are banned."),
        ("waiting", "integer", "How many jobs and callers stand in its lines."),
    ];
    let resources = json!({"type": "array", "items": of("Resource")});
    let pushed = json!({"type": "array", "items": of("PushedJob")});
    for (name, schema) in [
        ("JobState", words(&states)),
        ("Code", words(&codes)),
        ("ReasonKind", words(REASON_KINDS)),
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
        (
            "ReadGauge",
            joined(
                &[(
                    "reading",
                    "GaugeReading?",
                    "What was read last; null before the first attempt.",
                )],
                GAUGE,
            ),
        ),
        ("OnStale", words(&["keep", "hold"])),
        ("Pool", joined(&pool, POOL_SETTINGS)),
        ("Schedule", joined(&schedule, SCHEDULE_SETTINGS)),
        ("SchedulePatch", patch(SCHEDULE_SETTINGS)),
        ("ScheduleItem", object(&item)),
        ("ScheduleSet", json!({"type": "array", "items": of("ScheduleItem")})),
        ("Schedules", list("Schedule")),
        ("Overlap", words(&["skip", "queue", "allow"])),
        ("CatchUp", words(&["none", "last", "all"])),
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
