//! Parts of paths, already percent-decoded, and the namespace header.
//!
//! What only ever names something that is there is read as `known`: an earlier release took ids that are refused now, and what
//! is stored under them can be read, ended and deleted.

use crate::names::{FlowName, JobRef, LimitName, Namespace, PoolName, QueueName, ResourceId};
use crate::refusal::Refusal;
use crate::sentences::NameRefusal;

/// The two names of `/v1/pools/{name}/resources/{id}`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourcePath<'t> {
    /// The pool.
    pub name: &'t str,
    /// The resource.
    pub id: &'t str,
}

/// A job's id, or `key:KEY`; the pointer of a refusal is `/path/id`.
pub fn job_path(id: &str) -> Result<JobRef, Refusal> {
    JobRef::parse(id).map_err(|no| no.at("/path/id"))
}

/// A flow's name; the pointer of a refusal is `/path/flow`.
pub fn flow_path(name: &str) -> Result<FlowName, Refusal> {
    FlowName::known(name).map_err(|no| no.at("/path/flow"))
}

/// The name of something that is there. `.` and `..`, which an earlier release took too, are no part of a path.
pub(super) fn there<T>(
    text: &str,
    parse: fn(&str) -> Result<T, Refusal>,
    known: fn(&str) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    if matches!(text, "." | "..") { parse(text) } else { known(text) }
}

/// A lease's id: opaque, but not empty.
pub fn lease_path(id: &str) -> Result<String, Refusal> {
    if id.is_empty() {
        return Err(Refusal::from(NameRefusal::LeaseEmpty).at("/path/id"));
    }
    Ok(id.to_owned())
}

/// A queue's name; the pointer of a refusal is `/path/name`.
pub fn queue_path(name: &str) -> Result<QueueName, Refusal> {
    there(name, QueueName::parse, QueueName::known).map_err(|no| no.at("/path/name"))
}

/// A pool's name; the pointer of a refusal is `/path/name`.
pub fn pool_path(name: &str) -> Result<PoolName, Refusal> {
    there(name, PoolName::parse, PoolName::known).map_err(|no| no.at("/path/name"))
}

/// A resource of a pool.
pub fn resource_path(path: ResourcePath<'_>) -> Result<(PoolName, ResourceId), Refusal> {
    let id = ResourceId::known(path.id).map_err(|no| no.at("/path/id"));
    Ok((pool_path(path.name)?, id?))
}

/// A limit's name, a template's too.
pub(super) fn limit_path(name: &str) -> Result<LimitName, Refusal> {
    there(name, LimitName::parse, LimitName::known).map_err(|no| no.at("/path/name"))
}

/// The name in the path of what may be made by it.
pub(super) fn made_path<T>(
    name: &str,
    parse: fn(&str) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    parse(name).map_err(|no| no.at("/path/name"))
}

/// The namespace of a request; `default` without the header. An empty one is refused.
pub fn namespace_header(value: Option<&str>) -> Result<Namespace, Refusal> {
    match value {
        None => Ok(Namespace::main()),
        Some(text) => Namespace::parse(text).map_err(|no| no.at("/header/Tenure-Namespace")),
    }
}
