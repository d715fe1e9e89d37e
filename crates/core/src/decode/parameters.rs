//! The query parameters of each call that has some: those that are read, and those that its route documents.

/// Of every list that has no other.
pub const PAGE: &[&str] = &["max", "cursor"];
/// Of `GET /v1/audit`.
pub const AUDIT: &[&str] = &["deep"];
/// Of `GET /v1/jobs`.
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
/// Of `GET /v1/jobs/{id}/result`.
pub const GET_RESULT: &[&str] = &["wait", "seen"];
/// Of `GET /v1/jobs/{id}/parents`.
pub const LIST_PARENTS: &[&str] = &["full", "max", "cursor"];
/// Of `GET /v1/flows/{flow}`.
pub const GET_FLOW: &[&str] = &["wait"];
/// Of `GET /v1/failures`.
pub const LIST_FAILURES: &[&str] = &["queue", "kind", "finished_after", "max"];
/// Of `GET /v1/events`.
pub const READ_EVENTS: &[&str] =
    &["since", "type", "queue", "job", "flow", "schedule", "limit", "pool", "max", "wait"];
/// Of `GET /v1/leases`.
pub const LIST_LEASES: &[&str] = &["queue", "limit", "pool", "worker", "max", "cursor"];
/// Of `PUT /v1/pools/{name}/resources`.
pub const SYNC_RESOURCES: &[&str] = &["force", "version"];
/// Of `GET /v1/schedules`.
pub const LIST_SCHEDULES: &[&str] = &["owner", "full", "max", "cursor"];
/// Of `PUT /v1/schedules`.
pub const SYNC_SCHEDULES: &[&str] = &["owner", "force", "version"];
