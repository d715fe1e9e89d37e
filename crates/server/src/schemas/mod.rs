//! The schemas that the OpenAPI document names: bodies of requests, and answers.
//!
//! Fields are named once, here, for people and generators, each with the meaning of its value: unit, range, default.
//! The readers of `tenure_core` check the values. One test sends every field of a body to those readers,
//! and another one finds a field without a description.

mod bodies;
mod events;
mod flows;
mod given;
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
use self::given::{FORMS, GIVEN, TIMINGS};
use self::leases::LEASES;
use self::shown::{JOB, SHOWN};
use self::things::THINGS;

/// A field of an object: its name, its type by a word, and the meaning of its value, for readers of the document.
///
/// A word that ends with `!` is a field that a body must have, and one that ends with `~` is a field that an answer may
/// lack. All other fields of bodies are optional, and all other fields of answers are always there, even if only as
/// null.
type DescribedField = (&'static str, &'static str, &'static str);

/// Fields of an object.
type Fields = &'static [DescribedField];

/// Why something waits, as section 3 of the contract lists it. A client must accept words that it does not know.
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

/// Schemas that bodies and answers share. An answer has all of their fields, so it names a twin with this prefix, in
/// which all are required.
const SHARED: &[&str] = &["Unique", "Retry", "Backoff", "Rate"];
const SHOWN_PREFIX: &str = "Shown";

/// A type of a field, by a word.
fn of(word: &str) -> Value {
    let word = word.trim_end_matches(['!', '~']);
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
        "nothing" => json!({"type": "null"}),
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

/// An object in an answer: each field is required unless its word says otherwise.
fn shown(fields: &[DescribedField]) -> Value {
    let required = fields.iter().filter(|(_, word, _)| !word.ends_with('~'));
    let required = required.map(|(name, ..)| *name).collect::<Vec<_>>();
    object_of(
        fields.iter().map(|(name, word, sentence)| (*name, shown_as(word), *sentence)),
        &required,
    )
}

/// A type of a field of an answer, by a word.
fn shown_as(word: &str) -> Value {
    match SHARED.iter().find(|shared| word.starts_with(**shared)) {
        Some(_) => of(&format!("{SHOWN_PREFIX}{word}")),
        None => of(word),
    }
}

/// An object in a body: each field is optional unless its word says otherwise.
fn given(fields: &[DescribedField]) -> Value {
    let required = fields.iter().filter(|(_, word, _)| word.ends_with('!'));
    let required = required.map(|(name, ..)| *name).collect::<Vec<_>>();
    object_of(fields.iter().map(|(name, word, sentence)| (*name, of(word), *sentence)), &required)
}

/// One of several forms of a body: each has its own fields, and those that all forms share.
fn one_of(fields: &[DescribedField], forms: &[Form]) -> Value {
    let form = |form: &Form| {
        let others = forms.iter().filter(|other| other.name != form.name);
        let foreign: Vec<&str> = others.flat_map(|other| other.own).copied().collect();
        let is_own = |name: &str| form.own.contains(&name) || !foreign.contains(&name);
        let mut object =
            given(&fields.iter().filter(|(name, ..)| is_own(name)).copied().collect::<Vec<_>>());
        object["title"] = form.name.into();
        if let Some(required) = object["required"].as_array_mut() {
            required.extend(form.required.iter().map(|name| Value::from(*name)));
        } else {
            object["required"] = json!(form.required);
        }
        if let Some((field, word)) = form.says {
            let sentence = object["properties"][field]["description"].take();
            object["properties"][field] =
                json!({"type": "string", "const": word, "description": sentence});
        }
        object
    };
    json!({"oneOf": forms.iter().map(form).collect::<Vec<_>>()})
}

/// One form of a body that has several.
struct Form {
    /// Its name, for generators.
    name: &'static str,
    /// Fields that not every form has.
    own: &'static [&'static str],
    /// Fields that this form must have, beside those that every form must have.
    required: &'static [&'static str],
    /// The field by which the form is recognised, and its value there.
    says: Option<(&'static str, &'static str)>,
}

/// A description stands beside a reference, too: JSON Schema 2020-12, which OpenAPI 3.1 uses, allows that.
fn object_of<'f>(
    fields: impl Iterator<Item = (&'f str, Value, &'f str)>,
    required: &[&str],
) -> Value {
    let field = |(name, mut kind, sentence): (&str, Value, &str)| {
        kind["description"] = sentence.into();
        (name.to_owned(), kind)
    };
    let mut object =
        json!({"type": "object", "properties": fields.map(field).collect::<Map<String, Value>>()});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn list(item: &str) -> Value {
    let fields = [
        ("items", of(&format!("{item}[]")), "The items of this page."),
        ("next", of("string?"), "The cursor of the next page; null on the last one."),
        ("partial", of("boolean"), "true: only 10,000 rows were looked at; go on with next."),
    ];
    object_of(fields.into_iter(), &["items", "next"])
}

/// An object in which each of these fields may be null, for its default.
fn patch(fields: &[DescribedField]) -> Value {
    let nullable = |(name, word, sentence): &DescribedField| {
        (*name, of(&format!("{}?", word.trim_end_matches('?'))), *sentence)
    };
    object_of(fields.iter().map(nullable), &[])
}

/// One item, or an array of 1 to `ITEMS_MAX`.
fn one_or_many(item: &str) -> Value {
    let many = json!({"type": "array", "items": of(item), "minItems": 1, "maxItems": ITEMS_MAX});
    json!({"oneOf": [of(item), many]})
}

/// An answer with the fields of `first` and then of `rest`.
fn joined(first: &[DescribedField], rest: &[DescribedField]) -> Value {
    shown(&[first, rest].concat())
}

/// Adds schemas of answers, each with its fields.
fn add_shown(all: &mut Map<String, Value>, objects: &[(&str, Fields)]) {
    for (name, fields) in objects {
        all.insert((*name).to_owned(), shown(fields));
    }
}

/// Adds schemas of bodies, each with its fields.
fn add_given(all: &mut Map<String, Value>, objects: &[(&str, Fields)]) {
    for (name, fields) in objects {
        all.insert((*name).to_owned(), given(fields));
    }
}

/// All schemas by name.
pub(crate) fn all() -> Value {
    let mut all = Map::new();
    add_given(&mut all, BODIES);
    add_given(&mut all, GIVEN);
    add_shown(&mut all, SHOWN);
    add_shown(&mut all, LEASES);
    add_shown(&mut all, THINGS);
    for (name, fields) in GIVEN.iter().filter(|(name, _)| SHARED.contains(name)) {
        all.insert(format!("{SHOWN_PREFIX}{name}"), shown(fields));
    }
    for (name, fields, forms) in FORMS {
        all.insert((*name).to_owned(), one_of(fields, forms));
    }
    let flags = [
        ("duplicate", "boolean", "Whether the job was there already, and nothing was stored."),
        ("replaced", "boolean~", "Whether a job that was there got the new content."),
        (
            "workers",
            "integer~",
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
        ("line", "Waiter[]~", "Who waits in its line, the first 20; in GET of one limit alone."),
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
    let worker = given(&[
        ("id", "key", "Random for each process, 1 to 256 bytes; anonymous if absent."),
        ("host", "string", "The host of the process, at most 256 bytes."),
        ("pid", "integer", "The id of the process on its host."),
        ("version", "string", "The version of the program, at most 256 bytes."),
    ]);
    let extend = given(&[
        ("lease", "string!", "The id of the lease."),
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
            "moment[]~",
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
            "schedule!",
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
        ("Granted", json!({"oneOf": [of("Lease"), of("Tokens")]})),
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
        ("ScheduleItem", one_of(&item, TIMINGS)),
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
    let mut all = Value::Object(all);
    bound(&mut all, "/NewJob/properties/priority", PRIORITY_MIN, PRIORITY_MAX);
    bound(&mut all, "/JobFilter/properties/max", 1, LIST_MAX as i64);
    bound(&mut all, "/LeaseCall/oneOf/0/properties/max", 1, ITEMS_MAX as i64);
    bound(&mut all, "/PreviewCall/properties/count", 1, PREVIEW_MAX as i64);
    for timing in 0..TIMINGS.len() {
        let catch_up_max = format!("/ScheduleSettings/oneOf/{timing}/properties/catch_up_max");
        bound(&mut all, &catch_up_max, 1, CATCH_UP_MAX);
    }
    bound(&mut all, "/ScheduledJob/properties/priority", PRIORITY_MIN, PRIORITY_MAX);
    let queues = at(&mut all, "/LeaseCall/oneOf/0/properties/queues");
    queues["minItems"] = 1.into();
    queues["maxItems"] = QUEUES_MAX.into();
    all
}

/// A part of the schemas, to be changed in place.
fn at<'a>(all: &'a mut Value, pointer: &str) -> &'a mut Value {
    all.pointer_mut(pointer).unwrap_or_else(|| panic!("no schema has {pointer}"))
}

fn bound(all: &mut Value, pointer: &str, min: i64, max: i64) {
    let field = at(all, pointer);
    field["minimum"] = min.into();
    field["maximum"] = max.into();
}
