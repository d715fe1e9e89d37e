//! Load: opens an engine whose rows are read from the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_journal::threads::die;

use tenure_core::time::Span;
use tenure_election::election::Input;
use tenure_engine::{Embedded, Fatal, Location, OpenError, Options};

use crate::driver::Driver;
use crate::journal::NodeJournal;
use crate::known_settings::take_settings;
use crate::room::full;

/// The least time by which an engine would end a recovery later than the election does.
const BEYOND: Span = Span::from_s(1);

/// Opens the engine, which reads the journal, proves that by an empty append, and begins to answer. Blocks.
///
/// A store that a copy has paused is given up. The pause is checked here because a copy marks a store that it has
/// taken: a server that takes it later finds the mark, and the proof of a server that took it earlier is refused.
pub(crate) fn load(driver: &Arc<Driver>, term: u64, recovers: Option<Span>) {
    match driver.pause().and_then(|paused| take_settings(driver).map(|()| paused)) {
        Ok(None) => {}
        Ok(Some(_)) => return driver.cannot_serve(),
        Err(why) => {
            tracing::warn!("the store could not be opened here: {why}");
            return driver.tell(Input::LoadFailed { damaged: false });
        }
    }
    let damage = Arc::new(AtomicBool::new(false));
    let journal = NodeJournal::new(driver, term, damage.clone());
    let stopped = Arc::downgrade(driver);
    let on_fatal = move |fatal: &Fatal| {
        // The engine of a fenced leader is of an earlier term by now.
        if let Some(driver) = stopped.upgrade().filter(|driver| driver.is_current(term)) {
            tracing::error!("this server cannot go on with the store: {fatal}");
            match fatal {
                // Rules or rows are broken here: another process may do better, and this one is restarted.
                Fatal::Bug(why) => die(why),
                Fatal::Disk(_) | Fatal::Moved(_) | Fatal::Journal(_) | Fatal::Hangs => {
                    driver.cannot_serve();
                }
            }
        }
    };
    let is_full = driver.is_full.clone();
    let options = Options {
        location: Location::Memory,
        clock: driver.clock.clone(),
        journal: Some(Arc::new(journal)),
        on_fatal: Arc::new(on_fatal),
        no_room: Arc::new(move || is_full.load(Ordering::Acquire).then(|| full().into())),
        // The election ends it. It counts from before the load, by another clock, which may be off by 1 ms a second.
        recovers: recovers.map(|span| Span::from_us(span.us() + span.us() / 100 + BEYOND.us())),
        ..driver.engine_options()
    };
    match open(driver, term, options, &damage) {
        Ok(engine) => {
            driver.lock().sealed = None;
            driver.opened(term, engine);
        }
        Err(why) if driver.is_current(term) => {
            tracing::warn!("the store could not be opened here: {why}");
            let damaged = damage.load(Ordering::Acquire);
            let is_loading = {
                let mut state = driver.lock();
                state.why = why.to_string();
                state.sealed = matches!(why, OpenError::Sealed { .. }).then(|| why.to_string());
                state.is_loading
            };
            if is_loading && is_of_the_journal(&why) {
                driver.tell(Input::LoadFailed { damaged });
            } else {
                driver.cannot_serve();
            }
        }
        Err(_) => {}
    }
}

/// Opens the engine over the follower's rows, if there are any, and reads only the entries that they lack. Refused rows
/// are no copy of the journal; it is then read from its beginning. If it cannot be read now, the rows are kept for the
/// next time.
fn open(
    driver: &Arc<Driver>,
    term: u64,
    options: Options,
    damage: &AtomicBool,
) -> Result<Embedded, OpenError> {
    let Some(mut rows) = driver.standby.take() else { return Embedded::open(options) };
    if let Some(journal) = &options.journal
        && let Err(why) = rows.catch_up(&**journal)
    {
        if is_of_the_journal(&why) {
            if !damage.load(Ordering::Acquire) {
                driver.standby.give_back(rows);
            }
            return Err(why);
        }
        // Nothing is proved yet. An engine over these rows might fail only after that.
        tracing::warn!("the store is read from its beginning: {why}");
        drop(rows);
        return Embedded::open(options);
    }
    match Embedded::open_over(rows, options.clone()) {
        // After the proof of this load, another load would have none.
        Err(why) if may_be_of_the_rows(&why) && driver.loads(term) => {
            tracing::warn!("the store is read from its beginning: {why}");
            Embedded::open(options)
        }
        opened => opened,
    }
}

/// True if rows that are read from the beginning may open where these did not.
fn may_be_of_the_rows(why: &OpenError) -> bool {
    !is_of_the_journal(why) && !matches!(why, OpenError::Sealed { .. })
}

/// True if the journal could not be read, or has changed meanwhile; otherwise this machine lacks something.
pub(crate) fn is_of_the_journal(why: &OpenError) -> bool {
    matches!(why, OpenError::Journal(_))
}
