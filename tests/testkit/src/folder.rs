//! Folders that are removed with their test.

use std::path::{Path, PathBuf};

/// A folder of its own; it is removed when this is dropped.
#[derive(Debug)]
pub struct TempDir(tempfile::TempDir);

impl TempDir {
    /// A new, empty folder. Panics if it cannot be created.
    #[expect(clippy::new_without_default, reason = "it makes something on disk")]
    pub fn new() -> Self {
        match tempfile::Builder::new().prefix("tenure-test-").tempdir() {
            Ok(dir) => TempDir(dir),
            Err(why) => panic!("no temporary folder: {why}"),
        }
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of `name` in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }
}
