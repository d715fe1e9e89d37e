//! `/v1/pools`, and the resources of a pool.

use tenure_core::decode::{self, ResourcePath};
use tenure_core::requests::{DeletePool, DeleteResource, GetPool, GetResource, RestoreResource};

use super::{Asked, Call, PAGE, Route, Takes};

const POOL: &[(u16, &str)] = &[(200, "Pool")];
const PUT: &[(u16, &str)] = &[(200, "Pool"), (201, "Pool")];
const RESOURCE: &[(u16, &str)] = &[(200, "Resource")];

fn path<'a>(asked: &'a Asked<'_>) -> ResourcePath<'a> {
    ResourcePath { name: asked.first(), id: asked.second() }
}

pub(super) static ROUTES: &[Route] = &[
    Route::get("/v1/pools", "list_pools", "List pools", |asked| {
        Ok(decode::list_pools(asked.query)?.into())
    })
    .query(PAGE)
    .answers(&[(200, "Pools")]),
    Route::get("/v1/pools/{name}", "get_pool", "Show a pool", |asked| {
        Ok(GetPool { pool: decode::pool_path(asked.first())? }.into())
    })
    .answers(POOL),
    Route::put("/v1/pools/{name}", "put_pool", "Replace all settings of a pool", |asked| {
        Ok(decode::put_pool(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("PoolSettings"))
    .answers(PUT),
    Route::patch("/v1/pools/{name}", "patch_pool", "Change settings of a pool", |asked| {
        Ok(decode::patch_pool(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("PoolSettings"))
    .answers(PUT),
    Route::delete("/v1/pools/{name}", "delete_pool", "Forget a pool", |asked| {
        Ok(DeletePool { pool: decode::pool_path(asked.first())? }.into())
    }),
    Route::put(
        "/v1/pools/{name}/resources",
        "sync_resources",
        "Make this the whole set of a pool: an array, or a resource a line",
        |asked| Ok(decode::sync_resources(asked.first(), asked.query, asked.body)?.into()),
    )
    .query(&["force", "version"])
    .takes(Takes::JsonOrResources("ResourceSet"))
    .answers(&[(200, "Synced")]),
    Route::post(
        "/v1/pools/{name}/resources",
        "add_resources",
        "Add or update resources: one, or an array",
        |asked| {
            let request = decode::add_resources(asked.first(), asked.body)?.into();
            let one = !asked.body.trim_ascii_start().starts_with(b"[");
            Ok(Call { request, one })
        },
    )
    .takes(Takes::Json("NewResources"))
    .answers(&[(200, "Resources")]),
    Route::get("/v1/pools/{name}/resources", "list_resources", "List resources", |asked| {
        Ok(decode::list_resources(asked.first(), asked.query)?.into())
    })
    .query(PAGE)
    .answers(&[(200, "ResourceList")]),
    Route::get("/v1/pools/{name}/resources/{id}", "get_resource", "Show a resource", |asked| {
        let (pool, resource) = decode::resource_path(path(&asked))?;
        Ok(GetResource { pool, resource }.into())
    })
    .answers(RESOURCE),
    Route::patch(
        "/v1/pools/{name}/resources/{id}",
        "patch_resource",
        "Change a resource",
        |asked| Ok(decode::patch_resource(path(&asked), asked.body)?.into()),
    )
    .takes(Takes::Json("ResourcePatch"))
    .answers(RESOURCE),
    Route::delete(
        "/v1/pools/{name}/resources/{id}",
        "delete_resource",
        "Retire a resource: it goes when it is free",
        |asked| {
            let (pool, resource) = decode::resource_path(path(&asked))?;
            Ok(DeleteResource { pool, resource }.into())
        },
    ),
    Route::post(
        "/v1/pools/{name}/resources/{id}/cool",
        "cool_resource",
        "Let a resource rest",
        |asked| Ok(decode::cool_resource(path(&asked), asked.body)?.into()),
    )
    .takes(Takes::Json("Later"))
    .answers(RESOURCE),
    Route::post(
        "/v1/pools/{name}/resources/{id}/ban",
        "ban_resource",
        "Hand a resource out no more",
        |asked| Ok(decode::ban_resource(path(&asked), asked.body)?.into()),
    )
    .takes(Takes::Maybe("Ban"))
    .answers(RESOURCE),
    Route::post(
        "/v1/pools/{name}/resources/{id}/restore",
        "restore_resource",
        "Make a resource available again",
        |asked| {
            let (pool, resource) = decode::resource_path(path(&asked))?;
            Ok(RestoreResource { pool, resource }.into())
        },
    )
    .answers(RESOURCE),
];
