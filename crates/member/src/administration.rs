//! A store as its operator sees and changes it, by a process that is no server of it.
//!
//! It must never take the store, nor write what only its owner may.

use std::thread;
use std::time::{Duration, Instant};

use tenure_core::time::Span;
use tenure_journal_redis::{Generation, RedisStore, StoreError, StoreSizes};
use tenure_redis_address::Address;

use crate::settings::{COMPACT, StoreSettings};

/// How often it is looked whether a snapshot is there.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A server that said nothing for this long, of which it says something each second, is not counted.
const SILENT_AFTER: Span = Span::from_s(10);

/// A store, without being a server of it.
pub struct StoreAdministration {
    store: RedisStore,
    name: String,
}

/// A store as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownStore {
    /// The name in its keys.
    pub name: String,
    /// Its random id.
    pub id: u128,
    /// Its settings.
    pub settings: StoreSettings,
    /// The epoch at which its owner took it; `None`: it has never had one.
    pub epoch: Option<u64>,
    /// How long ago its owner wrote last; `None`: it has no owner.
    pub beat_ago: Option<Span>,
    /// The number of its last entry.
    pub entry: u64,
    /// What it takes in Redis.
    pub sizes: StoreSizes,
    /// The servers that said something within the last 10 s, in the order of their addresses.
    pub servers: Vec<ShownServer>,
}

/// A server of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownServer {
    /// Where it says that it is reached.
    pub url: String,
    /// Its release.
    pub release: String,
    /// It owns the store.
    pub owns: bool,
    /// Entries that its rows lacked when it last said something.
    pub behind: u64,
    /// When that was.
    pub said_ago: Span,
}

/// What became of the wish for a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compacted {
    /// There is a new one; what the store takes now.
    Done(StoreSizes),
    /// The owner did not make one in time. It may still be at it.
    NotYet,
    /// There is no store.
    NoStore,
}

impl StoreAdministration {
    /// Of the store at this address. Whether Redis can be reached shows at the first question.
    ///
    /// # Errors
    /// The certificates of the address cannot be used, or the system gives no thread.
    pub fn open(address: Address) -> Result<Self, StoreError> {
        let name = address.name().to_owned();
        Ok(StoreAdministration { store: RedisStore::open(address, &name)?, name })
    }

    /// The store; `None` if no server has made one here. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or another release wrote the store.
    pub fn show(&self) -> Result<Option<ShownStore>, StoreError> {
        let seen = self.store.look()?;
        let Some(id) = seen.store else { return Ok(None) };
        let ago = |moment: u64| Span::from_us(seen.time.saturating_sub(moment));
        let entry = seen.own.as_ref().map_or(0, |own| own.tip.number);
        let owner = seen.own.as_ref().map(|own| own.owner);
        let servers =
            self.store.servers()?.into_iter().filter(|(said, _)| ago(*said) < SILENT_AFTER);
        let mut servers: Vec<_> = servers
            .map(|(said, server)| ShownServer {
                owns: owner == Some(server.id),
                behind: if owner == Some(server.id) {
                    0
                } else {
                    entry.saturating_sub(server.applied)
                },
                url: server.url,
                release: server.release,
                said_ago: ago(said),
            })
            .collect();
        servers.sort_by(|one, other| one.url.cmp(&other.url));
        Ok(Some(ShownStore {
            name: self.name.clone(),
            id,
            settings: StoreSettings::of(&self.store)?,
            epoch: seen.own.as_ref().map(|own| own.epoch),
            beat_ago: seen.own.as_ref().map(|own| ago(own.beat)),
            entry,
            sizes: self.store.measure()?,
            servers,
        }))
    }

    /// Changes the settings that are said. The owner goes by them within a second or two. Whether there is a store. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached; it may have happened.
    pub fn set(&self, settings: &StoreSettings) -> Result<bool, StoreError> {
        self.store.set(&settings.fields())
    }

    /// Asks the owner for a snapshot now, and waits until it is there. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached; it may have happened.
    pub fn compact(&self, within: Duration) -> Result<Compacted, StoreError> {
        let begun = Instant::now();
        let before = self.generation()?;
        if !self.store.set(&[(COMPACT, "asked".to_owned())])? {
            return Ok(Compacted::NoStore);
        }
        while begun.elapsed() < within {
            if self.generation()? != before {
                return Ok(Compacted::Done(self.store.measure()?));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(Compacted::NotYet)
    }

    /// What Redis says of itself, and those of these settings that it tells: lines of `name:value`, or why not. Blocks.
    pub fn told(&self, settings: &[&str]) -> [Result<String, String>; 2] {
        let [told, set] = [self.store.told(), self.store.server_settings(settings)];
        [told, set].map(|told| told.map_err(|why| why.to_string()))
    }

    fn generation(&self) -> Result<Option<Generation>, StoreError> {
        let own = self.store.look()?.own;
        Ok(own.and_then(|own| own.snapshot).map(|snapshot| snapshot.generation))
    }
}
