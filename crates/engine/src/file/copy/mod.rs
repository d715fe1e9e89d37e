//! A folder that is copied, or becomes a copy: its rows, and the mark that says so. The rows of a store that has a journal
//! are copied so too: they lie in a private folder for as long as that takes.
//!
//! The folder is locked by this process, so nobody is served from it meanwhile; the mark makes that so
//! beyond this process, since [`crate::Embedded::open`] refuses a marked folder. It writes rows and
//! nothing else: the next opening builds the machine from them as from any others.

mod kin;
mod read;
mod there;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::{CopyRefusal, Phrase};
use tenure_core::time::Moment;
use tenure_journal::{Position, Snapshot};
use tenure_machine::Seq;
use tenure_seam::copy::{CopyError, Mark};
use tenure_seam::{Clock, SystemClock};

use crate::bodies::Bodies;
use crate::error::OpenError;
use crate::file::commit::Numbers;
use crate::file::folder::{self, Folder};
use crate::file::schema;
use crate::file::small_facts::{fact, put_fact};
use crate::file::snapshot::RowsSnapshot;
use crate::file::start;
use crate::file::watch::{LookWhen, Watch};
use crate::journal::folder::LeftBehind;
use crate::journal::replica::Replica;
use crate::options::{Location, Options};

/// Where the mark is in the table of small facts.
const MARK: &str = "copy";
/// Which copy the store was, once that is whole.
const COPIED: &str = "copied";

/// Things on one page, and about how many bytes of what jobs and resources bring.
const ITEMS: usize = 250;
const BYTES: usize = 4 << 20;

/// What a folder is in a copy.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Marked {
    /// Frozen, to be copied elsewhere.
    Source { copy: String, to: String, whole: bool, frozen_at: u64 },
    /// An unfinished copy: how far each namespace is.
    Target { copy: String, namespaces: BTreeMap<Namespace, Part> },
}

impl Marked {
    fn source(mark: &Mark, frozen_at: Moment) -> Marked {
        let Mark { copy, to, whole } = mark.clone();
        Marked::Source { copy, to, whole, frozen_at: frozen_at.us() }
    }
}

/// How far a namespace is: pages that are there, and where the next one begins.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
struct Part {
    pages: u64,
    next: Option<String>,
}

/// A folder in the hands of a copy.
pub struct CopyFolder {
    conn: Mutex<Connection>,
    clock: Arc<dyn Clock>,
    watch: Option<Watch>,
    folder: Folder,
    /// The ids of the namespace whose jobs were asked for last, once its own are all there.
    ids: Mutex<Option<KnownIds>>,
}

/// Where the jobs of a namespace are, by their ids: a folder has no index of them.
struct KnownIds {
    namespace: Namespace,
    seqs: HashMap<String, Seq>,
}

impl CopyFolder {
    /// Opens a store that is there, be it marked.
    pub fn source(path: &Path) -> Result<Self, OpenError> {
        if !folder::has_store(path) {
            return Err(OpenError::Missing { folder: path.to_owned() });
        }
        Self::open(path.to_owned())
    }

    /// Opens a store, made if it is not there, be it marked.
    pub fn target(path: &Path) -> Result<Self, OpenError> {
        Self::open(path.to_owned())
    }

    /// The rows of a store that has a journal, which nobody appends to any more, were frozen at `frozen_at` by this clock.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn frozen(
        rows: Replica,
        clock: Arc<dyn Clock>,
        mark: &Mark,
        frozen_at: Moment,
    ) -> Result<Self, OpenError> {
        let (folder, conn, _) = rows.into_parts();
        put_fact(&conn, MARK, Some(&text_of(&Marked::source(mark, frozen_at))))
            .map_err(|why| schema::store_error(&folder, why))?;
        Self::over(folder, conn, clock)
    }

    /// Nothing, in a private folder that goes with this: it becomes a copy, and then the snapshot of a store that has a
    /// journal.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn fresh() -> Result<Self, OpenError> {
        let options = Options::new(Location::Memory);
        let folder = Folder::open(&options.location)?;
        let conn = schema::open_writer(&folder, &options)?;
        Self::over(folder, conn, Arc::new(SystemClock))
    }

    /// All rows, as the snapshot of a journal that begins with them; `None` if nothing was copied.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn snapshot(&self) -> Result<Option<RowsSnapshot>, OpenError> {
        let snapshot = RowsSnapshot::begin(&self.folder)?;
        Ok((snapshot.end() != Position::default()).then_some(snapshot))
    }

    fn open(path: PathBuf) -> Result<Self, OpenError> {
        let options = Options::new(Location::Folder(path));
        let folder = Folder::open(&options.location)?;
        let conn = schema::open_writer(&folder, &options)?;
        // What its last process left in the journal is copied, too. No event is dropped for that.
        let (events_bytes, bodies) = (u64::MAX, Bodies::new(0));
        let left = LeftBehind {
            conn: &conn,
            folder: &folder,
            events_bytes,
            accept_loss: false,
            bodies: &bodies,
        };
        left.catch_up(start::numbers(&conn, &folder)?)?;
        schema::may_move_log(&conn).map_err(|why| schema::store_error(&folder, why))?;
        // Nobody syncs the log beside it: each page is on disk when it is said to be there.
        conn.pragma_update(None, "synchronous", "FULL")
            .map_err(|why| schema::store_error(&folder, why))?;
        Self::over(folder, conn, Arc::new(SystemClock))
    }

    fn over(folder: Folder, conn: Connection, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let watch = folder.watch()?;
        let (conn, ids) = (Mutex::new(conn), Mutex::new(None));
        Ok(CopyFolder { conn, clock, watch, folder, ids })
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a step answers, unless the files that it wrote or read are not those of the folder any more.
    fn still_here<T>(&self, done: T) -> Result<T, CopyError> {
        match self.watch.as_ref().map_or(Ok(()), |watch| watch.look(LookWhen::Now)) {
            Ok(()) => Ok(done),
            Err(seen) => Err(CopyError::Disk(seen)),
        }
    }

    fn broken(&self) -> impl Fn(rusqlite::Error) -> CopyError + use<'_> {
        |why| {
            let folder = self.folder.path();
            CopyError::Disk(format!("the store in {folder:?} cannot be read or written: {why}"))
        }
    }

    /// How far the store is.
    fn numbers(&self, conn: &Connection) -> Result<Numbers, CopyError> {
        let read = Numbers::read(conn).map_err(self.broken())?;
        read.map_err(|_| self.bad_row("its last commit"))
    }

    fn bad_row(&self, what: &str) -> CopyError {
        CopyError::Disk(format!(
            "the store in {:?} is damaged: the row of {what} cannot be read",
            self.folder.path()
        ))
    }
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        if self.still_here(()).is_err() {
            // What is closed takes away its log by its path, which may be another's by now.
            let _ = self.conn().set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// The mark; one that cannot be read is one all the same, so nothing is served.
fn marked(conn: &Connection) -> rusqlite::Result<Option<Result<Marked, String>>> {
    let text = fact(conn, MARK)?;
    Ok(text.map(|text| serde_json::from_str(&text).map_err(|why| why.to_string())))
}

fn text_of(marked: &Marked) -> String {
    // Plain texts and numbers, for which writing JSON cannot fail.
    serde_json::to_string(marked).unwrap_or_default()
}

/// Refuses the ordinary opening of a folder that is marked.
pub(crate) fn refuse_marked(conn: &Connection, folder: &Folder) -> Result<(), OpenError> {
    let found = marked(conn).map_err(|why| schema::store_error(folder, why))?;
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

impl CopyFolder {
    /// What sentences call it.
    fn place(&self) -> Phrase {
        format!("the store in {:?}", self.folder.path()).into()
    }

    /// The mark of a source, and when it was frozen.
    fn source_mark(&self) -> Result<Option<(Mark, Moment)>, CopyError> {
        match marked(&self.conn()).map_err(self.broken())? {
            None => Ok(None),
            Some(Ok(Marked::Source { copy, to, whole, frozen_at })) => {
                Ok(Some((Mark { copy, to, whole }, Moment::from_us(frozen_at))))
            }
            Some(Ok(Marked::Target { .. })) => {
                let (place, address) = (self.place(), "'file:PATH'".into());
                Err(Refusal::from(CopyRefusal::Unfinished { place, address }).into())
            }
            Some(Err(_)) => Err(self.bad_row("its mark")),
        }
    }
}
