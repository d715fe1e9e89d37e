//! A store in Redis that is copied, or becomes a copy. The process of the copy owns it for that, and answers nobody.
//!
//! Its rows lie in a private folder of this process for as long as the copy takes, and are copied as those of a folder are:
//! read from the journal before the first page, or written as one snapshot behind the last. The mark of the copy in Redis
//! is written by the owner alone: a server that took the store earlier is deposed by then, and one that takes it later reads
//! the mark before it serves.

mod mark;
mod source;
mod target;

use std::cell::{OnceCell, RefCell};
use std::thread;
use std::time::{Duration, Instant};

use tenure_core::redis_address::Address;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::CopyRefusal;
use tenure_engine::copy::CopyError;
use tenure_engine::{CopyFolder, OpenError};
use tenure_engine_api::Fault;
use tenure_redis::{
    AcquireError, CopyMark, RedisJournal, RedisStore, ScriptReply, ServerEntry, StoreError,
};

pub(crate) use self::mark::pause;
use self::mark::{StoreMark, place};
use self::source::FrozenRows;
use crate::options::NodeError;
use crate::random;
use crate::settings::StoreSettings;

/// A server that lives writes a new word within this time: it does so once a second.
const SPEAKS_WITHIN: Duration = Duration::from_millis(2_500);
/// Between two looks at what the servers say.
const LISTENS_EVERY: Duration = Duration::from_millis(50);
/// Words that are older than this are of servers that ended without taking them away, in microseconds.
const SILENT_FOR_US: u64 = 5_000_000;

/// Why a store is not opened for a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyOpenError {
    /// Redis cannot be reached, or is none for a store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no store.
    #[error(
        "there is no store in {address}; name the address that `tenure serve` has as its store"
    )]
    Missing {
        /// The address.
        address: String,
    },
    /// Servers use it.
    #[error("{place} is served by {url}; stop all its servers, then copy it", place = place(.address))]
    Served {
        /// The address.
        address: String,
        /// Where one of them is reached.
        url: String,
    },
    /// The system has no random numbers.
    #[error(transparent)]
    System(#[from] NodeError),
}

/// A store in Redis in the hands of a copy.
pub struct CopyRedis {
    store: RedisStore,
    /// As it is shown.
    address: String,
    /// The id under which this process owns the store, and that of a store that it makes.
    ids: (u128, u128),
    /// Starts without; has what was read once the store is frozen.
    frozen: OnceCell<FrozenRows>,
    /// Starts without; the rows that become the store's snapshot, once they are complete.
    filled: RefCell<Option<CopyFolder>>,
}

impl CopyRedis {
    /// A store that is there, be it marked.
    ///
    /// # Errors
    /// It is not there, servers use it, or Redis cannot be reached.
    pub fn source(address: Address, name: &str) -> Result<CopyRedis, CopyOpenError> {
        let copy = CopyRedis::open(address, name)?;
        if copy.store.look()?.store.is_none() {
            return Err(CopyOpenError::Missing { address: copy.address });
        }
        copy.refuse_served()?;
        Ok(copy)
    }

    /// A store, made by the first page if it is not there, be it marked.
    ///
    /// # Errors
    /// Servers use it, or Redis cannot be reached or is none for a store.
    pub fn target(address: Address, name: &str) -> Result<CopyRedis, CopyOpenError> {
        let copy = CopyRedis::open(address, name)?;
        copy.store.check_server()?;
        if copy.store.look()?.store.is_none() {
            copy.store.refuse_earlier_layout()?;
        }
        copy.refuse_served()?;
        Ok(copy)
    }

    fn open(address: Address, name: &str) -> Result<CopyRedis, CopyOpenError> {
        let (shown, ids) = (address.to_string(), (random::id()?, random::id()?));
        let asked = address.replicas();
        let store = RedisStore::open(address, name)?;
        // A server of it would wait for them too.
        let replicas = asked.or(StoreSettings::of(&store)?.replicas);
        let store = store.with_replicas(replicas.unwrap_or_default());
        let (frozen, filled) = (OnceCell::new(), RefCell::new(None));
        Ok(CopyRedis { store, address: shown, ids, frozen, filled })
    }

    /// Refuses a store that servers use. A paused one is used by none, even if some wait for it.
    fn refuse_served(&self) -> Result<(), CopyOpenError> {
        let seen = self.store.look()?;
        if pause(&seen.copy, &self.address).is_some() {
            return Ok(());
        }
        let is_recent = |(said, _): &(u64, ServerEntry)| said + SILENT_FOR_US > seen.time;
        let before = self.store.servers()?;
        let begun = Instant::now();
        let mut may_live = before.iter().any(is_recent);
        while may_live && begun.elapsed() < SPEAKS_WITHIN {
            thread::sleep(LISTENS_EVERY);
            let now = self.store.servers()?;
            may_live = now.iter().any(is_recent);
            if let Some((_, lives)) = now.into_iter().find(|word| !before.contains(word)) {
                return Err(CopyOpenError::Served {
                    address: self.address.clone(),
                    url: lives.url,
                });
            }
        }
        Ok(())
    }

    /// The text of the mark, and the number of the last entry.
    fn look(&self) -> Result<(String, u64), CopyError> {
        let seen = self.store.look().map_err(|why| away(&why))?;
        Ok((seen.copy, seen.own.map_or(0, |own| own.tip.number)))
    }

    fn read(&self, text: &str) -> Result<Option<StoreMark>, CopyError> {
        StoreMark::read(text, &self.address)
            .map_err(|why| CopyError::no(why.to_string(), "this release cannot go on with it"))
    }

    /// Takes the store, so that nobody else writes to it or marks it; with the text of its mark.
    fn acquire(&self) -> Result<(RedisJournal, String), CopyError> {
        let (me, new) = self.ids;
        let journal = RedisJournal::acquire(self.store.clone(), me, new);
        let journal = journal.map_err(|why| match why {
            AcquireError::Store(why) => away(&why),
            why => taken(why.to_string()),
        })?;
        let (text, _) = self.look()?;
        Ok((journal, text))
    }

    /// Writes a mark in place of `seen`.
    fn write_mark(
        &self,
        journal: &RedisJournal,
        seen: String,
        mark: Option<&StoreMark>,
        must_be_empty: bool,
    ) -> Result<(), CopyError> {
        let (by, says) = (journal.term().clone(), mark.map(StoreMark::text).unwrap_or_default());
        let mark = CopyMark { by, seen, says, must_be_empty };
        match self.store.mark_copy(&mark).map_err(|why| away(&why))? {
            ScriptReply::Done { .. } => Ok(()),
            ScriptReply::At(entries) => Err(CopyError::no(
                format!("{} is not empty: {}", place(&self.address), in_journal(entries)),
                "copy to a store without jobs, queues, limits and pools",
            )),
            _ => Err(self.was_taken()),
        }
    }

    fn was_taken(&self) -> CopyError {
        taken(format!("another process took {} meanwhile", place(&self.address)))
    }

    fn not_this(&self) -> CopyError {
        Refusal::from(CopyRefusal::NotAPart { place: place(&self.address).into() }).into()
    }
}

fn in_journal(entries: u64) -> String {
    format!("its journal has {entries} entries")
}

/// Rows in the private folder that cannot be read or written, or a journal that cannot be read.
fn unusable(why: &OpenError) -> CopyError {
    match why {
        OpenError::Journal(_) => taken(why.to_string()),
        why => CopyError::Disk(why.to_string()),
    }
}

fn away(why: &StoreError) -> CopyError {
    taken(why.to_string())
}

/// The copy tries again.
fn taken(why: String) -> CopyError {
    Fault::StoreAway(why).into()
}

impl std::fmt::Debug for CopyRedis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyRedis").field("address", &self.address).finish_non_exhaustive()
    }
}
