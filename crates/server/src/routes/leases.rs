//! `/v1/leases`.

use tenure_core::decode;
use tenure_core::requests::ForceLease;

use super::{Route, Takes};

pub(super) static ROUTES: &[Route] = &[
    Route::post("/v1/leases", "lease", "Ask for jobs, or for needs alone", |asked| {
        Ok(decode::lease(asked.body)?.into())
    })
    .takes(Takes::Json("LeaseCall"))
    .answers(&[(200, "Leased")]),
    Route::get("/v1/leases", "list_leases", "List live leases", |asked| {
        Ok(decode::list_leases(asked.query)?.into())
    })
    .query(&["queue", "limit", "pool", "worker", "max", "cursor"])
    .answers(&[(200, "Leases")]),
    Route::post("/v1/leases/extend", "extend", "Keep leases alive", |asked| {
        Ok(decode::extend(asked.body)?.into())
    })
    .takes(Takes::Json("ExtendCall"))
    .answers(&[(200, "Extended")]),
    Route::post("/v1/leases/settle", "settle", "End leases", |asked| {
        Ok(decode::settle(asked.body)?.into())
    })
    .takes(Takes::Json("SettleCall"))
    .answers(&[(200, "Settled")]),
    Route::delete("/v1/leases/{id}", "force_lease", "Take a lease back by force", |asked| {
        Ok(ForceLease { lease: decode::lease_path(asked.first())? }.into())
    }),
];
