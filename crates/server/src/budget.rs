//! One budget of bytes for all bodies that are read and all answers that have not left.
//!
//! Without it, ten callers that ask for long lists and read none of them bring the server down.
//! Bytes count from their admission until the system has taken the last of them, or the connection
//! is gone. Beyond the budget a call is refused with `overloaded` before it does anything.
//!
//! The last quarter is reserved for calls that keep or return leases: holders must not lose their
//! leases because other callers do not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::ServerRefusal;

#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    held: AtomicUsize,
}

/// The part of the budget that a call may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// A call that can be repeated later: three quarters.
    Ordinary,
    /// An extend or a settle: the last quarter too.
    Vital,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Budget { max, held: AtomicUsize::new(0) })
    }

    fn most(&self, rank: Rank) -> usize {
        match rank {
            Rank::Ordinary => self.max - self.max / 4,
            Rank::Vital => self.max,
        }
    }

    fn add(&self, bytes: usize, most: usize) -> bool {
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= most);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// Takes this many bytes, or refuses.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, rank: Rank) -> Result<HeldBytes, Refusal> {
        let mut held = HeldBytes { budget: self.clone(), rank, bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Bytes that are taken now.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }
}

/// A part of the budget, returned on drop.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: Arc<Budget>,
    rank: Rank,
    bytes: usize,
}

impl HeldBytes {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// An empty part of the same budget.
    pub(crate) fn another(&self) -> HeldBytes {
        HeldBytes { budget: self.budget.clone(), rank: self.rank, bytes: 0 }
    }

    /// Takes this many more bytes, or refuses and keeps the part as it is.
    pub(crate) fn grow(&mut self, by: usize) -> Result<(), Refusal> {
        if by > 0 && !self.budget.add(by, self.budget.most(self.rank)) {
            return Err(overloaded());
        }
        self.bytes += by;
        Ok(())
    }

    /// Changes the part to this many bytes, or refuses and keeps it as it is.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Refusal> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.force(bytes);
                Ok(())
            }
        }
    }

    /// Changes the part to this many bytes, above the budget too: for the answer of a call that is
    /// already done.
    pub(crate) fn force(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.budget.held.fetch_add(bytes - self.bytes, Ordering::AcqRel);
        } else {
            self.budget.held.fetch_sub(self.bytes - bytes, Ordering::AcqRel);
        }
        self.bytes = bytes;
    }

    /// These bytes. They return their part of the budget when the last of them has left.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Owned { bytes, _held: self })
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.force(0);
    }
}

struct Owned {
    bytes: Bytes,
    _held: HeldBytes,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The refusal of a call that does not fit into the budget now.
pub(crate) fn overloaded() -> Refusal {
    ServerRefusal::Overloaded.into()
}

#[cfg(test)]
mod tests {
    use tenure_core::refusal::Code;

    use super::*;

    #[test]
    fn what_is_held_never_goes_over_the_budget_and_comes_back() {
        let budget = Budget::new(100);
        let mut first = budget.take(50, Rank::Ordinary).unwrap();
        assert_eq!(budget.take(26, Rank::Ordinary).unwrap_err().code, Code::Overloaded);
        let vital = budget.take(50, Rank::Vital).unwrap();
        assert!(budget.take(1, Rank::Vital).is_err());
        drop(vital);
        assert!(first.grow(26).is_err());
        first.grow(25).unwrap();
        first.set(10).unwrap();
        assert_eq!(budget.held(), 10);
        let bytes = first.with(Bytes::from_static(b"an answer"));
        let part = bytes.slice(3..);
        drop(bytes);
        assert_eq!(budget.held(), 10, "a part of it is still here");
        drop(part);
        assert_eq!(budget.held(), 0);
    }
}
