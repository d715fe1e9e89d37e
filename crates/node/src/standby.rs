//! The thread of a follower: its rows follow the journal, so that a takeover reads only the entries that they lack.
//!
//! It must never keep rows that are no copy of the journal: those are dropped, and read again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tenure_engine::{Location, OpenError, Options, Replica};
use tenure_journal::Position;

use crate::driver::Driver;
use crate::journal::NodeJournal;
use crate::loading::is_of_the_journal;

/// The pause between two reads while entries come, and while none come.
const PAUSE_BUSY: Duration = Duration::from_millis(20);
const PAUSE_IDLE: Duration = Duration::from_millis(200);
/// The pause after the journal could not be read, or the rows were dropped for the first time.
const PAUSE_FAILED: Duration = Duration::from_secs(1);
/// The longest pause after the rows were dropped. Each time the whole store is read from the journal again.
const PAUSE_LONGEST: Duration = Duration::from_secs(60);
/// Rows that lasted this long after a pause end a series of setbacks.
const LASTS: Duration = Duration::from_secs(60);
/// The interval at which rows without new entries are compared with the end of the journal.
const COMPARE_EVERY: Duration = Duration::from_secs(1);
/// No engine has this term, so no append is made for it.
const NO_TERM: u64 = u64::MAX;

/// Runs the thread of a follower: applies new entries while another server leads the store.
pub(crate) fn run(driver: &Arc<Driver>) {
    let damage = Arc::new(AtomicBool::new(false));
    let journal = NodeJournal::new(driver, NO_TERM, damage.clone());
    let (mut pause, mut compared) = (PAUSE_IDLE, Instant::now());
    let mut setbacks = Setbacks::default();
    while !is_over_after(driver, pause) {
        let standby = &driver.standby;
        let mut rows = standby.lock();
        // Existing rows wait for the engine that is opened over them, or for another server to lead the store.
        if !follows(driver) {
            pause = PAUSE_IDLE;
            continue;
        }
        let before = rows.as_ref().map(Replica::position);
        pause = match catch_up(driver, &mut rows, &journal) {
            Ok(end) if Some(end) != before => {
                compared = Instant::now();
                standby.note_applied(end.number);
                PAUSE_BUSY
            }
            Ok(end) if compared.elapsed() >= COMPARE_EVERY => {
                compared = Instant::now();
                if is_other(driver, end) {
                    tracing::warn!(
                        "the rows of this standby are no copy of the store any more, and are read anew"
                    );
                    standby.put(&mut rows, None);
                }
                PAUSE_IDLE
            }
            Ok(_) => PAUSE_IDLE,
            Err(why) if is_of_the_journal(&why) && !damage.load(Ordering::Acquire) => {
                tracing::debug!("this standby waits: {why}");
                PAUSE_FAILED
            }
            Err(why) => {
                standby.put(&mut rows, None);
                let pause = setbacks.next(Instant::now());
                if pause == PAUSE_FAILED {
                    tracing::warn!("the rows of this standby are read anew: {why}");
                } else {
                    tracing::debug!("the rows of this standby are read anew in {pause:?}: {why}");
                }
                pause
            }
        };
    }
    driver.standby.take();
}

/// Counts how often in a row the rows were dropped, as on a full disk.
#[derive(Default)]
struct Setbacks {
    /// The time of the last drop, and the pause after it.
    last: Option<(Instant, Duration)>,
}

impl Setbacks {
    /// Notes that the rows are dropped; returns the pause until they are read again.
    fn next(&mut self, now: Instant) -> Duration {
        let pause = match self.last {
            Some((at, pause)) if now.duration_since(at) < pause + LASTS => {
                (pause * 2).min(PAUSE_LONGEST)
            }
            _ => PAUSE_FAILED,
        };
        self.last = Some((now, pause));
        pause
    }
}

/// Waits for this pause, or until the server ends; true if it ends.
fn is_over_after(driver: &Driver, pause: Duration) -> bool {
    let state = driver.lock();
    let waited = driver.changed.wait_timeout_while(state, pause, |state| !state.is_over);
    waited.unwrap_or_else(PoisonError::into_inner).0.is_over
}

/// True if another server leads the store, as far as this one knows.
pub(crate) fn follows(driver: &Driver) -> bool {
    let state = driver.lock();
    let leads = state.is_loading || state.engine.is_some() || state.election.epoch().is_some();
    let may = state.seen.is_some() && state.unreadable.is_none();
    may && !leads && !state.is_closing && !state.is_over
}

fn catch_up(
    driver: &Driver,
    rows: &mut Option<Replica>,
    journal: &NodeJournal,
) -> Result<Position, OpenError> {
    let rows = match rows {
        Some(rows) => rows,
        None => {
            let options = Options { location: Location::Memory, ..driver.engine_options() };
            rows.insert(Replica::open(&options)?)
        }
    };
    rows.catch_up(journal)?;
    Ok(rows.position())
}

/// True if the journal ends before these rows, or with another entry. While the store has no end, nobody knows.
fn is_other(driver: &Driver, end: Position) -> bool {
    let own = driver.bulk.look().ok().and_then(|seen| seen.own);
    own.is_some_and(|own| {
        own.tip.number < end.number || own.tip.number == end.number && own.tip.sum != end.sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_the_rows_do_not_last() {
        let (mut setbacks, mut now) = (Setbacks::default(), Instant::now());
        let mut next = |lasted: Duration| {
            now += lasted;
            let pause = setbacks.next(now);
            now += pause;
            pause.as_secs()
        };
        let pauses = [(); 8].map(|()| next(Duration::from_secs(5)));
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(next(LASTS), 1, "another trouble is told again");
        assert_eq!(next(Duration::ZERO), 2);
    }
}
