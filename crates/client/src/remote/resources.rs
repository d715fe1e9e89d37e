//! Calls about the resources of a pool over HTTP.

use serde::Serialize;
use tenure_core::names::{ResourceId, Tag};
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeleteResource, GetResource, ListResources,
    PatchResource, RestoreResource, SyncResources,
};
use tenure_core::secret::Json;
use tenure_core::settings::NewResource;

use super::ask::{Body, OverHttp, Query, Unsendable, json, set};
use super::body::{Wait, patch_body};

impl OverHttp for GetResource {}
impl OverHttp for DeleteResource {}
impl OverHttp for RestoreResource {}

impl OverHttp for SyncResources {
    fn query(&self, query: &mut Query) {
        query.set(self.meant, self.version);
    }
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let rows: Vec<Resource<'_>> = self.resources.iter().map(Resource::from).collect();
        set(&rows, usize::MAX)
    }
}

impl OverHttp for AddResources {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        let rows: Vec<Resource<'_>> = self.resources.iter().map(Resource::from).collect();
        json(&rows)
    }
}

impl OverHttp for ListResources {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for PatchResource {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&ResourceChange::from(self))
    }
}

impl OverHttp for CoolResource {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&Wait::from(self.until))
    }
}

impl OverHttp for BanResource {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&Ban { reason: self.reason.as_deref() })
    }
}

patch_body! {
    /// Changes of a resource.
    ResourceChange of PatchResource { data: Json, tags: Vec<Tag>, slots: u32 }
}

/// A resource of a set.
#[derive(Serialize)]
struct Resource<'a> {
    id: &'a ResourceId,
    #[serde(skip_serializing_if = "Json::is_null")]
    data: &'a Json,
    tags: &'a [Tag],
    slots: u32,
}

impl<'a> From<&'a NewResource> for Resource<'a> {
    fn from(one: &'a NewResource) -> Self {
        Resource { id: &one.id, data: &one.data, tags: &one.tags, slots: one.slots }
    }
}

#[derive(Serialize)]
struct Ban<'a> {
    /// The reason of the ban, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}
