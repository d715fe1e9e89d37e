//! Lease calls, and calls that keep leases alive.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::fields::{Fields, Value};
use super::forms::{ANY_TEXT, Content, Duration, Form, List, Name, Number, Text, ValueKind, Whole};
use super::needs::Needs;
use super::object::{Call, Part, SentBody, Variant, bounded_bodies, object};
use super::paths::{lease_path, there};
use super::raw_call::http_calls;
use crate::at::At;
use crate::bounded::Spans;
use crate::bounds::{ITEMS_MAX, KEY_BYTES_MAX, PROGRESS_BYTES_MAX, QUEUES_MAX, TTL_US_DEFAULT};
use crate::job::Need;
use crate::json::Kind;
use crate::lease::{ExtendItem, Worker};
use crate::names::{QueueName, RequestId, WorkerId};
use crate::refusal::Refusal;
use crate::requests::{Ask, Extend, ForceLease, Lease, ListLeases};
use crate::secret::Json;
use crate::sentences::BodyRefusal;
use crate::time::Span;

object! {
    LeaseFields "a lease call" "LeaseCall"
    whole Lease { local: false };
    rule ttl_fits;
    variants &[
        Variant { name: "JobsCall", own: &["queues", "max"], required: &["queues"], says: None },
        Variant { name: "NeedsCall", own: &["needs"], required: &["needs"], says: None },
    ];
    fields {
        wait: Span = Duration(Spans::WAIT), default,
            "How long the call waits for the first grant, 0s to 1m; 0s if absent.";
        ttl: Span = Ttl, or Span::from_us(TTL_US_DEFAULT),
            "How long a lease lives without a heartbeat, 1s to 1h; 30s if absent. 0s takes tokens of needs that are only rates, and leaves no lease.";
        worker: Worker = WorkerName, default,
            "Who asks, for people to read and never a right; anonymous if absent.";
        request_id: RequestId = Name(RequestId::parse, Some(RequestId::BYTES_MAX)), optional,
            "By which the call can be repeated: the same id gets the same leases, and never a second grant, for at least 60s.";
        place: RequestId = Name(RequestId::parse, Some(RequestId::BYTES_MAX)), optional,
            "The request_id of an earlier call of the same wait, whose place in line this call keeps.";
    }
    part ask: AskPart {
        queues: Vec<QueueName> = List(1..=QUEUES_MAX, Name(known_queue, Some(QueueName::BYTES_MAX))), optional,
            "Queues to take jobs from, 1 to 32, tried in this order. Excludes needs.";
        needs: Vec<Need> = Needs(1), optional, "Limits and pools to hold without a job, 1 to 16. Excludes queues.";
        max: usize = Number(1..=ITEMS_MAX as i64), optional,
            "How many jobs are leased at most, 1 to 1,000; 1 if absent. Goes with queues alone.";
    }
}

object! {
    WorkerFields "a worker" "WorkerProcess"
    whole Worker;
    fields {
        id: Option<WorkerId> = WorkerIdentity, default,
            "Random for each process, 1 to 256 bytes; anonymous if absent.";
        host: String = Text(KEY_BYTES_MAX), optional, "The host of the process, at most 256 bytes.";
        pid: u32 = Whole(0..=u32::MAX as i64), optional, "The id of the process on its host.";
        version: String = Text(KEY_BYTES_MAX), optional, "The version of the program, at most 256 bytes.";
    }
}

object! {
    ExtendFields "an extend call" "ExtendCall"
    whole Extend;
    fields {
        leases: Vec<ExtendItem> = Numbered(List(0..=ITEMS_MAX, LeaseToExtend)), required "\"leases\": [\"LEASE\"]",
            "Leases to keep alive, at most 1,000: ids, or objects with a progress report.";
        ttl: Span = Duration(Spans::TTL), optional,
            "A new ttl for all of them, 1s to 1h; absent, each keeps its own. An extend never shortens a lease.";
    }
}

object! {
    ExtendItemFields "a lease to extend" "LeaseReport"
    whole ExtendItem;
    fields {
        lease: String = ANY_TEXT, required "\"lease\": \"LEASE\"", "The id of the lease.";
        progress: Json = Content(PROGRESS_BYTES_MAX), optional,
            "What its holder reports, at most 4 KiB; shown with the job until the next report.";
    }
}

/// The goods of a lease call: `queues` and `max`, or `needs`.
struct AskPart;

impl Part<Ask> for AskPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Ask, Refusal> {
        fields.not_both("queues", "needs")?;
        let max = fields.read(&LeaseFields::max())?.unwrap_or(1);
        if let Some(needs) = fields.read(&LeaseFields::needs())? {
            if max > 1 {
                return Err(fields.conflict("max", BodyRefusal::MaxWithNeeds));
            }
            return Ok(Ask::Needs(needs));
        }
        let example = "\"queues\": [\"crawl\"], or \"needs\": [{\"limit\": \"lock:deploy\"}]";
        Ok(Ask::Jobs { queues: fields.read_required(&LeaseFields::queues(), example)?, max })
    }
    fn check(&self, value: &Ask, of: &At<'_>) -> Result<(), Refusal> {
        match value {
            Ask::Needs(needs) => LeaseFields::needs().check(needs, of),
            Ask::Jobs { queues, max } => {
                LeaseFields::queues().check(queues, of)?;
                LeaseFields::max().check(max, of)
            }
        }
    }
    fn write<M: SerializeMap>(&self, value: &Ask, map: &mut M) -> Result<(), M::Error> {
        match value {
            Ask::Needs(needs) => LeaseFields::needs().put(needs, map),
            Ask::Jobs { queues, max } => {
                LeaseFields::queues().put(queues, map)?;
                LeaseFields::max().put(max, map)
            }
        }
    }
}

fn known_queue(text: &str) -> Result<QueueName, Refusal> {
    there(text, QueueName::parse, QueueName::known)
}

/// A ttl within its bounds, or zero.
struct Ttl;

impl Form<Span> for Ttl {
    fn read(&self, value: Value<'_, '_>) -> Result<Span, Refusal> {
        let ttl = value.span(Spans::ANY)?;
        if ttl > Span::ZERO { value.span(Spans::TTL) } else { Ok(ttl) }
    }
    fn check(&self, value: &Span, at: &At<'_>) -> Result<(), Refusal> {
        if *value > Span::ZERO { at.span(*value, Spans::TTL) } else { Ok(()) }
    }
    fn write<S: Serializer>(&self, value: &Span, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Duration
    }
}

/// A ttl of zero is for tokens, which leave no lease. Only the state machine knows if the needs are only rates.
fn ttl_fits(call: &Lease, of: &At<'_>) -> Result<(), Refusal> {
    match &call.ask {
        Ask::Jobs { .. } if call.ttl == Span::ZERO => {
            Err(At::Member(of, "ttl").refuse(BodyRefusal::TtlWithoutLease))
        }
        Ask::Jobs { .. } | Ask::Needs(_) => Ok(()),
    }
}

/// The lease call of a settle. It must have a request id: a settle may be repeated, and the repeat must not be granted
/// more.
pub(super) struct LeaseOfSettle;

impl Form<Box<Lease>> for LeaseOfSettle {
    fn read(&self, value: Value<'_, '_>) -> Result<Box<Lease>, Refusal> {
        let fields = value.fields(LeaseFields::SHAPE)?;
        fields.required("request_id", "\"request_id\": \"r-1\"")?;
        Lease::of_fields((), &fields).map(Box::new)
    }
    fn check(&self, value: &Box<Lease>, at: &At<'_>) -> Result<(), Refusal> {
        value.check_body(at)
    }
    fn write<S: Serializer>(&self, value: &Box<Lease>, to: S) -> Result<S::Ok, S::Error> {
        value.write_body(to)
    }
    fn kind(&self) -> ValueKind {
        LeaseFields.kind()
    }
}

/// The id of a worker; a caller that gives the id `anonymous` counts as one without an id.
struct WorkerIdentity;

impl Form<Option<WorkerId>> for WorkerIdentity {
    fn read(&self, value: Value<'_, '_>) -> Result<Option<WorkerId>, Refusal> {
        if value.node.string().is_some_and(|text| text == "anonymous") {
            return Ok(None);
        }
        value.parsed(WorkerId::parse).map(Some)
    }
    fn write<S: Serializer>(&self, value: &Option<WorkerId>, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(Some(WorkerId::BYTES_MAX))
    }
}

/// A worker: its id alone, or an object.
struct WorkerName;

impl Form<Worker> for WorkerName {
    fn read(&self, value: Value<'_, '_>) -> Result<Worker, Refusal> {
        match value.node.kind() {
            Kind::String => Ok(Worker { id: WorkerIdentity.read(value)?, ..Worker::default() }),
            Kind::Object => WorkerFields.read(value),
            other => Err(value.refuse(BodyRefusal::NotAWorker { noun: other.noun().into() })),
        }
    }
    fn check(&self, value: &Worker, at: &At<'_>) -> Result<(), Refusal> {
        value.check_body(at)
    }
    fn write<S: Serializer>(&self, value: &Worker, to: S) -> Result<S::Ok, S::Error> {
        value.write_body(to)
    }
    fn kind(&self) -> ValueKind {
        let kinds = vec![WorkerIdentity.kind(), WorkerFields.kind()];
        ValueKind::Alias("WorkerName", Box::new(ValueKind::OneOf(kinds)))
    }
}

/// A lease to extend: its id alone, or an object with a report.
struct LeaseToExtend;

impl Form<ExtendItem> for LeaseToExtend {
    fn read(&self, value: Value<'_, '_>) -> Result<ExtendItem, Refusal> {
        match value.node.kind() {
            Kind::String => Ok(ExtendItem { lease: value.string()?.into_owned(), progress: None }),
            Kind::Object => ExtendItemFields.read(value),
            other => Err(value.refuse(BodyRefusal::NotALease { noun: other.noun().into() })),
        }
    }
    fn check(&self, value: &ExtendItem, at: &At<'_>) -> Result<(), Refusal> {
        value.check_body(at)
    }
    fn write<S: Serializer>(&self, value: &ExtendItem, to: S) -> Result<S::Ok, S::Error> {
        match &value.progress {
            None => to.serialize_str(&value.lease),
            Some(_) => value.write_body(to),
        }
    }
    fn kind(&self) -> ValueKind {
        let kinds = vec![ANY_TEXT.kind(), ExtendItemFields.kind()];
        ValueKind::Alias("ExtendItem", Box::new(ValueKind::OneOf(kinds)))
    }
}

/// A list whose items have a number in a refusal.
pub(super) struct Numbered<F>(pub List<F>);

impl<T, F: Form<T>> Form<Vec<T>> for Numbered<F> {
    fn read(&self, value: Value<'_, '_>) -> Result<Vec<T>, Refusal> {
        let List(count, form) = &self.0;
        value.each_indexed(count.clone(), |item| form.read(item))
    }
    fn check(&self, value: &Vec<T>, at: &At<'_>) -> Result<(), Refusal> {
        let List(count, form) = &self.0;
        at.items(value.len(), count.clone())?;
        let mut items = value.iter().enumerate();
        items.try_for_each(|(index, item)| {
            form.check(item, &At::Item(at, index)).map_err(|no| no.item(index))
        })
    }
    fn write<S: Serializer>(&self, value: &Vec<T>, to: S) -> Result<S::Ok, S::Error> {
        self.0.write(value, to)
    }
    fn kind(&self) -> ValueKind {
        self.0.kind()
    }
}

/// The body of `POST /v1/leases`.
pub fn lease(body: &[u8]) -> Result<Lease, Refusal> {
    Lease::of_body((), body)
}

http_calls! {
    Lease() body;
    // An empty list is answered with empty lists.
    Extend() body;
    ListLeases() query;
    ForceLease(lease: lease_path);
}

bounded_bodies! { Lease Extend }
