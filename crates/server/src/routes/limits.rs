//! `/v1/limits`.

use tenure_core::decode;

use super::{PAGE, Route, Takes};

const LIMIT: &[(u16, &str)] = &[(200, "Limit")];
const PUT: &[(u16, &str)] = &[(200, "Limit"), (201, "Limit")];

pub(super) static ROUTES: &[Route] = &[
    Route::get("/v1/limits", "list_limits", "List limits that are set or in use", |asked| {
        Ok(decode::list_limits(asked.query)?.into())
    })
    .query(PAGE)
    .answers(&[(200, "Limits")]),
    Route::get("/v1/limits/{name}", "get_limit", "Show a limit", |asked| {
        Ok(decode::get_limit(asked.first())?.into())
    })
    .answers(LIMIT),
    Route::put("/v1/limits/{name}", "put_limit", "Replace all settings of a limit", |asked| {
        Ok(decode::put_limit(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("LimitSettings"))
    .answers(PUT),
    Route::patch("/v1/limits/{name}", "patch_limit", "Change settings of a limit", |asked| {
        Ok(decode::patch_limit(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("LimitSettings"))
    .answers(PUT),
    Route::delete("/v1/limits/{name}", "delete_limit", "Forget settings of a limit", |asked| {
        Ok(decode::delete_limit(asked.first())?.into())
    }),
    Route::post("/v1/limits/{name}/pause", "pause_limit", "Pause a limit", |asked| {
        Ok(decode::pause_limit(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("Later"))
    .answers(LIMIT),
    Route::post("/v1/limits/{name}/resume", "resume_limit", "End a pause", |asked| {
        Ok(decode::resume_limit(asked.first(), asked.body)?.into())
    })
    .answers(LIMIT),
    Route::post(
        "/v1/limits/{name}/observe",
        "observe_limit",
        "Say how many permits work outside takes",
        |asked| Ok(decode::observe_limit(asked.first(), asked.body)?.into()),
    )
    .takes(Takes::Json("Observation"))
    .answers(LIMIT),
];
