//! Requests about the resources of a pool. Their data is often secret and is never in an answer.

use super::{Page, Patch};
use crate::lease::Later;
use crate::names::{PoolName, ResourceId, Tag};
use crate::secret::Json;
use crate::settings::NewResource;

/// Whether a set that retires most of a pool is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Meant {
    /// Refuse an empty set, and one that retires more than half.
    #[default]
    Ask,
    /// It is meant.
    Yes,
}

/// Makes this the whole set of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncResources {
    /// Which; made if it is not there.
    pub pool: PoolName,
    /// The whole set, of any length.
    pub resources: Vec<NewResource>,
    /// `?force`.
    pub meant: Meant,
    /// `?version`: one below the last is refused.
    pub version: Option<u64>,
}

/// Adds resources, or updates them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddResources {
    /// Which pool.
    pub pool: PoolName,
    /// 1 to 1,000.
    pub resources: Vec<NewResource>,
}

/// Lists the resources of a pool, without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListResources {
    /// Which pool.
    pub pool: PoolName,
    /// The page.
    pub page: Page,
}

/// Shows a resource, without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
}

/// Changes the named fields of a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
    /// Often secret.
    pub data: Patch<Json>,
    /// Tags.
    pub tags: Patch<Vec<Tag>>,
    /// Holders at once.
    pub slots: Patch<u32>,
}

/// Retires a resource: it goes when it is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
}

/// Lets a resource rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoolResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
    /// Until when.
    pub until: Later,
}

/// Hands a resource out no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BanResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
    /// Why.
    pub reason: Option<String>,
}

/// Makes a cooling or banned resource available again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoreResource {
    /// Which pool.
    pub pool: PoolName,
    /// Which resource.
    pub resource: ResourceId,
}
