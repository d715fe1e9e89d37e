//! Arguments of the calls about resources. Their data is often secret: nothing here has a `Debug`.

use serde::Serialize;
use tenure_core::names::{PoolName, ResourceId, Tag};
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeleteResource, GetResource, Meant, PatchResource,
    RestoreResource,
};
use tenure_core::settings::NewResource;

use super::items::{Later, Patched};
use super::{OneCall, Packed, pack};

/// A resource as it comes from outside.
#[derive(Serialize)]
pub(crate) struct NewResourceArg<'a> {
    id: &'a str,
    data: &'a str,
    tags: &'a [Tag],
    slots: u32,
}

/// Resources as they come from outside.
pub(crate) fn new_resources(resources: &[NewResource]) -> Vec<NewResourceArg<'_>> {
    let all = resources.iter().map(|new| NewResourceArg {
        id: new.id.as_str(),
        data: new.data.text(),
        tags: &new.tags,
        slots: new.slots,
    });
    all.collect()
}

/// Of `add_resources`.
#[derive(Serialize)]
struct PoolResourcesArgs<'a> {
    pool: &'a str,
    resources: Vec<NewResourceArg<'a>>,
}

impl OneCall for AddResources {
    fn args(&self) -> Packed {
        let resources = new_resources(&self.resources);
        pack(&PoolResourcesArgs { pool: self.pool.as_str(), resources })
    }
}

/// One resource, and what is to become of it.
#[derive(Serialize)]
struct ResourceArgs<'a> {
    pool: &'a str,
    id: &'a str,
    #[serde(flatten)]
    later: Later,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> ResourceArgs<'a> {
    fn of(pool: &'a PoolName, resource: &'a ResourceId) -> Self {
        let (pool, id) = (pool.as_str(), resource.as_str());
        ResourceArgs { pool, id, later: Later::default(), reason: None }
    }
}

impl OneCall for GetResource {
    fn args(&self) -> Packed {
        pack(&ResourceArgs::of(&self.pool, &self.resource))
    }
}

impl OneCall for DeleteResource {
    fn args(&self) -> Packed {
        pack(&ResourceArgs::of(&self.pool, &self.resource))
    }
}

impl OneCall for RestoreResource {
    fn args(&self) -> Packed {
        pack(&ResourceArgs::of(&self.pool, &self.resource))
    }
}

impl OneCall for CoolResource {
    fn args(&self) -> Packed {
        let resource = ResourceArgs::of(&self.pool, &self.resource);
        pack(&ResourceArgs { later: Later::of(self.until), ..resource })
    }
}

impl OneCall for BanResource {
    fn args(&self) -> Packed {
        let resource = ResourceArgs::of(&self.pool, &self.resource);
        pack(&ResourceArgs { reason: self.reason.as_deref(), ..resource })
    }
}

/// Of `patch_resource`.
#[derive(Serialize)]
struct PatchResourceArgs<'a> {
    pool: &'a str,
    id: &'a str,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    data: Patched<&'a str>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    tags: Patched<&'a [Tag]>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    slots: Patched<u32>,
}

impl<'a> PatchResourceArgs<'a> {
    fn of(patch: &'a PatchResource) -> Self {
        PatchResourceArgs {
            pool: patch.pool.as_str(),
            id: patch.resource.as_str(),
            data: Patched::of(&patch.data, |data| data.text()),
            tags: Patched::of(&patch.tags, |tags| tags.as_slice()),
            slots: Patched::of(&patch.slots, |slots| *slots),
        }
    }
}

impl OneCall for PatchResource {
    fn args(&self) -> Packed {
        pack(&PatchResourceArgs::of(self))
    }
}

/// Whether a set is meant that retires most.
pub(super) fn is_meant(meant: Meant) -> bool {
    meant == Meant::Yes
}

/// Of `sync_resources`: a whole set in one call.
#[derive(Serialize)]
pub(crate) struct SyncArgs<'a> {
    pool: &'a str,
    resources: Vec<NewResourceArg<'a>>,
    meant: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
}

impl<'a> SyncArgs<'a> {
    pub(crate) fn of(sync: &'a tenure_core::requests::SyncResources) -> Self {
        SyncArgs {
            pool: sync.pool.as_str(),
            resources: new_resources(&sync.resources),
            meant: is_meant(sync.meant),
            version: sync.version,
        }
    }
}

/// Of `sync_begin`.
#[derive(Serialize)]
pub(crate) struct SyncBeginArgs<'a> {
    pub pool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Of `sync_items`.
#[derive(Serialize)]
pub(crate) struct SyncItemsArgs<'a> {
    pub pool: &'a str,
    pub sync: u64,
    pub resources: Vec<NewResourceArg<'a>>,
}

/// Of `sync_end`.
#[derive(Serialize)]
pub(crate) struct SyncEndArgs<'a> {
    pool: &'a str,
    sync: u64,
    meant: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
}

impl<'a> SyncEndArgs<'a> {
    pub(crate) fn of(pool: &'a str, sync: u64, meant: Meant, version: Option<u64>) -> Self {
        SyncEndArgs { pool, sync, meant: is_meant(meant), version }
    }
}
