//! `/v1/queues`.

use tenure_core::decode;
use tenure_core::requests::{DeleteQueue, GetQueue, ResumeQueue};

use super::{PAGE, Route, Takes};

const QUEUE: &[(u16, &str)] = &[(200, "Queue")];
const PUT: &[(u16, &str)] = &[(200, "Queue"), (201, "Queue")];

pub(super) static ROUTES: &[Route] = &[
    Route::get("/v1/queues", "list_queues", "List queues", |asked| {
        Ok(decode::list_queues(asked.query)?.into())
    })
    .query(PAGE)
    .answers(&[(200, "Queues")]),
    Route::get("/v1/queues/{name}", "get_queue", "Show a queue", |asked| {
        Ok(GetQueue { queue: decode::queue_path(asked.first())? }.into())
    })
    .answers(QUEUE),
    Route::put("/v1/queues/{name}", "put_queue", "Replace all settings of a queue", |asked| {
        Ok(decode::put_queue(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("QueueSettings"))
    .answers(PUT),
    Route::patch("/v1/queues/{name}", "patch_queue", "Change settings of a queue", |asked| {
        Ok(decode::patch_queue(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Json("QueueSettings"))
    .answers(PUT),
    Route::delete("/v1/queues/{name}", "delete_queue", "Forget a queue", |asked| {
        Ok(DeleteQueue { queue: decode::queue_path(asked.first())? }.into())
    }),
    Route::post("/v1/queues/{name}/pause", "pause_queue", "Pause a queue", |asked| {
        Ok(decode::pause_queue(asked.first(), asked.body)?.into())
    })
    .takes(Takes::Maybe("Later"))
    .answers(QUEUE),
    Route::post("/v1/queues/{name}/resume", "resume_queue", "End a pause", |asked| {
        Ok(ResumeQueue { queue: decode::queue_path(asked.first())? }.into())
    })
    .answers(QUEUE),
];
