//! A backup of the store, from the rows of this server: of the leader's, or of a follower's, so that the leader has no
//! work with it.

use std::thread;
use std::time::{Duration, Instant};

use tenure_core::time::Span;
use tenure_engine::RowsSnapshot;
use tenure_engine::backup::BackupWriter;
use tenure_engine::copy::CopyError;
use tenure_engine_api::{Clock, Fault};
use tenure_journal::{Position, ReadError, Snapshot};
use tenure_redis::Own;

use crate::driver::Driver;
use crate::lent_snapshots::has_entry;
use crate::place::StoreLeader;

/// The rows of a server that is well are behind Redis by some milliseconds.
const ROWS_WITHIN: Duration = Duration::from_secs(10);
/// The interval at which they are compared with the journal.
const ROWS_PAUSE: Duration = Duration::from_millis(10);
/// Rows whose last entry is not in the journal within this time are given up, and read again: it was lost, or never
/// comes.
const ENTRY_WITHIN: Duration = Duration::from_secs(1);

/// Begins a backup that has every entry of the journal at the time of the call, and no entry of another one. Blocks.
pub(crate) fn begin(driver: &Driver) -> Result<BackupWriter, CopyError> {
    // Asked first: a leader that was fenced meanwhile lacks entries, and never gets them.
    let own = look(driver)?;
    let reached = own.tip.number;
    let begun = Instant::now();
    while begun.elapsed() < ROWS_WITHIN {
        if let Some(rows) = rows_at(driver, reached)?
            && is_of_the_journal(driver, own.store, rows.end())?
        {
            let largest_ttl = Span::from_us(own.largest_ttl);
            return BackupWriter::new(rows, driver.clock.now(), largest_ttl);
        }
        thread::sleep(ROWS_PAUSE);
    }
    Err(away(format!("this server has no rows with entry {reached} of the journal yet")))
}

fn away(why: impl ToString) -> CopyError {
    Fault::Unavailable(why.to_string()).into()
}

/// What Redis says of the store, if it is the one whose rows this server has.
fn look(driver: &Driver) -> Result<Own, CopyError> {
    let seen = driver.bulk.look().map_err(away)?;
    let own = seen.own.ok_or_else(|| away("Redis has no last entry of the store"))?;
    let known = driver.lock().election.store().map(|store| store.0);
    let ids = [seen.store, known];
    if ids.iter().any(|id| *id != Some(own.store)) {
        return Err(away("another store lies in Redis than the one whose rows this server has"));
    }
    Ok(own)
}

/// True if rows end with an entry of the journal, by number and checksum. Checksums are chained, so they then lack or
/// change none before. Entries of a leader may be on their way: waits for them. Must be called after the rows were
/// begun. Blocks.
fn is_of_the_journal(driver: &Driver, store: u128, end: Position) -> Result<bool, CopyError> {
    let begun = Instant::now();
    while begun.elapsed() < ENTRY_WITHIN {
        let own = look(driver)?;
        if own.store != store {
            return Err(away("the store in Redis became another one"));
        }
        // An installed snapshot has dropped its entries.
        if own.tip == end || own.snapshot.is_some_and(|snapshot| snapshot.tip == end) {
            return Ok(true);
        }
        if own.tip.number >= end.number {
            return match has_entry(driver, end) {
                Err(why @ ReadError::Away(_)) => Err(away(why)),
                found => Ok(found.unwrap_or(false)),
            };
        }
        thread::sleep(ROWS_PAUSE);
    }
    Ok(false)
}

/// The rows of this server, if they have this entry.
fn rows_at(driver: &Driver, reached: u64) -> Result<Option<RowsSnapshot>, CopyError> {
    let begun = match driver.place_now() {
        StoreLeader::Local { engine, .. } => Some(engine.snapshot()),
        StoreLeader::Remote(_) => {
            let standby = driver.standby.lock();
            let rows = standby.as_ref().filter(|rows| rows.position().number >= reached);
            rows.map(|rows| rows.snapshot())
        }
        StoreLeader::None(why) | StoreLeader::Paused(why) => {
            return Err(Fault::Unavailable(why).into());
        }
    };
    let rows = begun.transpose().map_err(|why| Fault::Unavailable(why.to_string()))?;
    Ok(rows.filter(|rows| rows.end().number >= reached))
}
