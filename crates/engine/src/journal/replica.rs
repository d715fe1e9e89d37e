//! The rows of a store that another process owns: they follow its journal, entry by entry, by the writer that wrote
//! them first.

use rusqlite::Connection;
use tenure_journal::{Journal, JournalEntry, Position};

use crate::error::OpenError;
use crate::file::commit::Numbers;
use crate::file::folder::Folder;
use crate::file::schema::{self, store_error};
use crate::file::snapshot::RowsSnapshot;
use crate::file::start;
use crate::file::streams;
use crate::file::watch::{LookWhen, Watch};
use crate::file::writer::{ApplyError, Writer};
use crate::journal::load::Loading;
use crate::options::Options;

/// Rows that follow a journal. To own the store, open an [`Embedded`](crate::Embedded::open_over) over them.
pub struct Replica {
    conn: Connection,
    folder: Folder,
    watch: Watch,
    numbers: Numbers,
    events_bytes: u64,
}

impl Replica {
    /// Opens the rows, made if they are not there. Of the options only those of the store itself count: where it is,
    /// and how many bytes of events it keeps, which must be what its owner keeps.
    ///
    /// # Errors
    /// The folder cannot be used, or another process has it open.
    pub fn open(options: &Options) -> Result<Replica, OpenError> {
        let folder = Folder::open(&options.location)?;
        let conn = schema::open_writer(&folder, options)?;
        let numbers = start::numbers(&conn, &folder)?;
        let events_bytes = streams::bound(options.events_bytes, options.max_bytes);
        let watch = folder.watch_always()?;
        Ok(Replica { conn, folder, watch, numbers, events_bytes })
    }

    /// The last entry that was applied.
    pub fn position(&self) -> Position {
        self.numbers.position()
    }

    /// Applies entries in their order: all of them, or none. One that was applied before changes nothing.
    ///
    /// # Errors
    /// One does not follow on what is here, or is of another release; the rows cannot be written.
    pub fn apply(&mut self, entries: &[JournalEntry]) -> Result<(), OpenError> {
        let failed = |why| store_error(&self.folder, why);
        let mut writer =
            Writer::new(&self.conn, self.numbers, self.events_bytes).map_err(failed)?;
        writer.apply(entries).map_err(|why| match why {
            ApplyError::Store(why) => failed(why),
            why => OpenError::Journal(why.to_string()),
        })?;
        self.numbers = writer.numbers();
        Ok(())
    }

    /// Applies all that the journal has now and the rows lack, and begins with its snapshot where the first of that is
    /// only there. Blocks. After an error the same may be called again.
    ///
    /// # Errors
    /// The journal cannot be read, something in it is damaged or missing, or the rows are no copy of it. Their folder was removed
    /// or moved: they can be written, and not opened by anybody else.
    pub fn catch_up(&mut self, journal: &dyn Journal) -> Result<(), OpenError> {
        self.watch.look(LookWhen::Now).map_err(|seen| OpenError::Folder {
            folder: self.folder.path().to_owned(),
            why: std::io::Error::new(std::io::ErrorKind::NotFound, seen),
        })?;
        let Replica { conn, folder, numbers, events_bytes, watch: _ } = self;
        let (events_bytes, numbers_then) = (*events_bytes, *numbers);
        let mut loading = Loading { conn, folder, events_bytes, numbers: numbers_then };
        let done = loading.catch_up(journal);
        *numbers = loading.numbers;
        done
    }

    pub(crate) fn into_parts(self) -> (Folder, Connection) {
        (self.folder, self.conn)
    }

    /// All rows as they are now, for a snapshot. It can be read while more entries are applied.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn snapshot(&self) -> Result<RowsSnapshot, OpenError> {
        RowsSnapshot::begin(&self.folder)
    }
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").field("position", &self.position()).finish_non_exhaustive()
    }
}
