//! The engine in a folder: Tenure's state machine, with SQLite underneath.
//!
//! The way of a call: `call` turns a request into a command and puts it into the `inbox`; the one
//! thread of `state` applies it to the machine, and gathers rows and answers in a `batch`; the one
//! thread of `disk` writes the batch in one transaction and commits it; `sync` makes that durable and
//! sends its answers. While it runs the next batch grows, so that many calls share one fsync (group
//! commit).
//! Every answer, of reads too, leaves after the batch that it saw is durable.
//!
//! What makes a batch durable is the journal ([`Options::journal`]). In a folder the rows are the truth, and `sync`
//! syncs their log; in memory nothing is waited for. A journal that appends is the truth itself, and the rows are a copy
//! of it: the answers of a batch (`confirm`) go out when its append is done, and its rows are written after that; a
//! reader of rows waits until they hold all that was answered. Another process may own the store by then, so an answer without
//! rows waits for an append too, which must be begun after the answer was decided, or read. `load` brings the rows up to
//! the journal at an opening, and a [`Replica`] follows a journal that another process writes.
//!
//! Memory is the index, the rows are the truth: [`Embedded::open`] builds the machine anew from
//! them. What only rows know (payloads, labels, finished jobs, data of resources) is read by the
//! threads of `readers`, after the commit, and never by the two that everybody waits for; but for
//! the few questions that the machine itself has about finished jobs (`overlay`).
//!
//! Nothing here decides anything about jobs: the rules are in `tenure-machine`.

mod answering;
mod batch;
mod bodies;
mod calls;
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

pub use engine::Embedded;
pub use error::OpenError;
pub use file::copy::CopyFolder;
pub use file::schema::FORMAT;
pub use file::snapshot::RowsSnapshot;
pub use file::start::Recovery;
pub use journal::replica::Replica;
pub use moved::MovedEngine;
pub use options::{Durability, Fatal, Location, LostJournal, Options};
pub use tenure_machine::Config;
