//! Query parameters, already percent-decoded. The pointer of a refusal is `/query/NAME`.

use super::object::Body;
use super::parameters;
use super::paths::{flow_path, job_path, pool_path, there};
use super::words::{integer, moment, one_of, phrases, span};
use crate::at::escaped;
use crate::bounded::queries::{self, QUERY};
use crate::bounded::{self, Bounded, PAGE, Spans, VERSION, short};
use crate::bounds::ERROR_BYTES_MAX;
use crate::events::{EventFilter, EventType};
use crate::job::JobState;
use crate::names::{FlowName, JobId, LimitName, Owner, PoolName, QueueName, ScheduleId};
use crate::progress::ProgressSeen;
use crate::refusal::Refusal;
use crate::requests::{
    Audit, EventsSince, GetFlow, GetResult, JobFilter, ListChildren, ListFailures, ListFlows,
    ListJobs, ListLeases, ListLimits, ListParents, ListPools, ListQueues, ListResources,
    ListSchedules, ListWorkers, Meant, Page, ReadEvents,
};
use crate::sentences::{NameRefusal, ValueRefusal, cut};

/// The parameters of a call: each is known, and none appears twice.
struct Query<'q> {
    pairs: Vec<(&'q str, &'q str)>,
}

impl<'q> Query<'q> {
    fn read<K: AsRef<str>, V: AsRef<str>>(
        pairs: &'q [(K, V)],
        known: &[&'static str],
    ) -> Result<Self, Refusal> {
        let mut taken: Vec<(&str, &str)> = Vec::with_capacity(pairs.len().min(known.len()));
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            let refuse = |case: ValueRefusal| {
                Err(Refusal::from(case).at(format!("/query/{}", escaped(name))))
            };
            if !known.contains(&name) {
                let (shown, known) = (cut(name), phrases(known.iter().copied()));
                return refuse(match known.as_slice() {
                    [] => ValueRefusal::ParameterOfNone { shown },
                    _ => ValueRefusal::ParameterUnknown { shown, known },
                });
            }
            if taken.iter().any(|(other, _)| *other == name) {
                return refuse(ValueRefusal::ParameterTwice { shown: cut(name) });
            }
            taken.push((name, value));
        }
        Ok(Query { pairs: taken })
    }

    fn take<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        let Some((_, value)) = self.pairs.iter().find(|(other, _)| *other == name) else {
            return Ok(None);
        };
        let here = |no: Refusal| no.about(format_args!("{name:?}")).at(format!("/query/{name}"));
        parse(value).map(Some).map_err(here)
    }

    fn page(&self) -> Result<Page, Refusal> {
        let max = self.max()?.unwrap_or(Page::default().max);
        Ok(Page { max, cursor: self.take("cursor", cursor)? })
    }

    fn max(&self) -> Result<Option<usize>, Refusal> {
        let max = self.take("max", |text| integer(text, PAGE))?;
        Ok(max.and_then(|max| usize::try_from(max).ok()))
    }
}

pub(super) fn cursor(text: &str) -> Result<String, Refusal> {
    if text.is_empty() {
        return Err(ValueRefusal::CursorEmpty.into());
    }
    Ok(text.to_owned())
}

/// Reads states in the form `ready` or `ready,blocked`.
pub(super) fn states(text: &str) -> Result<Vec<JobState>, Refusal> {
    let words = JobState::ALL.map(|state| (state.as_str(), state));
    let mut states = Vec::new();
    for word in text.split(',') {
        let state = one_of(word, "a state of a job", &words)?;
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

/// Reads the kind of a job.
fn kind(text: &str) -> Result<String, Refusal> {
    bounded::kind(text).map(|()| text.to_owned())
}

/// Reads a part of an error: at most as long as a stored error.
pub(super) fn error_part(text: &str) -> Result<String, Refusal> {
    short(text, ERROR_BYTES_MAX).map(str::to_owned)
}

fn boolean(text: &str) -> Result<bool, Refusal> {
    one_of(text, "true or false", &[("true", true), ("false", false)])
}

/// Refuses all parameters, for a call without any.
pub fn no_query<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<(), Refusal> {
    Query::read(query, &[]).map(drop)
}

/// Reads the query of `GET /v1/audit`.
pub fn audit<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<Audit, Refusal> {
    let query = Query::read(query, parameters::AUDIT)?;
    Ok(Audit { deep: query.take("deep", boolean)?.unwrap_or_default() })
}

/// Reads the query of `GET /v1/jobs`.
pub fn list_jobs<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListJobs, Refusal> {
    let query = Query::read(query, parameters::LIST_JOBS)?;
    Ok(ListJobs {
        filter: JobFilter {
            queue: query.take("queue", |text| there(text, QueueName::parse, QueueName::known))?,
            states: query.take("state", states)?.unwrap_or_default(),
            kind: query.take("kind", kind)?,
            label: query.take("label", label)?,
            error: query.take("error", error_part)?,
            finished_after: query.take("finished_after", moment)?,
            finished_before: query.take("finished_before", moment)?,
            flow: query.take("flow", FlowName::known)?,
            schedule: query.take("schedule", ScheduleId::known)?,
        },
        page: query.page()?,
        full: query.take("full", boolean)?.unwrap_or_default(),
    })
}

/// Reads the query of `GET /v1/jobs/{id}/result`.
pub fn get_result<K: AsRef<str>, V: AsRef<str>>(
    id: &str,
    query: &[(K, V)],
) -> Result<GetResult, Refusal> {
    let job = job_path(id)?;
    let query = Query::read(query, parameters::GET_RESULT)?;
    let wait = query.take("wait", |text| span(text, Spans::WAIT))?.unwrap_or_default();
    let seen = query.take("seen", |text| Ok(text.parse::<ProgressSeen>()?))?;
    Ok(GetResult { job, wait, seen })
}

/// Reads the query of `GET /v1/jobs/{id}/parents`.
pub fn list_parents<K: AsRef<str>, V: AsRef<str>>(
    id: &str,
    query: &[(K, V)],
) -> Result<ListParents, Refusal> {
    let job = job_path(id)?;
    let query = Query::read(query, parameters::LIST_PARENTS)?;
    let full = query.take("full", boolean)?.unwrap_or_default();
    Ok(ListParents { job, full, page: query.page()? })
}

/// Reads the query of `GET /v1/jobs/{id}/children`.
pub fn list_children<K: AsRef<str>, V: AsRef<str>>(
    id: &str,
    query: &[(K, V)],
) -> Result<ListChildren, Refusal> {
    Ok(ListChildren { job: job_path(id)?, page: page(query)? })
}

/// Reads the query of `GET /v1/flows`.
pub fn list_flows<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListFlows, Refusal> {
    Ok(ListFlows { page: page(query)? })
}

/// Reads the query of `GET /v1/flows/{flow}`.
pub fn get_flow<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    query: &[(K, V)],
) -> Result<GetFlow, Refusal> {
    let flow = flow_path(name)?;
    let wait =
        Query::read(query, parameters::GET_FLOW)?.take("wait", |text| span(text, Spans::WAIT))?;
    Ok(GetFlow { flow, wait: wait.unwrap_or_default() })
}

/// Reads the query of `GET /v1/failures`.
pub fn list_failures<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
) -> Result<ListFailures, Refusal> {
    let query = Query::read(query, parameters::LIST_FAILURES)?;
    Ok(ListFailures {
        queue: query.take("queue", |text| there(text, QueueName::parse, QueueName::known))?,
        kind: query.take("kind", kind)?,
        finished_after: query.take("finished_after", moment)?,
        max: query.max()?.unwrap_or(ListFailures::default().max),
    })
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

/// Reads the query of `GET /v1/events`.
pub fn read_events<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ReadEvents, Refusal> {
    let query = Query::read(query, parameters::READ_EVENTS)?;
    Ok(ReadEvents {
        since: query.take("since", events_since)?.unwrap_or_default(),
        filter: EventFilter {
            types: query.take("type", event_types)?.map(|types| types.to_vec()).unwrap_or_default(),
            queue: query.take("queue", |text| there(text, QueueName::parse, QueueName::known))?,
            job: query.take("job", JobId::known)?,
            flow: query.take("flow", FlowName::known)?,
            schedule: query.take("schedule", ScheduleId::known)?,
            limit: query.take("limit", |text| there(text, LimitName::parse, LimitName::known))?,
            pool: query.take("pool", |text| there(text, PoolName::parse, PoolName::known))?,
        },
        max: query.max()?.unwrap_or(ReadEvents::default().max),
        wait: query.take("wait", |text| span(text, Spans::WAIT))?.unwrap_or_default(),
    })
}

/// Reads the query of `GET /v1/leases`.
pub fn list_leases<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListLeases, Refusal> {
    let query = Query::read(query, parameters::LIST_LEASES)?;
    Ok(ListLeases {
        queue: query.take("queue", |text| there(text, QueueName::parse, QueueName::known))?,
        limit: query.take("limit", |text| there(text, LimitName::parse, LimitName::known))?,
        pool: query.take("pool", |text| there(text, PoolName::parse, PoolName::known))?,
        worker: query.take("worker", |text| Ok(text.to_owned()))?,
        page: query.page()?,
    })
}

fn page<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<Page, Refusal> {
    Query::read(query, parameters::PAGE)?.page()
}

/// Reads the query of `GET /v1/queues`.
pub fn list_queues<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListQueues, Refusal> {
    Ok(ListQueues { page: page(query)? })
}

/// Reads the query of `GET /v1/limits`.
pub fn list_limits<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListLimits, Refusal> {
    Ok(ListLimits { page: page(query)? })
}

/// Reads the query of `GET /v1/pools`.
pub fn list_pools<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListPools, Refusal> {
    Ok(ListPools { page: page(query)? })
}

/// Reads the query of `GET /v1/workers`.
pub fn list_workers<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
) -> Result<ListWorkers, Refusal> {
    Ok(ListWorkers { page: page(query)? })
}

/// Reads the query of `GET /v1/pools/{name}/resources`.
pub fn list_resources<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    query: &[(K, V)],
) -> Result<ListResources, Refusal> {
    Ok(ListResources { pool: pool_path(name)?, page: page(query)? })
}

/// Reads `?force` and `?version` of `PUT /v1/pools/{name}/resources`.
pub fn sync_query<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
) -> Result<(Meant, Option<u64>), Refusal> {
    meant_and_version(&Query::read(query, parameters::SYNC_RESOURCES)?)
}

fn meant_and_version(query: &Query<'_>) -> Result<(Meant, Option<u64>), Refusal> {
    let meant = match query.take("force", boolean)? {
        Some(true) => Meant::Yes,
        Some(false) | None => Meant::Ask,
    };
    let version = query.take("version", |text| integer(text, VERSION))?;
    Ok((meant, version.and_then(|version| u64::try_from(version).ok())))
}

/// Reads the query of `GET /v1/schedules`.
pub fn list_schedules<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
) -> Result<ListSchedules, Refusal> {
    let query = Query::read(query, parameters::LIST_SCHEDULES)?;
    Ok(ListSchedules {
        owner: query.take("owner", Owner::known)?,
        full: query.take("full", boolean)?.unwrap_or_default(),
        page: query.page()?,
    })
}

/// Reads `?owner`, `?force` and `?version` of `PUT /v1/schedules`.
pub fn sync_schedules_query<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
) -> Result<(Owner, Meant, Option<u64>), Refusal> {
    let query = Query::read(query, parameters::SYNC_SCHEDULES)?;
    let Some(owner) = query.take("owner", Owner::known)? else {
        return Err(Refusal::from(ValueRefusal::LeaderMissing).at("/query/owner"));
    };
    let (meant, version) = meant_and_version(&query)?;
    Ok((owner, meant, version))
}

impl Bounded for ListJobs {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.filter.check_body(&QUERY)?;
        queries::page(self.page.max, &QUERY)
    }
}
