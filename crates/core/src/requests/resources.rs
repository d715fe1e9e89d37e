//! Requests about the resources of a pool. Their data is often secret and is never in an answer.

use super::{Page, Patch};
use crate::at::At;
use crate::bounded::leases::later;
use crate::bounded::resources::{data, resource, tags};
use crate::bounded::{Bounded, COUNT, SetIds, Spans, bounded_pages, unbounded};
use crate::bounds::{ERROR_BYTES_MAX, ITEMS_MAX};
use crate::lease::Later;
use crate::names::{PoolName, ResourceId, Tag};
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::sentences::{BodyRefusal, SetPlace};
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

impl Bounded for SyncResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let mut ids = SetIds::default();
        for (index, one) in self.resources.iter().enumerate() {
            let at = At::Item(&At::Body, index);
            let once = ids.once(&one.id, SetPlace::Item(index), &At::Member(&at, "id"));
            once.and_then(|()| resource(one, &at)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for AddResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let (sent, most) = (self.resources.len(), ITEMS_MAX);
        if !(1..=most).contains(&sent) {
            return Err(At::Body.refuse(BodyRefusal::ResourcesOutside { sent, most }));
        }
        for (index, one) in self.resources.iter().enumerate() {
            resource(one, &At::Item(&At::Body, index)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for PatchResource {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        self.data.each(|json| data(json, &body))?;
        self.tags.each(|all| tags(all, &body))?;
        self.slots.each(|slots| At::Member(&body, "slots").number(*slots, COUNT))
    }
}

impl Bounded for CoolResource {
    fn within_bounds(&self) -> Result<(), Refusal> {
        later(&self.until, Spans::ANY, &At::Body)
    }
}

impl Bounded for BanResource {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let at = At::Member(&At::Body, "reason");
        self.reason.as_ref().map_or(Ok(()), |reason| at.text(reason, ERROR_BYTES_MAX))
    }
}

unbounded! { GetResource DeleteResource RestoreResource }

bounded_pages! { ListResources }
