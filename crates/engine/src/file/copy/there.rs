//! Rows beside the one that a copy is at.

use std::collections::HashMap;
use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension, Row};
use tenure_core::job::JobState;
use tenure_core::names::{JobId, Namespace};
use tenure_machine::Seq;
use tenure_machine::copied::{LifeThere, RowsThere};
use tenure_machine::rows::Kind;
use tenure_seam::copy::CopyError;

use super::{CopyFolder, KnownIds};
use crate::file::rows::{self, moment_of, number_of};
use crate::file::sums::LifeSum;

/// The rows of a namespace.
pub(super) struct FolderRows<'a> {
    pub folder: &'a CopyFolder,
    pub conn: &'a Connection,
    pub namespace: &'a Namespace,
}

/// A row that is not a job.
pub(super) fn row(
    conn: &Connection,
    namespace: &Namespace,
    kind: Kind,
    key: &str,
) -> rusqlite::Result<Option<String>> {
    let mut one =
        conn.prepare_cached("SELECT value FROM row WHERE ns = ?1 AND kind = ?2 AND key = ?3")?;
    one.query_row([namespace.as_str(), kind.as_str(), key], |row| row.get(0)).optional()
}

/// The life of a job; `None` if it is not what was written: what is written into it would call it well.
fn checked_life(row: &Row<'_>, number: i64) -> rusqlite::Result<Option<LifeThere>> {
    let (state_in_row, until): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
    let bytes: Option<i64> = row.get(3)?;
    let life: Vec<u8> = row.get(4)?;
    let (seq, state, class) = (number, state_in_row, row.get(2)?);
    let sum = LifeSum { seq, state, until, class, bytes, life: &life }.sum();
    if row.get::<_, i64>(5)? != sum {
        return Ok(None);
    }
    let state: JobState = rows::state_of(state_in_row)?;
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or_default();
    Ok(Some(LifeThere { state, life, kept: until.map(|until| (moment_of(until), bytes)) }))
}

impl RowsThere for FolderRows<'_> {
    type Error = CopyError;

    fn row(&self, kind: Kind, key: &str) -> Result<Option<String>, CopyError> {
        row(self.conn, self.namespace, kind, key).map_err(self.folder.broken())
    }

    fn seq_of(&self, id: &JobId) -> Result<Option<Seq>, CopyError> {
        let mut ids = self.folder.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match &mut *ids {
            Some(known) if known.namespace == *self.namespace => known,
            other => {
                let seqs = self.all_ids().map_err(self.folder.broken())?;
                other.insert(KnownIds { namespace: self.namespace.clone(), seqs })
            }
        };
        Ok(known.seqs.get(id.as_str()).copied())
    }

    fn id_of(&self, seq: Seq) -> Result<Option<JobId>, CopyError> {
        let read = || {
            let mut one = self.conn.prepare_cached(
                "SELECT id FROM life CROSS JOIN job ON job.seq = life.seq
                 WHERE life.seq = ?1 AND ns = ?2",
            )?;
            let of = (number_of(seq), self.namespace.as_str());
            one.query_row(of, |row| row.get::<_, String>(0)).optional()
        };
        let id = read().map_err(self.folder.broken())?;
        id.map(|id| JobId::known(&id).map_err(|_| self.folder.bad_row("a job"))).transpose()
    }

    fn life(&self, seq: Seq) -> Result<Option<LifeThere>, CopyError> {
        let number = number_of(seq);
        let read = || {
            let mut one = self.conn.prepare_cached(
                "SELECT state, until, class, bytes, life, sum FROM life WHERE seq = ?1 AND ns = ?2",
            )?;
            let of = (number, self.namespace.as_str());
            one.query_row(of, |row| checked_life(row, number)).optional()
        };
        match read().map_err(self.folder.broken())? {
            Some(None) => Err(self.folder.bad_row("a job")),
            found => Ok(found.flatten()),
        }
    }
}

impl FolderRows<'_> {
    fn all_ids(&self) -> rusqlite::Result<HashMap<String, Seq>> {
        let mut all = self.conn.prepare(
            "SELECT id, life.seq FROM life CROSS JOIN job ON job.seq = life.seq WHERE ns = ?1",
        )?;
        let ids = all.query_map([self.namespace.as_str()], |row| {
            Ok((row.get::<_, String>(0)?, rows::seq(row, 1)?))
        })?;
        ids.collect()
    }
}
