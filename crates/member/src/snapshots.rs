//! Snapshots that the leader writes itself: when the log is long and no follower writes one for it, and to rebuild a
//! store that forgot. Unlinks chunks that no name refers to any more, by whichever server they were written.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tenure_journal::Snapshot;
use tenure_journal_redis as redis;
use tenure_journal_redis::WriteError;
use tenure_owner::ids::Generation;
use tenure_owner::owner::Input;
use tenure_owner::scripts::{Ownership, ScriptReply, SnapshotName};

use crate::hands::Hands;
use crate::priority;
use crate::translate::{generation as named, tip};

/// The pause until the rows of the last sent entry are written, which takes the disk some milliseconds.
const ROWS_PAUSE: Duration = Duration::from_millis(2);
/// The pause before a snapshot is retried.
const PAUSE: Duration = Duration::from_millis(500);
/// The most chunks that a stopped follower may write before it learns that it was given up.
const LATE_PIECES: u32 = 64;

/// Writes all chunks of a snapshot that ends with the last sent entry, or with a later one. Blocks; for a
/// thread of its own.
pub(crate) fn write(hands: &Arc<Hands>, term: u64, by: &Ownership, generation: Generation) {
    // A store that is being rebuilt answers no call before the end, and one without room waits for the install.
    if hands.lock().owner.serves() && !hands.is_full.load(Ordering::Acquire) {
        priority::let_others_go_first();
    }
    unlink_late(hands, by);
    while let Some((engine, sent, owner)) = current(hands, term, by) {
        let written = engine.snapshot().map_err(|why| why.to_string()).map(|mut snapshot| {
            if snapshot.end().number < sent {
                return None;
            }
            Some(hands.bulk.write_snapshot(&owner, named(generation), &mut snapshot))
        });
        match written {
            Ok(None) => thread::sleep(ROWS_PAUSE),
            Ok(Some(Ok(name))) => {
                hands.lock().writes_itself = false;
                return written_is(hands, generation, name);
            }
            Ok(Some(Err(WriteError::Refused(reply)))) => {
                let (reply, _) = hands.lock().words.reply(reply);
                return hands.tell(Input::SnapshotFailed { generation, reply });
            }
            Ok(Some(Err(WriteError::Store(why)))) => {
                return failed(hands, generation, &why.to_string());
            }
            Ok(Some(Err(why))) => return failed(hands, generation, &why.to_string()),
            Err(why) => return failed(hands, generation, &why),
        }
    }
}

/// Reports that all chunks of a snapshot are there.
pub(crate) fn written_is(hands: &Arc<Hands>, generation: Generation, name: redis::SnapshotName) {
    hands.lock().words.snapshot(name);
    let (pieces, tip) = (name.pieces, tip(name.tip));
    hands.tell(Input::SnapshotWritten { generation, pieces, tip });
}

/// Reports a failure. The snapshot is made again under another name; its writer unlinks the chunks of this one.
fn failed(hands: &Arc<Hands>, generation: Generation, why: &str) {
    tracing::warn!("a snapshot could not be made: {why}");
    thread::sleep(PAUSE);
    hands.tell(Input::SnapshotFailed { generation, reply: ScriptReply::Refused });
}

type Current = (Arc<tenure_engine::Embedded>, u64, redis::Ownership);

/// The engine, the number of the last sent entry, and the leader in the store's form; `None` once this leadership is
/// over.
fn current(hands: &Arc<Hands>, term: u64, by: &Ownership) -> Option<Current> {
    let mut state = hands.lock();
    while state.term == term && !state.is_over && state.owner.epoch() == Some(by.epoch) {
        if let Some(engine) = &state.engine {
            return Some((engine.clone(), state.owner.sent()?.number, state.words.ownership(by)));
        }
        // The engine is being opened.
        let waited = hands.changed.wait_timeout(state, PAUSE);
        state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
    }
    None
}

/// Unlinks the chunks of a snapshot that no name refers to any more. Blocks. Chunks that are left are found by no
/// reader, and only cost memory.
pub(crate) fn unlink(hands: &Arc<Hands>, by: &Ownership, snapshot: SnapshotName) {
    let owner = hands.lock().words.ownership(by);
    let SnapshotName { generation, pieces, .. } = snapshot;
    if let Err(why) = hands.bulk.unlink_snapshot(&owner, named(generation), pieces) {
        tracing::warn!("an old snapshot could not be unlinked: {why}");
    }
    // The store is smaller now.
    if let Err(why) = hands.store.measure() {
        tracing::debug!("the size of the store could not be asked: {why}");
    }
}

/// Unlinks chunks that a follower wrote after it was given up. Earlier chunks are unlinked with the next snapshot.
pub(crate) fn unlink_late(hands: &Hands, by: &Ownership) {
    let (given_up, owner) = {
        let state = hands.lock();
        (state.given_up.clone(), state.words.ownership(by))
    };
    for (generation, pieces) in given_up {
        let late = pieces..pieces + LATE_PIECES;
        if let Err(why) = hands.bulk.unlink_pieces(&owner, named(generation), late) {
            tracing::debug!("late pieces of a snapshot could not be unlinked: {why}");
        }
    }
}
