//! Slots of a worker: how many handlers may be at work.
//!
//! A slot is taken before a job is handled, and is free again when the outcome of the handler was sent,
//! or when there is none to send: the next jobs are asked for while the last are settled. At most as
//! many jobs as there are slots wait for the answer to their outcome; a worker with one slot waits for it,
//! so that it never holds two jobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// All slots of one worker.
#[derive(Clone)]
pub struct Slots {
    all: usize,
    inner: Arc<SlotsInner>,
}

#[derive(Default)]
struct SlotsInner {
    taken: AtomicUsize,
    freed: Notify,
}

/// One slot, taken until this is dropped.
pub struct Slot(Arc<SlotsInner>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
        self.0.freed.notify_one();
    }
}

impl Slots {
    /// So many, all free; at least one.
    pub fn new(all: usize) -> Self {
        Slots { all, inner: Arc::default() }
    }

    /// Takes one.
    pub fn take(&self) -> Slot {
        self.inner.taken.fetch_add(1, Ordering::Relaxed);
        Slot(self.inner.clone())
    }

    /// Whether none is taken.
    pub fn none_works(&self) -> bool {
        self.inner.taken.load(Ordering::Relaxed) == 0
    }

    /// How many more jobs may be asked for while so many run or are being settled.
    pub fn free(&self, running: usize) -> usize {
        let held = if self.all == 1 {
            running
        } else {
            let taken = self.inner.taken.load(Ordering::Relaxed);
            taken.max(running.saturating_sub(self.all))
        };
        self.all.saturating_sub(held)
    }

    /// Returns when one was freed since this was last awaited.
    pub async fn freed(&self) {
        self.inner.freed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_when_it_is_dropped() {
        let slots = Slots::new(3);
        let one = slots.take();
        assert_eq!((slots.free(1), slots.none_works()), (2, false));
        drop(one);
        assert_eq!((slots.free(1), slots.none_works()), (3, true));
    }

    #[test]
    fn no_more_outcomes_are_on_their_way_than_there_are_slots() {
        let slots = Slots::new(3);
        let _one = slots.take();
        assert_eq!(slots.free(4), 2, "one works, three are being settled");
        assert_eq!(slots.free(5), 1);
        assert_eq!(slots.free(6), 0);
    }

    #[test]
    fn one_slot_is_free_only_when_nothing_is_being_settled() {
        let slots = Slots::new(1);
        assert_eq!((slots.free(1), slots.free(0)), (0, 1));
    }
}
