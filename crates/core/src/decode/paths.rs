//! Parts of paths, already percent-decoded, and the namespace header.
//!
//! A path that only names an existing thing is read as `known`: an earlier release accepted ids that are refused now,
//! and things that are stored under them can still be read, ended and deleted.

use crate::names::{FlowName, JobRef, LimitName, Namespace, PoolName, QueueName, ResourceId};
use crate::refusal::Refusal;
use crate::sentences::NameRefusal;

/// A job's id, or `key:KEY`; the pointer of a refusal is `/path/id`.
pub fn job_path(id: &str) -> Result<JobRef, Refusal> {
    JobRef::parse(id).map_err(|no| no.at("/path/id"))
}

/// A flow's name; the pointer of a refusal is `/path/flow`.
pub fn flow_path(name: &str) -> Result<FlowName, Refusal> {
    FlowName::known(name).map_err(|no| no.at("/path/flow"))
}

/// Reads the name of an existing thing. `.` and `..`, which an earlier release accepted too, cannot be a part of a
/// path.
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

/// A resource's id; the pointer of a refusal is `/path/id`.
pub(super) fn resource_path(id: &str) -> Result<ResourceId, Refusal> {
    ResourceId::known(id).map_err(|no| no.at("/path/id"))
}

/// A limit's name, which may be a template's.
pub(super) fn limit_path(name: &str) -> Result<LimitName, Refusal> {
    there(name, LimitName::parse, LimitName::known).map_err(|no| no.at("/path/name"))
}

/// The reader of the name of a thing that the call may make.
pub(super) fn made<T>(
    parse: fn(&str) -> Result<T, Refusal>,
) -> impl Fn(&str) -> Result<T, Refusal> {
    move |name| parse(name).map_err(|no| no.at("/path/name"))
}

/// The namespace of a request; `default` without the header. An empty one is refused.
pub fn namespace_header(value: Option<&str>) -> Result<Namespace, Refusal> {
    match value {
        None => Ok(Namespace::main()),
        Some(text) => Namespace::parse(text).map_err(|no| no.at("/header/Tenure-Namespace")),
    }
}
