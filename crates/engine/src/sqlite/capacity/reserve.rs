//! Space that is kept for a full disk: a file that is deleted then, so that jobs can
//! be settled, cancelled and deleted although nothing else can be written.
//!
//! It stays when the engine is closed: a start needs room too, for SQLite's index of the log.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::sqlite::folder::private_file;

const RESERVE: &str = "reserve";

#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(crate) fn of(folder: &Path) -> Self {
        Reserve { path: folder.join(RESERVE) }
    }

    /// Its size; zero if the file does not exist.
    pub(crate) fn bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// Makes the file. On an error no file is left.
    pub(crate) fn make(&self, bytes: u64) -> io::Result<()> {
        let made = private_file(&self.path).and_then(|file| fill(&file, bytes));
        if made.is_err() {
            self.release();
        }
        made
    }

    /// Deletes the file; true if it existed.
    pub(crate) fn release(&self) -> bool {
        self.bytes() > 0 && fs::remove_file(&self.path).is_ok()
    }
}

/// Fills a file. A file whose length was only set has no space yet: the space must be allocated, or written.
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(0)?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            done => return done.map_err(io::Error::from),
        }
    }
    io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut &*file).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_space_until_it_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(dir.path());
        assert!(!reserve.release());
        reserve.make(1 << 20).unwrap();
        assert_eq!(reserve.bytes(), 1 << 20);
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let taken = fs::metadata(dir.path().join(RESERVE)).unwrap().blocks() * 512;
            assert!(taken >= 1 << 20, "{taken}");
        }
        assert!(reserve.release());
        assert_eq!(reserve.bytes(), 0);
    }
}
