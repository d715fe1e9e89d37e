//! Calls on all jobs that match a filter.

use super::fields::{ObjectShape, Value, document};
use super::jobs::kind;
use super::query::{label, states};
use crate::bounds::LIST_MAX;
use crate::names::QueueName;
use crate::refusal::Refusal;
use crate::requests::{CancelJobs, JobFilter, RetryJobs};

static MANY: ObjectShape<5> = ObjectShape {
    what: "a call on many jobs",
    fields: ["queue", "state", "kind", "label", "max"],
    answered: &[],
};

/// The body of `POST /v1/jobs/cancel`. `{}` names every job.
pub fn cancel_jobs(body: &[u8]) -> Result<CancelJobs, Refusal> {
    many(body).map(|(filter, max)| CancelJobs { filter, max })
}

/// The body of `POST /v1/jobs/retry`. `{}` names every job.
pub fn retry_jobs(body: &[u8]) -> Result<RetryJobs, Refusal> {
    many(body).map(|(filter, max)| RetryJobs { filter, max })
}

/// `state` and `label` are written as in a query: `"ready,blocked"`, `"k:v"`.
fn many(body: &[u8]) -> Result<(JobFilter, usize), Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields(&MANY)?;
    let filter = JobFilter {
        queue: fields.take("queue", |v| v.parsed(QueueName::parse))?,
        states: fields.take("state", |v| v.parsed(states))?.unwrap_or_default(),
        kind: fields.take("kind", |v| v.parsed(kind))?,
        label: fields.take("label", |v| v.parsed(label))?,
    };
    let max: u32 =
        fields.take("max", |v| v.integer(1..=LIST_MAX as i64))?.unwrap_or(LIST_MAX as u32);
    Ok((filter, max as usize))
}
