//! A snapshot: what a load begins with, where the journal no longer has its first entries.

use crate::{JournalEntry, Position, ReadError};

/// All that a store held after one entry, in parts that are read one after the other.
///
/// The parts have the form of entries: they are numbered from 1, each has the checksum of the one before, and their
/// bodies are the caller's. So the checksum of the last part is one over all of them.
pub trait Snapshot: Send {
    /// The last entry that it contains. The journal goes on behind it.
    fn end(&self) -> Position;

    /// The next part; `None` behind the last. May block.
    ///
    /// # Errors
    /// A part is damaged or missing, the journal cannot be reached, or another snapshot has taken the place of this one.
    /// Nothing is to be made of the parts that came before.
    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError>;
}
