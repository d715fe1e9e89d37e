//! Why a store cannot be opened: typed, and each says what to do next.

use std::fmt;
use std::path::PathBuf;

use tenure_core::time::Moment;

/// Why a store cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder cannot be made, read or written.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// It was written by a newer release.
    Newer {
        /// The folder.
        folder: PathBuf,
        /// Its format.
        format: i64,
        /// The format that this release writes.
        known: i64,
        /// The release that wrote it.
        written_by: String,
    },
    /// The file is there and is none of ours.
    Foreign {
        /// The folder.
        folder: PathBuf,
    },
    /// SQLite cannot read or write it.
    Store {
        /// The folder.
        folder: PathBuf,
        /// What it said.
        why: String,
    },
    /// A row is not of the format.
    Row {
        /// The folder.
        folder: PathBuf,
        /// Which.
        why: String,
    },
    /// Commits that were synced are not there.
    Shorter {
        /// The folder.
        folder: PathBuf,
        /// The last commit that is there.
        commit: u64,
        /// The last commit that was synced.
        synced: u64,
        /// When that was.
        at: Moment,
    },
    /// More jobs cannot be read than a damaged page explains.
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// How many.
        jobs: usize,
    },
    /// There is no store.
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// It was copied elsewhere, or is being copied.
    Frozen {
        /// The folder.
        folder: PathBuf,
        /// Where to, as it is shown.
        to: String,
        /// The copy is whole.
        whole: bool,
    },
    /// It is an unfinished copy.
    Unfinished {
        /// The folder.
        folder: PathBuf,
    },
    /// The system gave no thread or no random numbers.
    System(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Locked { folder } => write!(
                f,
                "another process has the store in {folder:?} open; stop it, or use its address \
                 (TENURE_URL) instead of the folder"
            ),
            OpenError::Folder { folder, why } => write!(
                f,
                "the folder {folder:?} cannot be used: {why}; name a folder on a local disk that \
                 this user may write"
            ),
            OpenError::Newer { folder, format, known, written_by } => write!(
                f,
                "the store in {folder:?} has format {format}, and this release knows up to \
                 {known}; open it with tenure {written_by} or newer"
            ),
            OpenError::Foreign { folder } => write!(
                f,
                "the file \"tenure.db\" in {folder:?} is not a store of tenure; name another folder"
            ),
            OpenError::Store { folder, why } => write!(
                f,
                "the store in {folder:?} cannot be opened: {why}; if the disk is well, restore the \
                 folder from a backup"
            ),
            OpenError::Row { folder, why } => write!(
                f,
                "the store in {folder:?} is damaged: {why}; restore the folder from a backup, or \
                 go on without what cannot be read: --accept-loss"
            ),
            OpenError::Shorter { folder, commit, synced, at } => write!(
                f,
                "the store in {folder:?} has lost what was written to it: it ends at commit \
                 {commit}, and up to commit {synced} ({at}) all was synced and may have been \
                 answered: the last {} are missing, because the log is damaged or the folder is an \
                 older copy; restore it, or go on without them: --accept-loss",
                synced.saturating_sub(*commit)
            ),
            OpenError::Unreadable { folder, jobs } => write!(
                f,
                "{jobs} jobs of the store in {folder:?} cannot be read; restore the folder from a \
                 backup, or go on without what cannot be read: --accept-loss"
            ),
            OpenError::Missing { folder } => write!(
                f,
                "there is no store in {folder:?}; name the folder that `tenure serve` has as its \
                 store"
            ),
            OpenError::Frozen { folder, to, whole: true } => write!(
                f,
                "the store in {folder:?} was copied to {to} and is frozen since; use the copy, or \
                 see `tenure copy --help` on --thaw"
            ),
            OpenError::Frozen { folder, to, whole: false } => write!(
                f,
                "the store in {folder:?} is frozen, because a copy of it to {to} was begun; finish \
                 that by the same `tenure copy` as before, or give it up: tenure copy --thaw --from \
                 'file:PATH'"
            ),
            OpenError::Unfinished { folder } => write!(
                f,
                "the store in {folder:?} is an unfinished copy; finish it by the same `tenure copy` \
                 as before, or give it up: tenure copy --thaw --to 'file:PATH'"
            ),
            OpenError::System(why) => write!(f, "the engine cannot be started: {why}"),
        }
    }
}
impl std::error::Error for OpenError {}
