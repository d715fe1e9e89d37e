//! The thread that writes rows: one transaction for the batches that have gathered. Their answers do not wait for it:
//! see `confirm`.
//!
//! A commit that fails is the end: its effect is unknown, nothing is retried, and no later batch is written. The next
//! opening brings the rows up to the journal.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tenure_journal::file::FileJournal;

use crate::answering::refuse;
use crate::batch::Batch;
use crate::hand_off::HandedOff;
use crate::options::Fatal;
use crate::shared::{COMMIT, Shared};
use crate::sqlite::watch::LookWhen;
use crate::sqlite::write::commit::Numbers;
use crate::sqlite::write::streams;
use crate::sqlite::write::upkeep::{Upkeep, is_full};
use crate::sqlite::write::writer::Writer;

/// Retries of a write that fails for want of room, each after room was made.
const ROOM_TRIES: u32 = 2;

/// The journal of a folder. Its segments are reused once the rows are durable up to their entries.
pub(crate) struct Checkpoints {
    pub journal: Arc<FileJournal>,
    /// SQLite's log: committed rows are durable once it is synced.
    pub log: File,
}

impl Checkpoints {
    /// Rows were written up to this entry.
    fn wrote(&self, number: u64) -> Result<(), Fatal> {
        if !self.journal.wants_release() {
            return Ok(());
        }
        let done = self.log.sync_data().and_then(|()| self.journal.release(number));
        done.map_err(|why| Fatal::Disk(format!("a checkpoint cannot be made: {why}")))
    }
}

/// The state in which the disk's thread ends.
pub(crate) struct DiskEnded {
    /// To be closed last.
    pub conn: Connection,
    /// All rows were written, into the files that are still those of the folder.
    pub is_clean: bool,
}

/// Runs until the hand-off is closed.
pub(crate) fn run(
    shared: &Arc<Shared>,
    conn: Connection,
    numbers: Numbers,
    checkpoints: Option<Checkpoints>,
) -> DiskEnded {
    let crashed = match Writer::new(&conn, numbers, shared.events_bytes.load(Ordering::Relaxed)) {
        Ok(mut writer) => {
            let mut upkeep = Upkeep::new(&conn, &shared.files);
            upkeep.begin(&shared.room);
            write_all(shared, &mut writer, &mut upkeep, checkpoints.as_ref())
        }
        Err(why) => {
            shared.stop_for(Fatal::Disk(why.to_string()));
            refuse_all(shared)
        }
    };
    // Closing a connection deletes the log by its path, where another store's log may be by now.
    let moved = shared.look(LookWhen::Now).err();
    if crashed || moved.is_some() {
        // As after a kill, the log is not moved into the store.
        let _ = conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    } else {
        if let Err(why) = streams::close(&conn) {
            // The next start takes this for an unclean end: readers get a larger gap than there is.
            tracing::warn!("that the store is closed cannot be noted: {why}");
        }
    }
    if let Some(fatal) = moved.filter(|_| !crashed) {
        shared.stop_for(fatal);
    }
    // A reader may wait for a batch that was announced, and never put because its append was lost.
    shared.hand_off.end();
    DiskEnded { conn, is_clean: !crashed && shared.fatal().is_none() }
}

/// The next batches. Wakes the state if it waits for the room that they leave.
fn take(shared: &Shared, patience: Option<Duration>) -> HandedOff {
    let (handed_off, is_awaited) = shared.hand_off.take(patience);
    if is_awaited {
        shared.inbox.poke();
    }
    handed_off
}

/// Writes until the end; true if it ends as after a crash.
fn write_all(
    shared: &Arc<Shared>,
    writer: &mut Writer<'_>,
    upkeep: &mut Upkeep<'_>,
    checkpoints: Option<&Checkpoints>,
) -> bool {
    loop {
        shared.hand_off.write_singly(upkeep.is_short());
        match take(shared, Some(upkeep.patience())) {
            HandedOff::Batches(mut batches) => {
                // A lost journal may not have taken these batches, so their rows are of no use.
                if let Some(fatal) = shared.fatal() {
                    shared.confirming.stop(shared, fatal.clone());
                    return refuse_all(shared);
                }
                let last = batches.last().map_or(0, |batch| batch.number);
                let written = write(shared, writer, upkeep, &mut batches);
                let written = written.map_err(|why| Fatal::Disk(why.to_string())).and_then(|()| {
                    shared.hand_off.wrote(last);
                    checkpoints.map_or(Ok(()), |all| all.wrote(writer.numbers().commit))
                });
                if let Err(fatal) = written {
                    // The journal was sent these batches, and may have them.
                    shared.confirming.stop(shared, fatal);
                    return refuse_all(shared);
                }
            }
            HandedOff::Nothing => upkeep.idle(&shared.room),
            HandedOff::Closed => return false,
            HandedOff::Crashed => return true,
        }
    }
}

/// Writes batches in one transaction. Values that each batch would write once are written once for all of them: rows do
/// not show where a batch ends.
fn write(
    shared: &Shared,
    writer: &mut Writer<'_>,
    upkeep: &mut Upkeep<'_>,
    batches: &mut [Batch],
) -> rusqlite::Result<()> {
    let Some((first, others)) = batches.split_first_mut() else { return Ok(()) };
    for batch in others {
        first.add(std::mem::take(&mut batch.changes.rows));
    }
    let all: Vec<_> = batches.iter().map(|batch| (&batch.changes, batch.entry)).collect();
    let bytes: usize = batches.iter().map(|batch| batch.bytes).sum();
    let began = Instant::now();
    writer.keep_events(shared.events_bytes.load(Ordering::Relaxed));
    let mut done = writer.write(&all);
    // The machine already knows these rows, so they must be written. Room is made by the reserve, and then by
    // the log, which can be written from its start again once all of it is in the store.
    for _ in 0..ROOM_TRIES {
        if !done.as_ref().is_err_and(is_full) || !upkeep.make_room(&shared.room) {
            break;
        }
        done = writer.write(&all);
    }
    shared.times.took(COMMIT, began.elapsed());
    if done.is_ok() {
        shared.room.wrote(bytes);
        upkeep.batch_written(&shared.room);
    }
    done
}

/// Refuses all batches that come: nothing of them was written.
fn refuse_all(shared: &Shared) -> bool {
    shared.hand_off.end();
    loop {
        match take(shared, None) {
            HandedOff::Batches(batches) => {
                let answers = batches.into_iter().flat_map(|batch| batch.answers);
                refuse(answers.collect(), &shared.unavailable());
                if let Some(fatal) = shared.fatal() {
                    shared.confirming.stop(shared, fatal.clone());
                }
            }
            HandedOff::Nothing => {}
            HandedOff::Closed => return false,
            HandedOff::Crashed => return true,
        }
    }
}
