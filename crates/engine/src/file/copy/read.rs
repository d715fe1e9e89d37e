//! A folder that is copied: its rows as things.

use rusqlite::{Connection, Row, params};
use tenure_core::copy::{CopiedPage, Cursor, Head, Item, Section};
use tenure_core::job::JobState;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::secret::Json;
use tenure_core::sentences::CopyRefusal;
use tenure_core::time::Moment;
use tenure_machine::StoredJob;
use tenure_machine::copied::{self, RowsThere as _};
use tenure_machine::rows::Kind;
use tenure_seam::copy::{CopyError, Mark, Source, Step};

use crate::file::sums::row_sum;

use super::there::{FolderRows, row};
use super::{BYTES, CopyFolder, ITEMS, MARK, Marked, put_fact, text_of};
use crate::file::damage::job_name;
use crate::file::rows::{self, Data, JOBS, JobRow, STORED};

/// Leases of jobs come first, by row number; those without a job by their keys, behind this.
const ALONE: &str = "alone ";

impl Source for CopyFolder {
    fn marked(&self) -> Step<'_, Option<Mark>> {
        Box::pin(async { Ok(self.source_mark()?.map(|(mark, _)| mark)) })
    }

    fn freeze<'a>(&'a self, mark: &'a Mark) -> Step<'a, ()> {
        Box::pin(async {
            let before = self.source_mark()?;
            if before.as_ref().is_some_and(|(there, _)| there.copy != mark.copy) {
                return Err(CopyError::no(
                    format!("the store in {:?} is frozen for another copy", self.folder.path()),
                    "thaw it first: tenure copy --thaw --from 'file:PATH'",
                ));
            }
            let frozen_at = before.map_or_else(|| self.clock.now(), |(_, at)| at);
            let text = text_of(&Marked::source(mark, frozen_at));
            put_fact(&self.conn(), MARK, Some(&text)).map_err(self.broken())?;
            self.still_here(())
        })
    }

    fn thaw(&self) -> Step<'_, ()> {
        Box::pin(async {
            self.source_mark()?;
            put_fact(&self.conn(), MARK, None).map_err(self.broken())?;
            self.still_here(())
        })
    }

    fn namespaces(&self) -> Step<'_, Vec<Namespace>> {
        Box::pin(async {
            let conn = self.conn();
            // What has a job has a row of its own numbers too.
            let read = || {
                let mut all = conn.prepare("SELECT DISTINCT ns FROM row ORDER BY ns")?;
                let rows = all.query_map([], |row| rows::namespace(row, 0))?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            };
            read().map_err(self.broken())
        })
    }

    fn head<'a>(&'a self, namespace: &'a Namespace) -> Step<'a, Head> {
        Box::pin(async {
            let conn = self.conn();
            let ns = namespace.as_str();
            let read = || {
                let jobs: i64 =
                    conn.query_row("SELECT count(*) FROM life WHERE ns = ?1", [ns], |row| {
                        row.get(0)
                    })?;
                Ok((row(&conn, namespace, Kind::Meta, "")?, jobs))
            };
            let (meta, jobs) = read().map_err(self.broken())?;
            let head = match meta {
                Some(meta) => copied::head(&meta).ok_or_else(|| self.bad_row("a namespace"))?,
                None => Head::default(),
            };
            Ok(Head { jobs: jobs.unsigned_abs(), now: self.clock.now(), ..head })
        })
    }

    fn page<'a>(&'a self, namespace: &'a Namespace, cursor: &'a Cursor) -> Step<'a, CopiedPage> {
        Box::pin(async {
            let frozen_at = match self.source_mark()? {
                Some((_, frozen_at)) => frozen_at,
                None => {
                    let place = self.place();
                    return Err(Refusal::from(CopyRefusal::NotFrozen { place }).into());
                }
            };
            let conn = self.conn();
            let reader = CopyReader { folder: self, conn: &conn, namespace };
            let (items, after) = reader.section(cursor, frozen_at)?;
            let next = match after {
                Some(after) => Some(cursor.behind(after)),
                None => cursor.next_section(),
            };
            self.still_here(CopiedPage { items, next })
        })
    }
}

/// Things, and behind what the section goes on.
pub(super) type PagePart = (Vec<Item>, Option<String>);

pub(super) struct CopyReader<'a> {
    pub folder: &'a CopyFolder,
    pub conn: &'a Connection,
    pub namespace: &'a Namespace,
}

impl CopyReader<'_> {
    fn section(&self, cursor: &Cursor, frozen_at: Moment) -> Result<PagePart, CopyError> {
        let after = cursor.after.as_str();
        let plain = |kind: Kind| {
            self.rows(kind, after, |key, value| {
                copied::item(kind, key, value).ok_or_else(|| self.bad(kind))
            })
        };
        match cursor.section {
            Section::Queues => plain(Kind::Queue),
            Section::Settings => plain(Kind::LimitSetting),
            Section::Limits => plain(Kind::Limit),
            Section::Leases => self.leases(after, frozen_at),
            Section::Turns => plain(Kind::Turn),
            Section::Pools => plain(Kind::Pool),
            Section::Resources => self.rows(Kind::Resource, after, |key, value| {
                let item = copied::resource(value, self.data(key)?);
                item.ok_or_else(|| self.bad(Kind::Resource))
            }),
            Section::Jobs => self.jobs(after),
            Section::Keys => self.rows(Kind::Key, after, |key, value| self.key(key, value)),
            Section::Kin => self.kin(after),
            Section::Flows => plain(Kind::Flow),
            Section::Schedules => self.rows(Kind::Schedule, after, |id, value| {
                let item = copied::schedule(id, value, || self.scheduled_job(id))?;
                item.map(Some).ok_or_else(|| self.bad(Kind::Schedule))
            }),
            Section::Sets => plain(Kind::SyncedSet),
        }
    }

    /// Rows beside the one that it is at.
    pub(super) fn there(&self) -> FolderRows<'_> {
        FolderRows { folder: self.folder, conn: self.conn, namespace: self.namespace }
    }

    fn bad(&self, kind: Kind) -> CopyError {
        self.folder.bad_row(kind.as_str())
    }

    /// Rows of a kind by their keys, and what `read` makes of each.
    fn rows(
        &self,
        kind: Kind,
        after: &str,
        read: impl Fn(&str, &str) -> Result<Option<Item>, CopyError>,
    ) -> Result<PagePart, CopyError> {
        let broken = self.folder.broken();
        let mut all = self
            .conn
            .prepare_cached(
                "SELECT key, value, sum FROM row
                 WHERE ns = ?1 AND kind = ?2 AND key > ?3 ORDER BY key LIMIT ?4",
            )
            .map_err(&broken)?;
        let of = params![self.namespace.as_str(), kind.as_str(), after, ITEMS as i64];
        let mut found = all.query(of).map_err(&broken)?;
        let (mut items, mut rows, mut last, mut bytes) = (Vec::new(), 0, None, 0);
        while let Some(row) = found.next().map_err(&broken)? {
            let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
            let (key, value) = (text(0).map_err(&broken)?, text(1).map_err(&broken)?);
            let sum: Option<i64> = row.get(2).map_err(&broken)?;
            if sum != Some(row_sum(self.namespace.as_str(), kind.as_str(), key, value)) {
                return Err(self.bad(kind));
            }
            let item = read(key, value)?;
            bytes += match &item {
                Some(Item::Resource(resource)) => resource.data.text().len(),
                Some(Item::Schedule(one)) => {
                    one.settings.job.payload.as_ref().map_or(0, |json| json.text().len())
                }
                _ => 0,
            };
            items.extend(item);
            rows += 1;
            last = Some(key.to_owned());
            if bytes >= BYTES {
                return Ok((items, last));
            }
        }
        Ok((items, last.filter(|_| rows == ITEMS)))
    }

    /// The data of a resource, by the key of its row: pool and id.
    fn data(&self, key: &str) -> Result<Json, CopyError> {
        // A pool's name has no '/'.
        let (pool, id) = key.split_once('/').unwrap_or((key, ""));
        match rows::data(self.conn, (self.namespace.as_str(), pool, id))
            .map_err(self.folder.broken())?
        {
            Data::Known(data) => Ok(data),
            Data::Gone => Ok(Json::null()),
            Data::Unreadable => {
                Err(self.folder.bad_row(&format!("resource {id:?} of pool {pool:?}")))
            }
        }
    }

    /// The job that a schedule makes, where it has a row of its own.
    fn scheduled_job(&self, id: &str) -> Result<String, CopyError> {
        let row = self.there().row(Kind::ScheduledJob, id)?;
        row.ok_or_else(|| self.bad(Kind::ScheduledJob))
    }

    fn leases(&self, after: &str, frozen_at: Moment) -> Result<PagePart, CopyError> {
        if let Some(after) = after.strip_prefix(ALONE) {
            let (items, last) = self.rows(Kind::Lease, after, |_, value| {
                let item = copied::lease(value, frozen_at);
                item.map(Some).ok_or_else(|| self.bad(Kind::Lease))
            })?;
            return Ok((items, last.map(|last| format!("{ALONE}{last}"))));
        }
        let broken = self.folder.broken();
        let mut all = self
            .conn
            .prepare_cached(
                "SELECT seq, life FROM life
                 WHERE seq > ?1 AND ns = ?2 AND state = ?3 ORDER BY seq LIMIT ?4",
            )
            .map_err(&broken)?;
        let seq: i64 = after.parse().unwrap_or(0);
        let running = rows::state_number(JobState::Running);
        let mut found = all
            .query(params![seq, self.namespace.as_str(), running, ITEMS as i64])
            .map_err(&broken)?;
        let (mut items, mut last) = (Vec::new(), None);
        while let Some(row) = found.next().map_err(&broken)? {
            let life = row.get_ref(1).map_err(&broken)?.as_blob();
            let item = life.ok().and_then(|life| copied::lease_of_job(life, frozen_at));
            items.extend(item.ok_or_else(|| self.bad(Kind::Lease))?);
            last = Some(rows::seq(row, 0).map_err(&broken)?);
        }
        let more = last.filter(|_| items.len() == ITEMS).map(|seq| seq.to_string());
        Ok((items, Some(more.unwrap_or_else(|| ALONE.to_owned()))))
    }

    fn jobs(&self, after: &str) -> Result<PagePart, CopyError> {
        let broken = self.folder.broken();
        let mut all = self
            .conn
            .prepare_cached(&format!(
                "SELECT {STORED} FROM {JOBS}
                 WHERE life.seq > ?1 AND ns = ?2 ORDER BY life.seq LIMIT ?3"
            ))
            .map_err(&broken)?;
        let seq: i64 = after.parse().unwrap_or(0);
        let mut found =
            all.query(params![seq, self.namespace.as_str(), ITEMS as i64]).map_err(&broken)?;
        let (mut items, mut last, mut bytes) = (Vec::new(), None, 0);
        while let Some(row) = found.next().map_err(&broken)? {
            let stored = self.stored(row).map_err(&broken)?;
            let Some((stored, kept)) = stored else {
                let seq = rows::seq(row, 0).map_err(&broken)?;
                let id = row.get::<_, String>(1).ok();
                return Err(self.folder.bad_row(&job_name(seq, id.as_deref())));
            };
            let seq = stored.seq;
            bytes += [&stored.payload, &stored.result]
                .into_iter()
                .flatten()
                .map(|json| json.text().len())
                .sum::<usize>();
            let holds = match copied::key_of(&stored) {
                Some(key) => self.holds(key.as_str(), seq)?,
                None => None,
            };
            let for_others = self.kept_for_others(seq)?;
            let item = copied::job(stored, kept, for_others, holds);
            items.push(item.ok_or_else(|| self.folder.bad_row("a job"))?);
            last = Some(seq);
            if bytes >= BYTES {
                return Ok((items, last.map(|seq| seq.to_string())));
            }
        }
        let more = last.filter(|_| items.len() == ITEMS);
        Ok((items, more.map(|seq| seq.to_string())))
    }

    /// A job with its errors, and until when it is kept and what it takes, if it is finished. `None`:
    /// its rows are not what was written.
    #[expect(clippy::type_complexity, reason = "it is said in one place")]
    fn stored(
        &self,
        row: &Row<'_>,
    ) -> rusqlite::Result<Option<(StoredJob, Option<(Moment, u32)>)>> {
        let Some(JobRow { mut job, unreadable: None }) = rows::stored(row, true)? else {
            return Ok(None);
        };
        job.errors = rows::errors(self.conn, job.seq)?;
        let until: Option<i64> = row.get(rows::UNTIL)?;
        let bytes: Option<u32> = row.get(rows::BYTES)?;
        let kept = until.map(|until| (rows::moment_of(until), bytes.unwrap_or_default()));
        Ok(Some((job, kept)))
    }

    /// How the job with this row number holds the key.
    fn holds(
        &self,
        key: &str,
        seq: tenure_machine::Seq,
    ) -> Result<Option<tenure_core::copy::Holds>, CopyError> {
        let Some(value) = self.there().row(Kind::Key, key)? else { return Ok(None) };
        let held = copied::key_held(&value).ok_or_else(|| self.bad(Kind::Key))?;
        Ok((held.seq == seq).then_some(held.holds))
    }

    /// A key comes with its job, unless that is gone.
    fn key(&self, key: &str, value: &str) -> Result<Option<Item>, CopyError> {
        let held = copied::key_held(value).ok_or_else(|| self.bad(Kind::Key))?;
        let known = || {
            let mut one =
                self.conn.prepare_cached("SELECT 1 FROM life WHERE seq = ?1 AND ns = ?2")?;
            one.exists(params![rows::number_of(held.seq), self.namespace.as_str()])
        };
        let Some(until) = held.holds.until else { return Ok(None) };
        if known().map_err(self.folder.broken())? {
            return Ok(None);
        }
        let key = tenure_core::names::UniqueKey::known(key).map_err(CopyError::from)?;
        Ok(Some(Item::Key(tenure_core::copy::CopiedKey {
            key,
            job: held.job,
            until,
            ended: held.ended,
        })))
    }
}
