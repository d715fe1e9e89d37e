//! The hand-off from the state to the disk: room for one batch. While the disk is busy and the room is
//! taken, the next batch goes on growing with the state.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::batch::Batch;

#[derive(Default)]
struct HandOffState {
    batch: Option<Batch>,
    /// The state found no room, and is to be woken when there is.
    is_awaited: bool,
    closed: bool,
    crashed: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct HandOff {
    inside: Mutex<HandOffState>,
    changed: Condvar,
}

/// What the disk finds.
pub(crate) enum HandedOff {
    Batch(Box<Batch>),
    /// Nothing came in the given time.
    Nothing,
    /// Nothing will come any more.
    Closed,
    /// The engine ends as a crash would: what is here is not written.
    Crashed,
}

impl HandOff {
    fn lock(&self) -> std::sync::MutexGuard<'_, HandOffState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a batch, if there is room; gives it back if not.
    pub(crate) fn put(&self, batch: Batch) -> Result<(), Batch> {
        let mut inside = self.lock();
        if inside.crashed {
            // Nobody will take it: those whom it would have answered see that it is gone.
            drop(inside);
            drop(batch);
            return Ok(());
        }
        if inside.batch.is_some() {
            return Err(batch);
        }
        inside.batch = Some(batch);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether there is room. If not, whoever makes some is told that it is awaited.
    pub(crate) fn has_room(&self) -> bool {
        let mut inside = self.lock();
        inside.is_awaited = inside.batch.is_some();
        !inside.is_awaited
    }

    /// The next batch; waits for it, but not longer than `patience`. And whether the room that it leaves is awaited.
    pub(crate) fn take(&self, patience: Option<Duration>) -> (HandedOff, bool) {
        let mut inside = self.lock();
        loop {
            if inside.crashed {
                return (HandedOff::Crashed, true);
            }
            if let Some(batch) = inside.batch.take() {
                let is_awaited = std::mem::take(&mut inside.is_awaited);
                return (HandedOff::Batch(Box::new(batch)), is_awaited);
            }
            if inside.closed {
                return (HandedOff::Closed, false);
            }
            inside = match patience {
                None => self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.changed.wait_timeout(inside, patience);
                    let (inside, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    if result.timed_out() && inside.batch.is_none() && !inside.closed {
                        return (HandedOff::Nothing, false);
                    }
                    inside
                }
            };
        }
    }

    /// Nothing will be put any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// What is here is not to be written.
    pub(crate) fn crash(&self) {
        let mut inside = self.lock();
        inside.crashed = true;
        inside.batch = None;
        self.changed.notify_all();
    }
}
