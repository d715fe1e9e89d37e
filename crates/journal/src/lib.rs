//! The journal of a store: entries of bytes, each with a number, a checksum and the checksum of the entry before.
//!
//! An engine whose journal appends writes each batch to it as one [`JournalEntry`], and sends the answers of the
//! batch when [`Journal::append`] has said [`Appended::Done`]. So whatever was answered can be made again from the
//! entries, in any process. Each implementation decides how entries are kept, and which process may append.
//!
//! This crate knows bytes and numbers. It must never know a rule of jobs, a table of SQL, a key of Redis or a
//! server.

mod entry;
pub mod file;
mod hears;
pub mod memory;
mod snapshot;
pub mod threads;
mod volatile;

use std::time::Duration;

pub use entry::{BadEntry, JournalEntry, Position};
pub use hears::{Hears, Reply};
pub use snapshot::Snapshot;
pub use volatile::VolatileJournal;

/// A message to a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Append {
    /// This entry is to be the next.
    Entry {
        /// Its number and bytes.
        entry: JournalEntry,
        /// The longest time to live of any lease so far. Who takes the store over after a loss waits this long.
        ttl: Duration,
        /// It grants leases.
        grants: bool,
    },
    /// No entry: the answer only proves that the journal has all up to here, and that it still takes entries of this
    /// process. A repeat may find more behind it, and is done all the same.
    Nothing(Position),
}

impl Append {
    /// Where the journal ends once this is done.
    pub fn end(&self) -> Position {
        match self {
            Append::Entry { entry, .. } => entry.position(),
            Append::Nothing(end) => *end,
        }
    }
}

/// The answer of a journal to an append.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Appended {
    /// It is there. Also the answer to a repeat.
    Done,
    /// Another process appends now, or entry `n` has another content: this process is to append nothing more.
    Deposed,
    /// This is not the journal that the process opened, or not the same run of the program that keeps it.
    Moved,
    /// The append does not follow on the last entry, which is this one.
    At(u64),
    /// Nobody knows whether it happened: the same append is to be sent again, and nothing else.
    Unsure(String),
    /// Nothing was written, because there is no room.
    Full,
    /// It cannot be written any more. Whether this one happened is not known.
    Broken(String),
    /// The journal was closed, and takes no more. Whether this one happened is not known.
    Ended,
}

/// Why entries cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The journal cannot be reached, or says something that is no answer.
    #[error("the journal cannot be read: {0}")]
    Away(String),
    /// It holds other bytes than were appended.
    #[error("entry {number} of the journal is not what was appended: {why}")]
    Damaged {
        /// The number that the entry should have.
        number: u64,
        /// The fault that was found.
        why: BadEntry,
    },
    /// It knows that an entry was appended, and does not have it.
    #[error("the journal has no entry {number}, and entry {last} was appended; entries were lost")]
    Missing {
        /// The number of the first that is missing.
        number: u64,
        /// The last that was appended.
        last: u64,
    },
    /// It begins behind this entry: what it had up to there is in its snapshot alone.
    #[error("entry {number} of the journal is in its snapshot alone")]
    InSnapshot {
        /// The number of the entry that was asked for.
        number: u64,
    },
    /// Another snapshot has taken the place of this one while it was read.
    #[error("the journal got another snapshot while this one was read")]
    Turned,
    /// The snapshot is damaged, or a part of it is missing.
    #[error("the snapshot of the journal cannot be read: {0}")]
    Snapshot(String),
}

/// The store that a journal is, for who operates it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFacts {
    /// One word for what it is kept in.
    pub kind: &'static str,
    /// How many bytes it takes there, snapshots included, as far as that is known here.
    pub bytes: u64,
}

/// A journal that appends, opened by one process.
pub trait Journal: Send + Sync + 'static {
    /// Begins to append, and returns without waiting for the answer, which `hears` is told.
    ///
    /// Appends arrive in the order in which they are begun, unless one is lost. A repeat of an append is answered as
    /// the first time, so the caller sends the same one again when the answer is [`Appended::Unsure`]. An
    /// implementation paces this: it answers `Unsure` only after it has tried for as long as it sees fit.
    fn append(&self, append: Append, hears: Hears);

    /// The entries that follow on the one with the number `after`, in their order, as many as are sensible at once;
    /// none at the end. May block.
    ///
    /// # Errors
    /// The journal cannot be reached, an entry is damaged or missing, or is in the snapshot alone.
    fn read(&self, after: u64) -> Result<Vec<JournalEntry>, ReadError>;

    /// Begins to read the snapshot, if there is one. May block.
    ///
    /// # Errors
    /// The journal cannot be reached.
    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, ReadError>;

    /// What is kept, and where; nothing is asked.
    fn facts(&self) -> StoreFacts;
}
