//! The callers' side: what is asked becomes a command for the state, and what it answers is shown with what only rows know.

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
