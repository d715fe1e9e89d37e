//! Appends batches to the journal, and sends their answers when the appends are done.
//!
//! The state begins an append, and then hands the batch to the disk: rows follow, and no answer waits for them. A
//! reader of rows waits until they hold all answered changes. A thread of its own, [`run`], retries appends with an
//! unknown outcome.
//!
//! It must never answer for a batch whose append is not done, and never reuse a number that may be taken for another
//! entry: while the outcome of an append is unknown, exactly the same append is retried.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tenure_engine_api::{CallError, Fault};
use tenure_journal::{Append, Appended, Hears, JournalEntry};

use crate::answering::{refuse, send};
use crate::batch::{Batch, Pending};
use crate::journal::confirming::{Begun, Confirming, Inside};
use crate::options::{Fatal, LostJournal};
use crate::shared::{SYNC, Shared};
use crate::sqlite::write::written::Written;

/// Retries of an append while the engine is being closed. After these its outcome stays unknown.
const CLOSING_TRIES: u32 = 8;
/// Pauses before the retry of an append with an unknown outcome: the first, and the longest. A journal may answer
/// at once that it is unknown.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The state of the first append on its way.
enum Outcome {
    Waits,
    Sent(Vec<Pending>),
    Lost(LostJournal),
}

impl Begun {
    /// The answer to its callers when the journal takes no more entries of this engine.
    fn no(&self, why: String) -> CallError {
        match self.append {
            // Nothing was written, so the call may be repeated anywhere.
            Append::Nothing(_) => Fault::Unavailable(why).into(),
            Append::Entry { .. } => Fault::Unknown(why).into(),
        }
    }
}

impl Confirming {
    /// Begins to append the changes of a batch, or a mere check if there are none, and takes its answers.
    pub(crate) fn begin(&self, shared: &Arc<Shared>, batch: &mut Batch) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let number = batch.number;
        let append = if batch.changes.is_empty() {
            Append::Nothing(*end)
        } else {
            let entry = JournalEntry::after(*end, batch.changes.format(), &batch.changes.encode());
            Append::Entry { entry, ttl: batch.ttl, grants: batch.changes.rows.grants() }
        };
        let begun = Begun {
            number,
            append: append.clone(),
            at: Instant::now(),
            said: None,
            written: (!batch.changes.is_empty()).then(|| Written::of(&batch.changes.rows)),
            answers: std::mem::take(&mut batch.answers),
            is_checked: false,
            tries: 0,
            unsure: 0,
        };
        {
            let mut inside = self.lock();
            if inside.is_over {
                drop(inside);
                return refuse(begun.answers, &shared.unavailable());
            }
            inside.begun.push_back(begun);
        }
        *end = append.end();
        batch.entry = Some(end.sum);
        self.send(shared, number, append);
    }

    fn send(&self, shared: &Arc<Shared>, number: u64, append: Append) {
        // A journal may keep its callback for as long as it likes.
        let shared = Arc::downgrade(shared);
        let heard = move |appended| {
            if let Some(shared) = shared.upgrade() {
                shared.confirming.heard(&shared, number, appended);
            }
        };
        self.journal.append(append, Hears::new(heard));
    }

    /// Handles a reply of the journal: sends all answers that are next in order.
    fn heard(&self, shared: &Shared, number: u64, appended: Appended) {
        let mut inside = self.lock();
        if let Some(begun) = inside.begun.iter_mut().find(|begun| begun.number == number) {
            begun.said = Some(appended);
        }
        loop {
            match inside.first(shared) {
                Outcome::Sent(answers) => {
                    // The lock is released first: callers may call again at once.
                    let pokes = std::mem::take(&mut inside.is_awaited);
                    drop(inside);
                    if pokes {
                        shared.inbox.poke();
                    }
                    // An entry in a folder that was removed is in no store.
                    if let Err(fatal) = shared.look(shared.look_when) {
                        refuse(answers, &Fault::Unknown(fatal.to_string()).into());
                        return self.stop(shared, fatal);
                    }
                    send(shared, answers);
                    inside = self.lock();
                }
                Outcome::Waits => break,
                Outcome::Lost(lost) => {
                    let all = inside.end_all();
                    drop(inside);
                    // The thread that retries may wait for the last of them.
                    self.changed.notify_all();
                    return stop(shared, lost.into(), all);
                }
            }
        }
        if inside.again || inside.is_ended {
            self.changed.notify_all();
        }
    }

    /// Stops the engine for another reason: the outcome of the appends on their way is unknown.
    pub(crate) fn stop(&self, shared: &Shared, fatal: Fatal) {
        let all = self.lock().end_all();
        self.changed.notify_all();
        stop(shared, fatal, all);
    }
}

/// Refuses the answers of all appends on their way, and then stops the engine.
fn stop(shared: &Shared, fatal: Fatal, all: VecDeque<Begun>) {
    for mut begun in all {
        refuse(std::mem::take(&mut begun.answers), &begun.no(fatal.to_string()));
    }
    shared.stop_for(fatal);
}

impl Inside {
    /// Looks at the first append on its way.
    fn first(&mut self, shared: &Shared) -> Outcome {
        let Some(first) = self.begun.front_mut() else { return Outcome::Waits };
        let again = match &first.said {
            None => return Outcome::Waits,
            Some(Appended::Unsure(_)) if !shared.inbox.is_closing() => true,
            Some(Appended::Unsure(_)) if first.tries < CLOSING_TRIES => {
                first.tries += 1;
                true
            }
            Some(Appended::At(_)) if !first.is_checked => {
                first.is_checked = true;
                true
            }
            Some(_) => false,
        };
        if again {
            self.pause = match first.said.take() {
                Some(Appended::Unsure(_)) => {
                    first.unsure += 1;
                    PAUSE_MAX.min(PAUSE_MIN * (1 << (first.unsure - 1).min(8)))
                }
                _ => Duration::ZERO,
            };
            self.again = true;
            return Outcome::Waits;
        }
        let said = first.said.take().unwrap_or(Appended::Ended);
        // Where the store is not shared, a check does not touch the disk.
        if shared.is_shared || matches!(first.append, Append::Entry { .. }) {
            shared.times.took(SYNC, first.at.elapsed());
        }
        match LostJournal::of(said, self.end) {
            Some(lost) => Outcome::Lost(lost),
            None => {
                self.end = first.append.end().number;
                if let Some(written) = first.written.take() {
                    shared.answered.store(first.number, Ordering::Release);
                    shared.follow(written);
                }
                let answers = std::mem::take(&mut first.answers);
                self.begun.pop_front();
                Outcome::Sent(answers)
            }
        }
    }
}

/// Retries appends, until the disk has ended and all are answered.
pub(crate) fn run(shared: &Arc<Shared>) {
    let confirming = &shared.confirming;
    let mut inside = confirming.lock();
    loop {
        if std::mem::take(&mut inside.again) {
            let pause = inside.pause;
            if !pause.is_zero() {
                let waited =
                    confirming.changed.wait_timeout_while(inside, pause, |inside| !inside.is_over);
                inside = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            let first = inside.begun.front();
            let first = first.map(|first| (first.number, first.append.clone()));
            drop(inside);
            if let Some((number, append)) = first {
                confirming.send(shared, number, append);
            }
            inside = confirming.lock();
            continue;
        }
        if inside.is_ended && inside.begun.is_empty() {
            return;
        }
        inside = confirming.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
    }
}
