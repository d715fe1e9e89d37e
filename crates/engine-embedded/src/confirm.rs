//! The thread that confirms, where a journal appends: it waits until the journal has said that an entry is there, and
//! sends the answers of its batch.
//!
//! It must never answer for a batch whose append is not done, and never send anything else under a number that may be
//! taken: as long as nobody knows whether an append happened, the very same one is sent again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tenure_engine::{CallError, Fault};
use tenure_journal::{Append, Appended, Journal, JournalEntry, Position, Reply};
use tenure_machine::{CHANGES_FORMAT, Changes};

use crate::batch::Pending;
use crate::disk::{refuse, send};
use crate::options::{Fatal, LostJournal};
use crate::shared::{SYNC, Shared};

/// How long an answer is waited for before a look whether the engine is to end as a crash would.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Repeats of an append by an engine that is being closed. After these it leaves open whether the append happened.
const CLOSING_TRIES: u32 = 8;

/// An append that was begun.
pub(crate) struct Begun {
    append: Append,
    reply: Reply,
    at: Instant,
}

impl Begun {
    /// The checksum of the entry at which the journal ends once this is done.
    pub(crate) fn sum(&self) -> u64 {
        self.append.end().sum
    }

    /// The answer to its callers when the journal takes no more entries of this engine.
    fn no(&self, shared: &Shared) -> CallError {
        match self.append {
            // Nothing was written for them, so the call may be made again anywhere.
            Append::Nothing(_) => shared.unavailable(),
            Append::Entry(_) => shared.gone(),
        }
    }
}

/// A batch that is in the rows, with its append.
pub(crate) struct InRows {
    pub number: u64,
    pub begun: Begun,
    pub answers: Vec<Pending>,
}

/// The journal, and the way to the thread that confirms.
pub(crate) struct Appending {
    journal: Arc<dyn Journal>,
    to_confirm: SyncSender<InRows>,
}

impl Appending {
    /// While one batch is confirmed the next is written and begun, and then the disk waits, as it does for the sync.
    pub(crate) fn new(journal: Arc<dyn Journal>) -> (Appending, Receiver<InRows>) {
        let (to_confirm, in_rows) = sync_channel(0);
        (Appending { journal, to_confirm }, in_rows)
    }

    /// Begins to append what follows on `end`; nothing but a check if nothing changed.
    pub(crate) fn begin(&self, end: Position, changes: &Changes) -> Begun {
        let append = match changes.is_empty() {
            true => Append::Nothing(end),
            false => Append::Entry(JournalEntry::after(end, CHANGES_FORMAT, &changes.encode())),
        };
        let (at, reply) = (Instant::now(), self.journal.append(append.clone()));
        Begun { append, reply, at }
    }

    /// The batch is in the rows.
    pub(crate) fn hand_on(&self, batch: InRows) -> Result<(), Fatal> {
        // Whoever asked sees that the thread is gone; why was told by it.
        let ended = |_| Fatal::Disk("the thread that confirms has ended".to_owned());
        self.to_confirm.send(batch).map_err(ended)
    }
}

/// Runs until the disk has ended.
pub(crate) fn run(shared: &Arc<Shared>, journal: &dyn Journal, in_rows: &Receiver<InRows>) {
    let mut end = 0;
    while let Ok(InRows { number, begun, answers }) = in_rows.recv() {
        if shared.fatal().is_some() {
            refuse(answers, &begun.no(shared));
            continue;
        }
        // Of an engine that crashed nothing is answered: callers see that it is gone.
        let Some(appended) = came_to(shared, journal, &begun) else { continue };
        shared.times.took(SYNC, begun.at.elapsed());
        match LostJournal::of(appended, end) {
            None => {
                end = begun.append.end().number;
                shared.is_durable(number);
                send(shared, answers);
            }
            Some(lost) => {
                let fatal = Fatal::Journal(lost);
                let no = match begun.append {
                    Append::Nothing(_) => Fault::Unavailable(fatal.to_string()),
                    Append::Entry(_) => Fault::Unknown(fatal.to_string()),
                };
                refuse(answers, &no.into());
                shared.stop_for(fatal);
            }
        }
    }
}

/// Waits for the outcome of an append; `None` if the engine crashed before that.
fn came_to(shared: &Shared, journal: &dyn Journal, begun: &Begun) -> Option<Appended> {
    let mut repeated = None;
    let (mut is_checked, mut tries) = (false, 0);
    loop {
        let reply = repeated.as_ref().unwrap_or(&begun.reply);
        let appended = loop {
            if shared.hand_off.is_crashed() {
                return None;
            }
            if let Some(appended) = reply.wait(LOOK_EVERY) {
                break appended;
            }
        };
        match appended {
            Appended::Unsure(_) if !shared.inbox.is_closing() => {}
            Appended::Unsure(_) if tries < CLOSING_TRIES => tries += 1,
            // It was begun before the one before it was known to be there, and may have come before that.
            Appended::At(_) if !is_checked => is_checked = true,
            appended => return Some(appended),
        }
        repeated = Some(journal.append(begun.append.clone()));
    }
}
