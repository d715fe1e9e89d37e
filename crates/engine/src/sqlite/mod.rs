//! The rows of a store in a SQLite file. All SQL of the engine is here. It knows no rule of jobs, no journal
//! and no caller.

pub(crate) mod capacity;
pub(crate) mod compact;
pub(crate) mod folder;
pub(crate) mod last_end;
pub(crate) mod pages;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod schema;
pub(crate) mod seal_rows;
pub(crate) mod small_facts;
pub(crate) mod snapshot;
pub(crate) mod sums;
pub(crate) mod watch;
pub(crate) mod write;
