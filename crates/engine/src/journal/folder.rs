//! The journal of a folder: rows are brought up to the entries that the last process left, and a new journal begins behind them.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::time::{Moment, Span};
use tenure_journal::file::{FileJournal, FileJournalOptions, SyncWhen, read_left};
use tenure_journal::{JournalEntry, ReadError};

use crate::bodies::Bodies;
use crate::error::OpenError;
use crate::options::{Durability, Options};
use crate::sqlite::capacity::reserve::Reserve;
use crate::sqlite::capacity::segment_bytes;
use crate::sqlite::folder::{Folder, file_system};
use crate::sqlite::last_end;
use crate::sqlite::schema::store_error;
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::disk::Checkpoints;
use crate::sqlite::write::synced;
use crate::sqlite::write::writer::{ApplyError, Writer};

/// Bytes of entries that are applied in one transaction. One entry may exceed it.
const PAGE_BYTES: usize = 1 << 20;
/// The longest age of an entry that is not synced, with [`Durability::Everysec`].
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The findings in the journal of the last process.
pub(crate) struct CaughtUp {
    /// The numbers of its last entry.
    pub numbers: Numbers,
    /// The longest ttl of any lease that it names.
    pub longest_ttl: Span,
    /// Answered entries are missing, which was accepted.
    pub accepted_loss: bool,
}

impl CaughtUp {
    /// The longest ttl of a lease that may have been lost; `None`: no grant was lost. `ttl`: the longest in the rows.
    pub(crate) fn lost(
        &self,
        conn: &Connection,
        ttl: Span,
        now: Moment,
    ) -> rusqlite::Result<Option<Span>> {
        last_end::lost(conn, self.accepted_loss, ttl.max(self.longest_ttl), now)
    }

    /// Called at a start, before the streams of events are opened: the time for which it recovers, if it does.
    pub(crate) fn recovers(
        &self,
        conn: &Connection,
        ttl: Span,
        now: Moment,
    ) -> rusqlite::Result<Option<Span>> {
        let lost = self.lost(conn, ttl, now)?;
        last_end::begin(conn, lost, now)?;
        Ok(lost)
    }
}

/// The reason why rows could not be brought up to the journal.
enum NotApplied {
    Read(ReadError),
    Apply(ApplyError),
}

impl From<ReadError> for NotApplied {
    fn from(why: ReadError) -> Self {
        NotApplied::Read(why)
    }
}

impl From<ApplyError> for NotApplied {
    fn from(why: ApplyError) -> Self {
        NotApplied::Apply(why)
    }
}

/// Rows that may lack entries of their folder's journal.
pub(crate) struct LeftBehind<'a> {
    pub conn: &'a Connection,
    pub folder: &'a Folder,
    pub events_bytes: u64,
    pub accept_loss: bool,
    /// Receives the bodies of jobs that wait.
    pub bodies: &'a Bodies,
}

impl LeftBehind<'_> {
    /// Applies the entries that the rows lack.
    pub(crate) fn catch_up(&self, numbers: Numbers) -> Result<CaughtUp, OpenError> {
        let failed = |why| store_error(self.folder, why);
        let mut writer = Writer::new(self.conn, numbers, self.events_bytes).map_err(failed)?;
        let mut longest_ttl = Duration::ZERO;
        let done = self.apply_all(&mut writer, numbers, &mut longest_ttl);
        let numbers = writer.numbers();
        let refused = match done {
            Ok(()) => None,
            Err(NotApplied::Apply(ApplyError::Store(why))) => return Err(failed(why)),
            Err(NotApplied::Read(ReadError::Away(why))) => return Err(OpenError::Journal(why)),
            Err(NotApplied::Read(ReadError::Missing { last, .. })) => Some(OpenError::Shorter {
                folder: self.folder.path().to_owned(),
                commit: numbers.commit,
                synced: last,
                at: synced::said(self.folder).map(|(_, at)| at),
            }),
            Err(NotApplied::Read(why)) => Some(self.damaged(&why)),
            Err(NotApplied::Apply(why)) => Some(self.damaged(&why)),
        };
        let mut accepted_loss = refused.is_some();
        if let Some(refused) = refused {
            if !self.accept_loss {
                return Err(refused);
            }
            tracing::warn!("accepted: {refused}");
        }
        accepted_loss |= synced::check(self.folder, numbers.commit, self.accept_loss)?;
        Ok(CaughtUp { numbers, longest_ttl: longest_ttl.into(), accepted_loss })
    }

    fn apply_all(
        &self,
        writer: &mut Writer<'_>,
        numbers: Numbers,
        longest_ttl: &mut Duration,
    ) -> Result<(), NotApplied> {
        let (mut page, mut bytes) = (Vec::<JournalEntry>::new(), 0);
        let (path, end) = (self.folder.journal(), numbers.position());
        let read = read_left(&path, end, longest_ttl, |entry| {
            bytes += entry.bytes().len();
            page.push(entry);
            if bytes >= PAGE_BYTES {
                writer.apply(&page, self.bodies)?;
                page.clear();
                bytes = 0;
            }
            Ok::<(), NotApplied>(())
        });
        // Entries before the damage are whole.
        writer.apply(&page, self.bodies)?;
        read
    }

    fn damaged(&self, why: &dyn std::fmt::Display) -> OpenError {
        OpenError::Row { folder: self.folder.path().to_owned(), why: why.to_string() }
    }
}

/// Begins the journal of a folder behind its rows, which are durable when this returns.
pub(crate) fn begin(
    folder: &Folder,
    options: &Options,
    numbers: Numbers,
) -> Result<Checkpoints, OpenError> {
    let failed = |why| OpenError::Folder { folder: folder.path().to_owned(), why };
    let log = File::open(folder.log()).map_err(failed)?;
    log.sync_data().map_err(failed)?;
    let mut synced = synced::open(folder, numbers, options.clock.now())?;
    let (clock, reserve) = (options.clock.clone(), Reserve::of(folder.path()));
    let (_, total) = file_system(folder.path());
    let journal = FileJournal::begin(
        &folder.journal(),
        numbers.position(),
        FileJournalOptions {
            sync: match options.durability {
                Durability::Always => SyncWhen::BeforeAnswer,
                Durability::Everysec => SyncWhen::Every(SYNC_EVERY),
            },
            segment_max: segment_bytes(options.max_bytes, total),
            on_synced: Box::new(move |number| synced.note(number, clock.now())),
            make_room: Box::new(move || reserve.release()),
        },
    );
    Ok(Checkpoints { journal: Arc::new(journal.map_err(failed)?), log })
}
