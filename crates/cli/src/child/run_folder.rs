//! The private folder of a run, with the files for CMD, which may hold data of resources.
//!
//! It is removed with the run. If `tenure` is killed, its guard removes it; if both are killed at once, as with a whole
//! cgroup that is out of memory, the next `tenure` of the same user that makes such a folder on the machine does.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Once;

use tempfile::TempDir;

/// Begins the name of a folder that may be swept.
const PREFIX: &str = "tenure-run-";
/// The file on which each process that needs the folder holds a shared lock. The system drops the lock of a process
/// that is killed.
const HELD: &str = "held";
/// How often in a row a new folder may be swept away before it is held.
const SWEPT_TRIES: u32 = 16;

/// A folder that nobody else can read. It is removed, with its content, when this is dropped.
pub struct RunFolder {
    folder: TempDir,
    _held: File,
}

impl RunFolder {
    /// Makes one. The first of a process sweeps what others left.
    ///
    /// # Errors
    /// It could not be made.
    pub fn new() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let among = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&among));
        for _ in 1..SWEPT_TRIES {
            match RunFolder::among(&among) {
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                made => return made,
            }
        }
        RunFolder::among(&among)
    }

    fn among(among: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(among)?;
        File::create(folder.path().join(HELD))?;
        let held = hold(folder.path())?;
        Ok(RunFolder { folder, _held: held })
    }

    /// Its path, which is of no use once this is dropped.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Keeps a folder from being swept for as long as the returned file lives.
///
/// # Errors
/// It is gone: `NotFound`. Or the file system has no locks.
pub fn hold(folder: &Path) -> io::Result<File> {
    let held = File::open(folder.join(HELD))?;
    held.lock_shared()?;
    // The sweeper held the lock until all of it was gone.
    fs::metadata(folder.join(HELD))?;
    Ok(held)
}

/// Removes the folders that nobody holds.
fn sweep(among: &Path) {
    let Ok(entries) = fs::read_dir(among) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        // One without the file is just being made, or is another user's.
        let Ok(held) = File::open(entry.path().join(HELD)) else { continue };
        match held.try_lock() {
            Ok(()) => {
                let _ = fs::remove_dir_all(entry.path());
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn folders_that_nobody_holds_are_swept_and_no_other() {
        let among = tempfile::tempdir().unwrap();
        let ours = RunFolder::among(among.path()).unwrap();
        // The guard holds what its `tenure` left.
        let guarded = RunFolder::among(among.path()).unwrap();
        let guard = hold(guarded.path()).unwrap();
        let left = |folder: RunFolder| folder.folder.keep();
        let (guarded, left) = (left(guarded), left(RunFolder::among(among.path()).unwrap()));
        fs::write(left.join("lease.json"), "{}").unwrap();
        let other = among.path().join("tenure-other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(HELD), "").unwrap();
        // A child that another test has forked holds the locks as well, until it calls exec.
        let sweep_until_gone = |gone: &Path| {
            let until = Instant::now() + Duration::from_secs(30);
            while gone.exists() && Instant::now() < until {
                sweep(among.path());
            }
        };
        sweep_until_gone(&left);
        let there = |path: &Path| path.exists();
        let all = [ours.path(), &guarded, &left, &other].map(there);
        assert_eq!(all, [true, true, false, true]);
        drop(guard);
        sweep_until_gone(&guarded);
        assert_eq!([there(ours.path()), there(&guarded)], [true, false]);
    }

    #[test]
    fn what_was_swept_before_it_was_held_is_not_found() {
        let among = tempfile::tempdir().unwrap();
        let folder = RunFolder::among(among.path()).unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(hold(folder.path()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
