//! Snapshots that the owner writes itself: when the log is long and no standby writes one for it, and to heal a store that
//! forgot. Pieces that nothing names any more are unlinked here too, whoever wrote them.

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

/// Until the rows of the last entry that was sent are written, which takes the disk some milliseconds.
const ROWS_PAUSE: Duration = Duration::from_millis(2);
/// Before a snapshot is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// A standby that was stopped may write as many pieces before it sees that it was given up.
const LATE_PIECES: u32 = 64;

/// Writes all pieces of a snapshot that ends with the last entry that was sent, or with a later one. Blocks; for a
/// thread of its own.
pub(crate) fn write(hands: &Arc<Hands>, term: u64, by: &Ownership, generation: Generation) {
    // A store that heals answers nobody until it is done, and one that has no room waits for the turn.
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

/// All pieces of a snapshot are there.
pub(crate) fn written_is(hands: &Arc<Hands>, generation: Generation, name: redis::SnapshotName) {
    hands.lock().words.snapshot(name);
    let (pieces, tip) = (name.pieces, tip(name.tip));
    hands.tell(Input::SnapshotWritten { generation, pieces, tip });
}

/// It is made again under another name, and whoever writes that unlinks the pieces of this one.
fn failed(hands: &Arc<Hands>, generation: Generation, why: &str) {
    tracing::warn!("a snapshot could not be made: {why}");
    thread::sleep(PAUSE);
    hands.tell(Input::SnapshotFailed { generation, reply: ScriptReply::Refused });
}

type Current = (Arc<tenure_engine::Embedded>, u64, redis::Ownership);

/// The engine, the number of the last entry that was sent, and the owner in the store's words; `None` once this ownership is
/// over.
fn current(hands: &Arc<Hands>, term: u64, by: &Ownership) -> Option<Current> {
    let mut state = hands.lock();
    while state.term == term && !state.is_over && state.owner.epoch() == Some(by.epoch) {
        if let Some(engine) = &state.engine {
            return Some((engine.clone(), state.owner.sent()?.number, state.words.ownership(by)));
        }
        // It is being opened.
        let waited = hands.changed.wait_timeout(state, PAUSE);
        state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
    }
    None
}

/// Unlinks the pieces of a snapshot that nothing names any more. Blocks. Pieces that are left are found by nobody, and cost
/// memory alone.
pub(crate) fn unlink(hands: &Arc<Hands>, by: &Ownership, snapshot: SnapshotName) {
    let owner = hands.lock().words.ownership(by);
    let SnapshotName { generation, pieces, .. } = snapshot;
    if let Err(why) = hands.bulk.unlink_snapshot(&owner, named(generation), pieces) {
        tracing::warn!("an old snapshot could not be unlinked: {why}");
    }
    // What the store takes is less now.
    if let Err(why) = hands.store.measure() {
        tracing::debug!("the size of the store could not be asked: {why}");
    }
}

/// Unlinks pieces that a standby wrote after it was given up. Those before are unlinked with the next snapshot.
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
