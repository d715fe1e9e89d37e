//! The form of a backup file: a first line, then entries in frames: a head, the parts of a snapshot, an end.

use serde::{Deserialize, Serialize};
use tenure_core::time::{Moment, Span};

/// The format of the files that this release writes, and the latest that it reads.
pub const BACKUP_FORMAT: u32 = 1;

/// The first line up to the number of the format. It is text, so that `head -1` and `file` show what it is.
pub(super) const FIRST_WORDS: &str = "tenure backup ";
/// The longest first line: words, a number of 10 digits, a line break.
pub(super) const FIRST_LINE_MAX: usize = FIRST_WORDS.len() + 11;

/// The format of the body of the head, as an entry says it. No part of a snapshot has it.
pub(super) const HEAD_ENTRY: u16 = 0xb001;
/// The same of the end.
pub(super) const END_ENTRY: u16 = 0xb002;

/// The head of a backup. It has no secrets, unlike the parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BackupHead {
    /// The name of the backup, which no other has.
    pub backup: String,
    /// When it was begun, by the clock of the store.
    pub made_at: Moment,
    /// The release that wrote it.
    pub release: String,
    /// The format of the rows in its parts.
    pub rows: u16,
    /// The names of the keys that its contents are sealed with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<String>,
    /// All jobs in it, finished ones too.
    pub jobs: u64,
    /// The longest ttl of any lease that the store is known to have granted: after the backup it may have granted more
    /// of them.
    pub largest_ttl: Span,
}

/// The end of a backup, behind its last part.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct BackupEnd {
    /// The checksum of the head. That of the last part is in the entry itself.
    pub head: u64,
}

/// Why a file is not a whole backup that this release reads.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It begins with other bytes.
    #[error("it is not a backup of Tenure")]
    Foreign,
    /// A newer release wrote it.
    #[error("a newer release of Tenure wrote it")]
    Newer,
    /// Its bytes have changed since they were written.
    #[error("it is damaged at byte {at}: {why}")]
    Damaged {
        /// Where the frame begins.
        at: u64,
        /// The fault that was found.
        why: String,
    },
    /// Its end is missing.
    #[error("it ends at byte {at}, before its last part: it was cut off, or never whole")]
    Cut {
        /// The bytes that are there.
        at: u64,
    },
    /// It is a pipe, a folder or a device.
    #[error("it is no regular file")]
    Irregular,
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unread(#[from] std::io::Error),
}

impl BackupError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            BackupError::Foreign => "name a file that `tenure backup` has written",
            BackupError::Newer => {
                "use the release that wrote it, or a newer one; its first line names the format"
            }
            BackupError::Damaged { .. } | BackupError::Cut { .. } => {
                "use another backup, or an earlier copy of this one"
            }
            BackupError::Irregular => {
                "name a file on a disk: a restore reads it twice, first to check it, then to restore it"
            }
            BackupError::Unread(_) => "see that the file can be read, then repeat the command",
        }
    }
}
