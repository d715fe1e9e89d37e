//! The names and numbers by which stores, servers and entries are told apart. Nothing here draws a random number: ids are
//! arguments.

/// A random id of a store, drawn when the store is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StoreId(pub u128);

/// A random id of a server's process: a process that starts again has another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(pub u128);

/// The run of a Redis: another one after each start and each promotion of a replica.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RunId(pub u128);

impl RunId {
    /// No run of any Redis: what a store is made with when its content was lost, so that its next owner recovers.
    pub const NONE: RunId = RunId(0);
}

/// The number of an ownership: each acquisition has a higher one. Microseconds of the store's clock where that is higher
/// than the epoch before and one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// The last entry of a journal: its number, 0 for none, and its checksum, which is chained over all entries before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tip {
    /// Numbers begin at 1 and have no holes.
    pub number: u64,
    /// Of the entry and the checksum before it.
    pub checksum: u64,
}

/// The name of a snapshot. The epoch is in it, so that no two owners ever write one of the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Generation {
    /// The epoch of the owner that made it.
    pub epoch: Epoch,
    /// Counts the snapshots of that owner.
    pub count: u64,
}
