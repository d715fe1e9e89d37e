//! Query parameters, already percent-decoded. The pointer of a refusal is `/query/NAME`.

use super::at::escaped;
use super::jobs::kind;
use super::paths::pool_path;
use super::words::{integer, one_of, phrases};
use crate::bounds::LIST_MAX;
use crate::job::JobState;
use crate::names::{LimitName, PoolName, QueueName};
use crate::refusal::Refusal;
use crate::requests::{
    Audit, JobFilter, ListJobs, ListLeases, ListLimits, ListPools, ListQueues, ListResources,
    ListWorkers, Meant, Page,
};
use crate::sentences::{ValueRefusal, cut};

/// The greatest number that JSON carries exactly everywhere.
const EXACT_MAX: i64 = (1 << 53) - 1;

/// The parameters of a call, each of which is known and stands once.
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
        let max = self.take("max", |text| integer(text, 1..=LIST_MAX as i64))?;
        let default = Page::default();
        Ok(Page {
            max: max.and_then(|max| usize::try_from(max).ok()).unwrap_or(default.max),
            cursor: self.take("cursor", cursor)?,
        })
    }
}

fn cursor(text: &str) -> Result<String, Refusal> {
    if text.is_empty() {
        return Err(ValueRefusal::CursorEmpty.into());
    }
    Ok(text.to_owned())
}

/// `ready` or `ready,blocked`.
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

/// `k:v`, split at the first colon.
pub(super) fn label(text: &str) -> Result<(String, String), Refusal> {
    match text.split_once(':') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(ValueRefusal::NotALabel { shown: cut(text) }.into()),
    }
}

fn boolean(text: &str) -> Result<bool, Refusal> {
    one_of(text, "true or false", &[("true", true), ("false", false)])
}

/// A call that has no query parameters.
pub fn no_query<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<(), Refusal> {
    Query::read(query, &[]).map(drop)
}

/// `GET /v1/audit`.
pub fn audit<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<Audit, Refusal> {
    let query = Query::read(query, &["deep"])?;
    Ok(Audit { deep: query.take("deep", boolean)?.unwrap_or_default() })
}

/// `GET /v1/jobs`.
pub fn list_jobs<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListJobs, Refusal> {
    const KNOWN: [&str; 7] = ["queue", "state", "kind", "label", "full", "max", "cursor"];
    let query = Query::read(query, &KNOWN)?;
    Ok(ListJobs {
        filter: JobFilter {
            queue: query.take("queue", QueueName::parse)?,
            states: query.take("state", states)?.unwrap_or_default(),
            kind: query.take("kind", kind)?,
            label: query.take("label", label)?,
        },
        page: query.page()?,
        full: query.take("full", boolean)?.unwrap_or_default(),
    })
}

/// `GET /v1/leases`.
pub fn list_leases<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListLeases, Refusal> {
    const KNOWN: [&str; 6] = ["queue", "limit", "pool", "worker", "max", "cursor"];
    let query = Query::read(query, &KNOWN)?;
    Ok(ListLeases {
        queue: query.take("queue", QueueName::parse)?,
        limit: query.take("limit", LimitName::parse)?,
        pool: query.take("pool", PoolName::parse)?,
        worker: query.take("worker", |text| Ok(text.to_owned()))?,
        page: query.page()?,
    })
}

fn page<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<Page, Refusal> {
    Query::read(query, &["max", "cursor"])?.page()
}

/// `GET /v1/queues`.
pub fn list_queues<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListQueues, Refusal> {
    Ok(ListQueues { page: page(query)? })
}

/// `GET /v1/limits`.
pub fn list_limits<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListLimits, Refusal> {
    Ok(ListLimits { page: page(query)? })
}

/// `GET /v1/pools`.
pub fn list_pools<K: AsRef<str>, V: AsRef<str>>(query: &[(K, V)]) -> Result<ListPools, Refusal> {
    Ok(ListPools { page: page(query)? })
}

/// `GET /v1/workers`.
pub fn list_workers<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
) -> Result<ListWorkers, Refusal> {
    Ok(ListWorkers { page: page(query)? })
}

/// `GET /v1/pools/{name}/resources`.
pub fn list_resources<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    query: &[(K, V)],
) -> Result<ListResources, Refusal> {
    Ok(ListResources { pool: pool_path(name)?, page: page(query)? })
}

/// `?force` and `?version` of `PUT /v1/pools/{name}/resources`.
pub fn sync_query<K: AsRef<str>, V: AsRef<str>>(
    query: &[(K, V)],
) -> Result<(Meant, Option<u64>), Refusal> {
    let query = Query::read(query, &["force", "version"])?;
    let meant = match query.take("force", boolean)? {
        Some(true) => Meant::Yes,
        Some(false) | None => Meant::Ask,
    };
    let version = query.take("version", |text| integer(text, 0..=EXACT_MAX))?;
    Ok((meant, version.and_then(|version| u64::try_from(version).ok())))
}
