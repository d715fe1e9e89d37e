//! Calls on all jobs that match a filter.

use serde::Serializer;

use super::fields::Value;
use super::forms::{Form, Name, Number, Ruled, Time, ValueKind};
use super::jobs::JOB_KIND;
use super::object::{Call, bounded_bodies, object};
use super::query::{check_label, cursor, error_part, label, states};
use super::raw_call::{EncodedBody, http_calls};
use crate::at::At;
use crate::bounded::PAGE;
use crate::bounds::{ERROR_BYTES_MAX, LIST_MAX};
use crate::job::JobState;
use crate::names::{FlowName, QueueName, ScheduleId};
use crate::refusal::Refusal;
use crate::requests::{CancelJobs, DeleteJobs, DoneMany, JobFilter, RetryJobs, must_say_something};
use crate::time::Moment;

object! {
    ManyFields "a call on many jobs" "JobFilter"
    answered DoneMany;
    call CancelJobs();
    call RetryJobs();
    call DeleteJobs();
    fields {
        max: usize = Number(PAGE), or LIST_MAX,
            "How many jobs one call changes at most, 1 to 1,000; 1,000 if absent.";
        cursor: String = Name(cursor, None), optional,
            "The next of the answer before, to go on where that call stopped.";
    }
    flat filter: JobFilter {
        queue: QueueName = Name(QueueName::parse, Some(QueueName::BYTES_MAX)), optional, "Jobs of this queue.";
        states as "state": Vec<JobState> = States, default,
            "Jobs in one of these states, separated by commas, such as ready,blocked.";
        kind: String = JOB_KIND, optional, "Jobs of this kind; an empty text names those without one.";
        label: (String, String) = Label, optional,
            "Jobs with this label, written KEY:VALUE and split at the last colon.";
        error: String = Ruled(|text| error_part(text).map(drop), ERROR_BYTES_MAX), optional,
            "Jobs whose last error contains this text, letter by letter; at most 8 KiB.";
        finished_after: Moment = Time, optional, "Jobs that ended at this moment or later.";
        finished_before: Moment = Time, optional, "Jobs that ended before this moment.";
        flow: FlowName = Name(FlowName::known, Some(FlowName::BYTES_MAX)), optional, "Jobs of this flow.";
        schedule: ScheduleId = Name(ScheduleId::known, Some(ScheduleId::BYTES_MAX)), optional,
            "Jobs that this schedule made; looked for in at most 10,000 jobs.";
    }
}

/// States in the form of a query: `ready,blocked`.
struct States;

impl Form<Vec<JobState>> for States {
    fn read(&self, value: Value<'_, '_>) -> Result<Vec<JobState>, Refusal> {
        value.parsed(states)
    }
    fn write<S: Serializer>(&self, value: &Vec<JobState>, to: S) -> Result<S::Ok, S::Error> {
        let words: Vec<&str> = value.iter().map(|state| state.as_str()).collect();
        to.serialize_str(&words.join(","))
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(None)
    }
}

/// A label in the form of a query: `KEY:VALUE`.
struct Label;

impl Form<(String, String)> for Label {
    fn read(&self, value: Value<'_, '_>) -> Result<(String, String), Refusal> {
        value.parsed(label)
    }
    fn check(&self, value: &(String, String), at: &At<'_>) -> Result<(), Refusal> {
        check_label(value, at)
    }
    fn write<S: Serializer>(
        &self,
        (key, value): &(String, String),
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{key}:{value}"))
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(None)
    }
}

http_calls! {
    CancelJobs() body Self::SCHEMA,
        |call| filtered(call.body, |many| &many.filter),
        |many| EncodedBody::object(many);
    RetryJobs() body Self::SCHEMA,
        |call| filtered(call.body, |many| &many.filter),
        |many| EncodedBody::object(many);
    DeleteJobs() body Self::SCHEMA,
        |call| filtered(call.body, |many| &many.filter),
        |many| EncodedBody::object(many);
}

/// Reads a call on many jobs, and refuses one whose filter lets all jobs through.
fn filtered<C: Call<Keys = ()>>(body: &[u8], filter: fn(&C) -> &JobFilter) -> Result<C, Refusal> {
    let call = C::of_body((), body)?;
    must_say_something(filter(&call)).map(|()| call)
}

// An empty filter is refused where the call is run.
bounded_bodies! { CancelJobs RetryJobs DeleteJobs }
