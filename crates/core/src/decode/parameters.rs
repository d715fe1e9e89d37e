//! Query parameters of each call that has some: the decoders read them, and the routes document them.

/// Parameters of every list without parameters of its own.
pub const PAGE: &[&str] = &["max", "cursor"];
/// Parameters of `GET /v1/audit`.
pub const AUDIT: &[&str] = &["deep"];
/// Parameters of `GET /v1/jobs`.
pub const LIST_JOBS: &[&str] = &[
    "queue",
    "state",
    "kind",
    "label",
    "error",
    "finished_after",
    "finished_before",
    "flow",
    "schedule",
    "full",
    "max",
    "cursor",
];
/// Parameters of `GET /v1/jobs/{id}/result`.
pub const GET_RESULT: &[&str] = &["wait", "seen"];
/// Parameters of `GET /v1/jobs/{id}/parents`.
pub const LIST_PARENTS: &[&str] = &["full", "max", "cursor"];
/// Parameters of `GET /v1/flows/{flow}`.
pub const GET_FLOW: &[&str] = &["wait"];
/// Parameters of `GET /v1/failures`.
pub const LIST_FAILURES: &[&str] = &["queue", "kind", "finished_after", "max"];
/// Parameters of `GET /v1/events`.
pub const READ_EVENTS: &[&str] =
    &["since", "type", "queue", "job", "flow", "schedule", "limit", "pool", "max", "wait"];
/// Parameters of `GET /v1/leases`.
pub const LIST_LEASES: &[&str] = &["queue", "limit", "pool", "worker", "max", "cursor"];
/// Parameters of `PUT /v1/pools/{name}/resources`.
pub const SYNC_RESOURCES: &[&str] = &["force", "version"];
/// Parameters of `GET /v1/schedules`.
pub const LIST_SCHEDULES: &[&str] = &["owner", "full", "max", "cursor"];
/// Parameters of `PUT /v1/schedules`.
pub const SYNC_SCHEDULES: &[&str] = &["owner", "force", "version"];
