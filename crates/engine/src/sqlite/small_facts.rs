//! Small facts about the store itself, each a text under a key. The writer has a statement of its own for the facts
//! that it writes with every batch.

use rusqlite::{Connection, OptionalExtension};

/// The fact under a key, if there is one.
pub(crate) fn fact(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT value FROM store WHERE key = ?1", [key], |row| row.get(0)).optional()
}

/// Sets the fact under a key, or removes it.
pub(crate) fn put_fact(conn: &Connection, key: &str, value: Option<&str>) -> rusqlite::Result<()> {
    match value {
        Some(value) => conn.execute(
            "INSERT INTO store(key, value) VALUES(?1, ?2)
             ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            [key, value],
        )?,
        None => conn.execute("DELETE FROM store WHERE key = ?1", [key])?,
    };
    Ok(())
}
