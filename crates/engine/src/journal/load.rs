//! Brings rows up to the journal that they copy, before anything is read from them.
//!
//! It must never take missing entries for the end: a load ends only when the journal reports the same end as
//! the rows.

use std::convert::Infallible;
use std::time::Duration;

use rusqlite::Connection;
use tenure_journal::{Append, Appended, BadEntry, Journal, Position, ReadError, Reply};
use tenure_machine::Changes;

use crate::bodies::Bodies;
use crate::error::OpenError;
use crate::sqlite::folder::Folder;
use crate::sqlite::schema::store_error;
use crate::sqlite::snapshot::restored::{self, RestoreError};
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::writer::{ApplyError, Writer};

/// The longest wait for one check.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most tries of a check whose outcome is unknown.
const TRIES: u32 = 8;
/// The most snapshots that are begun: a newer one may replace each of them while it is read.
const SNAPSHOTS_MAX: u32 = 8;

/// Rows that are behind a journal.
pub(crate) struct Loading<'a> {
    pub conn: &'a Connection,
    pub folder: &'a Folder,
    pub events_bytes: u64,
    /// Receives the bodies of jobs that wait.
    pub bodies: &'a Bodies,
    /// The position of the rows.
    pub numbers: Numbers,
}

impl Loading<'_> {
    fn other(&self, why: String) -> OpenError {
        OpenError::OtherRows { folder: self.folder.path().to_owned(), why }
    }

    fn failed(&self, why: rusqlite::Error) -> OpenError {
        store_error(self.folder, why)
    }

    /// Applies all entries that the rows lack, and starts from the snapshot if only that has the first of them.
    pub(crate) fn catch_up(&mut self, journal: &dyn Journal) -> Result<(), OpenError> {
        if restored::is_half(self.conn).map_err(|why| self.failed(why))? {
            restored::begin_anew(self.conn).map_err(|why| self.failed(why))?;
            self.numbers = Numbers::default();
        }
        let here = self.numbers.commit;
        let mut snapshots = 0;
        loop {
            let end = self.numbers.position();
            let entries = match journal.read(end.number) {
                Ok(entries) if entries.is_empty() => return Ok(()),
                Ok(entries) => entries,
                Err(why @ ReadError::InSnapshot { .. }) if snapshots == SNAPSHOTS_MAX => {
                    return Err(away(&why));
                }
                Err(ReadError::InSnapshot { .. }) => {
                    snapshots += 1;
                    self.restore(journal)?;
                    continue;
                }
                Err(why) => return Err(away(&why)),
            };
            let writer = Writer::new(self.conn, self.numbers, self.events_bytes);
            let mut writer = writer.map_err(|why| self.failed(why))?;
            writer.apply(&entries, self.bodies).map_err(|why| match why {
                ApplyError::Store(why) => self.failed(why),
                ApplyError::Entry { why: BadEntry::OtherPast { before }, .. } if before == here => {
                    self.other(format!("entry {before} is another there"))
                }
                why => away(&why),
            })?;
            self.numbers = writer.numbers();
            if self.numbers.position() == end {
                return Err(away(&format!("it has no entry {}", end.number + 1)));
            }
        }
    }

    /// Replaces the rows by the snapshot. If a newer one replaces it meanwhile, the rows are emptied.
    fn restore(&mut self, journal: &dyn Journal) -> Result<(), OpenError> {
        let Some(mut snapshot) = journal.snapshot().map_err(|why| away(&why))? else {
            return Ok(());
        };
        self.bodies.clear();
        let as_it_is = |_: &mut Changes| Ok::<(), Infallible>(());
        match restored::restore(self.conn, &mut *snapshot, self.events_bytes, as_it_is) {
            Ok(numbers) => self.numbers = numbers,
            Err(RestoreError::Read(ReadError::Turned)) => {
                restored::begin_anew(self.conn).map_err(|why| self.failed(why))?;
                self.numbers = Numbers::default();
            }
            Err(RestoreError::Read(why)) => return Err(away(&why)),
            Err(RestoreError::Store(why)) => return Err(self.failed(why)),
            Err(RestoreError::Unchanged(never)) => match never {},
        }
        Ok(())
    }

    /// True if the journal has another entry under the number of the rows' last one.
    fn is_other(&self, journal: &dyn Journal) -> bool {
        let end = self.numbers.position();
        let there = match end.number.checked_sub(1).map(|before| journal.read(before)) {
            Some(Ok(entries)) => entries.first().map(|entry| entry.position()),
            Some(Err(ReadError::InSnapshot { .. })) => {
                journal.snapshot().ok().flatten().map(|snapshot| snapshot.end())
            }
            _ => None,
        };
        there.is_some_and(|there| there.number == end.number && there.sum != end.sum)
    }
}

/// Brings the rows up to the end that the journal reports; returns the numbers of the last entry.
pub(crate) fn load(mut loading: Loading<'_>, journal: &dyn Journal) -> Result<Numbers, OpenError> {
    let here = loading.numbers.commit;
    loop {
        loading.catch_up(journal)?;
        let end = loading.numbers.position();
        match check(journal, end) {
            Appended::Done => return Ok(loading.numbers),
            Appended::At(has) if has > end.number => {}
            // It gave out entries behind the end that it reports.
            Appended::At(has) if has < end.number && here <= has => {
                return Err(away(&format!(
                    "it says that it ends at entry {has}, and holds entries up to {}: what says so was lost or is older",
                    end.number
                )));
            }
            Appended::At(has) if has < end.number => {
                let end = end.number;
                return Err(
                    loading.other(format!("they end at entry {end}, and the journal at {has}"))
                );
            }
            Appended::At(same) => {
                return Err(loading.other(format!("entry {same} is another there")));
            }
            Appended::Fenced if loading.is_other(journal) => {
                return Err(loading.other(format!("entry {} is another there", end.number)));
            }
            Appended::Fenced => return Err(away(&"another process owns the store")),
            Appended::Moved => return Err(away(&"it is not the one that was opened")),
            Appended::Full => return Err(away(&"there is no room in it")),
            Appended::Ended => return Err(away(&"it was closed")),
            Appended::Unsure(why) | Appended::Broken(why) => return Err(away(&why)),
        }
    }
}

fn away(why: &dyn std::fmt::Display) -> OpenError {
    OpenError::Journal(why.to_string())
}

fn check(journal: &dyn Journal, end: Position) -> Appended {
    let once = || {
        let reply = Reply::to(journal, Append::Nothing(end));
        reply.wait(PATIENCE).unwrap_or(Appended::Unsure("it gives no answer".to_owned()))
    };
    let mut answer = once();
    for _ in 1..TRIES {
        if !matches!(answer, Appended::Unsure(_)) {
            break;
        }
        answer = once();
    }
    answer
}
