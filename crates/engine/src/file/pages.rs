//! Pages of the file, of which SQLite reads and writes whole ones.

/// The size of a page, which is SQLite's default.
pub(crate) const PAGE_BYTES: u64 = 4_096;
