//! The engine in a folder: Tenure's state machine, with SQLite underneath.
//!
//! The way of a call: `call` turns a request into a command and puts it into the `inbox`; the one
//! thread of `state` applies it to the machine, gathers rows and answers in a `batch`, and begins to append the
//! batch to the journal; when that is done `confirm` sends its answers. While it is not, the next batch grows, so that many
//! calls share one append and one fsync (group commit). Every answer, of reads too, leaves after the batch that it saw is durable.
//!
//! The journal is the truth of every store, and rows follow it: the one thread of `disk` writes the rows of several batches in
//! one transaction, and a reader of rows waits until they hold all that was answered. A folder has a journal in files of its
//! own. A shared one ([`Options::journal`]) may be another process's by the time of an answer, so that an answer without rows
//! waits for an append too, which must be begun after the answer was decided, or read. An opening brings the rows up to the
//! journal, and a [`Replica`] follows a journal that another process writes.
//!
//! Memory is the index: [`Embedded::open`] builds the machine anew from the rows. What only rows know (payloads, labels, finished jobs, data of resources) is read by the
//! threads of `readers`, after the commit, and never by the two that everybody waits for; but for
//! the few questions that the machine itself has about finished jobs (`overlay`).
//!
//! Nothing here decides anything about jobs: the rules are in `tenure-machine`.

mod answering;
mod batch;
mod bodies;
mod calls;
pub mod copy;
mod data;
mod engine;
mod error;
mod file;
mod hand_off;
mod inbox;
mod journal;
mod moved;
mod options;
mod shared;
mod state;

pub use copy::CopyFolder;
pub use engine::Embedded;
pub use error::OpenError;
pub use file::schema::FORMAT;
pub use file::snapshot::RowsSnapshot;
pub use file::start::Recovery;
pub use journal::replica::Replica;
pub use moved::MovedEngine;
pub use options::{Durability, Fatal, Location, LostJournal, Options};
pub use tenure_machine::Config;
