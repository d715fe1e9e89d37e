//! A snapshot: the start of a load, once the journal no longer has its first entries.

use crate::{JournalEntry, Position, ReadError};

/// The whole content of a store after one entry, in parts that are read in order.
///
/// The parts have the form of entries: they are numbered from 1, and each has the checksum of the one before. The
/// caller defines their bodies. So the checksum of the last part covers all of them.
pub trait Snapshot: Send {
    /// The last entry that it contains. The journal continues behind it.
    fn end(&self) -> Position;

    /// The next part; `None` after the last. May block.
    ///
    /// # Errors
    /// A part is damaged or missing, the journal cannot be reached, or another snapshot replaced this one. The caller
    /// must discard all earlier parts.
    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError>;
}
