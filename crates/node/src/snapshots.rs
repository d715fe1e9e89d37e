//! Snapshots that the leader writes itself: when the log is long and no follower writes one for it, and to rebuild a
//! store that forgot. Unlinks chunks that no name refers to any more, by whichever server they were written.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tenure_election::election::Input;
use tenure_election::ids::Generation;
use tenure_election::scripts::{ScriptReply, SnapshotName, Term};
use tenure_journal::{Snapshot, priority};
use tenure_redis as redis;
use tenure_redis::WriteError;

use crate::driver::Driver;
use crate::translate::{generation as named, tip};

/// The pause until the rows of the last sent entry are written, which takes the disk some milliseconds.
const ROWS_PAUSE: Duration = Duration::from_millis(2);
/// The pause before a snapshot is retried.
const PAUSE: Duration = Duration::from_millis(500);
/// The most chunks that a stopped follower may write before it learns that it was given up.
const LATE_PIECES: u32 = 64;

/// Writes all chunks of a snapshot that ends with the last sent entry, or with a later one. Blocks; for a
/// thread of its own.
pub(crate) fn write(driver: &Arc<Driver>, term: u64, by: &Term, generation: Generation) {
    // A store that is being rebuilt answers no call before the end, and one without room waits for the install.
    if driver.lock().election.serves() && !driver.is_full.load(Ordering::Acquire) {
        priority::let_others_go_first();
    }
    unlink_late(driver, by);
    while let Some((engine, sent, leader)) = current(driver, term, by) {
        let written = engine.snapshot().map_err(|why| why.to_string()).map(|mut snapshot| {
            if snapshot.end().number < sent {
                return None;
            }
            Some(driver.bulk.write_snapshot(&leader, named(generation), &mut snapshot))
        });
        match written {
            Ok(None) => thread::sleep(ROWS_PAUSE),
            Ok(Some(Ok(name))) => {
                driver.lock().writes_itself = false;
                return written_is(driver, generation, name);
            }
            Ok(Some(Err(WriteError::Refused(reply)))) => {
                let (reply, _) = driver.lock().words.reply(reply);
                return driver.tell(Input::SnapshotFailed { generation, reply });
            }
            Ok(Some(Err(WriteError::Store(why)))) => {
                return failed(driver, generation, &why.to_string());
            }
            Ok(Some(Err(why))) => return failed(driver, generation, &why.to_string()),
            Err(why) => return failed(driver, generation, &why),
        }
    }
}

/// Reports that all chunks of a snapshot are there.
pub(crate) fn written_is(driver: &Arc<Driver>, generation: Generation, name: redis::SnapshotName) {
    driver.lock().words.snapshot(name);
    let (pieces, tip) = (name.pieces, tip(name.tip));
    driver.tell(Input::SnapshotWritten { generation, pieces, tip });
}

/// Reports a failure. The snapshot is made again under another name; its writer unlinks the chunks of this one.
fn failed(driver: &Arc<Driver>, generation: Generation, why: &str) {
    tracing::warn!("a snapshot could not be made: {why}");
    thread::sleep(PAUSE);
    driver.tell(Input::SnapshotFailed { generation, reply: ScriptReply::Refused });
}

type Current = (Arc<tenure_engine::Embedded>, u64, redis::Term);

/// The engine, the number of the last sent entry, and the leader in the store's form; `None` once this leadership is
/// over.
fn current(driver: &Arc<Driver>, term: u64, by: &Term) -> Option<Current> {
    let mut state = driver.lock();
    while state.term == term && !state.is_over && state.election.epoch() == Some(by.epoch) {
        if let Some(engine) = &state.engine {
            return Some((engine.clone(), state.election.sent()?.number, state.words.term(by)));
        }
        // The engine is being opened.
        let waited = driver.changed.wait_timeout(state, PAUSE);
        state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
    }
    None
}

/// Unlinks the chunks of a snapshot that no name refers to any more. Blocks. Chunks that are left are found by no
/// reader, and only cost memory.
pub(crate) fn unlink(driver: &Arc<Driver>, by: &Term, snapshot: SnapshotName) {
    let leader = driver.lock().words.term(by);
    let SnapshotName { generation, pieces, .. } = snapshot;
    if let Err(why) = driver.bulk.unlink_snapshot(&leader, named(generation), pieces) {
        tracing::warn!("an old snapshot could not be unlinked: {why}");
    }
    // The store is smaller now.
    if let Err(why) = driver.store.measure() {
        tracing::debug!("the size of the store could not be asked: {why}");
    }
}

/// Unlinks chunks that a follower wrote after it was given up. Earlier chunks are unlinked with the next snapshot.
pub(crate) fn unlink_late(driver: &Driver, by: &Term) {
    let (given_up, leader) = {
        let state = driver.lock();
        (state.given_up.clone(), state.words.term(by))
    };
    for (generation, pieces) in given_up {
        let late = pieces..pieces + LATE_PIECES;
        if let Err(why) = driver.bulk.unlink_pieces(&leader, named(generation), late) {
            tracing::debug!("late pieces of a snapshot could not be unlinked: {why}");
        }
    }
}
