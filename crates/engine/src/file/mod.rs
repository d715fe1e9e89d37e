//! The rows of a store in a SQLite file. All SQL of the engine is here. It knows no rule of jobs, no journal
//! and no caller.

pub(crate) mod ahead;
pub(crate) mod audit;
pub(crate) mod commit;
pub(crate) mod compact;
pub(crate) mod damage;
pub(crate) mod disk;
pub(crate) mod event_jobs;
pub(crate) mod event_pages;
pub(crate) mod failures;
pub(crate) mod finished;
pub(crate) mod folder;
pub(crate) mod growth;
pub(crate) mod kin;
pub(crate) mod lists;
pub(crate) mod merge;
pub(crate) mod overlay;
pub(crate) mod pages;
pub(crate) mod readers;
pub(crate) mod reserve;
pub(crate) mod restored;
pub(crate) mod room;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod small_facts;
pub(crate) mod snapshot;
pub(crate) mod start;
pub(crate) mod streams;
pub(crate) mod sums;
pub(crate) mod synced;
pub(crate) mod upkeep;
pub(crate) mod walk;
pub(crate) mod watch;
pub(crate) mod writer;
pub(crate) mod written;
