//! Jobs that wait for others: edges, who is told of an end, and parents that are let go.
//!
//! The truth is the set of open edges, kept with the parents: who waits, and in which turn of its waiting. What a child
//! knows (how many are open) and what a parent knows (how many unfinished jobs name it) is counted in the same step. An
//! end is told to at most 256 children by one call, and the rest by later calls and ticks; a child that is not told yet
//! is dependent.
//!
//! `edges` has who is told, `followers` who is kept and let go, `parents` how a parent is looked at, `counts` what is
//! cached beside the edges, `rows` what of it is stored.

mod counts;
mod edges;
mod followers;
mod parents;
mod rows;

use tenure_core::bounds::TOLD_AT_ONCE;

pub(crate) use parents::ParentNow;
pub use rows::{child_key, child_of};

/// Children that one call tells, and parents that it lets go. Random histories are of few jobs.
pub(crate) const PORTION: usize = if cfg!(test) { 2 } else { TOLD_AT_ONCE };
