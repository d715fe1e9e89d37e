//! Whom the jobs of a folder wait for, as things.

use rusqlite::params;
use tenure_core::copy::Item;
use tenure_machine::Seq;
use tenure_machine::copied::{self, KeptForOthers, RowsThere as _};
use tenure_machine::rows::Kind;
use tenure_seam::copy::CopyError;

use super::ITEMS;
use super::read::{CopyReader, PagePart};
use crate::file::rows;

/// Jobs that one page looks at, and parents on it: each is a read or two, and one more where it is written.
const LOOKED: usize = 4_000;
const PARENTS: usize = 1_000;

impl CopyReader<'_> {
    /// What is kept of a job for those that name it.
    pub(super) fn kept_for_others(&self, seq: Seq) -> Result<KeptForOthers, CopyError> {
        let Some(row) = self.there().row(Kind::Followed, &seq.to_string())? else {
            return Ok(KeptForOthers::default());
        };
        copied::kept_for_others(&row).ok_or_else(|| self.folder.bad_row(Kind::Followed.as_str()))
    }

    /// Jobs with parents, behind a row number.
    pub(super) fn kin(&self, after: &str) -> Result<PagePart, CopyError> {
        let broken = self.folder.broken();
        let mut all = self
            .conn
            .prepare_cached(
                "SELECT seq, state, life FROM life WHERE seq > ?1 AND ns = ?2 ORDER BY seq LIMIT ?3",
            )
            .map_err(&broken)?;
        let seq: i64 = after.parse().unwrap_or(0);
        let of = params![seq, self.namespace.as_str(), LOOKED as i64];
        let mut found = all.query(of).map_err(&broken)?;
        let there = self.there();
        let (mut items, mut looked, mut parents, mut last) = (Vec::new(), 0, 0, None);
        while let Some(row) = found.next().map_err(&broken)? {
            let seq = rows::seq(row, 0).map_err(&broken)?;
            let state = row.get(1).and_then(rows::state_of).map_err(&broken)?;
            let life = row.get_ref(2).map_err(&broken)?.as_blob();
            let item = match life {
                Ok(life) => copied::kin(seq, state, life, &there)?,
                Err(_) => None,
            };
            let item = item.ok_or_else(|| self.folder.bad_row("a job"))?;
            if let Some(Item::Kin(kin)) = &item {
                parents += kin.parents.len();
            }
            items.extend(item);
            looked += 1;
            last = Some(seq.to_string());
            if items.len() >= ITEMS || parents >= PARENTS {
                return Ok((items, last));
            }
        }
        Ok((items, last.filter(|_| looked == LOOKED)))
    }
}
