//! The folder of a store: readable by its user alone, and held by one process at a time.
//!
//! The lock is on the store itself, so that a process that finds another lock file, or none, gets no
//! right to the store. It is a lock of flock(2), which on Linux is independent of SQLite's own locks
//! on the same file (those of fcntl). But closing any descriptor of that file would drop SQLite's
//! locks, so this one stays open until SQLite has closed its own.
//!
//! It must never change the permissions of a folder that it did not make: that folder may be shared on
//! purpose, or be `/tmp`. The files are private in any case.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_journal::file::sync_folder;

use crate::error::OpenError;
use crate::options::Location;
use crate::sqlite::watch::Watch;

const DATABASE: &str = "tenure.db";
const LOCK: &str = "lock";
const SYNCED: &str = "synced";
const JOURNAL: &str = "journal";
const MEMORY_PREFIX: &str = "tenure-memory-";

/// A lock that was just released may still be held for a moment, by a child that this process or the
/// previous one started at that time and that has not called exec yet.
const LOCK_TRIES: u32 = 25;
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// Times in a row that a new folder may be swept away while it is made.
const SWEPT_TRIES: u32 = 16;

/// A folder that this process holds until this is dropped.
pub(crate) struct Folder {
    path: PathBuf,
    /// The store itself, locked where that does not touch SQLite's locks. Open for longer than any
    /// connection: see the module.
    _database: File,
    /// A file that exists only to be locked. Releases before format 3, and systems where a lock on the
    /// store would be SQLite's, see only from it that the folder is in use.
    _lock: File,
    /// Deleted together with the engine.
    temporary: bool,
}

impl Folder {
    /// Makes the folder, if it does not exist, and takes its lock.
    pub(crate) fn open(location: &Location) -> Result<Folder, OpenError> {
        match location {
            Location::Folder(path) => Folder::at(path.clone(), false),
            Location::Memory => {
                sweep(&std::env::temp_dir());
                Folder::temporary(temporary_path)
            }
        }
    }

    /// A folder of a new name. Between the creation of its lock file and the locking, another sweeping process
    /// takes it for an abandoned one and deletes it: then another is made.
    fn temporary(name: impl Fn() -> Result<PathBuf, OpenError>) -> Result<Folder, OpenError> {
        let mut made = Folder::at(name()?, true);
        for _ in 1..SWEPT_TRIES {
            match made {
                Err(OpenError::Folder { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
                    made = Folder::at(name()?, true);
                }
                other => return other,
            }
        }
        made
    }

    fn at(path: PathBuf, temporary: bool) -> Result<Folder, OpenError> {
        let failed = |why| OpenError::Folder { folder: path.clone(), why };
        make_private_folder(&path).map_err(failed)?;
        let lock = private_file(&path.join(LOCK)).map_err(failed)?;
        if !held(&lock).map_err(failed)? {
            return Err(OpenError::Locked { folder: path });
        }
        // SQLite's other files get the permissions of this one.
        let database = private_file(&path.join(DATABASE)).map_err(failed)?;
        if cfg!(target_os = "linux") && !held(&database).map_err(failed)? {
            return Err(OpenError::Locked { folder: path });
        }
        let folder = Folder { path, _database: database, _lock: lock, temporary };
        if !temporary && !folder.was_answered_from() {
            sync_names(&folder.path)
                .map_err(|why| OpenError::Folder { folder: folder.path.clone(), why })?;
        }
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
    pub(crate) fn files(&self) -> Files {
        Files {
            folder: self.path.clone(),
            store: self.database(),
            log: self.log(),
            journal: self.journal(),
            index: self.path.join(format!("{DATABASE}-shm")),
            temporary: self.temporary,
        }
    }
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(format!("{DATABASE}-wal"))
    }
    /// The folder of its journal's segments.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }
    /// The missing file of a store that was here before: the store's file, if the log or the note of the last sync
    /// is left. Called before SQLite opens the file, because SQLite deletes the log of an empty store.
    pub(crate) fn lost_store(&self) -> Option<&'static str> {
        let left = bytes(&self.log()) > 0 || self.was_answered_from();
        (bytes(&self.database()) == 0 && left)
            .then_some("its file \"tenure.db\" is missing or empty")
    }
    /// Whether a store was ready here: only then are its journal and the note of the last sync made.
    pub(crate) fn was_answered_from(&self) -> bool {
        bytes(&self.synced()) > 0 || self.journal().is_dir()
    }
    /// Watches the open files, once SQLite has opened them; nothing for a temporary store: nobody
    /// would look for answered changes in its folder.
    pub(crate) fn watch(&self) -> Result<Option<Watch>, OpenError> {
        if self.temporary { Ok(None) } else { self.watch_always().map(Some) }
    }
    /// Watches the open files of a temporary store too: rows that follow a journal must be there when they are needed.
    pub(crate) fn watch_always(&self) -> Result<Watch, OpenError> {
        let mut files = vec![self.database(), self.log()];
        if self.journal().is_dir() {
            files.push(self.journal());
        }
        if !cfg!(target_os = "linux") {
            files.push(self.path.join(LOCK));
        }
        let failed = |why| OpenError::Folder { folder: self.path.clone(), why };
        Watch::over(files).map_err(failed)
    }
    /// The file with the last sync of the log; see `synced`.
    pub(crate) fn synced(&self) -> PathBuf {
        self.path.join(SYNCED)
    }
    /// Bytes of the store on disk.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(&self.database()) + bytes(&self.log()) + bytes_in(&self.journal())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // The next sweep removes a folder that cannot be removed now.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Paths of the parts of a store.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub folder: PathBuf,
    pub store: PathBuf,
    pub log: PathBuf,
    /// The folder of the journal's segments.
    pub journal: PathBuf,
    /// SQLite's index of the log.
    pub index: PathBuf,
    /// All of it is deleted together with the engine.
    pub temporary: bool,
}

/// Bytes that the file system of a folder has left for this user, and in all. Both are endless if it does
/// not say.
pub(crate) fn file_system(folder: &Path) -> (u64, u64) {
    #[cfg(unix)]
    if let Ok(about) = rustix::fs::statvfs(folder) {
        let size = about.f_frsize;
        return (about.f_bavail.saturating_mul(size), about.f_blocks.saturating_mul(size));
    }
    let _ = folder;
    (u64::MAX, u64::MAX)
}

/// Bytes of a file; 0 if it is missing.
fn bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Bytes of the files in a folder; 0 if the folder is missing.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

/// True if a store is in this folder.
pub(crate) fn has_store(path: &Path) -> bool {
    path.join(DATABASE).is_file()
}

/// Takes a lock; `false` if another process holds it.
fn held(lock: &File) -> io::Result<bool> {
    for _ in 1..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_AGAIN),
            Err(TryLockError::Error(why)) => return Err(why),
        }
    }
    Ok(lock.try_lock().is_ok())
}

fn temporary_path() -> Result<PathBuf, OpenError> {
    let mut random = [0u8; 8];
    tenure_engine_api::ids::fill_random(&mut random)
        .map_err(|why| OpenError::System(why.to_string()))?;
    let name = format!("{MEMORY_PREFIX}{:016x}", u64::from_be_bytes(random));
    Ok(std::env::temp_dir().join(name))
}

/// Removes the remains of killed processes: private folders whose lock nobody holds.
fn sweep(among: &Path) {
    let Ok(entries) = fs::read_dir(among) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(MEMORY_PREFIX) {
            continue;
        }
        // A folder without a lock file is being made right now, or is not ours.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(unix)]
fn make_private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        // A process that made it at the same time made it the same way.
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    // The umask may have removed more than we want.
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// Makes the names on the way to a new store durable: without them a power loss takes all that is in it, however often
/// its files were synced. This process may have made any of these folders, or another one that was killed right after.
fn sync_names(path: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied};
    for parent in fs::canonicalize(path)?.ancestors().skip(1) {
        match sync_folder(parent) {
            // No folder that this user made, or none of a file system on a disk.
            Err(why) if [PermissionDenied, InvalidInput].contains(&why.kind()) => {}
            synced => synced?,
        }
    }
    Ok(())
}

#[cfg(unix)]
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(not(unix))]
fn make_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(not(unix))]
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_folder_that_is_swept_while_it_is_made_is_made_again() {
        let (swept, other) = (temporary_path().unwrap(), temporary_path().unwrap());
        // The path leads nowhere: the folder seems to exist, and its files cannot be made.
        std::os::unix::fs::symlink(other.join("nowhere"), &swept).unwrap();
        let names = RefCell::new(vec![other.clone(), swept.clone()]);
        let made = Folder::temporary(|| Ok(names.borrow_mut().pop().unwrap()));
        let path = made.map(|folder| folder.path().to_owned());
        fs::remove_file(&swept).unwrap();
        assert_eq!(path.unwrap(), other);
    }
}
