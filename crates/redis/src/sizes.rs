//! The memory of Redis that a store takes, and its limits.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::unfit::UnfitServer;

/// The size of the log, in bytes, below which a server makes no snapshot of a store.
pub const SNAPSHOT_LOG_BYTES: u64 = 32 << 20;
/// A snapshot is due once the log is longer than the last snapshot divided by this.
const LOG_PART: u64 = 2;
/// This part of Redis's memory stays free, and at least this many bytes: data beside the store may grow too.
const MARGIN_PART: u64 = 20;
const MARGIN_MIN_BYTES: u64 = 32 << 20;

/// Counters for the log and the snapshot of a store, in bytes.
#[derive(Default)]
pub(crate) struct Sizes {
    /// The last measurement, and all appends since.
    pub(crate) log: AtomicU64,
    /// As `own` said last.
    pub(crate) snapshot: AtomicU64,
    /// The snapshot before it, which is kept for a while.
    pub(crate) before: AtomicU64,
}

/// The memory that a store takes in Redis, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StoreSizes {
    /// The entries behind the snapshot, approximately.
    pub log: u64,
    /// The snapshot that a load begins with.
    pub snapshot: u64,
    /// The snapshot before it, until it is unlinked.
    pub before: u64,
}

/// The memory that a Redis still has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreRoom {
    /// All data of this Redis, from any program, in bytes.
    pub used: u64,
    /// The limit, in bytes; `None` if Redis has no limit.
    pub bound: Option<u64>,
    /// The store's part of `used`.
    pub store: StoreSizes,
    /// Set if Redis drops keys when it is full.
    pub evicts: Option<UnfitServer>,
}

impl StoreSizes {
    pub fn total(&self) -> u64 {
        self.log + self.snapshot + self.before
    }

    /// True if a new snapshot is worth its price: the log is longer than this, in bytes, and than half of the last one.
    pub fn snapshot_is_due(&self, log_bytes: u64) -> bool {
        self.log > log_bytes.max(self.snapshot / LOG_PART)
    }
}

impl StoreRoom {
    /// True if no more changes may be admitted. The next snapshot and the log that grows beside it must find room
    /// before the old ones go, so both count twice.
    pub fn is_full(&self) -> bool {
        let again = self.store.log + self.store.snapshot;
        self.bound.is_some_and(|bound| {
            let margin = (bound / MARGIN_PART).max(MARGIN_MIN_BYTES);
            self.used.saturating_add(again).saturating_add(margin) > bound
        })
    }
}

impl Sizes {
    pub fn appended(&self, bytes: usize) {
        self.log.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_snapshot_is_due_by_the_bytes_of_log_and_snapshot() {
        for (log, snapshot, due) in
            [(32, 0, false), (33, 0, true), (33, 64, true), (33, 66, false), (51, 100, true)]
        {
            let sizes = StoreSizes { log: log * MIB, snapshot: snapshot * MIB, before: 0 };
            let is_due = sizes.snapshot_is_due(SNAPSHOT_LOG_BYTES);
            assert_eq!(is_due, due, "{log} MiB of log, {snapshot} of snapshot");
        }
    }

    #[test]
    fn a_store_is_full_before_its_next_snapshot_has_no_room() {
        for (used, bound, log, snapshot, full) in [
            (900, None, 100, 500, false),
            // 5 % of 1,000 is 50.
            (649, Some(1000), 100, 200, false),
            (651, Some(1000), 100, 200, true),
            // The margin is at least 32.
            (67, Some(100), 0, 0, false),
            (69, Some(100), 0, 0, true),
            (1, Some(20), 0, 0, true),
        ] {
            let store = StoreSizes { log: log * MIB, snapshot: snapshot * MIB, before: 0 };
            let (used_bytes, bound_bytes) = (used * MIB, bound.map(|bound| bound * MIB));
            let room = StoreRoom { used: used_bytes, bound: bound_bytes, store, evicts: None };
            assert_eq!(room.is_full(), full, "{used} of {bound:?} MiB");
        }
    }
}
