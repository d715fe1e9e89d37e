//! `/v1/pools`, and the resources of a pool.

use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeletePool, DeleteResource, GetPool, GetResource,
    ListPools, ListResources, PatchPool, PatchResource, PutPool, RestoreResource, SyncResources,
};

use super::{LineItem, Route, route};

pub(super) static ROUTES: &[Route] = &[
    route!(ListPools, "List pools", 200 "Pools"),
    route!(GetPool, "Show a pool", 200 "Pool"),
    route!(PutPool, "Replace all settings of a pool", 200 "Pool", 201 "Pool"),
    route!(PatchPool, "Change settings of a pool", 200 "Pool"),
    route!(DeletePool, "Forget a pool", 204 ""),
    route!(
        SyncResources,
        "Make this the whole set of a pool: an array, or a resource a line",
        200 "Synced"
    )
    .lines_of(LineItem::Resource),
    route!(AddResources, "Add or update resources: one, or an array", 200 "Resources").may_be_one(),
    route!(ListResources, "List resources", 200 "ResourceList"),
    route!(GetResource, "Show a resource", 200 "Resource"),
    route!(PatchResource, "Change a resource", 200 "Resource"),
    route!(DeleteResource, "Retire a resource: it goes when it is free", 204 ""),
    route!(CoolResource, "Let a resource rest", 200 "Resource"),
    route!(BanResource, "Hand a resource out no more", 200 "Resource"),
    route!(RestoreResource, "Make a resource available again", 200 "Resource"),
];
