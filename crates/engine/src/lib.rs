//! The engine in a folder: Tenure's state machine, with SQLite underneath.
//!
//! The way of a call: `call` turns a request into a command and puts it into the `inbox`; the one thread of `state`
//! applies it to the machine, gathers rows and answers in a `batch`, and begins to append the batch to the journal;
//! when that is done `confirm` sends its answers. Meanwhile the next batch grows, so that many calls share one append
//! and one fsync (group commit). Every answer, also to a read, leaves after the batch that it saw is durable.
//!
//! The journal is the truth of every store, and rows follow it: the one thread of `disk` writes the rows of several
//! batches in one transaction, and a reader of rows waits until they hold all answered changes. A folder has a journal
//! in files of its own. A shared one ([`Options::journal`]) may belong to another process by the time of an answer, so
//! an answer without rows waits for an append too, which must begin after the answer was decided, or read. An opening
//! brings the rows up to the journal, and a [`Replica`] follows a journal that another process writes.
//!
//! Memory is the index: [`Embedded::open`] rebuilds the machine from the rows. Data that only rows have (payloads,
//! labels, finished jobs, data of resources) is read by the threads of `readers`, after the commit, and never by the
//! two threads that all calls wait for, except for the few questions of the machine itself about finished jobs
//! (`overlay`).
//!
//! No rule of jobs is here: the rules are in `tenure-machine`. It must never know a key of Redis or another server.

mod answering;
pub mod backup;
mod batch;
mod bodies;
mod calls;
pub mod copy;
mod data;
mod engine;
mod error;
mod hand_off;
mod inbox;
mod journal;
mod moved;
mod options;
mod seal;
mod shared;
mod sqlite;
mod state;

pub use copy::CopyFolder;
pub use engine::Embedded;
pub use error::OpenError;
pub use journal::replica::Replica;
pub use moved::MovedEngine;
pub use options::{Durability, Fatal, Location, LostJournal, Options};
pub use seal::{Seal, SealKeyError};
pub use sqlite::scan::start::Recovery;
pub use sqlite::schema::FORMAT;
pub use sqlite::snapshot::RowsSnapshot;
pub use tenure_machine::Config;
