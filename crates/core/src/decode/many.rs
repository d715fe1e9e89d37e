//! Calls on all jobs that match a filter.

use super::fields::{ObjectShape, Value, document};
use super::jobs::kind;
use super::query::{cursor, error_part, label, states};
use crate::bounds::LIST_MAX;
use crate::names::{FlowName, QueueName, ScheduleId};
use crate::refusal::Refusal;
use crate::requests::{CancelJobs, DeleteJobs, JobFilter, RetryJobs, must_say_something};

static MANY: ObjectShape<11> = ObjectShape {
    what: "a call on many jobs",
    fields: [
        "queue",
        "state",
        "kind",
        "label",
        "error",
        "finished_after",
        "finished_before",
        "flow",
        "schedule",
        "max",
        "cursor",
    ],
    answered: &["done", "more", "next"],
};

/// The body of `POST /v1/jobs/cancel`.
pub fn cancel_jobs(body: &[u8]) -> Result<CancelJobs, Refusal> {
    many(body).map(|(filter, max, cursor)| CancelJobs { filter, max, cursor })
}

/// The body of `POST /v1/jobs/retry`.
pub fn retry_jobs(body: &[u8]) -> Result<RetryJobs, Refusal> {
    many(body).map(|(filter, max, cursor)| RetryJobs { filter, max, cursor })
}

/// The body of `POST /v1/jobs/delete`.
pub fn delete_jobs(body: &[u8]) -> Result<DeleteJobs, Refusal> {
    many(body).map(|(filter, max, cursor)| DeleteJobs { filter, max, cursor })
}

/// `state` and `label` have the same form as in a query: `"ready,blocked"`, `"k:v"`.
fn many(body: &[u8]) -> Result<(JobFilter, usize, Option<String>), Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields(&MANY)?;
    let filter = JobFilter {
        queue: fields.take("queue", |v| v.parsed(QueueName::parse))?,
        states: fields.take("state", |v| v.parsed(states))?.unwrap_or_default(),
        kind: fields.take("kind", |v| v.parsed(kind))?,
        label: fields.take("label", |v| v.parsed(label))?,
        error: fields.take("error", |v| v.parsed(error_part))?,
        finished_after: fields.take("finished_after", |v| v.moment())?,
        finished_before: fields.take("finished_before", |v| v.moment())?,
        flow: fields.take("flow", |v| v.parsed(FlowName::known))?,
        schedule: fields.take("schedule", |v| v.parsed(ScheduleId::known))?,
    };
    let max: u32 =
        fields.take("max", |v| v.integer(1..=LIST_MAX as i64))?.unwrap_or(LIST_MAX as u32);
    let cursor = fields.take("cursor", |v| v.parsed(cursor))?;
    must_say_something(&filter)?;
    Ok((filter, max as usize, cursor))
}
