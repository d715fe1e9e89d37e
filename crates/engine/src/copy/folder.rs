//! A folder in a copy: its rows, and the mark that says so.
//!
//! The folder is locked by this process, so nobody is served from it meanwhile; the mark makes that so beyond this process, since
//! [`crate::Embedded::open`] refuses a marked folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde::{Deserialize, Serialize};
use tenure_core::bounds::TTL_US_DEFAULT;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::{CopyRefusal, Phrase};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Clock, SystemClock};
use tenure_machine::rows::Kind;
use tenure_machine::{Changes, Config, Machine, NO_JOB, last_fence};

use super::fill::{Before, Filled, Filling, broken};
use super::{CopyError, CopyWatch, Found, Frozen, Mark, Source, Target};
use crate::backup::BackupWriter;
use crate::bodies::Bodies;
use crate::error::OpenError;
use crate::journal::folder::LeftBehind;
use crate::options::{Location, Options};
use crate::sqlite::folder::{self, Folder};
use crate::sqlite::rows;
use crate::sqlite::scan::start;
use crate::sqlite::schema::{self, store_error};
use crate::sqlite::small_facts::{fact, put_fact};
use crate::sqlite::snapshot::RowsSnapshot;
use crate::sqlite::snapshot::restored;
use crate::sqlite::watch::{LookWhen, Watch};
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::synced;
use crate::sqlite::write::writer::Writer;

/// The key of the mark in the table of small facts.
const MARK: &str = "copy";
/// The key of the name of the copy that the store was made by.
const COPIED: &str = "copied";

/// The part of a folder in a copy.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Marked {
    /// Frozen, to be copied elsewhere.
    Source { copy: String, to: String, whole: bool, frozen_at: u64 },
    /// An unfinished copy.
    Target {
        copy: String,
        /// The last commit before it; `None` in a mark of 0.1.0.
        commit: Option<u64>,
        /// The last fences of its namespaces before it.
        #[serde(default)]
        fences: BTreeMap<Namespace, Fence>,
    },
}

/// A folder in the hands of a copy.
pub struct CopyFolder {
    conn: Connection,
    watch: Option<Watch>,
    folder: Folder,
    /// The longest ttl of a lease that its last process may have lost; `None`: it has lost none.
    lost: Option<Span>,
}

impl CopyFolder {
    /// Opens a store that exists, marked or not.
    ///
    /// # Errors
    /// It does not exist, another process has it open, or it cannot be read.
    pub fn source(path: &Path) -> Result<Self, OpenError> {
        if !folder::has_store(path) {
            return Err(OpenError::Missing { folder: path.to_owned() });
        }
        Self::open(path.to_owned())
    }

    /// Opens a store, marked or not, and makes it if it does not exist.
    ///
    /// # Errors
    /// Another process has it open, or it cannot be read or made.
    pub fn target(path: &Path) -> Result<Self, OpenError> {
        Self::open(path.to_owned())
    }

    /// A private folder that goes with this value: it is filled, and its rows are the first snapshot of a store that has
    /// a journal.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn private() -> Result<Self, OpenError> {
        let options = Options::new(Location::Memory);
        let folder = Folder::open(&options.location)?;
        let conn = schema::open_writer(&folder, &options)?;
        Self::over(folder, conn, None)
    }

    /// Fills a private folder.
    ///
    /// # Errors
    /// The rows cannot be read or written, or the watcher stopped it.
    pub fn fill_private(
        &self,
        copy: &str,
        from: Frozen,
        watch: &mut dyn CopyWatch,
    ) -> Result<Filled, CopyError> {
        let (conn, folder, before) = (&self.conn, &self.folder, Before::default());
        Filling { conn, folder, before, copy }.fill(from, watch)
    }

    /// All rows.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn snapshot(&self) -> Result<RowsSnapshot, OpenError> {
        RowsSnapshot::begin(&self.folder)
    }

    /// Begins a backup of the store. The folder may be closed meanwhile.
    ///
    /// # Errors
    /// The rows cannot be read, or the store is an unfinished copy.
    pub fn backup(&self) -> Result<BackupWriter, CopyError> {
        self.source_mark()?;
        let rows = self.snapshot().map_err(|why| CopyError::Disk(why.to_string()))?;
        // A server may open the folder once this is dropped, and grant any ttl: nobody knows its leases here.
        let ttl = self.lost.unwrap_or_default().max(Span::from_us(TTL_US_DEFAULT));
        BackupWriter::new(rows, SystemClock.now(), ttl)
    }

    fn open(path: PathBuf) -> Result<Self, OpenError> {
        let options = Options::new(Location::Folder(path));
        let folder = Folder::open(&options.location)?;
        let conn = schema::open_writer(&folder, &options)?;
        let mark = marked(&conn).map_err(|why| store_error(&folder, why))?;
        let mut lost = None;
        // The rows of an unfinished copy are replaced.
        if !matches!(mark, Some(Ok(Marked::Target { .. }))) {
            // The entries that its last process left in the journal are copied, too. No event is dropped for that.
            let (events_bytes, bodies) = (u64::MAX, Bodies::new(0));
            let left = LeftBehind {
                conn: &conn,
                folder: &folder,
                events_bytes,
                accept_loss: false,
                bodies: &bodies,
            };
            let caught_up = left.catch_up(start::numbers(&conn, &folder)?)?;
            lost = caught_up
                .lost(&conn, Span::ZERO, SystemClock.now())
                .map_err(|why| store_error(&folder, why))?;
        }
        schema::may_move_log(&conn).map_err(|why| store_error(&folder, why))?;
        // Nobody syncs the log beside it: each commit is on disk when it is done.
        conn.pragma_update(None, "synchronous", "FULL").map_err(|why| store_error(&folder, why))?;
        Self::over(folder, conn, lost)
    }

    fn over(folder: Folder, conn: Connection, lost: Option<Span>) -> Result<Self, OpenError> {
        let watch = folder.watch()?;
        Ok(CopyFolder { conn, watch, folder, lost })
    }

    /// The result of a step, unless the files that it wrote or read are not those of the folder any more.
    fn still_here<T>(&self, done: T) -> Result<T, CopyError> {
        match self.watch.as_ref().map_or(Ok(()), |watch| watch.look(LookWhen::Now)) {
            Ok(()) => Ok(done),
            Err(seen) => Err(CopyError::Disk(seen)),
        }
    }

    fn broken(&self) -> impl Fn(rusqlite::Error) -> CopyError + use<'_> {
        |why| broken(&self.folder, &why)
    }

    fn numbers(&self) -> Result<Numbers, CopyError> {
        let read = Numbers::read(&self.conn).map_err(self.broken())?;
        read.map_err(|_| self.bad_row("its last commit"))
    }

    fn bad_row(&self, what: &str) -> CopyError {
        CopyError::Disk(format!(
            "the store in {:?} is damaged: the row of {what} cannot be read",
            self.folder.path()
        ))
    }

    /// The name of the store in sentences.
    fn place(&self) -> Phrase {
        format!("the store in {:?}", self.folder.path()).into()
    }

    fn mark(&self) -> Result<Option<Marked>, CopyError> {
        let found = marked(&self.conn).map_err(self.broken())?;
        found.transpose().map_err(|_| self.bad_row("its mark"))
    }

    /// The mark of a source, and when it was frozen.
    fn source_mark(&self) -> Result<Option<(Mark, Moment)>, CopyError> {
        match self.mark()? {
            None => Ok(None),
            Some(Marked::Source { copy, to, whole, frozen_at }) => {
                Ok(Some((Mark { copy, to, whole }, Moment::from_us(frozen_at))))
            }
            Some(Marked::Target { .. }) => {
                let (place, address) = (self.place(), "'file:PATH'".into());
                Err(Refusal::from(CopyRefusal::Unfinished { place, address }).into())
            }
        }
    }

    /// The state before this unfinished copy; `None` if the store carries no mark.
    fn part(&self, copy: &str) -> Result<Option<Before>, CopyError> {
        match self.mark()? {
            None => Ok(None),
            Some(Marked::Target { copy: there, commit, fences }) if there == copy => {
                Ok(Some(Before { commit: self.last_commit(commit)?, fences }))
            }
            Some(Marked::Target { .. } | Marked::Source { .. }) => Err(self.not_this()),
        }
    }

    /// The last commit before an unfinished copy, which the mark of an earlier release does not name.
    fn last_commit(&self, marked: Option<u64>) -> Result<u64, CopyError> {
        if let Some(commit) = marked {
            return Ok(commit);
        }
        let synced = synced::said(&self.folder).map_or(0, |(commit, _)| commit);
        Ok(self.numbers()?.commit.max(synced))
    }

    /// The last fences of the namespaces.
    fn fences(&self) -> Result<BTreeMap<Namespace, Fence>, CopyError> {
        let read = || {
            let sql = "SELECT ns, value FROM row WHERE kind = ?1";
            let mut all = self.conn.prepare(sql)?;
            let found = all.query_map([Kind::Meta.as_str()], |row| {
                Ok((rows::namespace(row, 0)?, row.get::<_, String>(1)?))
            })?;
            found.collect::<rusqlite::Result<Vec<_>>>()
        };
        let known = read().map_err(self.broken())?.into_iter();
        known
            .map(|(namespace, meta)| {
                let fence = last_fence(&meta).ok_or_else(|| self.bad_row("a namespace"))?;
                Ok((namespace, fence))
            })
            .collect()
    }

    fn not_this(&self) -> CopyError {
        Refusal::from(CopyRefusal::NotAPart { place: self.place() }).into()
    }
}

impl Before {
    fn mark(self, copy: &str) -> Marked {
        let Before { commit, fences } = self;
        Marked::Target { copy: copy.to_owned(), commit: Some(commit), fences }
    }
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        if self.still_here(()).is_err() {
            // Closing a connection removes its log by its path, which may be another's by now.
            let _ = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// The mark; one that cannot be read counts as one, so nothing is served.
fn marked(conn: &Connection) -> rusqlite::Result<Option<Result<Marked, String>>> {
    let text = fact(conn, MARK)?;
    Ok(text.map(|text| serde_json::from_str(&text).map_err(|why| why.to_string())))
}

fn put_mark(conn: &Connection, mark: &Marked) -> rusqlite::Result<()> {
    // Plain texts and numbers, for which writing JSON cannot fail.
    let text = serde_json::to_string(mark).unwrap_or_default();
    put_fact(conn, MARK, Some(&text))
}

/// Refuses the ordinary opening of a folder that is marked.
pub(crate) fn refuse_marked(conn: &Connection, folder: &Folder) -> Result<(), OpenError> {
    let found = marked(conn).map_err(|why| store_error(folder, why))?;
    let folder = folder.path().to_owned();
    match found {
        None => Ok(()),
        Some(Ok(Marked::Source { to, whole, .. })) => Err(OpenError::Frozen { folder, to, whole }),
        Some(Ok(Marked::Target { .. })) => Err(OpenError::Unfinished { folder }),
        Some(Err(why)) => {
            Err(OpenError::Row { folder, why: format!("the mark of a copy cannot be read: {why}") })
        }
    }
}

/// The contents that a copy would replace. Rows of finished calls are not counted.
fn contents(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let jobs: i64 = conn.query_row("SELECT count(*) FROM life", [], |row| row.get(0))?;
    let rows: i64 = conn.query_row(
        "SELECT count(*) FROM row WHERE kind NOT IN ('meta', 'request', 'stub', 'seal_key')",
        [],
        |row| row.get(0),
    )?;
    let some = jobs + rows > 0;
    Ok(some
        .then(|| format!("it has {jobs} jobs and {rows} queues, limits, resources and the like")))
}

impl Source for CopyFolder {
    fn marked(&self) -> Result<Option<Mark>, CopyError> {
        Ok(self.source_mark()?.map(|(mark, _)| mark))
    }

    fn freeze(&self, mark: &Mark) -> Result<(), CopyError> {
        let before = self.source_mark()?;
        if before.as_ref().is_some_and(|(there, _)| there.copy != mark.copy) {
            return Err(CopyError::no(
                format!("{} is frozen for another copy", self.place()),
                "thaw it first: tenure copy --thaw --from 'file:PATH'",
            ));
        }
        let frozen_at = before.map_or_else(|| SystemClock.now(), |(_, at)| at).us();
        let Mark { copy, to, whole } = mark.clone();
        let mark = Marked::Source { copy, to, whole, frozen_at };
        put_mark(&self.conn, &mark).map_err(self.broken())?;
        self.still_here(())
    }

    fn thaw(&self) -> Result<(), CopyError> {
        self.source_mark()?;
        put_fact(&self.conn, MARK, None).map_err(self.broken())?;
        self.still_here(())
    }

    fn now(&self) -> Moment {
        SystemClock.now()
    }

    fn rows(&self) -> Result<Frozen, CopyError> {
        let Some((_, frozen_at)) = self.source_mark()? else {
            return Err(Refusal::from(CopyRefusal::NotFrozen { place: self.place() }).into());
        };
        let rows = self.snapshot().map_err(|why| CopyError::Disk(why.to_string()))?;
        let recovers_until = self.lost.map(|ttl| frozen_at.plus(ttl));
        self.still_here(Frozen::new(rows, frozen_at, recovers_until)?)
    }
}

impl Target for CopyFolder {
    fn found(&self) -> Result<Found, CopyError> {
        match self.mark()? {
            Some(Marked::Target { copy, .. }) => return Ok(Found::Part(copy)),
            Some(Marked::Source { to, .. }) => {
                return Ok(Found::Other(format!("it is frozen, as the source of {to}")));
            }
            None => {}
        }
        if let Some(copy) = fact(&self.conn, COPIED).map_err(self.broken())? {
            return Ok(Found::Whole(copy));
        }
        let contents = contents(&self.conn).map_err(self.broken())?;
        Ok(contents.map_or(Found::Empty, Found::Other))
    }

    fn claim(&self, copy: &str) -> Result<bool, CopyError> {
        if let Some(before) = self.part(copy)? {
            // A mark of an earlier release names less than a filling needs after the rows are gone.
            put_mark(&self.conn, &before.mark(copy)).map_err(self.broken())?;
            return self.still_here(true);
        }
        if fact(&self.conn, COPIED).map_err(self.broken())?.as_deref() == Some(copy) {
            return self.still_here(false);
        }
        if let Some(contents) = contents(&self.conn).map_err(self.broken())? {
            return Err(CopyError::no(
                format!("{} is not empty: {contents}", self.place()),
                "copy to a folder that is not there yet",
            ));
        }
        let before = Before { commit: self.numbers()?.commit, fences: self.fences()? };
        put_mark(&self.conn, &before.mark(copy)).map_err(self.broken())?;
        self.still_here(true)
    }

    fn fill(
        &self,
        copy: &str,
        from: Frozen,
        watch: &mut dyn CopyWatch,
    ) -> Result<Filled, CopyError> {
        let before = self.part(copy)?.ok_or_else(|| self.not_this())?;
        let filled =
            Filling { conn: &self.conn, folder: &self.folder, before, copy }.fill(from, watch)?;
        self.still_here(filled)
    }

    fn open(&self, copy: &str) -> Result<(), CopyError> {
        if self.part(copy)?.is_none() {
            let copied = fact(&self.conn, COPIED).map_err(self.broken())?;
            let done = copied.as_deref() == Some(copy);
            return if done { Ok(()) } else { Err(self.not_this()) };
        }
        // The first start would miss the file: a folder that has commits has it.
        let synced = synced::open(&self.folder, self.numbers()?, SystemClock.now());
        synced.map_err(|why| CopyError::Disk(why.to_string()))?;
        let open = || {
            let step = self.conn.unchecked_transaction()?;
            put_fact(&step, MARK, None)?;
            put_fact(&step, COPIED, Some(copy))?;
            step.commit()
        };
        open().map_err(self.broken())?;
        self.still_here(())
    }

    fn give_up(&self) -> Result<(), CopyError> {
        let Some(Marked::Target { commit, copy, fences }) = self.mark()? else {
            return Err(self.not_this());
        };
        let before = Before { commit: self.last_commit(commit)?, fences };
        let numbers = before.end(&copy, NO_JOB);
        let mut machine = Machine::new(Config::default());
        before.fences.iter().for_each(|(namespace, fence)| machine.raise_fence(namespace, *fence));
        let changes = Changes { rows: machine.drain().rows, ..Changes::default() };
        let forget = || {
            restored::begin_anew(&self.conn)?;
            Writer::new(&self.conn, numbers, 0)?.write_restored(&[changes], numbers)?;
            put_fact(&self.conn, MARK, None)?;
            self.conn.execute_batch("VACUUM")
        };
        forget().map_err(self.broken())?;
        self.still_here(())
    }
}
