//! Requests about the resources of a pool. Answers never contain their data, which is often secret.

use super::{Page, Patch};
use crate::bounded::unbounded;
use crate::lease::Later;
use crate::names::{PoolName, ResourceId, Tag};
use crate::secret::Json;
use crate::settings::NewResource;

/// The caller's consent to a set that retires most of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Meant {
    /// Refuses an empty set, and one that retires more than half.
    #[default]
    Ask,
    /// The caller means such a set.
    Yes,
}

/// Makes a list the whole set of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncResources {
    /// Made if it is not there.
    pub pool: PoolName,
    /// The whole set, of any length.
    pub resources: Vec<NewResource>,
    /// `?force` of the call.
    pub meant: Meant,
    /// `?version`: a number below that of the last sync is refused.
    pub version: Option<u64>,
}

/// Adds resources, or updates them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddResources {
    pub pool: PoolName,
    /// 1 to 1,000 resources.
    pub resources: Vec<NewResource>,
}

/// Lists the resources of a pool, without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListResources {
    pub pool: PoolName,
    pub page: Page,
}

/// Shows a resource, without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetResource {
    pub pool: PoolName,
    pub resource: ResourceId,
}

/// Changes the named fields of a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchResource {
    pub pool: PoolName,
    pub resource: ResourceId,
    /// Often secret, at most 64 KiB; `Reset` means null.
    pub data: Patch<Json>,
    /// Replaces all tags; `Reset` removes them.
    pub tags: Patch<Vec<Tag>>,
    /// Leases that may hold it at once; `Reset` means 1.
    pub slots: Patch<u32>,
}

/// Retires a resource: it is removed when it is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteResource {
    pub pool: PoolName,
    pub resource: ResourceId,
}

/// Lets a resource rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoolResource {
    pub pool: PoolName,
    pub resource: ResourceId,
    pub until: Later,
}

/// Stops the handing out of a resource until it is restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BanResource {
    pub pool: PoolName,
    pub resource: ResourceId,
    /// For people, at most 8 KiB.
    pub reason: Option<String>,
}

/// Makes a cooling or banned resource available again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoreResource {
    pub pool: PoolName,
    pub resource: ResourceId,
}

unbounded! { GetResource DeleteResource RestoreResource }
