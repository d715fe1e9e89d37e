//! Backups: all rows of a store at one entry, in one file.
//!
//! A file is a snapshot ([`RowsSnapshot`](crate::RowsSnapshot)) between a head and an end: the parts of the snapshot have
//! the form of journal entries, and so have head and end. Each is packed as the journal in Redis packs it, and has a
//! checksum. A restore is a copy whose source is such a file. See docs/decisions/173-a-restore-is-a-copy-from-a-file.md.

mod file;
mod read;
mod restore;
mod write;

pub use file::{BACKUP_FORMAT, BackupError, BackupHead};
pub use read::{BackupReader, CheckedBackup, check, check_file};
pub use restore::{CheckedFile, NotRestored, RestorePlan, RestoreReport, restore};
pub use write::BackupWriter;
