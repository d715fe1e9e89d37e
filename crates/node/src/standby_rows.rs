//! The rows of a follower. Its own thread adds to them; a load takes them.
//!
//! They are in a private folder that is deleted with the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_engine::Replica;

#[derive(Default)]
pub(crate) struct FollowerRows {
    rows: Mutex<Option<Replica>>,
    /// The last entry in the rows; 0 without rows. Outside the lock, which is held while entries are applied.
    applied: AtomicU64,
}

impl FollowerRows {
    pub fn lock(&self) -> MutexGuard<'_, Option<Replica>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the locked rows.
    pub fn put(&self, rows: &mut Option<Replica>, with: Option<Replica>) {
        let applied = with.as_ref().map_or(0, |rows| rows.position().number);
        self.applied.store(applied, Ordering::Relaxed);
        *rows = with;
    }

    /// Takes the rows, if there are any. Waits for entries that are being applied: they would have to be applied
    /// anyhow.
    pub fn take(&self) -> Option<Replica> {
        let mut rows = self.lock();
        self.applied.store(0, Ordering::Relaxed);
        rows.take()
    }

    /// Gives back rows that were taken and can be of use later: nothing is wrong with them.
    pub fn give_back(&self, rows: Replica) {
        let mut there = self.lock();
        if there.is_none() {
            self.put(&mut there, Some(rows));
        }
    }

    /// Notes that the locked rows have the entries up to this one.
    pub fn note_applied(&self, number: u64) {
        self.applied.store(number, Ordering::Relaxed);
    }

    /// The last entry in the rows; 0 without rows.
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }
}
