//! Reasons why a store cannot be opened: typed, and each message says what to do next.

use std::path::{Path, PathBuf};

use tenure_core::sentences::PausedStore;
use tenure_core::time::Moment;

/// A folder in the notation of a command.
const ADDRESS: &str = "file:PATH";

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "another process has the store in {folder:?} open; stop it, or use its address \
         (TENURE_URL) instead of the folder"
    )]
    Locked {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The folder cannot be made, read or written.
    #[error(
        "the folder {folder:?} cannot be used: {why}; name a folder on a local disk that \
         this user may write"
    )]
    Folder {
        folder: PathBuf,
        #[source]
        why: std::io::Error,
    },
    /// It was written by a newer release.
    #[error(
        "the store in {folder:?} has format {format}, and this release knows up to \
         {known}; open it with tenure {written_by} or newer"
    )]
    Newer {
        folder: PathBuf,
        format: i64,
        /// The format that this release writes.
        known: i64,
        /// The release that wrote it.
        written_by: String,
    },
    /// The file exists, and is not a store of tenure.
    #[error("the file \"tenure.db\" in {folder:?} is not a store of tenure; name another folder")]
    Foreign {
        /// The folder of the file.
        folder: PathBuf,
    },
    /// One of its files is gone.
    #[error("{}", incomplete(.folder, .lacks, *.synced))]
    Incomplete {
        folder: PathBuf,
        /// The missing file, and how it went missing.
        lacks: &'static str,
        /// The last commit that was synced, and the time of that sync, if the folder says so.
        synced: Option<(u64, Moment)>,
    },
    /// SQLite cannot read or write it.
    #[error(
        "the store in {folder:?} cannot be opened: {why}; if the disk is well, restore the \
         folder from a backup"
    )]
    Store {
        folder: PathBuf,
        /// The message of SQLite.
        why: String,
    },
    /// A row is not of the format.
    #[error(
        "the store in {folder:?} is damaged: {why}; restore the folder from a backup, or \
         go on without what cannot be read: --accept-loss"
    )]
    Row {
        folder: PathBuf,
        /// The row, and its fault.
        why: String,
    },
    /// Commits that were synced are not there.
    #[error(
        "the store in {folder:?} has lost what was written to it: it ends at commit \
         {commit}, and up to commit {synced}{} all was synced and may have been \
         answered: the last {} are missing, because the journal or the log is damaged or the \
         folder is an older copy; restore it, or go on without them: --accept-loss",
        .at.map(|at| format!(" ({at})")).unwrap_or_default(),
        .synced.saturating_sub(*.commit)
    )]
    Shorter {
        folder: PathBuf,
        /// The last commit that is there.
        commit: u64,
        /// The last commit that was synced.
        synced: u64,
        /// The time of that sync, if the folder says so.
        at: Option<Moment>,
    },
    /// More jobs cannot be read than a damaged page explains.
    #[error(
        "{jobs} jobs of the store in {folder:?} cannot be read; restore the folder from a \
         backup, or go on without what cannot be read: --accept-loss"
    )]
    Unreadable {
        folder: PathBuf,
        /// Number of unreadable jobs in the store.
        jobs: usize,
    },
    /// Its contents are sealed with a key that was not given.
    #[error(
        "the store in {folder:?} is sealed with the key {key}, which is not here; name the file that has it: \
         --seal-key-file"
    )]
    Sealed {
        folder: PathBuf,
        /// The name of the key.
        key: String,
    },
    /// There is no store.
    #[error(
        "there is no store in {folder:?}; name the folder that `tenure serve` has as its \
         store"
    )]
    Missing {
        /// The folder without a store.
        folder: PathBuf,
    },
    /// It was copied elsewhere, or is being copied.
    #[error("{}", frozen(.folder, .to, *.whole))]
    Frozen {
        folder: PathBuf,
        /// The address of the copy, in the form that is shown.
        to: String,
        /// The copy is whole.
        whole: bool,
    },
    /// The journal cannot be read, or does not let this process append.
    #[error("the journal of the store cannot be used: {0}")]
    Journal(String),
    /// The rows that are here are no copy of the journal.
    #[error(
        "the rows in {folder:?} are no copy of the journal: {why}; remove the folder, it is made anew from the journal"
    )]
    OtherRows {
        folder: PathBuf,
        /// The difference between the rows and the journal.
        why: String,
    },
    /// The engine was closed.
    #[error("the store was closed before its rows could be read")]
    Closed,
    /// It is an unfinished copy.
    #[error("{}", unfinished(.folder))]
    Unfinished {
        /// The folder of the copy.
        folder: PathBuf,
    },
    /// The system gave no thread or no random numbers.
    #[error("the engine cannot be started: {0}")]
    System(String),
}

fn incomplete(folder: &Path, lacks: &str, synced: Option<(u64, Moment)>) -> String {
    let lost = match synced {
        Some((commit, at)) => {
            format!("what was written to it up to commit {commit} ({at}) is not there any more")
        }
        None => "what was written to it is not there any more".to_owned(),
    };
    format!(
        "the store in {folder:?} is not whole: {lacks}, and {lost}; put the file back, or restore the whole \
         folder from a backup or a copy; to go on with what is left, which may be nothing: --accept-loss"
    )
}

fn frozen(folder: &Path, to: &str, whole: bool) -> PausedStore {
    PausedStore::Source {
        place: place(folder),
        address: ADDRESS.to_owned(),
        to: to.to_owned(),
        whole,
    }
}

fn unfinished(folder: &Path) -> PausedStore {
    PausedStore::Target { place: place(folder), address: ADDRESS.to_owned() }
}

fn place(folder: &Path) -> String {
    format!("the store in {folder:?}")
}
