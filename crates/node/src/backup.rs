//! A backup of the store, from the rows of this server: of the leader's, or of a follower's, so that the leader has no
//! work with it.

use std::thread;
use std::time::{Duration, Instant};

use tenure_core::time::Span;
use tenure_engine::RowsSnapshot;
use tenure_engine::backup::BackupWriter;
use tenure_engine::copy::CopyError;
use tenure_engine_api::{Clock, Fault};
use tenure_journal::Snapshot;

use crate::driver::Driver;
use crate::place::StoreLeader;

/// The rows of a server that is well are behind Redis by some milliseconds.
const ROWS_WITHIN: Duration = Duration::from_secs(10);
/// The interval at which they are compared with the last entry.
const ROWS_PAUSE: Duration = Duration::from_millis(10);

/// Begins a backup that has every entry of the journal at the time of the call. Blocks.
pub(crate) fn begin(driver: &Driver) -> Result<BackupWriter, CopyError> {
    let away = |why: &dyn std::fmt::Display| CopyError::from(Fault::Unavailable(why.to_string()));
    // Asked first: a leader that was fenced meanwhile lacks entries, and never gets them.
    let own = driver.bulk.look().map_err(|why| away(&why))?.own;
    let (reached, largest_ttl) = own.map_or((0, 0), |own| (own.tip.number, own.largest_ttl));
    let begun = Instant::now();
    while begun.elapsed() < ROWS_WITHIN {
        if let Some(rows) = rows_at(driver, reached)? {
            return BackupWriter::new(rows, driver.clock.now(), Span::from_us(largest_ttl));
        }
        thread::sleep(ROWS_PAUSE);
    }
    let why = format!("the rows of this server do not have entry {reached} of the journal yet");
    Err(away(&why))
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
