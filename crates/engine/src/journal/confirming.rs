//! Appends on their way, with the answers that wait for them. `confirm` begins, retries and
//! answers them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_journal::{Append, Appended, Journal, Position, StoreFacts};

use crate::batch::Pending;
use crate::sqlite::write::written::Written;

/// The most appends on their way at once. Meanwhile the next batch grows.
const ON_THE_WAY: usize = 2;

/// A batch whose append was begun.
pub(super) struct Begun {
    pub(super) number: u64,
    pub(super) append: Append,
    pub(super) at: Instant,
    /// The last reply of the journal; `None` while one is awaited.
    pub(super) said: Option<Appended>,
    /// The changes that the caches must follow, if there are any.
    pub(super) written: Option<Written>,
    pub(super) answers: Vec<Pending>,
    /// It has been sent once more: it was begun before the append before it was known to be done, and may have
    /// overtaken it.
    pub(super) is_checked: bool,
    pub(super) tries: u32,
    /// Number of replies by which its outcome is unknown.
    pub(super) unsure: u32,
}

#[derive(Default)]
pub(super) struct Inside {
    /// Begun appends, ordered by number.
    pub(super) begun: VecDeque<Begun>,
    /// The last entry that the journal has taken.
    pub(super) end: u64,
    /// The first of them must be sent again.
    pub(super) again: bool,
    /// The pause before that.
    pub(super) pause: Duration,
    /// The state waits until fewer are on their way.
    pub(super) is_awaited: bool,
    /// No batch comes any more.
    pub(super) is_ended: bool,
    /// Every answer is a refusal from now on.
    pub(super) is_over: bool,
}

pub(crate) struct Confirming {
    pub(super) journal: Arc<dyn Journal>,
    /// The end of the journal once all begun appends are done. Locked while an append is begun, so that appends begin
    /// in the order of their numbers.
    pub(super) end: Mutex<Position>,
    pub(super) inside: Mutex<Inside>,
    pub(super) changed: Condvar,
}

impl Confirming {
    /// `end` is the present end of the journal.
    pub(crate) fn new(journal: Arc<dyn Journal>, end: Position) -> Self {
        Confirming {
            journal,
            end: Mutex::new(end),
            inside: Mutex::new(Inside { end: end.number, ..Inside::default() }),
            changed: Condvar::new(),
        }
    }

    /// The kind and the bytes of the store in which the journal is kept.
    pub(crate) fn facts(&self) -> StoreFacts {
        self.journal.facts()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if another append may begin. If not, the inbox is poked when one may.
    pub(crate) fn has_room(&self) -> bool {
        let mut inside = self.lock();
        inside.is_awaited = inside.begun.len() >= ON_THE_WAY;
        !inside.is_awaited
    }

    /// True if the journal has taken the entry of this number.
    pub(crate) fn has_taken(&self, number: u64) -> bool {
        self.lock().end >= number
    }

    /// Follows the end of the disk's thread: the thread that retries ends when all is answered.
    pub(crate) fn disk_ended(&self) {
        self.lock().is_ended = true;
        self.changed.notify_all();
    }

    /// Ends the engine as after a crash: nothing is answered, and callers see that it is gone.
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
