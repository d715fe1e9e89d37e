//! `/v1/queues`.

use tenure_core::decode;
use tenure_core::requests::{
    DeleteQueue, GetQueue, ListQueues, PatchQueue, PauseQueue, PutQueue, ResumeQueue,
};

use super::{Route, Takes, route};

const QUEUE: &[(u16, &str)] = &[(200, "Queue")];
const PUT: &[(u16, &str)] = &[(200, "Queue"), (201, "Queue")];

pub(super) static ROUTES: &[Route] = &[
    route!(ListQueues, "List queues", |asked| decode::list_queues(asked.query))
        .query::<ListQueues>()
        .answers(&[(200, "Queues")]),
    route!(GetQueue, "Show a queue", |asked| Ok(GetQueue {
        queue: decode::queue_path(asked.first())?
    }))
    .answers(QUEUE),
    route!(PutQueue, "Replace all settings of a queue", |asked| decode::put_queue(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("QueueSettings"))
    .answers(PUT),
    route!(PatchQueue, "Change settings of a queue", |asked| decode::patch_queue(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("QueuePatch"))
    .answers(QUEUE),
    route!(DeleteQueue, "Forget a queue", |asked| Ok(DeleteQueue {
        queue: decode::queue_path(asked.first())?
    })),
    route!(PauseQueue, "Pause a queue", |asked| decode::pause_queue(asked.first(), asked.body))
        .takes(Takes::Maybe("Later"))
        .answers(QUEUE),
    route!(ResumeQueue, "End a pause", |asked| Ok(ResumeQueue {
        queue: decode::queue_path(asked.first())?
    }))
    .answers(QUEUE),
];
