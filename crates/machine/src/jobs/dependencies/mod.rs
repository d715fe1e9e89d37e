//! Dependencies between jobs: edges, the notification of children, and parents that are let go.
//!
//! The truth is the set of open edges, kept with the parents: each has a child and the `turn` of its waiting. The count
//! at a child (its open edges) and at a parent (its unfinished dependents) change in the same step. One call notifies
//! at most 256 children of an end, later calls and ticks the rest; a child without a notification is dependent.
//!
//! `edges` notifies children, `followers` keeps finished jobs and lets parents go, `parents` looks at parents, `counts`
//! has the caches beside the edges, `rows` stores all of it.

mod counts;
mod edges;
mod followers;
mod parents;
mod rows;

pub(crate) use parents::ParentNow;
pub use rows::{child_key, child_of};
