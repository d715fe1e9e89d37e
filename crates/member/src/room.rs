//! The refusal of a Redis that has no room: for a call that would make the store grow, and for a copy.

use tenure_core::sentences::StoreRefusal;

/// Why a Redis that has no room takes nothing new.
pub(crate) fn full() -> StoreRefusal {
    StoreRefusal::MemoryFull { store: "redis".into(), bound: "\"maxmemory\"".into() }
}
