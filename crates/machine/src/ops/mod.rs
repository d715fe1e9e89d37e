//! The operations: the effect of each call on a namespace, one file each.
//!
//! An operation first makes all checks that can refuse, and only then changes anything: a refused
//! call changes nothing.

pub(crate) mod after;
pub(crate) mod cancel;
pub(crate) mod extend;
pub(crate) mod flows;
pub(crate) mod follow_ups;
pub(crate) mod jobs;
pub(crate) mod lease;
pub(crate) mod limits;
pub(crate) mod many;
pub(crate) mod patch;
pub(crate) mod pools;
pub(crate) mod push;
pub(crate) mod push_plan;
pub(crate) mod queues;
pub(crate) mod resources;
pub(crate) mod retry;
pub(crate) mod schedules;
pub(crate) mod settle;
pub(crate) mod stats;
