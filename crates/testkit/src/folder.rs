//! Folders that go away with their test.

use std::path::{Path, PathBuf};

/// A folder of its own; it is removed when this is dropped.
#[derive(Debug)]
pub struct TempDir(tempfile::TempDir);

impl TempDir {
    /// A new, empty folder. Panics if there is no room for one.
    #[expect(clippy::new_without_default, reason = "it makes something on disk")]
    pub fn new() -> Self {
        match tempfile::Builder::new().prefix("tenure-test-").tempdir() {
            Ok(dir) => TempDir(dir),
            Err(why) => panic!("no temporary folder: {why}"),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }
}
