//! The rows of a server that does not own the store. The thread of the standby adds to them; a load takes them.
//!
//! They lie in a private folder that goes with the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_engine::Replica;

/// See the module.
#[derive(Default)]
pub(crate) struct StandbyRows {
    rows: Mutex<Option<Replica>>,
    /// The last entry that the rows have; 0 if there are none. Beside the lock, which is held while entries are applied.
    applied: AtomicU64,
}

impl StandbyRows {
    pub fn lock(&self) -> MutexGuard<'_, Option<Replica>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These rows in place of those that are locked.
    pub fn put(&self, rows: &mut Option<Replica>, with: Option<Replica>) {
        let applied = with.as_ref().map_or(0, |rows| rows.position().number);
        self.applied.store(applied, Ordering::Relaxed);
        *rows = with;
    }

    /// The rows, if there are any. Entries that are being applied are waited for: they would have to be applied anyhow.
    pub fn take(&self) -> Option<Replica> {
        let mut rows = self.lock();
        self.applied.store(0, Ordering::Relaxed);
        rows.take()
    }

    /// The rows were taken, and can be of use later: nothing is wrong with them.
    pub fn give_back(&self, rows: Replica) {
        let mut there = self.lock();
        if there.is_none() {
            self.put(&mut there, Some(rows));
        }
    }

    /// The rows that are locked have the entries up to this one.
    pub fn note_applied(&self, number: u64) {
        self.applied.store(number, Ordering::Relaxed);
    }

    /// The last entry that the rows have; 0 if there are none.
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }
}
