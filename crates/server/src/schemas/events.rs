//! The schemas of events.

use serde_json::{Map, Value, json};
use tenure_core::events::{EventType, Field, GapWhy};

use super::{Fields, add_shown, fields, objects, shown, words};

const EVENTS: &[(&str, Fields)] = objects! {
    Events {
        items: "Event[]", "What happened, in its order, as far as it was asked for.";
        next: "EventId", "Where to go on: give it as since.";
        gap: "Gap?", "What was missed before the first of these; null if nothing.";
    }
    Gap {
        after: "EventId", "The since that was asked for.";
        first: "EventId", "With which event it goes on.";
        why: "GapWhy", "dropped: what came next is not kept any more. restarted: the store may have forgotten events.";
    }
    BlockedOn {
        limit: "name~", "A limit without a free permit.";
        pool: "name~", "A pool without a free resource.";
    }
    EventStats {
        bytes: "integer", "What the events take in the store, by its own count.";
        first: "EventId?", "The oldest that is kept; null if none is.";
        last: "EventId?", "The newest that is kept; null if none is.";
    }
};

/// The type and the meaning of a field of an event.
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
            "job.ready: due, parents, retry or run_now. schedule.skipped: overlap, queue_full or invalid_field. Of other types a sentence.",
        ),
        Field::on => ("BlockedOn?", "What the job at the head of its line lacks."),
        Field::lease => ("string?", "The id of the lease that was granted or ended."),
        Field::fence => ("integer?", "The fence of that lease."),
        Field::holder => ("string?", "The id of its worker; null if its caller named none."),
        Field::attempt => ("integer?", "Which attempt of the job this was, from 1."),
        Field::run_at => ("moment?", "When the job may run again."),
        Field::error => ("string?", "The last 256 bytes of the error."),
        Field::outcome => ("string?", "How the lease ended: the outcome of its settle, or lost."),
        Field::limit => ("name?", "The limit that the event is about."),
        Field::pool => ("name?", "The pool that the event is about."),
        Field::resource => ("key?", "The resource of that pool."),
        Field::until => ("moment?", "The end of a pause or a rest; null if it has none."),
        Field::external => ("integer?", "Permits of the limit that are in use outside."),
        Field::moment => (
            "moment?",
            "The moment of the schedule that fired, was skipped or missed, or to which it was moved.",
        ),
        Field::n => ("integer?", "How many moments."),
        Field::counts => ("FlowCounts?", "The jobs of the flow by where they stand."),
        Field::by => (
            "string~",
            "The name of the token whose call made this event, if the call needed operate or admin; absent otherwise.",
        ),
    }
}

/// Adds the schemas of events.
pub(super) fn add(all: &mut Map<String, Value>) {
    add_shown(all, EVENTS);
    let own: Fields = fields! {
        id: "EventId", "Its place: the same for everybody, also after a restart.";
        at: "moment", "When it happened, by the engine's clock.";
        type: "EventType", "What happened. Each type has the fields that the reference names.";
    };
    let mut fields = own.to_vec();
    fields.extend(Field::ALL.iter().map(|one| {
        let (word, sentence) = field(*one);
        (one.name(), word, sentence)
    }));
    let mut event = shown(&fields);
    event["required"] = json!(["id", "at", "type"]);
    all.insert("Event".to_owned(), event);
    let types: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    let id = json!({"type": "string", "examples": ["6c1f-184467"]});
    for (name, schema) in [
        ("EventId", id),
        ("EventType", words(&types)),
        ("GapWhy", words(&GapWhy::ALL.map(GapWhy::as_str))),
    ] {
        all.insert(name.to_owned(), schema);
    }
}
