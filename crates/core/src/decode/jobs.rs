//! Jobs in pushes and patches: one object, an array, or a line of NDJSON.

use serde::ser::{SerializeMap, Serializer};

use super::fields::{self, Fields, Value, document};
use super::flows::{AfterFields, ON_PARENT_FAILURE};
use super::forms::{
    Alias, Content, Duration, Form, List, Name, Ruled, Time, ValueKind, Whole, Words,
};
use super::needs::Needs;
use super::object::{AsBody, Call, Part, SentBody, bounded_bodies, object};
use super::paths::job_path;
use super::raw_call::{EncodedBody, http_calls};
use super::retry::RetryFields;
use crate::at::At;
use crate::bounded::{self, Bounded, LABEL_VALUE, PRIORITY, Spans, label_key};
use crate::bounds::{AFTER_MAX, ITEMS_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::flow::{After, OnParentFailure, Parent};
use crate::job::{JobView, Labels, Need, NewJob, OnConflict, Retry, Unique, Until, When};
use crate::json::{BadJson, Document, Kind};
use crate::names::{FlowName, Group, JobId, JobRef, QueueName, Ref, UniqueKey};
use crate::refusal::Refusal;
use crate::requests::{
    CancelJob, DeleteJob, ExplainJob, GetJob, GetResult, ListFailures, ListJobs, Patch, PatchJob,
    Push, PushAnswer, PushedId, RetryJob, RunJobNow,
};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, FlowRefusal};
use crate::time::{Moment, Span};
use crate::trace::TraceParent;
use crate::words::Worded as _;

object! {
    /// A job of a push or of a settle.
    NewJobFields "a job" "NewJob"
    answered JobView | PushedId;
    whole NewJob;
    rule parents_stay;
    fields {
        id: JobId = Name(JobId::parse, Some(JobId::BYTES_MAX)), optional,
            "The id of the job, chosen by the caller, 1 to 256 bytes, not beginning with \"key:\"; made by the server if absent. A push under an id that is there is answered with that job, and nothing is stored.";
        queue: QueueName = Name(QueueName::parse, Some(QueueName::BYTES_MAX)), or QueueName::parse(QUEUE_DEFAULT)?,
            "The queue in which the job waits, made by its first use; \"default\" if absent.";
        kind: String = JOB_KIND, default,
            "What a worker library chooses the handler by, at most 128 bytes; \"\" if absent.";
        payload: Json = Content(PAYLOAD_BYTES_MAX), default,
            "What the handler gets: any JSON, at most 256 KiB; null if absent.";
        priority: i8 = Whole(PRIORITY), default,
            "Jobs with a higher priority go first: -100 to 100, 0 if absent.";
        group: Group = Name(Group::parse, Some(Group::BYTES_MAX)), optional,
            "The tenant, site or user for whom the job is: groups of a queue take turns by their shares. Jobs without a group are one group together.";
        needs: Vec<Need> = Needs(0), optional,
            "Limits and pools that the job holds while it runs, at most 16, none twice. They replace the needs of the queue; an empty list means none.";
        unique: Unique = UniqueFields, optional,
            "The key of which only one unfinished job may exist in the namespace.";
        retry: Retry = RetryFields, optional,
            "What happens after a failed or lost run; absent, the retry of the queue, otherwise the default.";
        timeout: Span = Duration(Spans::SOME), optional,
            "Longest time of one run, more than 0s; the run then ends as failed. Absent, that of the queue, otherwise none.";
        expires_at: Moment = Time, optional,
            "The job is cancelled, with the error expired, if it is not running by this moment.";
        retain: Span = Duration(Spans::ANY), optional,
            "How long the finished job is kept, 0s to 3650d. Absent, that of the queue, otherwise 1h for succeeded and cancelled jobs and 7d for failed ones.";
        labels: Labels = LabelsForm, default,
            "Words for people and filters: at most 16 strings of up to 256 bytes, under keys of 1 to 64 bytes.";
        after: Vec<After> = Alias("After", List(0..=AFTER_MAX, AfterFields)), default,
            "The parents: jobs and flows that must have ended before this job may run.";
        on_parent_failure: OnParentFailure = ON_PARENT_FAILURE, default,
            "cancel (the default): a parent that fails for good or is cancelled cancels this job. run: any end of a parent will do.";
        reference as "ref": Ref = Name(Ref::parse, Some(Ref::BYTES_MAX)), optional,
            "A name within this array, or within the push of this settle, by which other items name it in after. It is not stored, and a line of NDJSON has none.";
        flow: FlowName = Name(FlowName::parse, Some(FlowName::BYTES_MAX)), optional,
            "The flow to which the job belongs. Without it: that of its first parent that has one; in a settle otherwise that of the settled job.";
        traceparent: TraceParent = Name(TraceParent::parse, None), optional,
            "The W3C trace context of the push, version 00, which the worker is shown; absent, that of the request's header traceparent.";
    }
    part when: WhenPart {
        run_at: Moment = Time, optional,
            "The moment before which the job does not run; a moment in the past is now. Excludes delay.";
        delay: Span = Duration(Spans::ANY), optional,
            "How long after the push the job may run, 0s to 3650d; 0s if absent. Excludes run_at.";
    }
}

object! {
    JobPatchFields "a patch of a job" "JobPatch"
    answered JobView | PushedId;
    patch PatchJob(job: JobRef);
    fields {
        priority: i8 = Whole(PRIORITY), nullable, "The new priority, -100 to 100; null is 0.";
        payload: Json = Content(PAYLOAD_BYTES_MAX), nullable, "The new payload, at most 256 KiB; null is null.";
        needs: Vec<Need> = Needs(0), nullable, "The new needs, at most 16; null is those of the queue.";
        group: Group = Name(Group::parse, Some(Group::BYTES_MAX)), nullable, "The new group; null is none.";
        labels: Labels = LabelsForm, nullable,
            "The new labels, which replace all of the old ones; null is none.";
        timeout: Span = Duration(Spans::SOME), nullable,
            "The new longest time of one run; null is that of the queue.";
        expires_at: Moment = Time, nullable, "The new moment by which the job must run; null is none.";
    }
    part when: PatchWhenPart {
        run_at: Moment = Time, nullable,
            "The new moment before which the job does not run; null is now. Excludes delay.";
        delay: Span = Duration(Spans::ANY), nullable,
            "How long from now the job may run; null is now. Excludes run_at.";
    }
}

object! {
    UniqueFields "a unique key" "Unique"
    whole Unique;
    fields {
        until: Until = Words("an end of a unique key", Until::WORDS), default,
            "Until when the job holds the key: its end (the default), or the start of its first run.";
        on_conflict: OnConflict = Words("an answer to a conflict", OnConflict::WORDS), default,
            "What a push does that meets a holder of the key: keep (the default) answers the job that is there, replace gives it the new content, reject is refused as unique_conflict.";
        key: UniqueKey = Name(UniqueKey::parse, Some(UniqueKey::BYTES_MAX)), required "\"key\": \"article-42\"",
            "The key, unique within the namespace, 1 to 256 bytes.";
        hold as "for": Span = Duration(Spans::ANY), nullable,
            "The key is held at least this long after the push, also by a finished job; null holds it no longer than until.";
        within: Span = Duration(Spans::ANY), nullable,
            "With on_conflict replace: pushes move run_at no further than this beyond the moment at which the wait began; null is no bound.";
    }
}
object! {
    RetryOneFields "a retry call" "RetryOne"
    call RetryJob(job: JobRef);
    fields {
        finished_at: Moment = Time, optional,
            "Retries the job only if this is still the moment at which it ended; otherwise it is refused as wrong_state.";
    }
}

/// The queue of jobs that state none.
pub(super) const QUEUE_DEFAULT: &str = "default";

http_calls! {
    // Always sent as an array: one form of answer to read, and its status adds nothing to its items.
    Push() body "NewJobs",
        |call| Ok(Push { jobs: push(call.body)?, answer: PushAnswer::Whole }),
        |push| EncodedBody::json(&AsBody(push.jobs.as_slice()));
    ListJobs() query;
    GetJob(job: job_path);
    PatchJob(job: job_path) body;
    DeleteJob(job: job_path);
    CancelJob(job: job_path);
    RetryJob(job: job_path) optional body;
    RunJobNow(job: job_path);
    GetResult(job: job_path) query;
    ExplainJob(job: job_path);
    ListFailures() query;
}

/// Reads the jobs of `POST /v1/jobs`: an object, or an array of 1 to 1,000.
pub fn push(body: &[u8]) -> Result<Vec<NewJob>, Refusal> {
    let document = document(body)?;
    let body = Value::body(&document);
    match body.node.kind() {
        Kind::Array => body.each_indexed(1..=ITEMS_MAX, |item| NewJobFields.read(item)),
        _ => Ok(vec![NewJobFields.read(body)?]),
    }
}

/// Reads the job of one line of NDJSON, of at most 512 KiB; it goes to the queue `default` if it
/// states none. The caller counts the lines.
pub fn push_line(line: &[u8]) -> Result<NewJob, Refusal> {
    let document = fields::line(line)?;
    job_of_line(&Value::body(&document).fields(NewJobFields::SHAPE)?)
}

/// The same, for lines that go to `queue` if they state none.
pub fn push_line_to(line: &[u8], queue: &QueueName) -> Result<NewJob, Refusal> {
    let document = fields::line(line)?;
    let fields = Value::body(&document).fields(NewJobFields::SHAPE)?;
    let mut job = job_of_line(&fields)?;
    if fields.read(&NewJobFields::queue())?.is_none() {
        job.queue = queue.clone();
    }
    Ok(job)
}

/// Lines are stored in portions, so no line can name another one of its call.
fn job_of_line<const N: usize>(fields: &Fields<'_, '_, N>) -> Result<NewJob, Refusal> {
    if let Some(reference) = fields.get("ref") {
        return Err(Refusal::from(FlowRefusal::RefInLine).at(reference.at.to_string()));
    }
    let job = NewJob::of_fields((), fields)?;
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

/// Checks a kind: short, and without characters that would break a line of a list.
pub(super) const JOB_KIND: Ruled = Ruled(bounded::kind, NAME_BYTES_MAX);

/// The moment from which a job may run: `run_at` or `delay`.
struct WhenPart;

impl Part<When> for WhenPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<When, Refusal> {
        fields.not_both("delay", "run_at")?;
        Ok(match fields.read(&NewJobFields::delay())? {
            Some(delay) => When::In(delay),
            None => fields.read(&NewJobFields::run_at())?.map_or(When::Now, When::At),
        })
    }
    fn check(&self, value: &When, of: &At<'_>) -> Result<(), Refusal> {
        match value {
            When::Now => Ok(()),
            When::At(moment) => NewJobFields::run_at().check(moment, of),
            When::In(span) => NewJobFields::delay().check(span, of),
        }
    }
    fn write<M: SerializeMap>(&self, value: &When, map: &mut M) -> Result<(), M::Error> {
        match value {
            When::Now => Ok(()),
            When::At(moment) => NewJobFields::run_at().put(moment, map),
            When::In(span) => NewJobFields::delay().put(span, map),
        }
    }
}

/// The same in a patch; `null` means now.
struct PatchWhenPart;

impl Part<Patch<When>> for PatchWhenPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Patch<When>, Refusal> {
        fields.not_both("delay", "run_at")?;
        let delay = fields.read_patch(&JobPatchFields::delay())?;
        let run_at = fields.read_patch(&JobPatchFields::run_at())?;
        Ok(match (delay, run_at) {
            (Patch::Set(delay), _) => Patch::Set(When::In(delay)),
            (_, Patch::Set(run_at)) => Patch::Set(When::At(run_at)),
            (Patch::Reset, _) | (_, Patch::Reset) => Patch::Reset,
            (Patch::Keep, Patch::Keep) => Patch::Keep,
        })
    }
    fn check(&self, value: &Patch<When>, of: &At<'_>) -> Result<(), Refusal> {
        value.each(|when| WhenPart.check(when, of))
    }
    fn write<M: SerializeMap>(&self, value: &Patch<When>, map: &mut M) -> Result<(), M::Error> {
        match value {
            Patch::Keep => Ok(()),
            Patch::Reset | Patch::Set(When::Now) => {
                JobPatchFields::run_at().put_patch(&Patch::Reset, map)
            }
            Patch::Set(when) => WhenPart.write(when, map),
        }
    }
}

/// A job gets its parents once: a push that replaces it cannot give it others.
fn parents_stay(job: &NewJob, at: &At<'_>) -> Result<(), Refusal> {
    let replaces = |unique: &Unique| unique.on_conflict == OnConflict::Replace;
    if !job.after.is_empty() && job.unique.as_ref().is_some_and(replaces) {
        let because = "\"on_conflict\": \"replace\"".to_owned();
        let case = BodyRefusal::FieldWithout { name: "after".into(), because };
        return Err(At::Member(at, "after").refuse(case));
    }
    Ok(())
}

/// Labels of a job.
pub(super) struct LabelsForm;

impl Form<Labels> for LabelsForm {
    fn read(&self, value: Value<'_, '_>) -> Result<Labels, Refusal> {
        let not_labels = |label, noun| BodyRefusal::NotLabels { label, noun };
        let pairs = value.each_member(not_labels, |key, member| {
            label_key(key).map_err(|no| member.refuse(no))?;
            Ok((key.to_owned(), member.short(LABEL_VALUE)?))
        })?;
        bounded::labels(pairs.len()).map_err(|no| value.refuse(no))?;
        Ok(pairs.into_iter().collect())
    }
    fn check(&self, value: &Labels, at: &At<'_>) -> Result<(), Refusal> {
        for (key, text) in value {
            let at = At::Member(at, key);
            label_key(key).map_err(|no| at.refuse(no))?;
            at.text(text, LABEL_VALUE)?;
        }
        bounded::labels(value.len()).map_err(|no| at.refuse(no))
    }
    fn write<S: Serializer>(&self, value: &Labels, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(value)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Map(Box::new(ValueKind::Text(Some(LABEL_VALUE))))
    }
}

impl Bounded for Push {
    fn within_bounds(&self) -> Result<(), Refusal> {
        At::Body.items(self.jobs.len(), 1..=ITEMS_MAX)?;
        for (index, job) in self.jobs.iter().enumerate() {
            job.check_body(&At::Body).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

bounded_bodies! { PatchJob RetryJob }
