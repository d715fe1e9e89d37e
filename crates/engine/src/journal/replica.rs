//! Rows of a store that another process leads: they follow its journal, entry by entry, through the same writer
//! that wrote the leader's rows.

use rusqlite::Connection;
use tenure_journal::{Journal, JournalEntry, Position};

use crate::bodies::Bodies;
use crate::error::OpenError;
use crate::journal::load::Loading;
use crate::options::Options;
use crate::sqlite::folder::Folder;
use crate::sqlite::scan::start;
use crate::sqlite::schema::{self, store_error};
use crate::sqlite::snapshot::RowsSnapshot;
use crate::sqlite::watch::{LookWhen, Watch};
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::streams;
use crate::sqlite::write::writer::{ApplyError, Writer};

/// Rows that follow a journal. To lead the store, open an [`Embedded`](crate::Embedded::open_over) over them.
pub struct Replica {
    conn: Connection,
    folder: Folder,
    watch: Watch,
    numbers: Numbers,
    events_bytes: u64,
    /// Payloads for the engine that is opened over the rows.
    bodies: Bodies,
}

impl Replica {
    /// Opens the rows, made if they do not exist. Only the options of the store itself count: its location, and the
    /// bytes of events that it keeps, which must be the same as the leader's.
    ///
    /// # Errors
    /// The folder cannot be used, or another process has it open.
    pub fn open(options: &Options) -> Result<Replica, OpenError> {
        let folder = Folder::open(&options.location)?;
        let conn = schema::open_writer(&folder, options)?;
        let numbers = start::numbers(&conn, &folder)?;
        let events_bytes = streams::bound(options.events_bytes, options.max_bytes);
        let watch = folder.watch_always()?;
        let bodies = Bodies::new(options.body_bytes);
        Ok(Replica { conn, folder, watch, numbers, events_bytes, bodies })
    }

    /// The last entry that was applied.
    pub fn position(&self) -> Position {
        self.numbers.position()
    }

    /// Applies entries in their order: all of them, or none. An entry that was applied before changes nothing.
    ///
    /// # Errors
    /// An entry does not follow the last one, or is of another release; the rows cannot be written.
    pub fn apply(&mut self, entries: &[JournalEntry]) -> Result<(), OpenError> {
        let failed = |why| store_error(&self.folder, why);
        let mut writer =
            Writer::new(&self.conn, self.numbers, self.events_bytes).map_err(failed)?;
        writer.apply(entries, &self.bodies).map_err(|why| match why {
            ApplyError::Store(why) => failed(why),
            why => OpenError::Journal(why.to_string()),
        })?;
        self.numbers = writer.numbers();
        Ok(())
    }

    /// Applies all entries of the journal that the rows lack, and starts from its snapshot if only that has the first
    /// of them. Blocks. After an error the same may be called again.
    ///
    /// # Errors
    /// The journal cannot be read, something in it is damaged or missing, or the rows are no copy of it. Their folder
    /// was removed or moved: they can be written, but nobody else can open them.
    pub fn catch_up(&mut self, journal: &dyn Journal) -> Result<(), OpenError> {
        self.watch.look(LookWhen::Now).map_err(|seen| OpenError::Folder {
            folder: self.folder.path().to_owned(),
            why: std::io::Error::new(std::io::ErrorKind::NotFound, seen),
        })?;
        let Replica { conn, folder, numbers, events_bytes, bodies, watch: _ } = self;
        let (events_bytes, numbers_then) = (*events_bytes, *numbers);
        let mut loading = Loading { conn, folder, events_bytes, bodies, numbers: numbers_then };
        let done = loading.catch_up(journal);
        *numbers = loading.numbers;
        done
    }

    pub(crate) fn into_parts(self) -> (Folder, Connection, Bodies) {
        (self.folder, self.conn, self.bodies)
    }

    /// Begins a snapshot of all rows as they are now. It can be read while more entries are applied.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::job::{JobState, Labels};
    use tenure_core::names::{JobId, Namespace, QueueName};
    use tenure_core::secret::Json;
    use tenure_machine::rows::{JobChange, JobContent};
    use tenure_machine::{CHANGES_FORMAT, Changes, Seq};

    use super::*;
    use crate::options::Location;

    fn pushed(id: &str) -> JobChange {
        let (kind, payload) = (String::new(), Json::from("p"));
        let content = JobContent { kind, payload, labels: Labels::new(), traceparent: None };
        JobChange {
            new: Some(Arc::new((Namespace::main(), JobId::parse(id).unwrap(), content))),
            queue: Some(QueueName::parse("q").unwrap()),
            state: Some(JobState::Ready),
            shape: Some(Arc::from([1u8].as_slice())),
            life: Some(vec![1]),
            ..JobChange::default()
        }
    }

    /// An entry that follows `end`, with one change of each of these jobs.
    fn after(end: &mut Position, all: Vec<(u64, JobChange)>) -> JournalEntry {
        let mut changes = Changes { last_seq: Seq::new(9), ..Changes::default() };
        changes.rows.jobs.extend(all.into_iter().map(|(seq, change)| (Seq::new(seq), change)));
        let entry = JournalEntry::after(*end, CHANGES_FORMAT, &changes.encode());
        *end = entry.position();
        entry
    }

    #[test]
    fn a_replica_keeps_payloads_of_waiting_jobs_from_its_entries() {
        let mut replica = Replica::open(&Options::new(Location::Memory)).unwrap();
        let mut end = Position::default();
        let one = after(&mut end, vec![(1, pushed("a")), (2, pushed("b")), (3, pushed("c"))]);
        // The second job has run, and the third is gone.
        let ran = JobChange { error: Some(Some("no".to_owned())), ..JobChange::default() };
        let gone = JobChange { deleted: true, ..JobChange::default() };
        let two = after(&mut end, vec![(2, ran), (3, gone)]);
        replica.apply(&[one]).unwrap();
        replica.apply(&[two]).unwrap();
        let (_, _, bodies) = replica.into_parts();
        assert_eq!(bodies.lacks((1..=3).map(Seq::new)), [2, 3].map(Seq::new));
        assert_eq!(
            bodies.take(&[Some(Seq::new(1))])[0].as_ref().unwrap().new.2.payload.text(),
            "\"p\""
        );
        bodies.clear();
        assert_eq!(bodies.lacks([Seq::new(1)].into_iter()), [Seq::new(1)]);
    }
}
