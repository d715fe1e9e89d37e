//! Follower snapshots: a follower writes a snapshot for the leader from its own rows, so that the leader's machine has
//! no work with it.
//!
//! The follower writes the chunks under the leader's fence, which the leader lends it, and reports the name. Only the
//! leader installs the snapshot. It must never install one whose last entry it did not find in the journal, nor lend a
//! name twice.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tenure_journal::threads::spawn_scoped_or_die;

use tenure_election::election::Input;
use tenure_election::ids::Generation;
use tenure_election::scripts::{ScriptReply, Term};
use tenure_engine::{Replica, RowsSnapshot};
use tenure_engine_api::Clock;
use tenure_journal::{JournalEntry, Position, ReadError, Snapshot, priority};
use tenure_redis as redis;

use crate::driver::Driver;
use crate::options::{AskedServer, SnapshotWish};
use crate::snapshots::{unlink_late, written_is};
use crate::standby::follows;
use crate::translate::{generation as named, position};

/// A follower that writes no chunk for this long is given up.
const PIECE_WITHIN: Duration = Duration::from_secs(5);
/// So is one that needs more than this per chunk, beyond the time for the first one. The log grows meanwhile.
const PIECE_TAKES: Duration = Duration::from_millis(500);
/// The interval at which chunks are counted.
const COUNT_EVERY: Duration = Duration::from_millis(500);
/// The interval at which a follower compares its rows with the leader's entry, until they have reached it.
const ROWS_PAUSE: Duration = Duration::from_millis(10);
/// Names of snapshots that were given up: late chunks of older ones stay, and only cost memory.
const GIVEN_UP_MAX: usize = 4;

/// The leader's patience with a follower.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// When the follower was asked, by the own monotonic clock.
    begun: Duration,
    /// When the last chunk was seen. Starts as `begun`.
    moved: Duration,
    /// When the chunks were counted last.
    counted: Duration,
    /// Number of chunks that were seen.
    pieces: u32,
}

impl Patience {
    fn since(now: Duration) -> Patience {
        Patience { begun: now, moved: now, counted: now, pieces: 0 }
    }

    fn saw(&mut self, pieces: u32, now: Duration) {
        self.counted = now;
        if pieces > self.pieces {
            (self.pieces, self.moved) = (pieces, now);
        }
    }

    /// True if the leader would be faster itself.
    fn is_over(&self, now: Duration) -> bool {
        let allowed = PIECE_WITHIN + PIECE_TAKES * self.pieces;
        now.saturating_sub(self.moved) >= PIECE_WITHIN || now.saturating_sub(self.begun) >= allowed
    }
}

/// Has a follower write a snapshot that ends with the last sent entry, or with a later one. Blocks. If the follower
/// fails, the leader makes the next one itself, under another name.
pub(crate) fn have(
    driver: &Arc<Driver>,
    term: u64,
    (by, generation): (&Term, Generation),
    standby: &AskedServer,
) {
    unlink_late(driver, by);
    let patience = Mutex::new(Patience::since(driver.clock.monotonic()));
    let patience = || patience.lock().unwrap_or_else(PoisonError::into_inner);
    let goes_on = || {
        let (mut seen, now) = (patience(), driver.clock.monotonic());
        if now.saturating_sub(seen.counted) >= COUNT_EVERY {
            let pieces = driver.bulk.pieces_from(named(generation), seen.pieces);
            let pieces = pieces.unwrap_or(seen.pieces);
            seen.saw(pieces, now);
        }
        !seen.is_over(now) && is_wanted(driver, term, by)
    };
    let wish = {
        let state = driver.lock();
        let reached = state.election.sent().map_or(u64::MAX, |sent| sent.number);
        SnapshotWish { by: state.words.term(by), count: generation.count, reached }
    };
    let written = driver.asks.write_snapshot(standby, &wish, &goes_on);
    match written.filter(|name| is_of_the_store(driver, &wish, name)) {
        Some(name) => {
            tracing::info!("{} has written a snapshot of {} bytes", standby.url, name.bytes);
            written_is(driver, generation, name);
        }
        None => {
            let mut state = driver.lock();
            state.given_up.push_back((generation, patience().pieces));
            let old = state.given_up.len().saturating_sub(GIVEN_UP_MAX);
            state.given_up.drain(..old);
            state.writes_itself = true;
            drop(state);
            tracing::info!("{} writes no snapshot, so this server does", standby.url);
            driver.tell(Input::SnapshotFailed { generation, reply: ScriptReply::Refused });
            // Even before a snapshot is due: an operator may have asked for it.
            driver.tell(Input::SnapshotDue);
        }
    }
}

/// True while this server is still the leader that asked.
fn is_wanted(driver: &Driver, term: u64, by: &Term) -> bool {
    let state = driver.lock();
    let is_leader = state.election.serves() && state.election.epoch() == Some(by.epoch);
    is_leader && state.term == term && !state.is_over
}

/// True if a snapshot ends with an entry of the journal, by number and checksum. Checksums are chained, so its rows
/// come from this journal and no other.
fn is_of_the_store(driver: &Driver, wish: &SnapshotWish, name: &redis::SnapshotName) -> bool {
    let Position { number, .. } = name.tip;
    if name.generation != wish.generation() || number < wish.reached.max(1) {
        return false;
    }
    // The last install may have removed all entries: then the snapshot ends with the last sent one, or its install is
    // refused.
    let last = driver.lock().election.sent().map(position);
    if last == Some(name.tip) {
        return true;
    }
    has_entry(driver, name.tip).unwrap_or(false)
}

/// True if the journal has this entry, by number and checksum. False also if a snapshot has replaced it. Blocks.
pub(crate) fn has_entry(driver: &Driver, entry: Position) -> Result<bool, ReadError> {
    let Some(before) = entry.number.checked_sub(1) else { return Ok(false) };
    let entries = driver.bulk.read(before)?;
    Ok(entries.first().map(JournalEntry::position) == Some(entry))
}

/// The follower's side: see [`Node::write_snapshot`](crate::Member::write_snapshot).
pub(crate) fn write(
    driver: &Driver,
    wish: &SnapshotWish,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Option<redis::SnapshotName> {
    let _alone = driver.writes.try_lock().ok()?;
    // A thread of its own, because the caller's thread must keep its priority.
    let writes = || {
        priority::let_others_go_first();
        write_alone(driver, wish, goes_on)
    };
    thread::scope(|scope| {
        let started = spawn_scoped_or_die(scope, "tenure-lent", writes);
        let started = started.inspect_err(|why| tracing::warn!("could not start a thread: {why}"));
        started.ok()?.join().ok()?
    })
}

fn write_alone(
    driver: &Driver,
    wish: &SnapshotWish,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Option<redis::SnapshotName> {
    let goes_on = || goes_on() && follows(driver);
    let rows = rows_at(driver, wish.reached, &goes_on)?;
    let mut rows = WantedRows { rows, goes_on };
    match driver.bulk.write_snapshot(&wish.by, wish.generation(), &mut rows) {
        Ok(name) => {
            tracing::info!("a snapshot of {} bytes was written for the owner", name.bytes);
            Some(name)
        }
        Err(why) => {
            tracing::info!("a snapshot for the owner was not written: {why}");
            None
        }
    }
}

/// The rows of this follower, once they have this entry.
fn rows_at(
    driver: &Driver,
    reached: u64,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Option<RowsSnapshot> {
    while goes_on() {
        if let Some(rows) = driver.standby.lock().as_ref()
            && rows.position().number >= reached
        {
            let begun = Replica::snapshot(rows);
            return begun.inspect_err(|why| tracing::warn!("no snapshot can be made: {why}")).ok();
        }
        thread::sleep(ROWS_PAUSE);
    }
    None
}

/// Rows that are read while `goes_on` returns true.
struct WantedRows<F> {
    rows: RowsSnapshot,
    goes_on: F,
}

impl<F: Fn() -> bool + Send> Snapshot for WantedRows<F> {
    fn end(&self) -> Position {
        self.rows.end()
    }

    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        if (self.goes_on)() {
            self.rows.next_part()
        } else {
            Err(ReadError::Away("the owner that asked for it is gone".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_that_writes_no_pieces_or_few_is_given_up() {
        let s = Duration::from_secs;
        // The chunks seen at each second, and the second at which the follower is given up.
        for (seen, over) in [
            (&[][..], Some(5)),
            // One chunk gives half a second more.
            (&[(1, 4)], Some(6)),
            (&[(20, 4), (40, 8)], Some(13)),
            // One chunk a second: too few from the tenth on.
            (&[(4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (10, 10)], Some(10)),
            (&[(20, 4), (40, 8), (60, 12), (61, 16)], None),
        ] {
            let mut patience = Patience::since(s(0));
            let over_at = (0..=16).find(|now| {
                let pieces =
                    seen.iter().rfind(|(_, at)| at <= now).map_or(0, |(pieces, _)| *pieces);
                patience.saw(pieces, s(*now));
                patience.is_over(s(*now))
            });
            assert_eq!(over_at, over, "{seen:?}");
        }
    }
}
