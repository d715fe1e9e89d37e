//! The interface for snapshots that one server writes for another: the leader's request, and the result.
//!
//! The server knows nothing of their content. `peers` has the requests by HTTP.

use serde::{Deserialize, Serialize};

/// A request of the leader for a snapshot that another server writes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AskedSnapshot {
    /// The id of the store.
    pub store: u128,
    /// The id of the leader's process.
    pub owner: u128,
    /// The epoch of its leadership.
    pub epoch: u64,
    /// The run of Redis that the leader knows.
    pub run: String,
    /// The number of the snapshot within the epoch.
    pub count: u64,
    /// The entry that the snapshot must contain at least.
    pub reached: u64,
}

/// A snapshot that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WrittenSnapshot {
    /// The last entry that it contains.
    pub number: u64,
    /// The checksum of that entry, chained over all before it.
    pub checksum: u64,
    /// How many chunks it has.
    pub pieces: u32,
    /// Bytes of all chunks.
    pub bytes: u64,
    /// The checksum of the last chunk, chained over all of them.
    pub sum: u64,
}

/// Writes snapshots in the process of a server that follows the store.
pub trait WritesSnapshots: Send + Sync + 'static {
    /// Writes one snapshot. Blocks. It writes nothing more once `goes_on` returns false. `None`: it was not written, or
    /// not whole.
    fn write(
        &self,
        asked: &AskedSnapshot,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<WrittenSnapshot>;
}
