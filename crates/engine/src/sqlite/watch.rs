//! Watches that the paths of a store still lead to the files that are open.
//!
//! A folder that is removed, moved or replaced under a running engine can be read and written through
//! the open files as before, but nobody would ever find those writes again. So the engine looks
//! once a second and before an answer that follows a quiet second, and stops when a path leads to
//! another file or to none. It must never take an error of the look itself (a permission, a device
//! that does not answer) for a missing file.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time between two looks while answers are sent, and the quiet time after which a look precedes an answer.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time of a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LookWhen {
    /// At once, in every case.
    Now,
    /// If a second has passed since the last look.
    EverySecond,
    /// As `EverySecond`, and if nothing was answered for a second: an answer is about to be sent.
    BeforeAnswer,
}

/// The files of one store.
#[derive(Debug)]
pub(crate) struct Watch {
    files: Vec<Watched>,
    begun: Instant,
    /// Milliseconds from `begun` to the last look. Starts at zero; written by each look.
    looked: AtomicU64,
    /// Milliseconds from `begun` to the last answer. Starts at zero.
    answered: AtomicU64,
    /// The sentence about a missing file. Set once: no later look takes it back.
    gone: OnceLock<String>,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    file: FileNumber,
}

impl Watch {
    /// Watches the files that are at these paths now.
    pub(crate) fn over(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let watched = |path: PathBuf| {
            let file = FileNumber::of(&fs::metadata(&path)?);
            // A relative path would lead elsewhere after the process changes its directory.
            Ok(Watched { path: std::path::absolute(path)?, file })
        };
        Ok(Watch {
            files: paths.into_iter().map(watched).collect::<io::Result<_>>()?,
            begun: Instant::now(),
            looked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            gone: OnceLock::new(),
        })
    }

    /// Looks, if a look is due; the error says which file is missing.
    pub(crate) fn look(&self, when: LookWhen) -> Result<(), String> {
        if let Some(seen) = self.gone.get() {
            return Err(seen.clone());
        }
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = LOOK_EVERY.as_millis() as u64;
        let long_ago = |then: &AtomicU64| now.saturating_sub(then.load(Ordering::Relaxed)) >= every;
        let due = match when {
            LookWhen::Now => true,
            LookWhen::EverySecond => long_ago(&self.looked),
            LookWhen::BeforeAnswer => long_ago(&self.looked) || long_ago(&self.answered),
        };
        if when == LookWhen::BeforeAnswer {
            self.answered.store(now, Ordering::Relaxed);
        }
        if !due {
            return Ok(());
        }
        self.looked.store(now, Ordering::Relaxed);
        match self.files.iter().find_map(|watched| seen(&watched.path, watched.file)) {
            None => Ok(()),
            Some(seen) => Err(self.gone.get_or_init(|| seen).clone()),
        }
    }
}

/// The fault at a path, unless the same file is still there.
fn seen(path: &Path, file: FileNumber) -> Option<String> {
    match fs::metadata(path) {
        Ok(now) if FileNumber::of(&now) == file => None,
        Ok(_) => Some(format!("{path:?} is another file than the one that this process opened")),
        Err(why)
            if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Some(format!("{path:?} was removed or moved while this process had it open"))
        }
        Err(_) => None,
    }
}

/// The identity of a file, independent of its names: the device and the inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileNumber(u64, u64);

impl FileNumber {
    #[cfg(unix)]
    fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        FileNumber(meta.dev(), meta.ino())
    }

    /// Here only a path without a file is noticed.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        FileNumber(0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &tempfile::TempDir, name: &str) -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, name).unwrap();
        path
    }

    #[test]
    fn a_written_file_is_told_apart_from_a_replaced_one() {
        let dir = tempfile::tempdir().unwrap();
        let (here, other) = (file(&dir, "here"), file(&dir, "other"));
        let watch = Watch::over([here.clone()]).unwrap();
        fs::write(&here, "longer than before").unwrap();
        assert_eq!(watch.look(LookWhen::Now), Ok(()));
        fs::rename(&other, &here).unwrap();
        let said = watch.look(LookWhen::Now).unwrap_err();
        assert!(said.contains("is another file"), "{said}");
    }

    #[test]
    fn what_was_gone_once_stays_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (here, away) = (file(&dir, "here"), dir.path().join("away"));
        let watch = Watch::over([here.clone()]).unwrap();
        fs::rename(&here, &away).unwrap();
        assert!(watch.look(LookWhen::Now).unwrap_err().contains("was removed or moved"));
        fs::rename(&away, &here).unwrap();
        assert!(watch.look(LookWhen::EverySecond).is_err());
    }
}
