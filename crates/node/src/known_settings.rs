//! The settings of the store: each server reads them every second, and the leader applies them.
//!
//! They are read once more before an engine is opened, and written where the store lacks them.

use std::sync::{Arc, PoisonError};

use tenure_election::election::Input;
use tenure_redis::StoreError;

use crate::driver::{Driver, begin};
use crate::settings::{COMPACT, FIELDS, StoreSettings};

/// The memory of the server's own thread.
#[derive(Default)]
pub(crate) struct KnownSettings {
    /// The term of the engine that has them.
    taken_by: Option<u64>,
    /// The last logged sentence on a difference; `None` while there is no difference.
    warned: Option<String>,
}

impl KnownSettings {
    /// Reads the store's settings, applies them, and writes those that it lacks if this server leads it. Blocks.
    pub fn follow(&mut self, driver: &Arc<Driver>) {
        if let Err(why) = self.try_to_follow(driver) {
            tracing::debug!("the settings of the store could not be read: {why}");
        }
    }

    fn try_to_follow(&mut self, driver: &Arc<Driver>) -> Result<(), StoreError> {
        let (serves, term) = {
            let state = driver.lock();
            (state.election.serves() && state.engine.is_some(), state.term)
        };
        let Some(SettingsRead { read, whole, asks_snapshot }) = read_settings(driver, serves)?
        else {
            return Ok(());
        };
        if serves && asks_snapshot {
            driver.store.set(&[(COMPACT, String::new())])?;
            tracing::info!("an operator asks for a snapshot, which is made now");
            driver.tell(Input::SnapshotDue);
        }
        let differs = driver.given.differs_from(&read);
        if let Some(sentence) = differs.as_ref().filter(|_| differs != self.warned) {
            tracing::warn!("{sentence}");
        }
        self.warned = differs;
        self.go_by(driver, whole, serves.then_some(term));
        Ok(())
    }

    /// Applies these settings from now on. `term` is that of the engine to configure, if this server leads the store.
    fn go_by(&mut self, driver: &Arc<Driver>, whole: StoreSettings, term: Option<u64>) {
        if replace_known(driver, &whole) {
            self.taken_by = None;
        }
        let engine = {
            let mut state = driver.lock();
            state.election.forget_never(whole.forgets_never == Some(true));
            state.engine.clone()
        };
        if let Some(engine) = engine.filter(|_| term.is_some() && self.taken_by != term) {
            let options = driver.engine_options();
            begin(engine.configure(options.config, options.events_bytes));
            self.taken_by = term;
        }
    }
}

/// The settings of a store after a read.
struct SettingsRead {
    /// The settings that the store had.
    read: StoreSettings,
    /// The settings that count: where the store lacks one, the one that is known here.
    whole: StoreSettings,
    /// An operator asks for a snapshot.
    asks_snapshot: bool,
}

/// Reads the settings, and writes those that the store lacks if this server leads it: the settings of a lost store are
/// known here, and a new store gets the settings that this server was started with. `None`: there is no store. Blocks.
fn read_settings(driver: &Driver, leads: bool) -> Result<Option<SettingsRead>, StoreError> {
    let all: Vec<&str> = FIELDS.into_iter().chain([COMPACT]).collect();
    let mut texts = driver.store.settings(&all)?;
    if texts.is_none() && leads {
        write_name(driver)?;
        texts = driver.store.settings(&all)?;
    }
    let Some(texts) = texts else { return Ok(None) };
    let read = StoreSettings::read(&texts);
    let known = driver.settings.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let started = if known == StoreSettings::default() { &driver.given } else { &known };
    let whole = read.clone().or(started).or(&StoreSettings::usual(&driver.engine));
    if leads {
        let said = read.fields();
        let lacks = |(field, _): &(&str, String)| said.iter().all(|(name, _)| name != field);
        let lacking: Vec<_> = whole.fields().into_iter().filter(lacks).collect();
        if !lacking.is_empty() {
            // Another server may have been quicker: its values are read in a second.
            driver.store.fill_in(&lacking)?;
        }
    }
    let asked = texts.last().and_then(Option::as_ref);
    Ok(Some(SettingsRead { read, whole, asks_snapshot: asked.is_some_and(|at| !at.is_empty()) }))
}

/// R16: a leader that does not find the key of its store writes it again, and then its known settings.
fn write_name(driver: &Driver) -> Result<(), StoreError> {
    let (store, ttl) = {
        let state = driver.lock();
        (state.election.store(), state.election.largest_ttl())
    };
    let Some(store) = store else { return Ok(()) };
    tracing::warn!(
        "the key {} is gone from Redis, and is written again with what this server knows of it",
        driver.store.keys().store()
    );
    driver.name_store(store, ttl)
}

/// Called before an engine is opened here: it follows the settings of the store from its first call on, and the store
/// has them before its leader can die. Blocks.
pub(crate) fn take_settings(driver: &Driver) -> Result<(), StoreError> {
    if let Some(SettingsRead { whole, .. }) = read_settings(driver, true)? {
        replace_known(driver, &whole);
    }
    Ok(())
}

/// Replaces the known settings: appends wait for the new number of replicas from now on. True if they differ from
/// before.
fn replace_known(driver: &Driver, whole: &StoreSettings) -> bool {
    let mut known = driver.settings.lock().unwrap_or_else(PoisonError::into_inner);
    if *known == *whole {
        return false;
    }
    let had = known.fields();
    for (field, text) in whole.fields() {
        if had.iter().any(|(name, had)| *name == field && *had != text) {
            tracing::info!("the setting {field} of the store is {text} now");
        }
    }
    let replicas = whole.replicas.unwrap_or_default();
    driver.store.confirm_by(replicas);
    driver.bulk.confirm_by(replicas);
    known.clone_from(whole);
    true
}
