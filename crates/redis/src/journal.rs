//! The journal of one leader: one acquisition, and appends under it. It must never acquire again once it is fenced.

use std::time::Duration;

use tenure_journal::{
    Append, Appended, Hears, Journal, JournalEntry, Position, ReadError, Snapshot, StoreFacts,
};

use crate::scripts::{Acquisition, AppendCall, Own, RunNote, ScriptReply, Term};
use crate::store::{RedisStore, StoreError};

/// The number of retries of an acquisition when other processes are faster.
const TRIES: u32 = 8;

/// Reasons why a store was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The store cannot be reached or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// `{NAME}:store` and `{NAME}:own` name two stores.
    #[error(
        "the keys in Redis belong to two stores: one of them was restored, or its other keys were lost"
    )]
    OtherStore,
    /// Other processes keep acquiring it.
    #[error("other processes acquire the store at the same time")]
    Contended,
}

/// A journal in Redis that this process appends to.
#[derive(Debug)]
pub struct RedisJournal {
    store: RedisStore,
    by: Term,
    acquired: Own,
}

impl RedisJournal {
    /// Acquires the store for the process with the id `leader`, by force: its leader is fenced out. If there is no
    /// store, makes one with the id `new`. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, holds something else under these keys, or other processes are faster.
    pub fn acquire(
        store: RedisStore,
        leader: u128,
        new: u128,
    ) -> Result<RedisJournal, AcquireError> {
        for _ in 0..TRIES {
            let seen = store.look()?;
            let acquisition = Acquisition {
                store: seen.store.unwrap_or(new),
                leader,
                seen: seen.own.as_ref().map(|own| (own.epoch, own.leader)),
                above: 0,
                // A store without its `own` has lost it.
                is_new: seen.store.is_none(),
                run: seen.run,
                ttl: 0,
            };
            match store.acquire(&acquisition)? {
                ScriptReply::Acquired { own, run, .. } => {
                    let by = Term { store: own.store, epoch: own.epoch, leader, run };
                    return Ok(RedisJournal { store, by, acquired: *own });
                }
                ScriptReply::Moved if seen.own.is_some_and(|own| Some(own.store) != seen.store) => {
                    return Err(AcquireError::OtherStore);
                }
                _ => {}
            }
        }
        Err(AcquireError::Contended)
    }

    /// The content of `own` at the acquisition.
    pub fn acquired(&self) -> &Own {
        &self.acquired
    }

    /// The identity of this process in its appends.
    pub fn term(&self) -> &Term {
        &self.by
    }

    pub fn store(&self) -> &RedisStore {
        &self.store
    }
}

impl Journal for RedisJournal {
    fn append(&self, append: Append, hears: Hears) {
        let (tip, entry, ttl): (Position, Option<JournalEntry>, Duration) = match append {
            Append::Entry { entry, ttl, grants: _ } => (entry.position(), Some(entry), ttl),
            Append::Nothing(end) => (end, None, Duration::ZERO),
        };
        let by = self.by.clone();
        let ttl = ttl.as_micros() as u64;
        let call = AppendCall { by, tip, entry, moment: 0, ttl, note: RunNote::Stays, beats: true };
        let said = move |said: Result<_, String>| {
            let appended = match said.map(|value| ScriptReply::read(&value)) {
                Ok(Some(ScriptReply::Done { .. })) => Appended::Done,
                Ok(Some(ScriptReply::Fenced)) => Appended::Fenced,
                Ok(Some(ScriptReply::Moved)) => Appended::Moved,
                Ok(Some(ScriptReply::At(number))) => Appended::At(number),
                Ok(_) => Appended::Unsure("Redis says what no script of ours says".to_owned()),
                Err(why) => Appended::Unsure(why),
            };
            hears.hear(appended);
        };
        self.store.begin_append(&call, Box::new(said));
    }

    fn read(&self, after: u64) -> Result<Vec<JournalEntry>, ReadError> {
        self.store.read(after)
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, ReadError> {
        let snapshot = self.store.snapshot().map_err(|why| ReadError::Away(why.to_string()))?;
        Ok(snapshot.map(|snapshot| Box::new(snapshot) as Box<dyn Snapshot>))
    }

    fn facts(&self) -> StoreFacts {
        self.store.facts()
    }
}
