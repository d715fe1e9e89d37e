//! Administration: an operator's view of a store, and changes to it, from a process that is not one of its servers.
//!
//! It must never take the store, nor write anything that only its leader may write.

use std::thread;
use std::time::{Duration, Instant};

use tenure_core::redis_address::Address;
use tenure_core::time::Span;
use tenure_redis::{Generation, RedisStore, StoreError, StoreSizes};

use crate::settings::{COMPACT, StoreSettings};

/// The interval between looks for a new snapshot.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A server that has not reported for this long is not counted; each reports once a second.
const SILENT_AFTER: Span = Span::from_s(10);

/// Access to a store for a process that is not one of its servers.
pub struct StoreAdministration {
    store: RedisStore,
    name: String,
}

/// A store as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownStore {
    /// The name in its keys.
    pub name: String,
    pub id: u128,
    pub settings: StoreSettings,
    /// The epoch at which its leader took it; `None` if it has never had one.
    pub epoch: Option<u64>,
    /// The time since its leader's last append; `None` without a leader.
    pub beat_ago: Option<Span>,
    /// The number of its last entry.
    pub entry: u64,
    /// Bytes of its parts in Redis.
    pub sizes: StoreSizes,
    /// The servers that reported within the last 10 s, ordered by address.
    pub servers: Vec<ShownServer>,
}

/// A server of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownServer {
    /// The address that it advertises.
    pub url: String,
    pub release: String,
    /// It leads the store.
    pub leads: bool,
    /// Entries that its rows lacked at its last report; 0 for the leader.
    pub behind: u64,
    /// The time since its last report.
    pub said_ago: Span,
}

/// The outcome of a request for a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compacted {
    /// There is a new snapshot; the sizes after it.
    Done(StoreSizes),
    /// The leader did not finish one in time. It may still be writing.
    NotYet,
    /// There is no store.
    NoStore,
}

impl StoreAdministration {
    /// Opens the store at this address. An unreachable Redis shows at the first request.
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
        let leader = seen.own.as_ref().map(|own| own.leader);
        let servers =
            self.store.servers()?.into_iter().filter(|(said, _)| ago(*said) < SILENT_AFTER);
        let mut servers: Vec<_> = servers
            .map(|(said, server)| ShownServer {
                leads: leader == Some(server.id),
                behind: if leader == Some(server.id) {
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

    /// Changes the given settings. The leader applies them within a second or two. False if there is no store. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached; it may have happened.
    pub fn set(&self, settings: &StoreSettings) -> Result<bool, StoreError> {
        self.store.set(&settings.fields())
    }

    /// Asks the leader for a snapshot now, and waits until it is there. Blocks.
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

    /// The facts that Redis reports, and the values of these of its settings: lines of `name:value`, or an error.
    /// Blocks.
    pub fn told(&self, settings: &[&str]) -> [Result<String, String>; 2] {
        let [told, set] = [self.store.told(), self.store.server_settings(settings)];
        [told, set].map(|told| told.map_err(|why| why.to_string()))
    }

    fn generation(&self) -> Result<Option<Generation>, StoreError> {
        let own = self.store.look()?.own;
        Ok(own.and_then(|own| own.snapshot).map(|snapshot| snapshot.generation))
    }
}
