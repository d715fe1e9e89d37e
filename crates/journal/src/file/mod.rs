//! A journal in files: numbered, preallocated segments in a folder, to which entries are written one behind the other.
//!
//! The thread that begins an append writes it, and a thread of the journal syncs it: one sync for all waiting appends
//! (group commit). The rows of the store follow. Once they are durable up to the last entry of a segment, that segment
//! is used again. An opening first brings the rows up to the journal, then begins new segments, so nothing is written
//! behind an entry that a crash left half written.

mod disk;
mod frame;
#[cfg(test)]
mod histories;
mod left;
mod segments;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use disk::sync_folder;
use disk::{Disk, SegmentFile, SegmentFolder};
use left::LeftEntries;
use segments::{NotWritten, Segments, WantedSegment};

use crate::threads::spawn_or_die;
use crate::{
    Append, Appended, Hears, Journal, JournalEntry, Position, ReadError, Snapshot, StoreFacts,
};

/// The condition under which an append is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncWhen {
    /// The append is done once it is synced.
    BeforeAnswer,
    /// The append is done once it is written. The disk is synced at this interval. But no append is done before it is
    /// durable how long leases may last: after a loss, nothing that was lent is lent again for that time.
    Every(Duration),
}

/// Options of a journal in files.
pub struct FileJournalOptions {
    /// The condition under which an append is done.
    pub sync: SyncWhen,
    /// Size limit of a segment in bytes. The first segments are smaller.
    pub segment_max: u64,
    /// Called after each sync with the last durable entry, on the thread that syncs.
    pub on_synced: Box<dyn FnMut(u64) + Send>,
    /// Called when a segment does not fit on the disk: frees space, and returns true if it freed any.
    pub make_room: Box<dyn FnMut() -> bool + Send>,
}

/// Hands each entry behind `end`, the last entry of the rows, to `apply` once. A folder that is not there has no
/// entries. Sets `longest_ttl` to the longest ttl of any lease, as far as the journal names it, also where it is damaged.
///
/// # Errors
/// `apply` failed; the folder cannot be read, a durable entry is missing, or `end` is not from this journal.
pub fn read_left<E: From<ReadError>>(
    path: &Path,
    end: Position,
    longest_ttl: &mut Duration,
    mut apply: impl FnMut(JournalEntry) -> Result<(), E>,
) -> Result<(), E> {
    if !path.is_dir() {
        return Ok(());
    }
    let away = |why: io::Error| ReadError::Away(why.to_string());
    let disk = SegmentFolder::open(path).map_err(away)?;
    let Some(key) = disk.key().map_err(away)? else { return Ok(()) };
    let mut left = LeftEntries::open(Arc::new(disk), key, end).map_err(away)?;
    loop {
        let next = left.next();
        *longest_ttl = Duration::from_micros(left.ttl_us());
        let Some(entry) = next? else { return Ok(()) };
        apply(entry)?;
    }
}

/// A journal in files that this process appends to. The process must hold the lock of the folder.
pub struct FileJournal {
    inside: Arc<FileInside>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct FileInside {
    sync: SyncWhen,
    disk: Arc<SegmentFolder>,
    state: Mutex<FileState>,
    /// Wakes the thread that syncs.
    to_sync: Condvar,
    /// Wakes the thread that makes segments.
    wants_segment: Condvar,
    /// Wakes an append that waits for a segment.
    has_segment: Condvar,
}

struct FileState {
    segments: Segments<SegmentFolder>,
    /// Appends without an answer yet, each with the entry that must be durable first.
    waiting: Vec<(u64, Hears)>,
    /// The time of the first write that no sync covers yet.
    unsynced_since: Option<Instant>,
    /// The reason why the next segment could not be made.
    no_segment: Option<String>,
    /// The reason why nothing is written any more. A failed sync is not retried: the system may have dropped the data,
    /// and reports that only once.
    broken: Option<String>,
    is_closed: bool,
}

impl FileJournal {
    /// Begins behind `end`, up to which the rows are durable. Segments of earlier processes are removed. Makes the
    /// folder if it is not there.
    ///
    /// # Errors
    /// The folder cannot be written, or the system starts no thread.
    pub fn begin(
        path: &Path,
        end: Position,
        options: FileJournalOptions,
    ) -> io::Result<FileJournal> {
        let FileJournalOptions { sync, segment_max, mut on_synced, mut make_room } = options;
        let disk = Arc::new(SegmentFolder::open(path)?);
        let key = disk.make_key()?;
        let state = FileState {
            segments: Segments::begin(&*disk, key, end, segment_max)?,
            waiting: Vec::new(),
            unsynced_since: None,
            no_segment: None,
            broken: None,
            is_closed: false,
        };
        let inside = Arc::new(FileInside {
            sync,
            disk,
            state: Mutex::new(state),
            to_sync: Condvar::new(),
            wants_segment: Condvar::new(),
            has_segment: Condvar::new(),
        });
        let journal = FileJournal { inside: inside.clone(), threads: Mutex::default() };
        let syncs = spawn_or_die("tenure-journal", move || inside.sync_all(&mut *on_synced))?;
        journal.lock_threads().push(syncs);
        let inside = journal.inside.clone();
        let makes = spawn_or_die("tenure-segments", move || inside.make_segments(&mut *make_room))?;
        journal.lock_threads().push(makes);
        Ok(journal)
    }

    /// True if full segments can be used again once the rows are durable up to their entries.
    pub fn wants_release(&self) -> bool {
        self.inside.lock().segments.has_full()
    }

    /// Reports that the rows are durable up to this entry.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn release(&self, number: u64) -> io::Result<()> {
        // The lock is released first, so no append waits for the file system.
        let removed = self.inside.lock().segments.release(number);
        removed.into_iter().try_for_each(|number| self.inside.disk.remove(number))
    }

    /// Syncs the written entries, answers the waiting appends, and ends the threads. A second call does nothing.
    pub fn close(&self) {
        self.inside.lock().is_closed = true;
        self.inside.wake_all();
        for thread in std::mem::take(&mut *self.lock_threads()) {
            // A panic in it would have ended the process.
            let _ = thread.join();
        }
    }

    /// Removes all segments. The journal must be closed, and all of its entries durable in the rows.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn clear(&self) -> io::Result<()> {
        let disk = &self.inside.disk;
        disk.list()?.into_iter().try_for_each(|number| disk.remove(number))?;
        disk.drop_key()
    }

    fn lock_threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for FileJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileJournal").field("disk", &self.inside.disk).finish_non_exhaustive()
    }
}

impl FileInside {
    fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        self.to_sync.notify_all();
        self.wants_segment.notify_all();
        self.has_segment.notify_all();
    }

    /// Writes an entry; waits for the next segment if the entry needs it. Returns true if no other write waits for a
    /// sync: the syncing thread may sleep then.
    fn write<'s>(
        &'s self,
        mut state: MutexGuard<'s, FileState>,
        entry: &JournalEntry,
        ttl: Duration,
    ) -> (MutexGuard<'s, FileState>, bool) {
        let mut is_first = false;
        while state.broken.is_none() && !state.is_closed {
            let ttl_us = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
            match state.segments.append(entry, ttl_us) {
                Ok(()) => {
                    is_first = state.unsynced_since.is_none();
                    state.unsynced_since.get_or_insert_with(Instant::now);
                    break;
                }
                Err(NotWritten::Disk(why)) => state.broken = Some(broken(&why)),
                Err(NotWritten::NoSegment) => {
                    state.no_segment = None;
                    self.wants_segment.notify_one();
                    state = self.has_segment.wait(state).unwrap_or_else(PoisonError::into_inner);
                    // A sync may have failed meanwhile, which no new segment mends.
                    if let Some(why) = state.no_segment.take() {
                        state.broken.get_or_insert(why);
                    }
                }
            }
        }
        (state, is_first)
    }

    /// Writes an append. Returns its answer if it waits for nothing.
    fn append(&self, append: &Append, hears: Hears) -> Option<(Hears, Appended)> {
        let mut state = self.lock();
        let (end, mut wakes) = (state.segments.end(), false);
        let Position { number, .. } = append.end();
        match append {
            Append::Entry { entry, .. } if entry.position() == end => {}
            Append::Entry { entry, ttl, .. } if entry.follows(end).is_ok() => {
                (state, wakes) = self.write(state, entry, *ttl);
            }
            Append::Entry { .. } => return Some((hears, Appended::At(end.number))),
            Append::Nothing(wanted) if wanted.number > end.number => {
                return Some((hears, Appended::At(end.number)));
            }
            Append::Nothing(_) => {}
        }
        if let Some(why) = &state.broken {
            return Some((hears, Appended::Broken(why.clone())));
        }
        if state.is_closed {
            return Some((hears, Appended::Ended));
        }
        if state.segments.wants_next() {
            self.wants_segment.notify_one();
        }
        let is_done = match self.sync {
            SyncWhen::BeforeAnswer => number <= state.segments.durable(),
            SyncWhen::Every(_) => state.segments.knows_ttl(),
        };
        let answered = if is_done {
            Some((hears, Appended::Done))
        } else {
            // The sync is due now, and not at the end of the interval.
            wakes |= matches!(self.sync, SyncWhen::Every(_));
            state.waiting.push((number, hears));
            None
        };
        drop(state);
        if wakes {
            self.to_sync.notify_one();
        }
        answered
    }

    /// Syncs the written entries until the journal is closed.
    fn sync_all(&self, on_synced: &mut dyn FnMut(u64)) {
        let mut state = self.lock();
        let mut has_failed = false;
        loop {
            if has_failed {
                // A later sync would not cover what this one has lost.
                state.unsynced_since = None;
            }
            let waits = match (self.sync, state.unsynced_since) {
                (_, None) if state.is_closed => return,
                (_, None) => None,
                (SyncWhen::Every(span), Some(since))
                    if !state.is_closed && state.waiting.is_empty() =>
                {
                    Some(span.saturating_sub(since.elapsed()))
                }
                (SyncWhen::Every(_) | SyncWhen::BeforeAnswer, Some(_)) => Some(Duration::ZERO),
            };
            match waits {
                None => {
                    state = self.to_sync.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                Some(Duration::ZERO) => {
                    let (files, number) = state.segments.take_unsynced();
                    state.unsynced_since = None;
                    drop(state);
                    let synced = files.iter().try_for_each(|file| file.sync());
                    match &synced {
                        Ok(()) => on_synced(number),
                        Err(_) => has_failed = true,
                    }
                    state = self.synced(number, synced);
                }
                Some(left) => {
                    let waited = self.to_sync.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Answers the appends that waited for a sync of the entries up to this one.
    fn synced(&self, number: u64, synced: io::Result<()>) -> MutexGuard<'_, FileState> {
        let mut state = self.lock();
        let (answered, appended) = match synced {
            Ok(()) => {
                state.segments.synced(number);
                let still = state.waiting.partition_point(|(wanted, _)| *wanted <= number);
                (state.waiting.drain(..still).collect(), Appended::Done)
            }
            Err(why) => {
                let why = state.broken.get_or_insert(broken(&why)).clone();
                (std::mem::take(&mut state.waiting), Appended::Broken(why))
            }
        };
        drop(state);
        for (_, hears) in answered {
            hears.hear(appended.clone());
        }
        self.lock()
    }

    /// Makes segments ahead of need until the journal is closed.
    fn make_segments(&self, make_room: &mut dyn FnMut() -> bool) {
        let mut state = self.lock();
        while !state.is_closed {
            let Some(wanted) = state.segments.wanted() else {
                state = self.wants_segment.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let least = state.segments.least(wanted);
            drop(state);
            let made = self.make(wanted, least, make_room);
            state = self.lock();
            state.no_segment =
                made.as_ref().err().map(|why| format!("there is no room for the journal: {why}"));
            let has_failed = made.is_err();
            state.segments.give(made.ok());
            self.has_segment.notify_all();
            // A close during this time has already woken this thread.
            if has_failed && !state.is_closed {
                state = self.wants_segment.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn make(
        &self,
        wanted: WantedSegment,
        least: WantedSegment,
        make_room: &mut dyn FnMut() -> bool,
    ) -> io::Result<(WantedSegment, std::fs::File)> {
        let WantedSegment { number, bytes, from } = wanted;
        if let Some(from) = from {
            return Ok((wanted, self.disk.rename(from, number)?));
        }
        let of_least = || Ok((least, self.disk.create(number, least.bytes)?));
        match self.disk.create(number, bytes) {
            Ok(file) => Ok((wanted, file)),
            Err(_) => of_least().or_else(|why| if make_room() { of_least() } else { Err(why) }),
        }
    }
}

fn broken(why: &io::Error) -> String {
    format!("the journal cannot be written: {why}")
}

impl Journal for FileJournal {
    fn append(&self, append: Append, hears: Hears) {
        if let Some((hears, appended)) = self.inside.append(&append, hears) {
            hears.hear(appended);
        }
    }

    /// Nothing: an opening has already brought the rows up to the end of the journal.
    fn read(&self, _: u64) -> Result<Vec<JournalEntry>, ReadError> {
        Ok(Vec::new())
    }

    /// Nothing: the segments continue from the rows.
    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, ReadError> {
        Ok(None)
    }

    fn facts(&self) -> StoreFacts {
        StoreFacts { kind: "embedded", bytes: 0 }
    }
}
