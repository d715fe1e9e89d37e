//! What is said where Redis has no room: to a call that would make the store grow, and to a copy.

use tenure_core::sentences::StoreRefusal;

/// Why a Redis that has no room takes nothing new.
pub(crate) fn full() -> StoreRefusal {
    StoreRefusal::MemoryFull { store: "redis".into(), bound: "\"maxmemory\"".into() }
}
