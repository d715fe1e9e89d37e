//! The thread that writes: one batch, one transaction, and then its answers, or the way to the
//! thread that syncs it first. Where a journal appends, answers wait for that and not for this (see `confirm`), and one
//! transaction takes the batches of a moment.
//!
//! A commit that fails is the end: what it did is unknown, nothing is tried again, and no later
//! batch is written, since it may rest on what was lost.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tenure_seam::{CallError, Fault};

use crate::answering::{refuse, send};
use crate::batch::{Batch, Pending};
use crate::file::commit::Numbers;
use crate::file::room::full;
use crate::file::streams;
use crate::file::sync::Committed;
use crate::file::synced::Synced;
use crate::file::upkeep::{Upkeep, is_full};
use crate::file::watch::LookWhen;
use crate::file::writer::Writer;
use crate::file::written::Written;
use crate::hand_off::HandedOff;
use crate::options::Fatal;
use crate::shared::{COMMIT, SYNC, Shared};

/// With [`Durability::Everysec`](crate::Durability::Everysec): how old a commit that is not synced
/// may become.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// A write that fails for want of room is tried again so often, after room was made.
const ROOM_TRIES: u32 = 2;

/// When a commit is answered.
pub(crate) enum Answers {
    /// At once: the store is gone with the process in any case.
    AfterCommit,
    /// At once; the log is synced once a second.
    SyncedLater(Syncing),
    /// After it was synced.
    AfterSync(SyncSender<Committed>),
    /// After its append, which began before its commit and may be done before it: see
    /// [`confirm`](crate::journal::confirm).
    AfterAppend,
}

impl Answers {
    fn syncing(&mut self) -> Option<&mut Syncing> {
        match self {
            Answers::SyncedLater(syncing) => Some(syncing),
            Answers::AfterCommit | Answers::AfterSync(_) | Answers::AfterAppend => None,
        }
    }
}

/// Syncs the log once a second, where commits do not.
pub(crate) struct Syncing {
    log: File,
    last: Instant,
    /// Something was committed since.
    needed: bool,
    /// The number of the last commit.
    commit: u64,
    synced: Synced,
}

impl Syncing {
    pub(crate) fn new(log: File, synced: Synced) -> Self {
        Syncing { log, last: Instant::now(), needed: false, commit: 0, synced }
    }
    fn due(&self) -> bool {
        self.needed && self.last.elapsed() >= SYNC_EVERY
    }
    fn sync(&mut self, shared: &Shared) -> Result<(), Fatal> {
        let began = Instant::now();
        let synced = self.log.sync_data();
        shared.times.took(SYNC, began.elapsed());
        synced.map_err(|why| Fatal::Disk(format!("it cannot be synced: {why}")))?;
        self.synced.note(self.commit, shared.clock.now());
        self.last = Instant::now();
        self.needed = false;
        Ok(())
    }
}

/// Runs until the hand-off is closed; gives the connection back, which is to be closed last of all.
pub(crate) fn run(
    shared: &Arc<Shared>,
    conn: Connection,
    numbers: Numbers,
    mut answers: Answers,
) -> Connection {
    let crashed = match Writer::new(&conn, numbers, shared.events_bytes.load(Ordering::Relaxed)) {
        Ok(mut writer) => {
            let mut upkeep = Upkeep::new(&conn, &shared.files);
            upkeep.begin(&shared.room);
            write_all(shared, &mut writer, &mut upkeep, &mut answers)
        }
        Err(why) => {
            shared.stop_for(Fatal::Disk(why.to_string()));
            refuse_all(shared)
        }
    };
    // What is closed takes away its log by its path, which may be another's by now.
    let moved = shared.look(LookWhen::Now).err();
    if crashed || moved.is_some() {
        // A process that is killed does not move its log into the store either.
        let _ = conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    } else {
        if let Err(why) = streams::close(&conn) {
            // The next start takes it for an unclean end: readers are told of more than they missed.
            tracing::warn!("that the store is closed cannot be noted: {why}");
        }
        if let Some(syncing) = answers.syncing().filter(|syncing| syncing.needed) {
            let _ = syncing.sync(shared);
        }
    }
    if let Some(fatal) = moved.filter(|_| !crashed) {
        shared.stop_for(fatal);
    }
    conn
}

/// The next batches. The state is woken if it waits for the room that this leaves.
fn take(shared: &Shared, patience: Option<Duration>) -> HandedOff {
    let (handed_off, is_awaited) = shared.hand_off.take(patience);
    if is_awaited {
        shared.inbox.poke();
    }
    handed_off
}

/// Whether it ended as a crash would.
fn write_all(
    shared: &Arc<Shared>,
    writer: &mut Writer<'_>,
    upkeep: &mut Upkeep<'_>,
    answers: &mut Answers,
) -> bool {
    loop {
        match take(shared, Some(upkeep.patience())) {
            HandedOff::Batches(batches) => {
                // A journal that is lost may not have taken these batches: their rows are of no use.
                if let (Some(confirming), Some(fatal)) = (&shared.confirming, shared.fatal()) {
                    confirming.stop(shared, fatal.clone());
                    return refuse_all(shared);
                }
                if let Err(fatal) = write_and_answer(shared, writer, upkeep, answers, batches) {
                    match &shared.confirming {
                        // The journal was sent these batches, and may have them.
                        Some(confirming) => confirming.stop(shared, fatal),
                        None => shared.stop_for(fatal),
                    }
                    return refuse_all(shared);
                }
            }
            HandedOff::Nothing => upkeep.idle(&shared.room),
            HandedOff::Closed => return false,
            HandedOff::Crashed => return true,
        }
        if let Some(syncing) = answers.syncing().filter(|syncing| syncing.due())
            && let Err(fatal) = syncing.sync(shared)
        {
            shared.stop_for(fatal);
            return refuse_all(shared);
        }
    }
}

fn write_and_answer(
    shared: &Arc<Shared>,
    writer: &mut Writer<'_>,
    upkeep: &mut Upkeep<'_>,
    how: &mut Answers,
    mut batches: Vec<Batch>,
) -> Result<(), Fatal> {
    let written = write(shared, writer, upkeep, &mut batches);
    let last = batches.last().map_or(0, |batch| batch.number);
    if let Answers::AfterAppend = how {
        written.map_err(|why| Fatal::Disk(why.to_string()))?;
        shared.hand_off.wrote(last);
        return Ok(());
    }
    if written.is_ok() {
        batches.iter().for_each(|batch| shared.follow(Written::of(&batch.changes.rows)));
        shared.hand_off.wrote(last);
    }
    let answers: Vec<Pending> = batches.into_iter().flat_map(|batch| batch.answers).collect();
    let commit = match written {
        Ok(commit) => commit,
        Err(why) => {
            let no = match is_full(&why) {
                true => CallError::Refused(full(shared.room.max_bytes())),
                false => Fault::Unknown(why.to_string()).into(),
            };
            refuse(answers, &no);
            return Err(Fatal::Disk(why.to_string()));
        }
    };
    match how {
        Answers::AfterSync(sync) => {
            let committed = Committed { number: last, commit, answers };
            // Whoever asked sees that the thread is gone; why was told by it.
            return sync.send(committed).map_err(|_| Fatal::Disk("its sync has ended".to_owned()));
        }
        Answers::SyncedLater(syncing) => {
            if let Some(commit) = commit {
                (syncing.needed, syncing.commit) = (true, commit);
            }
        }
        Answers::AfterCommit | Answers::AfterAppend => {}
    }
    if let Err(fatal) = shared.look(LookWhen::BeforeAnswer) {
        refuse(answers, &Fault::Unknown(fatal.to_string()).into());
        return Err(fatal);
    }
    shared.is_durable(last);
    send(shared, answers);
    Ok(())
}

/// Writes batches in one transaction, and what is written once in one of them once in all: where a batch ends is of no
/// matter to rows. The number of the commit, if there was anything to write.
fn write(
    shared: &Shared,
    writer: &mut Writer<'_>,
    upkeep: &mut Upkeep<'_>,
    batches: &mut [Batch],
) -> rusqlite::Result<Option<u64>> {
    match batches.split_first_mut() {
        None => return Ok(None),
        Some((only, [])) if only.changes.is_empty() => return Ok(None),
        Some((first, others)) => {
            for batch in others {
                first.add(std::mem::take(&mut batch.changes.rows));
            }
        }
    }
    let all: Vec<_> = batches.iter().map(|batch| (&batch.changes, batch.entry)).collect();
    let began = Instant::now();
    writer.keep_events(shared.events_bytes.load(Ordering::Relaxed));
    let mut done = writer.write(&all);
    // What the machine knows already must be written, so room is made for it: by the reserve, and then by
    // the log, which can be written from its beginning once all of it is in the store.
    for _ in 0..ROOM_TRIES {
        if !done.as_ref().is_err_and(is_full) || !upkeep.make_room(&shared.room) {
            break;
        }
        done = writer.write(&all);
    }
    shared.times.took(COMMIT, began.elapsed());
    if done.is_ok() {
        upkeep.batch_written(&shared.room);
    }
    done.map(Some)
}

/// Answers all that comes that nothing of it was written.
fn refuse_all(shared: &Shared) -> bool {
    shared.hand_off.end();
    loop {
        match take(shared, None) {
            HandedOff::Batches(batches) => {
                let answers = batches.into_iter().flat_map(|batch| batch.answers);
                refuse(answers.collect(), &shared.unavailable());
                if let (Some(confirming), Some(fatal)) = (&shared.confirming, shared.fatal()) {
                    confirming.stop(shared, fatal.clone());
                }
            }
            HandedOff::Nothing => {}
            HandedOff::Closed => return false,
            HandedOff::Crashed => return true,
        }
    }
}
