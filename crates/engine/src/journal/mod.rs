//! The journal is the truth: answers wait for its appends, and rows are brought up to it. This module knows bytes and
//! numbers, and no table of SQL.

pub(crate) mod confirm;
pub(crate) mod confirming;
pub(crate) mod folder;
pub(crate) mod load;
pub(crate) mod replica;

use tenure_journal::{BadEntry, JournalEntry};
use tenure_machine::{CHANGES_FORMAT, NAMED_CHANGES_FORMAT, SEALED_CHANGES_FORMAT};

/// The body of an entry that holds changes, and its format, if this release reads it.
pub(crate) fn changes_body(entry: &JournalEntry) -> Result<(&[u8], u16), BadEntry> {
    let in_format = |format| entry.body(format).map(|body| (body, format));
    in_format(CHANGES_FORMAT)
        .or_else(|_| in_format(SEALED_CHANGES_FORMAT))
        .or_else(|_| in_format(NAMED_CHANGES_FORMAT))
}
