//! Ids and numbers of stores, servers and entries. Nothing here draws a random number: ids are arguments.

/// A random id of a store, drawn when the store is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StoreId(pub u128);

/// A random id of a server's process: a restarted process has another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(pub u128);

/// The run id of a Redis: another one after each start and each promotion of a replica.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RunId(pub u128);

impl RunId {
    /// No run of any Redis: a store whose content was lost is made with it, so that its next leader recovers.
    pub const NONE: RunId = RunId(0);
}

/// The number of a leadership; each acquisition has a higher one. It is the store's clock in microseconds, or the epoch
/// before plus one if that is higher.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// The last entry of a journal: its number, 0 for none, and its checksum, which is chained over all entries before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tip {
    /// Numbers begin at 1 and have no gaps.
    pub number: u64,
    /// Over the entry and the checksum before it.
    pub checksum: u64,
}

/// The name of a snapshot. It contains the epoch, so no two leaders write the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Generation {
    /// The epoch of the leader that made it.
    pub epoch: Epoch,
    /// Counts the snapshots of that leader.
    pub count: u64,
}
