//! What a member is opened with.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::secret::Secret;
use tenure_engine::{Location, Options};
use tenure_journal_redis::{Generation, Ownership, SnapshotName, StoreError};
use tenure_owner::owner::ServerWord;
use tenure_redis_address::Address;
use tenure_seam::{Clock, SystemClock};

use crate::settings::StoreSettings;

/// Another server that is asked whether it serves.
#[derive(Clone, Debug)]
pub struct AskedServer {
    /// Where it takes calls.
    pub url: String,
    /// The id of its process. Another process that answers at this address counts as a refusal.
    pub id: u128,
    /// The id of the store; `None` as long as this server has seen none.
    pub store: Option<u128>,
    /// By which the servers of the store know each other.
    pub secret: Secret,
}

/// How other servers are asked.
pub trait AskServer: Send + Sync + 'static {
    /// Asks a server whether it serves the store, and at which epoch it last did. Blocks for at most `within`.
    fn ask(&self, server: &AskedServer, within: Duration) -> ServerWord;

    /// Has a server that follows the store write a snapshot for this one: see [`Member::write_snapshot`]. Blocks until it has,
    /// or has refused or cannot be reached, or until `goes_on`, which is asked every so often, says no. `None`: it has not.
    ///
    /// [`Member::write_snapshot`]: crate::Member::write_snapshot
    fn write_snapshot(
        &self,
        server: &AskedServer,
        wish: &SnapshotWish,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName>;
}

/// A snapshot that an owner has another server write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotWish {
    /// The owner, under whose fence the pieces are written.
    pub by: Ownership,
    /// Which of the owner's snapshots it is: a part of its name that the owner never gives again.
    pub count: u64,
    /// The entry that it must contain at least.
    pub reached: u64,
}

impl SnapshotWish {
    /// The name of the snapshot.
    pub(crate) fn generation(&self) -> Generation {
        Generation { epoch: self.by.epoch, count: self.count }
    }
}

/// What a member is opened with.
#[derive(Clone)]
pub struct MemberOptions {
    /// The Redis that has the store.
    pub address: Address,
    /// The name of the store in it.
    pub name: String,
    /// Where other servers and clients reach this one.
    pub url: String,
    /// Settings of the engine that is opened when this server takes the store. Location, clock, journal and `on_fatal` are
    /// the member's own.
    pub engine: Options,
    /// The settings of the store that this server was started with. They count where the store is made; after that its own
    /// do. Starts as nothing said.
    pub settings: StoreSettings,
    /// How other servers are asked.
    pub asks: Arc<dyn AskServer>,
    /// Its monotonic clock is the one by which the member acts. Starts as the system's.
    pub clock: Arc<dyn Clock>,
}

impl MemberOptions {
    /// The defaults, for a store in this Redis.
    pub fn new(
        address: Address,
        name: impl Into<String>,
        url: impl Into<String>,
        asks: Arc<dyn AskServer>,
    ) -> Self {
        MemberOptions {
            address,
            name: name.into(),
            url: url.into(),
            engine: Options::new(Location::Memory),
            settings: StoreSettings::default(),
            asks,
            clock: Arc::new(SystemClock),
        }
    }
}

impl std::fmt::Debug for MemberOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberOptions")
            .field("name", &self.name)
            .field("url", &self.url)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Why a member is not opened.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The address of the store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no thread.
    #[error("could not start a thread: {0}; close other programs, or raise the limit of threads")]
    Thread(#[from] std::io::Error),
    /// The system has no random numbers.
    #[error("the system has no random numbers: {0}")]
    Random(String),
}
