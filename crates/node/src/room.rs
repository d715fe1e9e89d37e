//! The refusal of a Redis that has no room: for a call that would make the store grow, and for a copy.

use tenure_core::sentences::StoreRefusal;

/// The refusal while Redis has no room for anything new.
pub(crate) fn full() -> StoreRefusal {
    StoreRefusal::MemoryFull { store: "redis".into(), bound: "\"maxmemory\"".into() }
}
