//! The callers' side: turns requests into commands for the state, and adds to its answers the parts that only rows
//! have.

pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod events;
pub(crate) mod kin;
pub(crate) mod lease_call;
pub(crate) mod many;
mod replaced;
pub(crate) mod result_call;
pub(crate) mod schedules;
pub(crate) mod show;
