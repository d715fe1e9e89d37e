//! The options of a server of a shared store.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::redis_address::Address;
use tenure_core::secret::Secret;
use tenure_election::election::ServerWord;
use tenure_engine::{Location, Options};
use tenure_engine_api::{Clock, SystemClock};
use tenure_redis::{Generation, SNAPSHOT_LOG_BYTES, SnapshotName, StoreError, Term};

use crate::settings::StoreSettings;

/// Another server that is asked if it serves.
#[derive(Clone, Debug)]
pub struct AskedServer {
    /// The address at which it takes calls.
    pub url: String,
    /// The id of its process. Another process that answers at this address counts as a refusal.
    pub id: u128,
    /// The id of the store; `None` until this server has seen one.
    pub store: Option<u128>,
    /// The secret by which the servers of the store know each other.
    pub secret: Secret,
}

/// The way to ask other servers.
pub trait AskServer: Send + Sync + 'static {
    /// Asks a server if it serves the store, and for the last epoch at which it did. Blocks for at most `within`.
    fn ask(&self, server: &AskedServer, within: Duration) -> ServerWord;

    /// Has a follower write a snapshot for this server: see [`Node::write_snapshot`]. Blocks until it is written,
    /// refused or out of reach, or until `goes_on`, which is called at intervals, returns false. `None`: it is not
    /// written.
    ///
    /// [`Node::write_snapshot`]: crate::Member::write_snapshot
    fn write_snapshot(
        &self,
        server: &AskedServer,
        wish: &SnapshotWish,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName>;
}

/// A leader's request to another server for a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotWish {
    /// The leader, under whose fence the chunks are written.
    pub by: Term,
    /// The number among the leader's snapshots: a part of the name that the leader never uses again.
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

/// The options of [`Node::open`](crate::Member::open).
#[derive(Clone)]
pub struct NodeOptions {
    /// The Redis that has the store.
    pub address: Address,
    /// The name of the store in it.
    pub name: String,
    /// The address at which other servers and clients reach this one.
    pub url: String,
    /// Settings of the engine that is opened when this server takes the store. Location, clock, journal and `on_fatal`
    /// are replaced by the server's own.
    pub engine: Options,
    /// The store's settings with which this server was started. They count only while the store is made; after that the
    /// store's own settings do. Starts empty.
    pub settings: StoreSettings,
    /// The size of the log, in bytes, below which this server makes no snapshot. Starts as [`SNAPSHOT_LOG_BYTES`].
    pub snapshot_log_bytes: u64,
    /// The way to ask other servers.
    pub asks: Arc<dyn AskServer>,
    /// Its monotonic clock drives the election. Starts as the system's.
    pub clock: Arc<dyn Clock>,
}

impl NodeOptions {
    /// The defaults, for a store in this Redis.
    pub fn new(
        address: Address,
        name: impl Into<String>,
        url: impl Into<String>,
        asks: Arc<dyn AskServer>,
    ) -> Self {
        NodeOptions {
            address,
            name: name.into(),
            url: url.into(),
            engine: Options::new(Location::Memory),
            settings: StoreSettings::default(),
            snapshot_log_bytes: SNAPSHOT_LOG_BYTES,
            asks,
            clock: Arc::new(SystemClock),
        }
    }
}

impl std::fmt::Debug for NodeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberOptions")
            .field("name", &self.name)
            .field("url", &self.url)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The reason why a server could not join a store.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
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
