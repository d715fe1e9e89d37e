//! The journal of a store: entries of bytes, each with a number, a checksum and the checksum of the entry before.
//!
//! An engine writes each batch as one [`JournalEntry`], and sends the answers of the batch once [`Journal::append`]
//! answers [`Appended::Done`]. So any process can rebuild every answered change from the entries. Each implementation
//! decides how it keeps entries, and which process may append.
//!
//! This crate knows bytes and numbers. It must never know a rule of jobs, a table of SQL, a key of Redis or a
//! server.

mod entry;
pub mod file;
mod hears;
pub mod memory;
pub mod packed;
pub mod priority;
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
    /// Appends this entry, which must be the next one.
    Entry {
        /// Its number and bytes.
        entry: JournalEntry,
        /// The longest ttl of any lease so far. After a loss, the next leader waits for that time.
        ttl: Duration,
        /// True if the batch of this entry grants leases.
        grants: bool,
    },
    /// No entry: the answer only proves that the journal has all entries up to here, and still takes entries of this
    /// process. A repeat is done even if the journal has more entries by then.
    Nothing(Position),
}

impl Append {
    /// The end of the journal once this append is done.
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
    /// The journal has the entry. A repeat gets the same answer.
    Done,
    /// Another process appends now, or entry `n` has different content: this process must stop appending.
    Fenced,
    /// This is not the journal that the process opened, or the program that keeps it was restarted.
    Moved,
    /// The append does not follow the last entry of the journal, which has this number.
    At(u64),
    /// The outcome is unknown: the caller must retry this append, and send nothing else.
    Unsure(String),
    /// Nothing was written, because there is no room.
    Full,
    /// The journal can no longer be written. The outcome of this append is unknown.
    Broken(String),
    /// The journal was closed, and takes no more appends. The outcome of this one is unknown.
    Ended,
}

/// Reasons why entries cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The journal cannot be reached, or its answer makes no sense.
    #[error("the journal cannot be read: {0}")]
    Away(String),
    /// The journal holds different bytes from those that were appended.
    #[error("entry {number} of the journal is not what was appended: {why}")]
    Damaged {
        /// The number that the entry should have.
        number: u64,
        /// The fault that was found.
        why: BadEntry,
    },
    /// The journal knows that an entry was appended, but does not have it.
    #[error("the journal has no entry {number}, and entry {last} was appended; entries were lost")]
    Missing {
        /// The number of the first missing entry.
        number: u64,
        /// The last entry that was appended.
        last: u64,
    },
    /// The journal begins behind this entry: earlier content is only in its snapshot.
    #[error("entry {number} of the journal is in its snapshot alone")]
    InSnapshot {
        /// The number of the requested entry.
        number: u64,
    },
    /// Another snapshot replaced this one during the read.
    #[error("the journal got another snapshot while this one was read")]
    Turned,
    /// The snapshot is damaged, or a part of it is missing.
    #[error("the snapshot of the journal cannot be read: {0}")]
    Snapshot(String),
}

/// Facts about the store of a journal, for its operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFacts {
    /// One word for the place where it is kept, such as `redis`.
    pub kind: &'static str,
    /// Size in bytes, including snapshots, as far as this process knows.
    pub bytes: u64,
}

/// A journal that one process has opened for appending.
pub trait Journal: Send + Sync + 'static {
    /// Begins an append, and returns without waiting for the answer, which goes to `hears`.
    ///
    /// Appends arrive in the order in which they are begun, unless one is lost. A repeat of an append gets the same
    /// answer as the first, so the caller retries the same append after [`Appended::Unsure`]. The implementation paces
    /// this: it answers `Unsure` only after it has retried as long as it sees fit.
    fn append(&self, append: Append, hears: Hears);

    /// The entries after the number `after`, in order, in a batch of reasonable size; empty at the end. May block.
    ///
    /// # Errors
    /// The journal cannot be reached, or an entry is damaged, missing, or only in the snapshot.
    fn read(&self, after: u64) -> Result<Vec<JournalEntry>, ReadError>;

    /// Begins to read the snapshot, if there is one. May block.
    ///
    /// # Errors
    /// The journal cannot be reached.
    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, ReadError>;

    /// The kind and size of the store, without a request to it.
    fn facts(&self) -> StoreFacts;
}
