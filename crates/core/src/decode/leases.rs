//! Lease calls, and calls that keep leases alive.

use super::fields::{Fields, ObjectShape, Value, document};
use super::needs::needs;
use super::paths::there;
use crate::bounded::{Spans, needs_leave_no_ttl};
use crate::bounds::{ITEMS_MAX, KEY_BYTES_MAX, PROGRESS_BYTES_MAX, QUEUES_MAX, TTL_US_DEFAULT};
use crate::json::Kind;
use crate::lease::{ExtendItem, Worker};
use crate::names::{QueueName, RequestId, WorkerId};
use crate::refusal::Refusal;
use crate::requests::{Ask, Extend, Lease};
use crate::sentences::BodyRefusal;
use crate::time::Span;

static LEASE: ObjectShape<8> = ObjectShape {
    what: "a lease call",
    fields: ["queues", "needs", "max", "wait", "ttl", "worker", "request_id", "place"],
    answered: &[],
};
static WORKER: ObjectShape<4> =
    ObjectShape { what: "a worker", fields: ["id", "host", "pid", "version"], answered: &[] };
static EXTEND: ObjectShape<2> =
    ObjectShape { what: "an extend call", fields: ["leases", "ttl"], answered: &[] };
static EXTEND_ITEM: ObjectShape<2> =
    ObjectShape { what: "a lease to extend", fields: ["lease", "progress"], answered: &[] };

/// A caller that gives this id counts as one without an id.
const ANONYMOUS: &str = "anonymous";

/// The body of `POST /v1/leases`.
pub fn lease(body: &[u8]) -> Result<Lease, Refusal> {
    let document = document(body)?;
    lease_call(&Value::body(&document).fields(&LEASE)?)
}

/// Reads the lease call of a settle. It must have a request id: a settle may be repeated, and the repeat must not be
/// granted more.
pub(super) fn lease_of_settle(value: Value<'_, '_>) -> Result<Lease, Refusal> {
    let fields = value.fields(&LEASE)?;
    fields.required("request_id", "\"request_id\": \"r-1\"")?;
    lease_call(&fields)
}

fn lease_call(fields: &Fields<'_, '_, 8>) -> Result<Lease, Refusal> {
    let ask = ask(fields)?;
    let wait = fields.take("wait", |v| v.span(Spans::WAIT))?.unwrap_or_default();
    let ttl = fields.take("ttl", |v| ttl(v, &ask))?;
    Ok(Lease {
        wait,
        ttl: ttl.unwrap_or(Span::from_us(TTL_US_DEFAULT)),
        worker: fields.take("worker", worker)?.unwrap_or_default(),
        request_id: fields.take("request_id", |v| v.parsed(RequestId::parse))?,
        place: fields.take("place", |v| v.parsed(RequestId::parse))?,
        ask,
        local: false,
    })
}

fn ask(fields: &Fields<'_, '_, 8>) -> Result<Ask, Refusal> {
    fields.not_both("queues", "needs")?;
    let max = fields.take("max", |v| v.integer::<u32>(1..=ITEMS_MAX as i64))?.unwrap_or(1);
    if let Some(needs) = fields.take("needs", |v| needs(v, 1))? {
        if max > 1 {
            return Err(fields.conflict("max", BodyRefusal::MaxWithNeeds));
        }
        return Ok(Ask::Needs(needs));
    }
    let form = "\"queues\": [\"crawl\"], or \"needs\": [{\"limit\": \"lock:deploy\"}]";
    let queues = fields.required("queues", form)?;
    let queues = queues.each(1..=QUEUES_MAX, |item| {
        item.parsed(|text| there(text, QueueName::parse, QueueName::known))
    })?;
    Ok(Ask::Jobs { queues, max: max as usize })
}

/// Reads a ttl, or `0s` for tokens that leave no lease. Only the state machine knows if the needs
/// are only rates.
fn ttl(value: Value<'_, '_>, ask: &Ask) -> Result<Span, Refusal> {
    let ttl = value.span(Spans::ANY)?;
    if ttl > Span::ZERO {
        return value.span(Spans::TTL);
    }
    needs_leave_no_ttl(ask, &value.at).map(|()| ttl)
}

fn worker(value: Value<'_, '_>) -> Result<Worker, Refusal> {
    let id = |value: Value<'_, '_>| {
        if value.node.string().is_some_and(|text| text == ANONYMOUS) {
            return Ok(None);
        }
        value.parsed(WorkerId::parse).map(Some)
    };
    match value.node.kind() {
        Kind::String => Ok(Worker { id: id(value)?, ..Worker::default() }),
        Kind::Object => {
            let fields = value.fields(&WORKER)?;
            Ok(Worker {
                id: fields.take("id", id)?.flatten(),
                host: fields.take("host", |v| v.short(KEY_BYTES_MAX))?,
                pid: fields.take("pid", |v| v.integer(0..=i64::from(u32::MAX)))?,
                version: fields.take("version", |v| v.short(KEY_BYTES_MAX))?,
            })
        }
        other => Err(value.refuse(BodyRefusal::NotAWorker { noun: other.noun().into() })),
    }
}

/// Reads the body of `POST /v1/leases/extend`; an empty list is answered with empty lists.
pub fn extend(body: &[u8]) -> Result<Extend, Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields(&EXTEND)?;
    let leases = fields.required("leases", "\"leases\": [\"LEASE\"]")?;
    Ok(Extend {
        leases: leases.each_indexed(0..=ITEMS_MAX, extend_item)?,
        ttl: fields.take("ttl", |v| v.span(Spans::TTL))?,
    })
}

fn extend_item(value: Value<'_, '_>) -> Result<ExtendItem, Refusal> {
    match value.node.kind() {
        Kind::String => Ok(ExtendItem { lease: value.string()?.into_owned(), progress: None }),
        Kind::Object => {
            let fields = value.fields(&EXTEND_ITEM)?;
            let lease = fields.required("lease", "\"lease\": \"LEASE\"")?.string()?.into_owned();
            let progress = fields.take("progress", |v| v.json(PROGRESS_BYTES_MAX))?;
            Ok(ExtendItem { lease, progress })
        }
        other => Err(value.refuse(BodyRefusal::NotALease { noun: other.noun().into() })),
    }
}
