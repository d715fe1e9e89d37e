//! The threads of a journal in files, on the file system of the test.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::frame::{Frame, JournalKey};
use super::*;
use crate::Reply;

/// The longest wait for an expected event.
const PATIENCE: Duration = Duration::from_secs(30);
/// In bytes. Small, so that a few entries fill several segments.
const SEGMENT: u64 = 64 << 10;

struct Here {
    dir: TempDir,
    journal: FileJournal,
    /// The last entry that was synced.
    synced: Arc<AtomicU64>,
    end: Position,
}

/// A gate that a thread of the journal waits at.
struct Gate(Receiver<()>);

impl Gate {
    fn new() -> (Sender<()>, Gate) {
        let (opens, gate) = channel();
        (opens, Gate(gate))
    }

    fn pass(&self) {
        self.0.recv_timeout(PATIENCE).expect("the gate is opened");
    }
}

fn begun(path: &Path, end: Position, sync: SyncWhen) -> (FileJournal, Arc<AtomicU64>) {
    let synced = Arc::new(AtomicU64::new(0));
    let told = synced.clone();
    let options = FileJournalOptions {
        sync,
        segment_max: SEGMENT,
        on_synced: Box::new(move |number| told.store(number, Ordering::SeqCst)),
        make_room: Box::new(|| false),
    };
    (FileJournal::begin(path, end, options).unwrap(), synced)
}

impl Here {
    fn new(sync: SyncWhen) -> Here {
        let (dir, end) = (TempDir::new().unwrap(), Position::default());
        let (journal, synced) = begun(&dir.path().join("journal"), end, sync);
        Here { dir, journal, synced, end }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("journal")
    }

    fn begin(&mut self, bytes: usize) -> Reply {
        self.begin_with(&vec![7; bytes], Duration::ZERO)
    }

    fn begin_with(&mut self, body: &[u8], ttl: Duration) -> Reply {
        let entry = JournalEntry::after(self.end, 1, body);
        self.end = entry.position();
        Reply::to(&self.journal, Append::Entry { entry, ttl, grants: false })
    }

    fn append(&mut self, bytes: usize) -> Option<Appended> {
        self.begin(bytes).wait(PATIENCE)
    }

    fn left(&self, after: Position) -> Vec<Position> {
        self.left_and_ttl(after).0
    }

    fn left_and_ttl(&self, after: Position) -> (Vec<Position>, Duration) {
        let (mut found, mut ttl) = (Vec::new(), Duration::ZERO);
        let read = read_left::<ReadError>(&self.path(), after, &mut ttl, |entry| {
            found.push(entry.position());
            Ok(())
        });
        read.unwrap();
        (found, ttl)
    }
}

#[test]
fn an_entry_is_done_once_it_is_synced_and_is_read_again() {
    let mut here = Here::new(SyncWhen::BeforeAnswer);
    let first = here.append(10);
    assert_eq!((first, here.synced.load(Ordering::SeqCst)), (Some(Appended::Done), 1));
    let all: Vec<_> = (0..20).map(|n| here.begin(n * 10)).collect();
    assert!(all.iter().all(|reply| reply.wait(PATIENCE) == Some(Appended::Done)));
    // An append of nothing below the durable end is answered without a sync.
    let check = Reply::to(&here.journal, Append::Nothing(here.end)).wait(Duration::ZERO);
    assert_eq!(check, Some(Appended::Done));
    assert_eq!(here.left(Position::default()).last(), Some(&here.end));
    assert_eq!(here.left(here.end), []);
}

#[test]
fn periodic_syncs_finish_an_entry_at_once_and_close_syncs_it() {
    let mut here = Here::new(SyncWhen::Every(PATIENCE));
    assert_eq!(here.begin(10).wait(Duration::ZERO), Some(Appended::Done));
    assert_eq!(here.synced.load(Ordering::SeqCst), 0);
    here.journal.close();
    assert_eq!(here.synced.load(Ordering::SeqCst), 1);
    assert_eq!(here.begin(10).wait(PATIENCE), Some(Appended::Ended));
}

#[test]
fn an_entry_with_a_longer_ttl_is_done_once_it_is_synced() {
    let mut here = Here::new(SyncWhen::Every(Duration::from_secs(3_600)));
    let [short, long] = [1, 5].map(Duration::from_secs);
    for (ttl, synced) in [(short, 1), (short, 1), (long, 3), (short, 3), (long, 3)] {
        let done = here.begin_with(b"lease", ttl).wait(PATIENCE);
        assert_eq!((done, here.synced.load(Ordering::SeqCst)), (Some(Appended::Done), synced));
    }
    let (left, ttl) = here.left_and_ttl(Position::default());
    assert_eq!((left.len(), ttl), (5, long));
    // Also if the rows have these entries.
    assert_eq!(here.left_and_ttl(here.end), (vec![], long));
}

/// The body of an entry is what callers send. In a segment that is used again it may lie behind the end.
#[test]
fn a_text_that_looks_like_a_frame_is_none() {
    let lie = JournalEntry::after(Position { number: 70, sum: 1 }, 1, b"lie");
    let lie = Frame { entry: lie, durable: 1 << 40, ttl_us: 1 << 40 };
    for knows_key in [false, true] {
        let mut here = Here::new(SyncWhen::BeforeAnswer);
        let key = here.journal.inside.disk.key().unwrap().unwrap();
        let keys = if knows_key { vec![key] } else { [0, 1, 77].map(JournalKey).to_vec() };
        let mut text = Vec::new();
        for key in keys.repeat(20) {
            lie.write(key, &mut text);
            // At each distance from a multiple of eight.
            text.push(0);
        }
        for _ in 0..3 {
            let done = here.begin_with(&text, Duration::ZERO).wait(PATIENCE);
            assert_eq!(done, Some(Appended::Done));
        }
        here.journal.close();
        // A crash cuts the last entry.
        let file = here.path().join("0000000001");
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        bytes[last - text.len()] ^= 1;
        fs::write(&file, bytes).unwrap();
        let (mut left, mut ttl) = (0, Duration::ZERO);
        let read = read_left::<ReadError>(&here.path(), Position::default(), &mut ttl, |_| {
            left += 1;
            Ok(())
        });
        assert_eq!((left, read.is_err(), ttl.is_zero()), (2, knows_key, !knows_key));
    }
}

#[test]
fn what_does_not_follow_is_refused_and_a_repeat_is_done() {
    let mut here = Here::new(SyncWhen::BeforeAnswer);
    let before = here.end;
    assert_eq!(here.append(10), Some(Appended::Done));
    let end = here.end;
    here.end = before;
    assert_eq!(here.append(10), Some(Appended::Done), "a repeat");
    here.end = before;
    assert_eq!(here.append(11), Some(Appended::At(1)), "another content");
    let later = Position { number: 2, sum: 0 };
    let said = Reply::to(&here.journal, Append::Nothing(later)).wait(PATIENCE);
    assert_eq!((said, here.left(before)), (Some(Appended::At(1)), vec![end]));
}

#[test]
fn segments_are_used_again_once_the_rows_have_their_entries() {
    let mut here = Here::new(SyncWhen::BeforeAnswer);
    for _ in 0..200 {
        assert_eq!(here.append(5_000), Some(Appended::Done));
        if here.journal.wants_release() {
            here.journal.release(here.end.number).unwrap();
        }
    }
    let files = fs::read_dir(here.path()).unwrap().count();
    assert!(files <= 4, "{files} files for {} bytes", 200 * 5_000);
    // Without a release every segment stays.
    let before = here.end;
    for _ in 0..40 {
        assert_eq!(here.append(5_000), Some(Appended::Done));
    }
    assert_eq!(here.left(before).len(), 40);
    // An entry may be larger than a segment.
    assert_eq!(here.append(3 * SEGMENT as usize), Some(Appended::Done));
    assert_eq!(here.left(before).last(), Some(&here.end));
    here.journal.close();
    here.journal.clear().unwrap();
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
}

#[test]
fn a_journal_that_begins_anew_has_nothing_of_what_was_left() {
    let mut here = Here::new(SyncWhen::BeforeAnswer);
    assert_eq!(here.append(10), Some(Appended::Done));
    here.journal.close();
    (here.journal, here.synced) = begun(&here.path(), here.end, SyncWhen::BeforeAnswer);
    let before = here.end;
    assert_eq!(here.append(10), Some(Appended::Done));
    assert_eq!(here.left(before), [here.end]);
    assert_eq!(here.end.number, 2);
}

#[cfg(unix)]
#[test]
fn a_segment_that_is_removed_breaks_the_journal_for_good() {
    let mut here = Here::new(SyncWhen::BeforeAnswer);
    assert_eq!(here.append(10), Some(Appended::Done));
    for file in fs::read_dir(here.path()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    for _ in 0..2 {
        let Some(Appended::Broken(why)) = here.append(10) else { panic!("it was answered") };
        assert!(why.contains("was removed"), "{why}");
    }
}

#[test]
fn a_journal_without_room_breaks_after_all_entries_that_fit() {
    let mut here = Here::new(SyncWhen::BeforeAnswer);
    // Without the folder no segment can be made.
    let away = here.dir.path().join("away");
    fs::rename(here.path(), &away).unwrap();
    let broken = loop {
        match here.append(5_000) {
            Some(Appended::Done) => {}
            other => break other,
        }
    };
    let Some(Appended::Broken(why)) = broken else { panic!("{broken:?}") };
    assert!(why.contains("no room"), "{why}");
    fs::rename(&away, here.path()).unwrap();
    let there = here.left(Position::default());
    assert_eq!(there.len() as u64, here.end.number - 1);
}

/// The syncing thread ends a sync and sleeps while an append that was begun before waits for a segment.
#[test]
fn an_append_that_waited_for_a_segment_is_synced() {
    let mut here = Here::new(SyncWhen::BeforeAnswer);
    let (path, away) = (here.path(), here.dir.path().join("away"));
    let (syncs_on, sync_gate) = Gate::new();
    let (first_is_there, first) = channel::<Reply>();
    let options = FileJournalOptions {
        sync: SyncWhen::BeforeAnswer,
        segment_max: SEGMENT,
        on_synced: Box::new(move |number| {
            if number == 1 {
                sync_gate.pass();
            }
        }),
        // It is called while the last append waits.
        make_room: Box::new({
            let (path, away) = (path.clone(), away.clone());
            move || {
                syncs_on.send(()).unwrap();
                let first = first.recv_timeout(PATIENCE).unwrap();
                assert_eq!(first.wait(PATIENCE), Some(Appended::Done));
                fs::rename(&away, &path).is_ok()
            }
        }),
    };
    here.journal.close();
    here.journal = FileJournal::begin(&path, here.end, options).unwrap();
    fs::rename(&path, &away).unwrap();
    let before = here.begin(10);
    first_is_there.send(here.begin(20_000)).unwrap();
    assert_eq!(here.append(50_000), Some(Appended::Done));
    assert_eq!(before.wait(PATIENCE), Some(Appended::Done));
    // The thread that makes segments ends before the folder goes.
    here.journal.close();
}

/// The sync fails while an append waits for a segment, which comes afterwards.
#[cfg(unix)]
#[test]
fn a_failed_sync_is_not_forgotten_by_an_append_that_waited() {
    let mut here = Here::new(SyncWhen::Every(Duration::from_secs(1)));
    let (path, away) = (here.path(), here.dir.path().join("away"));
    let inside: Arc<OnceLock<Arc<FileInside>>> = Arc::default();
    let options = FileJournalOptions {
        sync: SyncWhen::Every(Duration::from_secs(1)),
        segment_max: SEGMENT,
        on_synced: Box::new(|_| {}),
        // It is called while the last append waits.
        make_room: Box::new({
            let (path, away, inside) = (path.clone(), away.clone(), inside.clone());
            move || {
                for file in fs::read_dir(&away).unwrap() {
                    fs::remove_file(file.unwrap().path()).unwrap();
                }
                let began = Instant::now();
                while inside.get().unwrap().lock().broken.is_none() {
                    assert!(began.elapsed() < PATIENCE, "the sync does not fail");
                    std::thread::yield_now();
                }
                fs::rename(&away, &path).is_ok()
            }
        }),
    };
    here.journal.close();
    here.journal = FileJournal::begin(&path, here.end, options).unwrap();
    assert!(inside.set(here.journal.inside.clone()).is_ok());
    fs::rename(&path, &away).unwrap();
    assert_eq!(here.append(20_000), Some(Appended::Done));
    let Some(Appended::Broken(why)) = here.append(50_000) else { panic!("it was answered") };
    assert!(why.contains("was removed"), "{why}");
    here.journal.close();
}
