//! Names of snapshots of a store.

use std::fmt;

/// The name of a snapshot. It contains the epoch, so no two leaders write the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generation {
    /// The epoch of the leader that made it.
    pub epoch: u64,
    /// Counts the snapshots of that leader.
    pub count: u64,
}

impl Generation {
    pub(crate) fn read(text: &str) -> Option<Generation> {
        let (epoch, count) = text.split_once('-')?;
        Some(Generation { epoch: epoch.parse().ok()?, count: count.parse().ok()? })
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.count)
    }
}
