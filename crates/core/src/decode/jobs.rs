//! Jobs in pushes and patches: one object, an array, or a line of NDJSON.

use super::fields::{self, Fields, ObjectShape, Value, document, is_empty};
use super::flows::{after, on_parent_failure};
use super::needs::needs;
use super::paths::job_path;
use super::retry::retry;
use crate::at::At;
use crate::bounded::{self, LABEL_VALUE, PRIORITY, Spans, label_key, parents_stay};
use crate::bounds::{ITEMS_MAX, PAYLOAD_BYTES_MAX};
use crate::flow::Parent;
use crate::job::{Labels, NewJob, OnConflict, Unique, Until, When};
use crate::json::{BadJson, Document, Kind};
use crate::names::{FlowName, Group, JobId, QueueName, Ref, UniqueKey};
use crate::refusal::Refusal;
use crate::requests::{Patch, PatchJob, RetryJob};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, FlowRefusal};
use crate::trace::TraceParent;

/// Fields of a job's answer that no caller may set.
const ANSWERED: &[&str] = &[
    "state",
    "attempt",
    "lost",
    "created_at",
    "started_at",
    "finished_at",
    "result",
    "error",
    "errors",
    "progress",
    "lease",
    "cancel_requested",
    "duplicate",
    "replaced",
    "workers",
    "schedule",
    "parents",
    "waiting_on",
    "cancelled_children",
];

static JOB: ObjectShape<20> = ObjectShape {
    what: "a job",
    fields: [
        "id",
        "queue",
        "kind",
        "payload",
        "run_at",
        "delay",
        "priority",
        "group",
        "needs",
        "unique",
        "retry",
        "timeout",
        "expires_at",
        "retain",
        "labels",
        "after",
        "on_parent_failure",
        "ref",
        "flow",
        "traceparent",
    ],
    answered: ANSWERED,
};
static PATCH: ObjectShape<9> = ObjectShape {
    what: "a patch of a job",
    fields: [
        "run_at",
        "delay",
        "priority",
        "payload",
        "needs",
        "group",
        "labels",
        "timeout",
        "expires_at",
    ],
    answered: ANSWERED,
};
static UNIQUE: ObjectShape<5> = ObjectShape {
    what: "a unique key",
    fields: ["key", "until", "for", "on_conflict", "within"],
    answered: &[],
};
static RETRY_CALL: ObjectShape<1> =
    ObjectShape { what: "a retry call", fields: ["finished_at"], answered: &[] };

/// The form of a push: one object is answered with one, an array with an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushShape {
    /// A single object in the body.
    One,
    /// An array in the body.
    Many,
}

/// The queue of jobs that state none.
pub(super) const QUEUE_DEFAULT: &str = "default";

/// Reads the jobs of `POST /v1/jobs`: an object, or an array of 1 to 1,000.
pub fn push(body: &[u8]) -> Result<(PushShape, Vec<NewJob>), Refusal> {
    let document = document(body)?;
    let body = Value::body(&document);
    if body.node.kind() == Kind::Array {
        return Ok((PushShape::Many, body.each_indexed(1..=ITEMS_MAX, new_job)?));
    }
    Ok((PushShape::One, vec![new_job(body)?]))
}

/// Reads the job of one line of NDJSON, of at most 512 KiB; it goes to the queue `default` if it
/// states none. The caller counts the lines.
pub fn push_line(line: &[u8]) -> Result<NewJob, Refusal> {
    let document = fields::line(line)?;
    job_of_line(&Value::body(&document).fields(&JOB)?, QueueName::parse)
}

/// The same, for lines that go to `queue` if they state none.
pub fn push_line_to(line: &[u8], queue: &QueueName) -> Result<NewJob, Refusal> {
    let document = fields::line(line)?;
    let fields = Value::body(&document).fields(&JOB)?;
    job_of_line(&fields, |_| Ok(queue.clone()))
}

/// Lines are stored in portions, so no line can name another one of its call.
fn job_of_line(
    fields: &Fields<'_, '_, 20>,
    default_queue: impl FnOnce(&str) -> Result<QueueName, Refusal>,
) -> Result<NewJob, Refusal> {
    fields.take("ref", |v| {
        Err::<(), _>(Refusal::from(FlowRefusal::RefInLine).at(v.at.to_string()))
    })?;
    let job = job_of(fields, default_queue)?;
    match job.after.iter().position(|entry| matches!(entry.parent, Parent::Item(_))) {
        Some(at) => Err(Refusal::from(FlowRefusal::RefInLine).at(format!("/after/{at}"))),
        None => Ok(job),
    }
}

/// Reads a line that is a payload and nothing else.
pub fn payload_line(line: &[u8]) -> Result<Json, Refusal> {
    let document = Document::parse(line).map_err(BadJson::refusal_of_payload_line)?;
    let payload = Value::body(&document).node;
    let (bytes, most) = (payload.span().len(), PAYLOAD_BYTES_MAX);
    let label = || "the payload".to_owned();
    if bytes > most {
        return Err(BodyRefusal::ContentTooLong { label: label(), bytes, most }.into());
    }
    payload.json().ok_or_else(|| BodyRefusal::ValueNotJson { label: label() }.into())
}

/// Reads a job of a push or of a settle.
pub(super) fn new_job(value: Value<'_, '_>) -> Result<NewJob, Refusal> {
    job_of(&value.fields(&JOB)?, QueueName::parse)
}

fn job_of(
    fields: &Fields<'_, '_, 20>,
    default_queue: impl FnOnce(&str) -> Result<QueueName, Refusal>,
) -> Result<NewJob, Refusal> {
    let queue = match fields.take("queue", |v| v.parsed(QueueName::parse))? {
        Some(queue) => queue,
        None => default_queue(QUEUE_DEFAULT)?,
    };
    fields.not_both("delay", "run_at")?;
    let when = match fields.take("delay", |v| v.span(Spans::ANY))? {
        Some(delay) => When::In(delay),
        None => fields.take("run_at", |v| v.moment())?.map_or(When::Now, When::At),
    };
    let after = fields.take("after", after)?.unwrap_or_default();
    let unique = fields.take("unique", unique)?;
    parents_stay(&after, unique.as_ref(), &At::Member(&fields.at, "after"))?;
    Ok(NewJob {
        id: fields.take("id", |v| v.parsed(JobId::parse))?,
        queue,
        kind: fields.take("kind", |v| v.parsed(kind))?.unwrap_or_default(),
        payload: fields.take("payload", payload)?.unwrap_or_default(),
        when,
        priority: fields.take("priority", priority)?.unwrap_or_default(),
        group: fields.take("group", |v| v.parsed(Group::parse))?,
        needs: fields.take("needs", |v| needs(v, 0))?,
        unique,
        retry: fields.take("retry", retry)?,
        timeout: fields.take("timeout", |v| v.span(Spans::SOME))?,
        expires_at: fields.take("expires_at", |v| v.moment())?,
        retain: fields.take("retain", |v| v.span(Spans::ANY))?,
        labels: fields.take("labels", labels)?.unwrap_or_default(),
        after,
        on_parent_failure: fields.take("on_parent_failure", on_parent_failure)?.unwrap_or_default(),
        reference: fields.take("ref", |v| v.parsed(Ref::parse))?,
        flow: fields.take("flow", |v| v.parsed(FlowName::parse))?,
        traceparent: fields.take("traceparent", |v| v.parsed(TraceParent::parse))?,
    })
}

/// Reads the changes of `PATCH /v1/jobs/{id}`; `null` resets a field to its default.
pub fn patch_job(id: &str, body: &[u8]) -> Result<PatchJob, Refusal> {
    let job = job_path(id)?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&PATCH)?;
    fields.not_both("delay", "run_at")?;
    let delay = fields.patch("delay", |v| v.span(Spans::ANY).map(When::In))?;
    let run_at = fields.patch("run_at", |v| v.moment().map(When::At))?;
    let when = match (delay, run_at) {
        (Patch::Set(when), _) | (_, Patch::Set(when)) => Patch::Set(when),
        (Patch::Reset, _) | (_, Patch::Reset) => Patch::Reset,
        (Patch::Keep, Patch::Keep) => Patch::Keep,
    };
    Ok(PatchJob {
        job,
        when,
        priority: fields.patch("priority", priority)?,
        payload: fields.patch("payload", payload)?,
        needs: fields.patch("needs", |v| needs(v, 0))?,
        group: fields.patch("group", |v| v.parsed(Group::parse))?,
        labels: fields.patch("labels", labels)?,
        timeout: fields.patch("timeout", |v| v.span(Spans::SOME))?,
        expires_at: fields.patch("expires_at", |v| v.moment())?,
    })
}

/// Reads the body of `POST /v1/jobs/{id}/retry`: nothing, or `{"finished_at"}`.
pub fn retry_job(id: &str, body: &[u8]) -> Result<RetryJob, Refusal> {
    let job = job_path(id)?;
    if is_empty(body) {
        return Ok(RetryJob { job, finished_at: None });
    }
    let document = document(body)?;
    let fields = Value::body(&document).fields(&RETRY_CALL)?;
    Ok(RetryJob { job, finished_at: fields.take("finished_at", |v| v.moment())? })
}

pub(super) fn priority(value: Value<'_, '_>) -> Result<i8, Refusal> {
    value.integer(PRIORITY)
}

pub(super) fn payload(value: Value<'_, '_>) -> Result<Json, Refusal> {
    value.json(PAYLOAD_BYTES_MAX)
}

/// Checks a kind: short, and without characters that would break a line of a list.
pub(super) fn kind(text: &str) -> Result<String, Refusal> {
    bounded::kind(text).map(|()| text.to_owned())
}

fn unique(value: Value<'_, '_>) -> Result<Unique, Refusal> {
    let fields = value.fields(&UNIQUE)?;
    let untils = [("end", Until::End), ("start", Until::Start)];
    let conflicts = [
        ("keep", OnConflict::Keep),
        ("replace", OnConflict::Replace),
        ("reject", OnConflict::Reject),
    ];
    let until = fields.take("until", |v| v.one_of("an end of a unique key", &untils))?;
    let on_conflict =
        fields.take("on_conflict", |v| v.one_of("an answer to a conflict", &conflicts))?;
    Ok(Unique {
        key: fields.required("key", "\"key\": \"article-42\"")?.parsed(UniqueKey::parse)?,
        until: until.unwrap_or_default(),
        hold: fields.take("for", |v| v.span(Spans::ANY))?,
        on_conflict: on_conflict.unwrap_or_default(),
        within: fields.take("within", |v| v.span(Spans::ANY))?,
    })
}

pub(super) fn labels(value: Value<'_, '_>) -> Result<Labels, Refusal> {
    let not_labels = |label, noun| BodyRefusal::NotLabels { label, noun };
    let pairs = value.each_member(not_labels, |key, member| {
        label_key(key).map_err(|no| member.refuse(no))?;
        Ok((key.to_owned(), member.short(LABEL_VALUE)?))
    })?;
    bounded::labels(pairs.len()).map_err(|no| value.refuse(no))?;
    Ok(pairs.into_iter().collect())
}
