//! The pages of the file. SQLite reads and writes only whole ones.

/// The size of a page, which is SQLite's default.
pub(crate) const PAGE_BYTES: u64 = 4_096;
