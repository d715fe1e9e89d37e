//! The schemas that the OpenAPI document names: bodies of requests, and answers.
//!
//! The fields of bodies come from the table of `tenure_core::decode`, which reads and checks them. The fields of answers
//! are named here, each with the meaning of its value: unit, range, default.

mod events;
mod flows;
mod given;
mod leases;
mod shown;
mod things;

use serde_json::{Map, Value, json};
use tenure_core::access::Scope;
use tenure_core::bounds::{ITEMS_MAX, OWNER_BYTES_MAX, SCHEDULE_ID_BYTES_MAX};
use tenure_core::job::JobState;
use tenure_core::refusal::Code;

pub(crate) use self::given::plain as kind;
use self::leases::LEASES;
use self::shown::{JOB, SHOWN};
use self::things::THINGS;

/// A field of an object: its name, its type by a word, and the meaning of its value, for readers of the document.
///
/// A word that ends with `~` is a field that an answer may lack. All others are always there, even if only as null.
type DescribedField = (&'static str, &'static str, &'static str);

/// Fields of an object.
type Fields = &'static [DescribedField];

/// Fields of an object, each a name with its word and its sentence.
macro_rules! fields {
    ($($name:ident: $word:literal, $sentence:literal;)*) => {
        &[$((stringify!($name), $word, $sentence)),*]
    };
}
use fields;

/// Objects of answers, each a name with its fields.
macro_rules! objects {
    ($($object:ident { $($fields:tt)* })*) => {
        &[$((stringify!($object), $crate::schemas::fields! { $($fields)* })),*]
    };
}
use objects;

/// Fields of a gauge that only one of its variants has.
const GAUGE_VARIANTS: [&str; 4] = ["url", "count", "scrapyd", "project"];

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

/// A type of a field, by a word.
fn of(word: &str) -> Value {
    let word = word.trim_end_matches('~');
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

/// A field of an answer: its name, its schema, the meaning of its value, and whether it is always there.
type ShownField = (&'static str, Value, &'static str, bool);

/// An object in an answer: each field is required unless its word says otherwise.
fn shown(fields: &[DescribedField]) -> Value {
    shown_of(&shown_fields(fields))
}

fn shown_fields(fields: &[DescribedField]) -> Vec<ShownField> {
    let field = |(name, word, sentence): &DescribedField| {
        (*name, shown_as(word), *sentence, !word.ends_with('~'))
    };
    fields.iter().map(field).collect()
}

fn shown_of(fields: &[ShownField]) -> Value {
    let required: Vec<&str> =
        fields.iter().filter(|(.., always)| *always).map(|(name, ..)| *name).collect();
    let described = fields.iter().map(|(name, kind, sentence, _)| (*name, kind.clone(), *sentence));
    object_of(described, &required)
}

/// A type of a field of an answer, by a word.
fn shown_as(word: &str) -> Value {
    let schema = word.trim_end_matches(['?', '~', '[', ']']);
    of(&word.replacen(schema, &given::shown_name(schema), 1))
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

/// One item, or an array of 1 to `ITEMS_MAX`.
fn one_or_many(item: &str) -> Value {
    let many = json!({"type": "array", "items": of(item), "minItems": 1, "maxItems": ITEMS_MAX});
    json!({"oneOf": [of(item), many]})
}

/// An answer with these fields, and with the settings that its body sets.
fn joined(fields: &[DescribedField], settings: Vec<ShownField>) -> Value {
    shown_of(&[shown_fields(fields), settings].concat())
}

/// Adds schemas of answers, each with its fields.
fn add_shown(all: &mut Map<String, Value>, objects: &[(&str, Fields)]) {
    for (name, fields) in objects {
        all.insert((*name).to_owned(), shown(fields));
    }
}

/// All schemas by name.
pub(crate) fn all() -> Value {
    let mut all = Map::new();
    given::add(&mut all);
    add_shown(&mut all, SHOWN);
    add_shown(&mut all, LEASES);
    add_shown(&mut all, THINGS);
    let flags: Fields = fields! {
        duplicate: "boolean", "Whether the job was there already, and nothing was stored.";
        replaced: "boolean~", "Whether a job that was there got the new content.";
        workers: "integer~", "0 if nobody asked for the queue within the last minute; absent otherwise.";
    };
    let limit: Fields = fields! {
        name: "name", "The name of the limit: family or family:key.";
        template: "name?", "The template whose settings hold for it; null if it has its own.";
        in_use: "integer", "Permits of live leases, and those that rest.";
        resting: "integer", "How many of those permits rest.";
        external: "integer", "Permits that work outside uses, as observed or read.";
        gauge: "ReadGauge?", "The gauge and what it read; null without one.";
        waiting: "integer", "How many jobs and callers stand in its line.";
        over_limit: "integer", "How many permits are in use beyond the concurrency, as after it was lowered.";
        paused_until: "moment?", "Until when nothing is granted; null if it is not paused.";
        holders: "Holder[]", "Who holds permits, at most 20.";
        line: "Waiter[]~", "Who waits in its line, the first 20; in GET of one limit alone.";
    };
    let states: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    let scopes: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let queue: Fields = fields! {
        name: "name", "The name of the queue.";
        paused: "boolean", "Whether nothing is granted now.";
        paused_until: "moment?", "Until when it is paused; null if without end, or not paused.";
        counts: "QueueCounts", "Its jobs by state.";
        oldest_ready_at: "moment?", "Since when the oldest ready job is ready; null if none is.";
        workers: "integer", "How many workers asked for it within the last minute.";
        skipped: "integer",
            "How many moments of schedules into it were skipped: by an unfinished job, a full queue, or a payload that lacks a field.";
    };
    let schedule: Fields = fields! {
        id: "schedule", "The id of the schedule.";
        summary: "string", "In one sentence, what happens next.";
        next_at: "moment?", "The next moment, without its jitter; null if none is left or it is paused without end.";
        next: "moment[]~", "The next five moments, or as many as are left; lists leave them out.";
        moved: "boolean", "Whether next_at was set by the next_in of a settle.";
        paused: "boolean", "Whether nothing fires now.";
        paused_until: "moment?", "Until when it is paused; null if without end, or not paused.";
        ended: "boolean", "Whether no moment is left.";
        unfinished: "integer", "How many of its jobs have not ended.";
        last: "LastFired?", "The last moment that fired; null if none did.";
        last_ended: "LastEnded?", "The job of it that ended last; null if none did.";
        last_succeeded_at: "moment?", "When a job of it succeeded last; null if none did.";
        fired: "integer", "How many moments made a job.";
        skipped: "integer",
            "How many moments were skipped: by an unfinished job, a full queue, a payload that lacks a field, or a next_in.";
        missed: "integer", "How many moments were too late, or too many.";
        created_at: "moment", "When the schedule was made.";
        changed_at: "moment", "When its timing was changed last.";
    };
    let pool: Fields = fields! {
        name: "name", "The name of the pool.";
        available: "integer", "How many resources have a free slot.";
        leased: "integer", "How many resources have a holder.";
        cooling: "integer", "How many resources rest.";
        banned: "integer", "How many resources are banned.";
        waiting: "integer", "How many jobs and callers stand in its lines.";
    };
    let mut bounds = given::shown_fields("LimitSettings", &[]);
    // An answer shows the gauge with its readings.
    bounds.retain(|(name, ..)| *name != "gauge");
    let mut timed = given::shown_fields("ScheduleSettings", &[]);
    timed.retain(|(name, ..)| *name != "id");
    let reading: Fields = fields! {
        reading: "GaugeReading?", "What was read last; null before the first attempt.";
    };
    let many = |item: &str| json!({"type": "array", "items": of(item)});
    let id_and_line: Fields = fields! {
        id: "key", "The id of the job.";
        line: "integer~", "The number of its line in NDJSON, from 1; absent in JSON.";
    };
    let short = [id_and_line, flags].concat();
    let mut short = shown(&short);
    short["description"] =
        "The answer for a job with `Prefer: return=minimal`, and for each line of NDJSON.".into();
    // The short answer is a part of the whole one, so that both fit a whole one.
    let pushed = [of("PushedJob"), many("PushedJob"), of("PushedId"), many("PushedId")];
    for (name, schema) in [
        ("JobState", words(&states)),
        ("Code", words(&codes)),
        ("ReasonKind", words(REASON_KINDS)),
        ("Scope", words(&scopes)),
        ("NewJobs", one_or_many("NewJob")),
        ("Job", shown(JOB)),
        ("PushedJob", shown(&[JOB, flags].concat())),
        ("PushedId", short),
        ("PushedJobs", json!({"anyOf": pushed})),
        ("Granted", json!({"oneOf": [of("Lease"), of("Tokens")]})),
        ("ResourceSet", many("NewResource")),
        ("NewResources", one_or_many("NewResource")),
        ("Resources", json!({"oneOf": [of("Resource"), many("Resource")]})),
        ("Queue", joined(queue, given::shown_fields("QueueSettings", &[]))),
        ("Limit", joined(limit, bounds)),
        ("ReadGauge", joined(reading, given::shown_fields("Gauge", &GAUGE_VARIANTS))),
        ("Pool", joined(pool, given::shown_fields("PoolSettings", &[]))),
        ("Schedule", joined(schedule, timed)),
        ("QueuePatch", given::patch("QueueSettings", &mut all)),
        ("LimitPatch", given::patch("LimitSettings", &mut all)),
        ("PoolPatch", given::patch("PoolSettings", &mut all)),
        ("SchedulePatch", given::patch("ScheduleSettings", &mut all)),
        ("ScheduleItem", given::item("ScheduleSettings", "id", &mut all)),
        ("ScheduleSet", many("ScheduleItem")),
        ("Schedules", list("Schedule")),
        ("Jobs", list("Job")),
        ("Leases", list("LeaseSummary")),
        ("Queues", list("Queue")),
        ("Limits", list("Limit")),
        ("Pools", list("Pool")),
        ("ResourceList", list("Resource")),
        ("Workers", list("Worker")),
        ("Trail", list("TrailLine")),
    ] {
        all.insert(name.to_owned(), schema);
    }
    flows::add(&mut all);
    events::add(&mut all);
    Value::Object(all)
}
