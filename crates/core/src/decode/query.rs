//! Query parameters, already percent-decoded. The pointer of a refusal is `/query/NAME`.

use super::forms::ValueKind;
use super::parameters::{Parameter, Queried, Query, bounded_queries, queried, whole};
use super::paths::there;
use super::raw_call::http_calls;
use super::words::{integer, moment, one_of, span};
use crate::at::At;
use crate::bounded::{self, PAGE, Spans, VERSION, short};
use crate::bounds::{
    ERROR_BYTES_MAX, LIST_DEFAULT, TRAIL_FILTER_BYTES_MAX, TRAIL_TARGET_BYTES_MAX,
};
use crate::events::{EventFilter, EventType};
use crate::job::JobState;
use crate::names::{
    FlowName, JobId, JobRef, LimitName, Namespace, Owner, PoolName, QueueName, ScheduleId,
};
use crate::progress::ProgressSeen;
use crate::refusal::Refusal;
use crate::requests::{
    Audit, EventsSince, GetFlow, GetResult, GetStats, JobFilter, ListChildren, ListFailures,
    ListFlows, ListJobs, ListLeases, ListLimits, ListParents, ListPools, ListQueues, ListResources,
    ListSchedules, ListWorkers, Meant, Page, ReadEvents, SyncResources, SyncSchedules,
};
use crate::schedule::ScheduleSettings;
use crate::sentences::{NameRefusal, ValueRefusal, cut};
use crate::settings::NewResource;
use crate::time::{Moment, Span};
use crate::trail::ReadTrail;
use crate::words::Worded as _;

const QUEUE: Parameter<QueueName> = Parameter::text(
    "queue",
    |text| there(text, QueueName::parse, QueueName::known),
    "Only what belongs to this queue.",
);
const STATE: Parameter<Vec<JobState>> = Parameter {
    name: "state",
    read: states,
    write: |states| joined(states.iter().map(|state| state.as_str())),
    check: |_, _| Ok(()),
    kind: || ValueKind::Text(None),
    sentence: "Jobs in one of these states, separated by commas.",
};
const KIND: Parameter<String> = Parameter::text(
    "kind",
    |text| bounded::kind(text).map(|()| text.to_owned()),
    "Jobs of this kind; an empty text names those without one.",
)
.checked(|kind, at| at.here(bounded::kind(kind)));
const LABEL: Parameter<(String, String)> = Parameter {
    name: "label",
    read: label,
    write: |(key, value)| format!("{key}:{value}"),
    check: check_label,
    kind: || ValueKind::Text(None),
    sentence: "Jobs with this label, written KEY:VALUE and split at the last colon.",
};
const ERROR: Parameter<String> = Parameter::text(
    "error",
    error_part,
    "Jobs whose last error contains this text, letter by letter.",
)
.checked(|error, at| at.text(error, ERROR_BYTES_MAX));
const FINISHED_AFTER: Parameter<Moment> =
    Parameter::text("finished_after", moment, "Jobs that ended at this moment or later.")
        .checked(|moment, at| at.moment(*moment));
const FINISHED_BEFORE: Parameter<Moment> =
    Parameter::text("finished_before", moment, "Jobs that ended before this moment.")
        .checked(|moment, at| at.moment(*moment));
const FLOW: Parameter<FlowName> = Parameter::text("flow", FlowName::known, "The name of the flow.");
const SCHEDULE: Parameter<ScheduleId> =
    Parameter::text("schedule", ScheduleId::known, "The id of the schedule.");
const JOB: Parameter<JobId> = Parameter::text("job", JobId::known, "The id of the job.");
const LIMIT: Parameter<LimitName> = Parameter::text(
    "limit",
    |text| there(text, LimitName::parse, LimitName::known),
    "Only what is about this limit.",
);
const POOL: Parameter<PoolName> = Parameter::text(
    "pool",
    |text| there(text, PoolName::parse, PoolName::known),
    "Only what is about this pool.",
);
const WORKER: Parameter<String> =
    Parameter::text("worker", |text| Ok(text.to_owned()), "Only leases of this holder.");
const OWNER: Parameter<Owner> =
    Parameter::text("owner", Owner::known, "The set from outside to which the schedules belong.");
const FULL: Parameter<bool> =
    Parameter::text("full", boolean, "true: payloads and results are shown, too.")
        .of_kind(|| ValueKind::Boolean);
const DEEP: Parameter<bool> = Parameter::text(
    "deep",
    boolean,
    "true: all that is stored is read and compared with its checksums.",
)
.of_kind(|| ValueKind::Boolean);
const FORCE: Parameter<Meant> = Parameter {
    name: "force",
    read: |text| boolean(text).map(|force| if force { Meant::Yes } else { Meant::Ask }),
    write: |meant| (*meant == Meant::Yes).to_string(),
    check: |_, _| Ok(()),
    kind: || ValueKind::Boolean,
    sentence: "true: a set is taken that is empty or retires more than half.",
};
const VERSION_OF_SET: Parameter<u64> = Parameter::text(
    "version",
    |text| integer(text, VERSION).map(|version| u64::try_from(version).unwrap_or_default()),
    "The version of the set; one below the last is refused as stale_sync.",
)
.of_kind(|| whole(&VERSION))
.checked(|version, at| at.number(i64::try_from(*version).unwrap_or(i64::MAX), VERSION));
const MAX: Parameter<usize> = Parameter::text(
    "max",
    |text| integer(text, PAGE).map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
    "How many items a page has at most, 1 to 1,000; 100 if absent.",
)
.of_kind(|| whole(&PAGE))
.checked(|max, at| at.number(i64::try_from(*max).unwrap_or(i64::MAX), PAGE));
const CURSOR: Parameter<String> =
    Parameter::text("cursor", cursor, "The next of the page before; absent for the first page.");
const WAIT: Parameter<Span> = Parameter::text(
    "wait",
    |text| span(text, Spans::WAIT),
    "How long the call waits for an answer at most, 0s to 1m; 0s if absent. HEAD never waits.",
)
.checked(|wait, at| at.span(*wait, Spans::WAIT));
const SEEN: Parameter<ProgressSeen> = Parameter::text(
    "seen",
    |text| Ok(text.parse::<ProgressSeen>()?),
    "The progress_id of an answer before, or none: the wait ends with another progress, too.",
);
const SINCE: Parameter<EventsSince> = Parameter {
    name: "since",
    read: events_since,
    write: |since| match since {
        // Left out, as the default.
        EventsSince::Now => String::new(),
        EventsSince::First => "first".to_owned(),
        EventsSince::Id(id) => id.to_string(),
    },
    check: |_, _| Ok(()),
    kind: || ValueKind::Text(None),
    sentence: "The next of an answer before, an event's id, or first for the oldest that is kept.",
};
const TYPE: Parameter<Vec<EventType>> = Parameter {
    name: "type",
    read: |text| event_types(text).map(|types| types.to_vec()),
    write: |types| joined(types.iter().map(|kind| kind.as_str())),
    check: |_, _| Ok(()),
    kind: || ValueKind::Text(None),
    sentence: "Types of events separated by commas, or families such as job.*.",
};

const TRAIL_SINCE: Parameter<Moment> =
    Parameter::text("since", moment, "Only lines that were written at this moment or later.")
        .checked(|moment, at| at.moment(*moment));
const TRAIL_CALLER: Parameter<String> = Parameter::text(
    "caller",
    trail_filter,
    "Only lines of this caller: the name of a token, at most 128 bytes.",
)
.checked(|caller, at| at.text(caller, TRAIL_FILTER_BYTES_MAX));
const TRAIL_OP: Parameter<String> = Parameter::text(
    "op",
    trail_filter,
    "Only lines of this operation; a * at the end stands for any rest, as in put_*.",
)
.checked(|op, at| at.text(op, TRAIL_FILTER_BYTES_MAX));
const TRAIL_TARGET: Parameter<String> = Parameter::text(
    "target",
    |text| short(text, TRAIL_TARGET_BYTES_MAX).map(str::to_owned),
    "Only lines that name this target, such as limit:site:* or pool:accounts/acc-7; a pool stands for its resources too.",
)
.checked(|target, at| at.text(target, TRAIL_TARGET_BYTES_MAX));
const TRAIL_NAMESPACE: Parameter<Namespace> =
    Parameter::text("namespace", Namespace::parse, "Only lines of calls in this namespace.");

queried! {
    Page() { max = MAX, or LIST_DEFAULT; cursor = CURSOR, optional; }
    JobFilter() {
        queue = QUEUE, optional;
        states = STATE, default;
        kind = KIND, optional;
        label = LABEL, optional;
        error = ERROR, optional;
        finished_after = FINISHED_AFTER, optional;
        finished_before = FINISHED_BEFORE, optional;
        flow = FLOW, optional;
        schedule = SCHEDULE, optional;
    }
    EventFilter() {
        types = TYPE, default;
        queue = QUEUE, optional;
        job = JOB, optional;
        flow = FLOW, optional;
        schedule = SCHEDULE, optional;
        limit = LIMIT, optional;
        pool = POOL, optional;
    }
    Audit() { deep = DEEP, default; }
    ListJobs() { full = FULL, default; } [filter: JobFilter, page: Page]
    GetResult(job: JobRef) { wait = WAIT, default; seen = SEEN, optional; }
    ListParents(job: JobRef) { full = FULL, default; } [page: Page]
    ListChildren(job: JobRef) {} [page: Page]
    ListFlows() {} [page: Page]
    GetFlow(flow: FlowName) { wait = WAIT, default; }
    ListFailures() {
        queue = QUEUE, optional;
        kind = KIND, optional;
        finished_after = FINISHED_AFTER, optional;
        max = MAX, or LIST_DEFAULT;
    }
    ReadEvents() {
        since = SINCE, default;
        max = MAX, or LIST_DEFAULT;
        wait = WAIT, default;
    } [filter: EventFilter]
    ListLeases() {
        queue = QUEUE, optional;
        limit = LIMIT, optional;
        pool = POOL, optional;
        worker = WORKER, optional;
    } [page: Page]
    ListQueues() {} [page: Page]
    ListLimits() {} [page: Page]
    ListPools() {} [page: Page]
    ListWorkers() {} [page: Page]
    ListResources(pool: PoolName) {} [page: Page]
    SyncResources(pool: PoolName, resources: Vec<NewResource>) {
        meant = FORCE, default;
        version = VERSION_OF_SET, optional;
    }
    ReadTrail() {
        since = TRAIL_SINCE, optional;
        caller = TRAIL_CALLER, optional;
        op = TRAIL_OP, optional;
        target = TRAIL_TARGET, optional;
        namespace = TRAIL_NAMESPACE, optional;
    } [page: Page]
    ListSchedules() { owner = OWNER, optional; full = FULL, default; } [page: Page]
    SyncSchedules(schedules: Vec<(ScheduleId, ScheduleSettings)>) {
        owner = OWNER, required ValueRefusal::LeaderMissing;
        meant = FORCE, default;
        version = VERSION_OF_SET, optional;
    }
}

bounded_queries! {
    Audit ListJobs GetResult ListParents ListChildren ListFlows GetFlow ListFailures ReadEvents ListLeases ListQueues
    ListLimits ListPools ListWorkers ListResources ListSchedules
}

/// Words in the form of a query.
fn joined<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.collect::<Vec<_>>().join(",")
}

pub(super) fn cursor(text: &str) -> Result<String, Refusal> {
    if text.is_empty() {
        return Err(ValueRefusal::CursorEmpty.into());
    }
    Ok(text.to_owned())
}

/// Reads states in the form `ready` or `ready,blocked`.
pub(super) fn states(text: &str) -> Result<Vec<JobState>, Refusal> {
    let mut states = Vec::new();
    for word in text.split(',') {
        let state = one_of(word, "a state of a job", JobState::WORDS)?;
        if !states.contains(&state) {
            states.push(state);
        }
    }
    Ok(states)
}

/// Reads a label in the form `k:v`, split at the last colon.
pub(super) fn label(text: &str) -> Result<(String, String), Refusal> {
    match text.rsplit_once(':') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(ValueRefusal::NotALabel { shown: cut(text) }.into()),
    }
}

/// Refuses a label that would be read as another one in the form KEY:VALUE.
pub(super) fn check_label((key, value): &(String, String), at: &At<'_>) -> Result<(), Refusal> {
    if key.is_empty() || value.contains(':') {
        return Err(at.refuse(ValueRefusal::LabelValueColon));
    }
    Ok(())
}

/// Reads a part of an error: at most as long as a stored error.
pub(super) fn error_part(text: &str) -> Result<String, Refusal> {
    short(text, ERROR_BYTES_MAX).map(str::to_owned)
}

/// Reads a text that lines of the trail are compared with.
fn trail_filter(text: &str) -> Result<String, Refusal> {
    short(text, TRAIL_FILTER_BYTES_MAX).map(str::to_owned)
}

fn boolean(text: &str) -> Result<bool, Refusal> {
    one_of(text, "true or false", &[("true", true), ("false", false)])
}

/// Refuses all parameters, for a call without any.
pub fn no_query<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<(), Refusal> {
    Query::read(query, &[]).map(drop)
}

/// Reads event types and families of them: `job.failed,schedule.*`.
pub fn event_types(text: &str) -> Result<std::sync::Arc<[EventType]>, Refusal> {
    let mut types = Vec::new();
    for name in text.split(',') {
        let named = EventType::named(name);
        types.extend(named.ok_or_else(|| NameRefusal::EventType { shown: cut(name) })?);
    }
    types.sort_unstable();
    types.dedup();
    Ok(types.into())
}

/// Reads `first`, or the id at which a reader stopped.
pub fn events_since(text: &str) -> Result<EventsSince, Refusal> {
    match text {
        "first" => Ok(EventsSince::First),
        id => Ok(EventsSince::Id(id.parse()?)),
    }
}

http_calls! {
    ReadEvents() query;
    ListWorkers() query;
    GetStats();
    Audit() query;
}

/// Reads the query of `GET /v1/trail`.
pub fn read_trail<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ReadTrail, Refusal> {
    ReadTrail::of_query((), query)
}
