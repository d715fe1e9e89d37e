//! The seam for snapshots that one server writes for another: what the owner of a store asks for, and what was written.
//!
//! The server knows nothing of their content. How they are asked for by HTTP is in `fellows`.

use serde::{Deserialize, Serialize};

/// A snapshot that the owner of the store has another server write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AskedSnapshot {
    /// The id of the store.
    pub store: u128,
    /// The id of the owner.
    pub owner: u128,
    /// The epoch at which it owns the store.
    pub epoch: u64,
    /// The run of Redis that it knows.
    pub run: String,
    /// Which of the owner's snapshots it is.
    pub count: u64,
    /// The entry that it must contain at least.
    pub reached: u64,
}

/// A snapshot that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WrittenSnapshot {
    /// The last entry that it contains.
    pub number: u64,
    /// The checksum of that entry, chained over all before it.
    pub checksum: u64,
    /// How many pieces it has.
    pub pieces: u32,
    /// What they take together.
    pub bytes: u64,
    /// The checksum of its last part, chained over all of them.
    pub sum: u64,
}

/// Writes snapshots in the process of a server that follows the store.
pub trait WritesSnapshots: Send + Sync + 'static {
    /// Writes one. Blocks. It writes nothing more once `goes_on` says no. `None`: it was not written, or not whole.
    fn write(
        &self,
        asked: &AskedSnapshot,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<WrittenSnapshot>;
}
