//! Fills an unfinished copy: a snapshot of the source becomes its rows, and its leases end.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure_core::bounds::SECOND_US;
use tenure_core::job::JobState;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::time::Moment;
use tenure_journal::{JournalEntry, Position, ReadError, Snapshot};
use tenure_machine::rows::Kind;
use tenure_machine::{Changes, Config, Seq};

use rusqlite::Connection;

use super::{CopiedRows, CopyError, CopyNews, CopyWatch, Frozen};
use crate::error::OpenError;
use crate::seal::{Seal, Unopened};
use crate::sqlite::folder::Folder;
use crate::sqlite::read::overlay::Overlay;
use crate::sqlite::rows;
use crate::sqlite::scan::damage::Damage;
use crate::sqlite::scan::start::Start;
use crate::sqlite::schema::{self, store_error};
use crate::sqlite::snapshot::RowsSnapshot;
use crate::sqlite::snapshot::restored::{self, RestoreError};
use crate::sqlite::sums::Sum;
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::writer::Writer;

/// Fences of a restored store begin this far past the last one of its backup, and past the clock: a day of microseconds.
///
/// A store gives fences by its clock, or one after the other where that is behind them. So this is past all fences that
/// it gave after the backup, if its clock was less than a day ahead of that of the restore.
const FENCE_JUMP: u64 = 24 * 60 * 60 * SECOND_US;

/// The number of things of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CopyCounts {
    pub queues: u64,
    /// Limits and templates that have settings.
    pub limits: u64,
    pub pools: u64,
    /// Resources of all pools.
    pub resources: u64,
    pub unfinished: u64,
    pub finished: u64,
    pub schedules: u64,
    /// Leases that ended as `released`.
    pub released: u64,
}

/// The contents of a filled copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filled {
    /// The number of things in it.
    pub moved: CopyCounts,
    /// When the last lease of the source expires, by the source's clock; `None` without leases.
    pub held_until: Option<Moment>,
}

/// Rows of a folder that may be replaced.
pub(super) struct Filling<'a> {
    pub conn: &'a Connection,
    pub folder: &'a Folder,
    pub before: Before,
    /// The name of the copy.
    pub copy: &'a str,
}

/// The state of a folder before it became a copy, which the copy goes on from.
#[derive(Default)]
pub(super) struct Before {
    pub commit: u64,
    /// The last fences of its namespaces.
    pub fences: BTreeMap<Namespace, Fence>,
}

impl Before {
    /// The numbers with which this copy ends: behind all entries that the folder's journal may still have, and with a
    /// checksum in which two copies to one place differ.
    pub(super) fn end(&self, copy: &str, last_seq: Seq) -> Numbers {
        let entry = Some(Sum::of("copy").text(copy).end() as u64);
        Numbers { commit: self.commit + 1, last_seq, entry }
    }
}

/// An error of the rows in a folder of a copy.
pub(super) fn broken(folder: &Folder, why: &rusqlite::Error) -> CopyError {
    let folder = folder.path();
    CopyError::Disk(format!("the store in {folder:?} cannot be read or written: {why}"))
}

impl Filling<'_> {
    pub(super) fn fill(
        &self,
        from: Frozen,
        watch: &mut dyn CopyWatch,
    ) -> Result<Filled, CopyError> {
        let Frozen { rows, jobs, frozen_at, went_on, seal, .. } = from;
        let mut watched = WatchedRows { rows, jobs, watch, stopped: None };
        let restored =
            restored::restore(self.conn, &mut watched, 0, |changes| seal.reseal(changes));
        if let Some(stopped) = watched.stopped {
            return Err(stopped);
        }
        let last_seq = restored.map_err(|why| self.unread(why))?.last_seq;
        let numbers = self.before.end(self.copy, last_seq);
        let (released, held_until) = self
            .end_leases(numbers, &seal, frozen_at, went_on)
            .map_err(|why| self.unrestored(why))?;
        let mut moved = self.counts().map_err(|why| broken(self.folder, &why))?;
        moved.released = released;
        Ok(Filled { moved, held_until })
    }

    /// Ends the leases by the rules, as of a machine that took over at `frozen_at`. `went_on`: fences are set past all
    /// that the source may have given since.
    fn end_leases(
        &self,
        numbers: Numbers,
        seal: &Seal,
        frozen_at: Moment,
        went_on: bool,
    ) -> Result<(u64, Option<Moment>), OpenError> {
        let failed = |why| store_error(self.folder, why);
        let damage = std::sync::Arc::new(Damage::default());
        let reader = schema::open_reader(self.folder).map_err(failed)?;
        let start = Start {
            conn: self.conn,
            folder: self.folder,
            seal,
            numbers,
            config: Config::default(),
            accept_loss: false,
            is_copy: true,
            forget_clock: true,
            now: frozen_at,
        };
        let mut overlay = Overlay::new(reader, seal.clone(), damage.clone());
        let (mut machine, _) = start.restore(&mut overlay, &damage)?;
        let ended = machine.release_all();
        for (namespace, fence) in &self.before.fences {
            machine.raise_fence(namespace, *fence);
        }
        if went_on {
            for (namespace, fence) in machine.fences() {
                let given = fence.get().max(frozen_at.us());
                machine.raise_fence(&namespace, Fence::new(given.saturating_add(FENCE_JUMP)));
            }
        }
        let mut rows = machine.drain().rows;
        seal.rows(&mut rows);
        let changes = Changes { rows, ..Changes::default() };
        let mut writer = Writer::new(self.conn, numbers, 0).map_err(failed)?;
        writer.write_restored(&[changes], numbers).map_err(failed)?;
        Ok(ended)
    }

    fn counts(&self) -> rusqlite::Result<CopyCounts> {
        let mut counts = CopyCounts::default();
        let mut jobs = self.conn.prepare("SELECT state, count(*) FROM life GROUP BY state")?;
        let mut found = jobs.query([])?;
        while let Some(row) = found.next()? {
            let state: JobState = rows::state_of(row.get(0)?)?;
            let jobs = row.get::<_, i64>(1)?.unsigned_abs();
            if state.is_finished() {
                counts.finished += jobs;
            } else {
                counts.unfinished += jobs;
            }
        }
        let of = |kind: Kind| -> rusqlite::Result<u64> {
            let sql = "SELECT count(*) FROM row WHERE kind = ?1";
            let rows: i64 = self.conn.query_row(sql, [kind.as_str()], |row| row.get(0))?;
            Ok(rows.unsigned_abs())
        };
        counts.queues = of(Kind::Queue)?;
        counts.limits = of(Kind::LimitSetting)?;
        counts.pools = of(Kind::Pool)?;
        // A resource that a sync dropped is remembered without data.
        let sql = "SELECT count(*) FROM resource_data";
        let resources: i64 = self.conn.query_row(sql, [], |row| row.get(0))?;
        counts.resources = resources.unsigned_abs();
        counts.schedules = of(Kind::Schedule)?;
        Ok(counts)
    }

    fn unread(&self, why: RestoreError<Unopened>) -> CopyError {
        match why {
            RestoreError::Read(why) => unread(&why),
            RestoreError::Store(why) => broken(self.folder, &why),
            RestoreError::Unchanged(Unopened) => {
                CopyError::sealed("contents of the source were changed, or their seal key")
            }
        }
    }

    fn unrestored(&self, why: OpenError) -> CopyError {
        CopyError::Disk(match why {
            OpenError::OtherRows { why, .. } | OpenError::Row { why, .. } => {
                format!("a row of the source cannot be restored: {why}")
            }
            why => why.to_string(),
        })
    }
}

/// Rows on their way, and their watcher, who may stop them.
struct WatchedRows<'a> {
    rows: Box<dyn CopiedRows>,
    /// Jobs of the source.
    jobs: u64,
    watch: &'a mut dyn CopyWatch,
    stopped: Option<CopyError>,
}

impl Snapshot for WatchedRows<'_> {
    fn end(&self) -> Position {
        self.rows.end()
    }

    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        let news = CopyNews::Moved { jobs: self.rows.jobs_read(), of: self.jobs };
        if let Err(why) = self.watch.told(&news) {
            let read = ReadError::Away(why.to_string());
            self.stopped = Some(why);
            return Err(read);
        }
        self.rows.next_part()
    }
}

impl CopiedRows for RowsSnapshot {
    fn jobs_read(&self) -> u64 {
        self.jobs_so_far()
    }
}

impl RowsSnapshot {
    /// The namespaces in these rows.
    pub(super) fn namespaces(&self) -> Result<Vec<Namespace>, CopyError> {
        self.read_namespaces().map_err(|why| unread(&why))
    }

    pub(crate) fn jobs(&self) -> Result<u64, CopyError> {
        self.count_jobs().map_err(|why| unread(&why))
    }
}

fn unread(why: &dyn std::fmt::Display) -> CopyError {
    CopyError::Disk(format!("the rows of the source cannot be read: {why}"))
}
