//! Schemas of answers that are not written as one view with the fields that serde derives: one of several forms, a view
//! inside of another one, an object that is put together while it is written, and a page of a list.

use serde_json::{Map, Value, json};
use tenure_core::events::{About, EventId, EventType};
use tenure_core::flow::FlowCounts;
use tenure_core::job::JobView;
use tenure_core::lease::{Leased, Reason, SettledLease};
use tenure_core::names::{FlowName, JobId, LimitName, PoolName};
use tenure_core::requests::PushedId;
use tenure_core::time::Moment;
use tenure_core::trail::TrailLine;
use tenure_core::view::{HasSchema, Schema, ShownField, View, items, named, or_null, text};

use super::object;
use crate::answer::LISTS;

/// A field that is always there.
fn always(name: &'static str, schema: Schema, sentence: &'static str) -> ShownField {
    ShownField { name, schema, sentence, always: true }
}

/// A field that an answer may lack.
fn maybe(name: &'static str, schema: Schema, sentence: &'static str) -> ShownField {
    ShownField { name, schema, sentence, always: false }
}

fn page(item: Schema) -> Schema {
    let partial = "true: only 10,000 rows were looked at; go on with next.";
    object(vec![
        always("items", items(item), "The items of this page."),
        always("next", or_null(text()), "The cursor of the next page; null on the last one."),
        maybe("partial", bool::schema(), partial),
    ])
}

/// A job in the answer of a push: the fields of the job, and those of the short answer.
fn pushed_job() -> Schema {
    let [mut job, mut flags] = [JobView::spec().fields, PushedId::spec().fields];
    flags.retain(|field| field.name != "id");
    job.append(&mut flags);
    object(job)
}

fn pushed_id() -> Schema {
    let mut fields = PushedId::spec().fields;
    let line = "The number of its line in NDJSON, from 1; absent in JSON.";
    fields.push(maybe("line", u64::schema(), line));
    let mut short = object(fields);
    short["description"] =
        "The answer for a job with `Prefer: return=minimal`, and for each line of NDJSON.".into();
    short
}

/// The answer for tokens has the grant alone.
fn leased() -> Schema {
    let mut fields = Leased::spec().fields;
    fields.iter_mut().for_each(|field| field.always = field.name == "leases");
    object(fields)
}

/// The settled leases, and beside them the answer of the lease call.
fn settled() -> Schema {
    let next_at = "When the answer of the lease call may change at the earliest; null if unknown.";
    let refused = "Why the lease call in it was refused; the settles stand.";
    object(vec![
        always(
            "settled",
            Vec::<SettledLease>::schema(),
            "What became of each lease, in the order of the call.",
        ),
        maybe("leases", items(named("Granted")), "What the lease call in it was granted."),
        maybe("next_at", Option::<Moment>::schema(), next_at),
        maybe("reasons", Vec::<Reason>::schema(), "Why needs of the lease call were not granted."),
        maybe("refused", named("Problem"), refused),
    ])
}

/// Each type of events has some of the fields.
fn event() -> Schema {
    let mut fields = vec![
        always("id", EventId::schema(), "Its place: the same for everybody, also after a restart."),
        always("at", Moment::schema(), "When it happened, by the engine's clock."),
        always(
            "type",
            EventType::schema(),
            "What happened. Each type has the fields that the reference names.",
        ),
    ];
    let about = About::spec().fields.into_iter();
    fields.extend(about.map(|field| ShownField { always: false, ..field }));
    object(fields)
}

/// Adds these schemas.
pub(super) fn add(all: &mut Map<String, Value>) {
    let flow = |sentence| always("flow", FlowName::schema(), sentence);
    let waits = "The flow for which the job waits.";
    let counts = "Its jobs; all zero for a flow that is gone.";
    let blocked_on = vec![
        maybe("limit", LimitName::schema(), "A limit without a free permit."),
        maybe("pool", PoolName::schema(), "A pool without a free resource."),
    ];
    // The short answer is a part of the whole one, so that both fit a whole one.
    let pushed = ["PushedJob", "PushedId"].map(named);
    let pushed = pushed.into_iter().flat_map(|one| [one.clone(), items(one)]);
    for (name, schema) in [
        ("Trail", page(TrailLine::schema())),
        ("Document", object(Vec::new())),
        ("Event", event()),
        ("EventId", json!({"type": "string", "examples": ["6c1f-184467"]})),
        ("BlockedOn", object(blocked_on)),
        ("PushedJob", pushed_job()),
        ("PushedId", pushed_id()),
        ("PushedJobs", json!({"anyOf": pushed.collect::<Vec<_>>()})),
        ("Leased", leased()),
        ("Granted", json!({"oneOf": [named("Lease"), named("Tokens")]})),
        ("Settled", settled()),
        ("Resources", json!({"oneOf": [named("Resource"), items(named("Resource"))]})),
        ("NamedFlow", object(vec![flow(waits)])),
        ("ParentFlow", object(vec![flow(waits), always("counts", FlowCounts::schema(), counts)])),
        ("ShownParent", json!({"oneOf": [JobId::schema(), named("NamedFlow")]})),
        ("Parent", json!({"oneOf": [named("ParentJob"), named("ParentFlow")]})),
    ] {
        all.insert(name.to_owned(), schema);
    }
    all.extend(LISTS.iter().map(|(name, item)| ((*name).to_owned(), page(item()))));
}
