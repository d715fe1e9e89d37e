//! Appends that were begun and are not answered yet, with the answers that wait for them. `confirm` begins, repeats and
//! answers them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_journal::{Append, Appended, Journal, Position, StoreFacts};

use crate::batch::Pending;
use crate::file::written::Written;

/// Appends that are on their way at once. While they are, the next batch grows.
const ON_THE_WAY: usize = 2;

/// A batch whose append was begun.
pub(super) struct Begun {
    /// Of the batch.
    pub(super) number: u64,
    pub(super) append: Append,
    pub(super) at: Instant,
    /// What the journal said last; nothing while it is asked.
    pub(super) said: Option<Appended>,
    /// The changes that the caches are to follow, if there are any.
    pub(super) written: Option<Written>,
    pub(super) answers: Vec<Pending>,
    /// It was begun before the one before it was known to be there, and may have come before that: it is sent once more.
    pub(super) is_checked: bool,
    pub(super) tries: u32,
    /// How often the journal did not know what became of it.
    pub(super) unsure: u32,
}

#[derive(Default)]
pub(super) struct Inside {
    /// In their order.
    pub(super) begun: VecDeque<Begun>,
    /// The last entry that the journal has taken.
    pub(super) end: u64,
    /// The first of them is to be sent again.
    pub(super) again: bool,
    /// How long that waits.
    pub(super) pause: Duration,
    /// The state waits until fewer are on their way.
    pub(super) is_awaited: bool,
    /// No batch comes any more.
    pub(super) is_ended: bool,
    /// Nothing is answered any more but that nothing is.
    pub(super) is_over: bool,
}

/// See the module.
pub(crate) struct Confirming {
    pub(super) journal: Arc<dyn Journal>,
    /// Where the journal ends once all that was begun is done. Held while an append is begun, so that they are begun in
    /// the order of their numbers.
    pub(super) end: Mutex<Position>,
    pub(super) inside: Mutex<Inside>,
    pub(super) changed: Condvar,
}

impl Confirming {
    /// `end`: where the journal ends.
    pub(crate) fn new(journal: Arc<dyn Journal>, end: Position) -> Self {
        Confirming {
            journal,
            end: Mutex::new(end),
            inside: Mutex::new(Inside { end: end.number, ..Inside::default() }),
            changed: Condvar::new(),
        }
    }

    /// The kind of the store that the journal is kept in, and its bytes.
    pub(crate) fn facts(&self) -> StoreFacts {
        self.journal.facts()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more append may be on its way. If not, the inbox is poked when that may be so.
    pub(crate) fn has_room(&self) -> bool {
        let mut inside = self.lock();
        inside.is_awaited = inside.begun.len() >= ON_THE_WAY;
        !inside.is_awaited
    }

    /// Whether the journal has taken the entry of this number.
    pub(crate) fn has_taken(&self, number: u64) -> bool {
        self.lock().end >= number
    }

    /// The disk has ended: who sends again ends when all is answered.
    pub(crate) fn disk_ended(&self) {
        self.lock().is_ended = true;
        self.changed.notify_all();
    }

    /// The engine ends as a crash would: nothing is answered, and callers see that it is gone.
    pub(crate) fn crash(&self) {
        let all = {
            let mut inside = self.lock();
            inside.is_ended = true;
            inside.end_all()
        };
        self.changed.notify_all();
        drop(all);
    }
}

impl Inside {
    pub(super) fn end_all(&mut self) -> VecDeque<Begun> {
        (self.is_over, self.again) = (true, false);
        std::mem::take(&mut self.begun)
    }
}
