//! Shrinks a store's file: gives unused pages back to the file system.
//!
//! In a store that is made for it, SQLite keeps a pointer to the parent of each page, so that a page at the end of the
//! file can be moved into a hole. It must never do all of this at once while a caller waits.

use rusqlite::Connection;

use crate::sqlite::folder::{Folder, file_system};
use crate::sqlite::pages::PAGE_BYTES;

/// `PRAGMA auto_vacuum` of a store that gives pages back on request.
const INCREMENTAL: i64 = 2;

/// An older store without that setting is rebuilt when it is opened, if it has at most this many bytes: that takes
/// about two seconds, and free space for two more copies of it.
const ANEW_BYTES_MAX: u64 = 256 << 20;
const ANEW_TIMES: u64 = 3;

/// True if pages can be given back.
pub(crate) fn is_shrinkable(conn: &Connection) -> rusqlite::Result<bool> {
    let mode: i64 = conn.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    Ok(mode == INCREMENTAL)
}

/// The number of unused pages in the store.
pub(crate) fn unused_pages(conn: &Connection) -> rusqlite::Result<u64> {
    let pages: i64 = conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    Ok(pages.unsigned_abs())
}

/// Gives at most this many pages back, as a transaction of its own.
pub(crate) fn give_pages(conn: &Connection, pages: u32) -> rusqlite::Result<()> {
    let mut step = conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = step.query([])?;
    // Each page is a row: a caller that stops reading stops the step.
    while rows.next()?.is_some() {}
    Ok(())
}

/// Rebuilds an older store so that it can give pages back, if that is quick and there is room for it.
/// Otherwise the store goes on as it is, and new rows use the free pages.
pub(crate) fn make_shrinkable(conn: &Connection, folder: &Folder) -> rusqlite::Result<()> {
    if is_shrinkable(conn)? {
        return Ok(());
    }
    let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let bytes = pages.unsigned_abs() * PAGE_BYTES;
    if bytes > ANEW_BYTES_MAX || file_system(folder.path()).0 / ANEW_TIMES < bytes {
        return Ok(());
    }
    // The whole store goes through a temporary one, which must not be in memory.
    conn.execute_batch("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Location, Options};
    use crate::sqlite::schema;

    #[test]
    fn a_store_of_an_older_release_becomes_one_that_can_shrink() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new(Location::Folder(dir.path().join("s")));
        let folder = Folder::open(&options.location).unwrap();
        let old = Connection::open(folder.database()).unwrap();
        old.execute_batch("PRAGMA journal_mode = WAL").unwrap_or_default();
        old.execute_batch(schema::STEPS[0]).unwrap();
        old.execute_batch("PRAGMA user_version = 1; PRAGMA application_id = 1953395301").unwrap();
        old.execute_batch("INSERT INTO store VALUES('a', 'b')").unwrap();
        assert!(!is_shrinkable(&old).unwrap());
        drop(old);
        let conn = schema::open_writer(&folder, &options).unwrap();
        assert!(is_shrinkable(&conn).unwrap());
        let kept: String = conn
            .query_row("SELECT value FROM store WHERE key = 'a'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(kept, "b");
    }
}
