//! A store in Redis that becomes a copy: it is claimed by its mark, and has no entry until the copy comes as one snapshot.
//!
//! A copy that broke off begins again: its rows are gone with the process.

use tenure_core::refusal::Refusal;
use tenure_engine::copy::{CopyError, CopyWatch, Filled, Found, Frozen, Target};
use tenure_engine::{CopyFolder, RowsSnapshot};
use tenure_journal::{JournalEntry, Position, ReadError, Snapshot};
use tenure_redis::{
    Generation, RedisJournal, RedisStore, RunNote, ScriptReply, SnapshotTurn, StoreError,
    WriteError,
};

use super::{CopyRedis, StoreMark, away, in_journal, taken, unusable};
use crate::room::full;

impl CopyRedis {
    fn found_now(&self) -> Result<Found, CopyError> {
        let (text, entries) = self.look()?;
        Ok(match self.read(&text)? {
            Some(StoreMark::Target { copy }) => Found::Part(copy),
            Some(StoreMark::Copied { copy }) => Found::Whole(copy),
            Some(StoreMark::Source { to, .. }) => {
                Found::Other(format!("it is frozen, as the source of {to}"))
            }
            None if entries == 0 => Found::Empty,
            None => Found::Other(in_journal(entries)),
        })
    }

    /// Marks an empty store as one that becomes this copy. Whether it still does: `false` if it is whole.
    fn claim_now(&self, copy: &str) -> Result<bool, CopyError> {
        match self.read(&self.look()?.0)? {
            None => {}
            there => return self.becomes(copy, there),
        }
        let (journal, seen) = self.acquire()?;
        match self.read(&seen)? {
            None => {
                let says = StoreMark::Target { copy: copy.to_owned() };
                self.write_mark(&journal, seen, Some(&says), true)?;
                Ok(true)
            }
            there => self.becomes(copy, there),
        }
    }

    /// Whether a store with this mark becomes this copy: `false` if it did.
    fn becomes(&self, copy: &str, mark: Option<StoreMark>) -> Result<bool, CopyError> {
        match mark {
            Some(StoreMark::Target { copy: there }) if there == copy => Ok(true),
            Some(StoreMark::Copied { copy: there }) if there == copy => Ok(false),
            _ => Err(self.not_this()),
        }
    }

    /// Makes the rows those of the store, in one step, and then says that it is whole.
    fn publish(&self, copy: &str) -> Result<(), CopyError> {
        let (journal, seen) = self.acquire()?;
        // Asked with the store taken: were it whole, somebody might have used it by now.
        let mark = self.read(&seen)?;
        if !self.becomes(copy, mark)? {
            return Ok(());
        }
        let filled = self.filled.borrow();
        let rows = filled.as_ref().ok_or_else(|| self.not_this())?.snapshot();
        self.turn_to(&journal, rows.map_err(|why| unusable(&why))?)?;
        let says = StoreMark::Copied { copy: copy.to_owned() };
        self.write_mark(&journal, seen, Some(&says), false)
    }

    fn turn_to(&self, journal: &RedisJournal, rows: RowsSnapshot) -> Result<(), CopyError> {
        let by = journal.term().clone();
        let generation = Generation { epoch: by.epoch, count: 1 };
        let mut rows = RowsWithRoom { rows, store: &self.store, parts: 0, is_full: false };
        let written = self.store.write_snapshot(&by, generation, &mut rows);
        if rows.is_full {
            self.store.unlink_unfinished(&by, generation).map_err(|why| away(&why))?;
            return Err(Refusal::from(full()).into());
        }
        let snapshot = written.map_err(|why| match why {
            WriteError::Store(why) => away(&why),
            WriteError::Refused(_) => self.was_taken(),
            WriteError::Parts(ReadError::Away(why)) => taken(why),
            WriteError::Parts(why) => CopyError::Disk(why.to_string()),
        })?;
        let (moment, heals, note) = (journal.acquired().beat, true, RunNote::Whole);
        let turn = SnapshotTurn { by, snapshot, heals, moment, ttl: 0, note };
        match self.store.turn(&turn).map_err(|why| away(&why))? {
            ScriptReply::Done { .. } => Ok(()),
            _ => Err(self.was_taken()),
        }
    }

    fn give_up_now(&self) -> Result<(), CopyError> {
        let (journal, seen) = self.acquire()?;
        match self.read(&seen)? {
            Some(StoreMark::Target { .. }) => {}
            _ => return Err(self.not_this()),
        }
        match self.store.drop_store(journal.term(), &seen).map_err(|why| away(&why))? {
            ScriptReply::Done { .. } => Ok(()),
            _ => Err(self.was_taken()),
        }
    }

    /// Refuses a Redis that is full as it is. Whether the copy has room in it too shows when it is written.
    fn has_room(&self) -> Result<(), CopyError> {
        if self.store.room().map_err(|why| away(&why))?.is_full() {
            Err(Refusal::from(full()).into())
        } else {
            Ok(())
        }
    }
}

/// Parts of a snapshot between two looks at the room that is left.
const PARTS_EACH: usize = 8;

/// Rows that end once Redis has no room for more of them.
struct RowsWithRoom<'a> {
    rows: RowsSnapshot,
    store: &'a RedisStore,
    /// Those that were read.
    parts: usize,
    is_full: bool,
}

impl Snapshot for RowsWithRoom<'_> {
    fn end(&self) -> Position {
        self.rows.end()
    }

    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        if self.parts.is_multiple_of(PARTS_EACH) {
            let away = |why: StoreError| ReadError::Away(why.to_string());
            self.is_full = self.store.room().map_err(away)?.is_full();
            if self.is_full {
                return Err(ReadError::Away(Refusal::from(full()).detail));
            }
        }
        self.parts += 1;
        self.rows.next_part()
    }
}

impl Target for CopyRedis {
    fn found(&self) -> Result<Found, CopyError> {
        self.found_now()
    }

    fn claim(&self, copy: &str) -> Result<bool, CopyError> {
        self.has_room()?;
        self.claim_now(copy)
    }

    fn fill(
        &self,
        copy: &str,
        from: Frozen,
        watch: &mut dyn CopyWatch,
    ) -> Result<Filled, CopyError> {
        let rows = CopyFolder::private().map_err(|why| unusable(&why))?;
        let filled = rows.fill_private(copy, from, watch)?;
        self.filled.replace(Some(rows));
        Ok(filled)
    }

    fn open(&self, copy: &str) -> Result<(), CopyError> {
        if self.claim_now(copy)? {
            self.publish(copy)?;
        }
        Ok(())
    }

    fn give_up(&self) -> Result<(), CopyError> {
        self.give_up_now()
    }
}
