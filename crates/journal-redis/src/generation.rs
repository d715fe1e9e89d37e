//! How snapshots of a store are named.

use std::fmt;

/// The name of a snapshot. The epoch is in it, so no two owners ever write one of the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generation {
    /// The epoch of the owner that made it.
    pub epoch: u64,
    /// Counts the snapshots of that owner.
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
