//! `/v1/pools`, and the resources of a pool.

use tenure_core::decode::{self, ResourcePath};
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeletePool, DeleteResource, GetPool, GetResource,
    ListPools, ListResources, Operation, PatchPool, PatchResource, PutPool, RestoreResource,
    SyncResources,
};

use super::{Asked, Call, Route, Takes, route};

const POOL: &[(u16, &str)] = &[(200, "Pool")];
const PUT: &[(u16, &str)] = &[(200, "Pool"), (201, "Pool")];
const RESOURCE: &[(u16, &str)] = &[(200, "Resource")];

fn path<'a>(asked: &'a Asked<'_>) -> ResourcePath<'a> {
    ResourcePath { name: asked.first(), id: asked.second() }
}

pub(super) static ROUTES: &[Route] = &[
    route!(ListPools, "List pools", |asked| decode::list_pools(asked.query))
        .query::<ListPools>()
        .answers(&[(200, "Pools")]),
    route!(GetPool, "Show a pool", |asked| Ok(GetPool { pool: decode::pool_path(asked.first())? }))
        .answers(POOL),
    route!(PutPool, "Replace all settings of a pool", |asked| decode::put_pool(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("PoolSettings"))
    .answers(PUT),
    route!(PatchPool, "Change settings of a pool", |asked| decode::patch_pool(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("PoolPatch"))
    .answers(POOL),
    route!(DeletePool, "Forget a pool", |asked| Ok(DeletePool {
        pool: decode::pool_path(asked.first())?
    })),
    route!(
        SyncResources,
        "Make this the whole set of a pool: an array, or a resource a line",
        |asked| decode::sync_resources(asked.first(), asked.query, asked.body)
    )
    .query::<SyncResources>()
    .takes(Takes::JsonOrResources("ResourceSet"))
    .answers(&[(200, "Synced")]),
    Route::of(&AddResources::SPEC, "Add or update resources: one, or an array", |asked| {
        let request = decode::add_resources(asked.first(), asked.body)?.into();
        let one = !asked.body.trim_ascii_start().starts_with(b"[");
        Ok(Call { request, one, lines: None })
    })
    .takes(Takes::Json("NewResources"))
    .answers(&[(200, "Resources")]),
    route!(ListResources, "List resources", |asked| decode::list_resources(
        asked.first(),
        asked.query
    ))
    .query::<ListResources>()
    .answers(&[(200, "ResourceList")]),
    route!(GetResource, "Show a resource", |asked| {
        let (pool, resource) = decode::resource_path(path(&asked))?;
        Ok(GetResource { pool, resource })
    })
    .answers(RESOURCE),
    route!(PatchResource, "Change a resource", |asked| decode::patch_resource(
        path(&asked),
        asked.body
    ))
    .takes(Takes::Json("ResourcePatch"))
    .answers(RESOURCE),
    route!(DeleteResource, "Retire a resource: it goes when it is free", |asked| {
        let (pool, resource) = decode::resource_path(path(&asked))?;
        Ok(DeleteResource { pool, resource })
    },),
    route!(CoolResource, "Let a resource rest", |asked| decode::cool_resource(
        path(&asked),
        asked.body
    ))
    .takes(Takes::Json("Later"))
    .answers(RESOURCE),
    route!(BanResource, "Hand a resource out no more", |asked| decode::ban_resource(
        path(&asked),
        asked.body
    ))
    .takes(Takes::Maybe("Ban"))
    .answers(RESOURCE),
    route!(RestoreResource, "Make a resource available again", |asked| {
        let (pool, resource) = decode::resource_path(path(&asked))?;
        Ok(RestoreResource { pool, resource })
    },)
    .answers(RESOURCE),
];
