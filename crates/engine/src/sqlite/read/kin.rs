//! Rows of the parents and the children of a job.

use rusqlite::{Connection, params};
use tenure_core::bounds::PAGE_BYTES_FULL;
use tenure_core::names::Namespace;
use tenure_core::secret::Json;
use tenure_machine::rows::Kind;
use tenure_machine::{Seq, child_key, child_of};

use crate::seal::Seal;
use crate::sqlite::rows::{self, FoundJob, or_none};

/// Rows of these parents, up to the one whose result fills the page.
pub(crate) fn parents(
    conn: &Connection,
    of: (&Namespace, &Seal),
    wanted: &[Seq],
    full: bool,
) -> rusqlite::Result<Vec<FoundJob>> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for seq in wanted {
        if bytes >= PAGE_BYTES_FULL {
            break;
        }
        let mut one = rows::job(conn, of, *seq, full)?;
        if let FoundJob::Job(row) = &mut one {
            // Nothing shows the payload, and a thousand payloads are too much to hold.
            row.job.payload = row.job.payload.take().map(|_| Json::null());
            bytes += row.job.result.as_ref().map_or(0, |result| result.text().len());
            bytes += row.job.error.as_ref().map_or(0, String::len);
        }
        found.push(one);
    }
    Ok(found)
}

/// Rows of the children after this one, and the last child that was looked at, if more may follow.
pub(crate) fn children(
    conn: &Connection,
    of: (&Namespace, &Seal),
    (parent, from): (Seq, Seq),
    max: usize,
) -> rusqlite::Result<(Vec<rows::JobRow>, Option<Seq>)> {
    let mut all = conn.prepare_cached(
        "SELECT key FROM row WHERE ns = ?1 AND kind = ?2 AND key > ?3 AND key <= ?4 ORDER BY key",
    )?;
    let (first, last) = (child_key(parent, from), child_key(parent, Seq::MAX));
    let mut keys = all.query(params![of.0.as_str(), Kind::Edge.as_str(), first, last])?;
    let (mut found, mut looked) = (Vec::new(), None);
    while let Some(row) = keys.next()? {
        if found.len() == max {
            return Ok((found, looked));
        }
        let Some(child) = or_none(row.get::<_, String>(0))?.as_deref().and_then(child_of) else {
            continue;
        };
        looked = Some(child);
        // A child without a row does not count any more.
        if let FoundJob::Job(row) = rows::job(conn, of, child, false)? {
            found.push(*row);
        }
    }
    Ok((found, None))
}
