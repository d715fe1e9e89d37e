//! Writes of rows: batches of the engine, entries of a journal, and the rows of a snapshot.

pub(crate) mod commit;
pub(crate) mod disk;
pub(crate) mod merge;
pub(crate) mod streams;
pub(crate) mod synced;
pub(crate) mod upkeep;
pub(crate) mod writer;
pub(crate) mod written;
