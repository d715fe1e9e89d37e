//! `/v1/queues`.

use tenure_core::requests::{
    DeleteQueue, GetQueue, ListQueues, PatchQueue, PauseQueue, PutQueue, ResumeQueue,
};

use super::{Route, route};

pub(super) static ROUTES: &[Route] = &[
    route!(ListQueues, "List queues", 200 "Queues"),
    route!(GetQueue, "Show a queue", 200 "Queue"),
    route!(PutQueue, "Replace all settings of a queue", 200 "Queue", 201 "Queue"),
    route!(PatchQueue, "Change settings of a queue", 200 "Queue"),
    route!(DeleteQueue, "Forget a queue", 204 ""),
    route!(PauseQueue, "Pause a queue", 200 "Queue"),
    route!(ResumeQueue, "End a pause", 200 "Queue"),
];
