//! The schemas of events.

use serde_json::{Map, Value, json};
use tenure_core::events::{EventType, Field, GapWhy};

use super::{Fields, Sentences, add_objects, describe, describe_all, object};

/// Each schema with its fields.
const EVENTS: &[(&str, Fields)] = &[
    ("Events", &[("items", "Event[]"), ("next", "EventId"), ("gap", "Gap?")]),
    ("Gap", &[("after", "EventId"), ("first", "EventId"), ("why", "GapWhy")]),
    ("BlockedOn", &[("limit", "name"), ("pool", "name")]),
    ("EventStats", &[("bytes", "integer"), ("first", "EventId?"), ("last", "EventId?")]),
];

/// What the fields of a type are, and what they mean.
fn field(field: Field) -> (&'static str, &'static str) {
    match field {
        Field::job => ("key?", "The id of the job."),
        Field::queue => ("name?", "The queue of the job, or the queue that was changed."),
        Field::flow => ("flow?", "The flow that the job belongs to, or that is finished."),
        Field::schedule => (
            "schedule?",
            "The schedule that made the job, or that was changed, fired, skipped, missed or moved.",
        ),
        Field::why => (
            "string?",
            "job.ready: due, parents, retry or run_now. schedule.skipped: overlap or queue_full. Of other types a sentence.",
        ),
        Field::on => ("BlockedOn?", "What the job at the head of its line lacks."),
        Field::lease => ("string?", "The id of the lease that was granted or ended."),
        Field::fence => ("integer?", "The fence of that lease."),
        Field::holder => ("string?", "The id of its worker; null if its caller named none."),
        Field::attempt => ("integer?", "Which attempt of the job this was, from 1."),
        Field::run_at => ("moment?", "When the job may run again."),
        Field::error => ("string?", "The last 256 bytes of the error."),
        Field::outcome => ("string?", "How the lease ended: the outcome of its settle, or lost."),
        Field::limit => ("name?", "The limit."),
        Field::pool => ("name?", "The pool."),
        Field::resource => ("key?", "The resource of that pool."),
        Field::until => ("moment?", "The end of a pause or a rest; null if it has none."),
        Field::external => ("integer?", "Permits of the limit that are in use outside."),
        Field::moment => (
            "moment?",
            "The moment of the schedule that fired, was skipped or missed, or to which it was moved.",
        ),
        Field::n => ("integer?", "How many moments."),
        Field::counts => ("FlowCounts?", "The jobs of the flow by where they stand."),
    }
}

const DESCRIBED: Sentences = &[
    ("Events", "items", "What happened, in its order, as far as it was asked for."),
    ("Events", "next", "Where to go on: give it as since."),
    ("Events", "gap", "What was missed before the first of these; null if nothing."),
    ("Gap", "after", "As it was asked for."),
    ("Gap", "first", "With which event it goes on."),
    (
        "Gap",
        "why",
        "dropped: what came next is not kept any more. restarted: the store may have forgotten events.",
    ),
    ("BlockedOn", "limit", "A limit without a free permit."),
    ("BlockedOn", "pool", "A pool without a free resource."),
    ("EventStats", "bytes", "What the events take in the store, by its own count."),
    ("EventStats", "first", "The oldest that is kept; null if none is."),
    ("EventStats", "last", "The newest."),
    ("Event", "id", "Its place: the same for everybody, also after a restart."),
    ("Event", "at", "When it happened, by the engine's clock."),
    ("Event", "type", "What happened. Each type has the fields that the reference names."),
];

/// Adds the schemas of events.
pub(super) fn add(all: &mut Map<String, Value>) {
    add_objects(all, EVENTS);
    let mut fields = vec![("id", "EventId"), ("at", "moment"), ("type", "EventType")];
    fields.extend(Field::ALL.iter().map(|one| (one.name(), field(*one).0)));
    let mut event = object(&fields);
    event["required"] = json!(["id", "at", "type"]);
    all.insert("Event".to_owned(), event);
    let types: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    let id = json!({"type": "string", "examples": ["6c1f-184467"]});
    for (name, schema) in [
        ("EventId", id),
        ("EventType", json!({"type": "string", "enum": types})),
        ("GapWhy", json!({"type": "string", "enum": GapWhy::ALL.map(GapWhy::as_str)})),
    ] {
        all.insert(name.to_owned(), schema);
    }
    describe_all(all, DESCRIBED);
    for one in Field::ALL {
        describe(all, "Event", one.name(), field(*one).1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_an_event_is_described() {
        let all = super::super::all();
        for (schema, fields) in EVENTS {
            for (field, _) in *fields {
                let pointer = format!("/properties/{field}/description");
                assert!(all[*schema].pointer(&pointer).is_some(), "{schema} {field}");
            }
        }
        for kind in EventType::ALL {
            for field in kind.fields() {
                let pointer = format!("/properties/{}/description", field.name());
                assert!(all["Event"].pointer(&pointer).is_some(), "{}", field.name());
            }
        }
    }
}
