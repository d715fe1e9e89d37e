//! The rows that name the keys with which contents are sealed. The first contents that are sealed with a key bring its row.

use rusqlite::Connection;
use tenure_core::names::Namespace;
use tenure_machine::rows::{Kind, RowKey};

use crate::error::OpenError;
use crate::seal::Seal;
use crate::sqlite::folder::Folder;
use crate::sqlite::schema::store_error;
use crate::sqlite::sums::row_sum;

/// The row of the key that seals; `None` if it is there, or nothing is sealed.
pub(crate) fn missing_row(conn: &Connection, seal: &Seal) -> rusqlite::Result<Option<RowKey>> {
    let Some(name) = seal.sealing() else { return Ok(None) };
    let is_there = names(conn)?.iter().any(|there| there == name);
    Ok((!is_there).then(|| Seal::row(name)))
}

/// Refuses rows whose contents are sealed with a key that is not here.
pub(crate) fn refuse_others(
    conn: &Connection,
    folder: &Folder,
    seal: &Seal,
) -> Result<(), OpenError> {
    let names = names(conn).map_err(|why| store_error(folder, why))?;
    match names.into_iter().find(|name| !seal.has(name)) {
        Some(key) => Err(OpenError::Sealed { folder: folder.path().to_owned(), key }),
        None => Ok(()),
    }
}

/// The names of the keys. A row that is not as written is left out: a start refuses it, and says what it is.
pub(crate) fn names(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let (ns, kind) = (Namespace::main(), Kind::SealKey);
    let sql = "SELECT key, value, sum FROM row WHERE ns = ?1 AND kind = ?2 ORDER BY key";
    let mut all = conn.prepare_cached(sql)?;
    let mut rows = all.query([ns.as_str(), kind.as_str()])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
        let sum = row_sum(ns.as_str(), kind.as_str(), &name, &value);
        if row.get::<_, Option<i64>>(2)? == Some(sum) {
            names.push(name);
        }
    }
    Ok(names)
}
