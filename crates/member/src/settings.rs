//! The settings of a store, which its servers must agree on: what decides of stored things. They lie beside the store's id.
//!
//! The server that makes the store writes those that it was started with, and the usual ones for the rest. After that the
//! store's count, whatever a server was started with: each server reads them every second, and the owner goes by them.

use std::sync::{Arc, PoisonError};

use tenure_core::time::Span;
use tenure_engine::Options;
use tenure_journal_redis::{RedisStore, StoreError};
use tenure_owner::owner::Input;

use crate::hands::{Hands, begin};

const PATIENCE: &str = "patience";
const RETAIN_BYTES: &str = "retain_bytes";
const EVENTS_BYTES: &str = "events_bytes";
const FORGETS: &str = "forgets";
const REPLICAS: &str = "replicas";
/// All fields that are settings.
const FIELDS: [&str; 5] = [PATIENCE, RETAIN_BYTES, EVENTS_BYTES, FORGETS, REPLICAS];
/// Not empty: an operator asks the owner for a snapshot.
pub(crate) const COMPACT: &str = "compact";
const NEVER: &str = "never";
const PERHAPS: &str = "perhaps";

/// What of a store's settings is known, or is to be changed. `None`: nothing is said of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StoreSettings {
    /// A job that was blocked this long reserves what it needs.
    pub patience: Option<Span>,
    /// Bytes that finished jobs may take.
    pub retain_bytes: Option<u64>,
    /// Bytes of events that each namespace keeps; 0: none are kept.
    pub events_bytes: Option<u64>,
    /// The store is said to forget nothing that was answered: who takes it over under another run of Redis does not recover.
    pub forgets_never: Option<bool>,
    /// How many replicas must have what is written before it counts; 0: the primary alone counts.
    pub replicas: Option<u32>,
}

impl StoreSettings {
    /// Those of a store of which nobody said anything.
    pub fn usual(engine: &Options) -> StoreSettings {
        StoreSettings {
            patience: Some(engine.config.patience),
            retain_bytes: Some(engine.config.retain_bytes),
            events_bytes: Some(engine.events_bytes),
            forgets_never: Some(false),
            replicas: Some(0),
        }
    }

    /// These, and those of `rest` of which these say nothing.
    pub fn or(self, rest: &StoreSettings) -> StoreSettings {
        StoreSettings {
            patience: self.patience.or(rest.patience),
            retain_bytes: self.retain_bytes.or(rest.retain_bytes),
            events_bytes: self.events_bytes.or(rest.events_bytes),
            forgets_never: self.forgets_never.or(rest.forgets_never),
            replicas: self.replicas.or(rest.replicas),
        }
    }

    /// Each that is said: the name of its field, and its text.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let StoreSettings { patience, retain_bytes, events_bytes, forgets_never, replicas } = self;
        let forgets = |never| if never { NEVER } else { PERHAPS }.to_owned();
        let texts = [
            patience.map(|patience| patience.to_string()),
            retain_bytes.map(|bytes| bytes.to_string()),
            events_bytes.map(|bytes| bytes.to_string()),
            forgets_never.map(forgets),
            replicas.map(|replicas| replicas.to_string()),
        ];
        FIELDS.into_iter().zip(texts).filter_map(|(field, text)| Some((field, text?))).collect()
    }

    /// Those that a store says; none if there is no store. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub(crate) fn of(store: &RedisStore) -> Result<StoreSettings, StoreError> {
        Ok(StoreSettings::read(&store.settings(&FIELDS)?.unwrap_or_default()))
    }

    /// Of the texts of all fields. A text that means nothing says nothing.
    fn read(texts: &[Option<String>]) -> StoreSettings {
        let text = |at: usize| texts.get(at)?.as_deref();
        StoreSettings {
            patience: text(0).and_then(|text| text.parse().ok()),
            retain_bytes: text(1).and_then(|text| text.parse().ok()),
            events_bytes: text(2).and_then(|text| text.parse().ok()),
            forgets_never: match text(3) {
                Some(NEVER) => Some(true),
                Some(PERHAPS) => Some(false),
                _ => None,
            },
            replicas: text(4).and_then(|text| text.parse().ok()),
        }
    }

    /// What a server was started with and the store has otherwise, as a sentence; `None` if there is nothing.
    fn differs_from(&self, store: &StoreSettings) -> Option<String> {
        let has: Vec<_> = store.fields();
        let other = |(field, text): &(&str, String)| {
            let (_, has) = has.iter().find(|(name, has)| name == field && has != text)?;
            Some(format!("{field} {text}, and the store has {has}"))
        };
        let others: Vec<_> = self.fields().iter().filter_map(other).collect();
        (!others.is_empty()).then(|| {
            format!(
                "this server was started with {}: the store's settings count; change them with `tenure store set`, or start \
                 this server without its own",
                others.join("; ")
            )
        })
    }

    /// Puts those that are said into the options of an engine.
    pub(crate) fn put(&self, options: &mut Options) {
        options.config.patience = self.patience.unwrap_or(options.config.patience);
        options.config.retain_bytes = self.retain_bytes.unwrap_or(options.config.retain_bytes);
        options.events_bytes = self.events_bytes.unwrap_or(options.events_bytes);
    }
}

/// What the thread of a member remembers of them.
#[derive(Default)]
pub(crate) struct KnownSettings {
    /// The engine that goes by them, by its term.
    taken_by: Option<u64>,
    /// What was said of a difference.
    warned: Option<String>,
}

impl KnownSettings {
    /// Reads the store's settings, goes by them, and writes those that it lacks if this server owns it. Blocks.
    pub fn follow(&mut self, hands: &Arc<Hands>) {
        if let Err(why) = self.try_to_follow(hands) {
            tracing::debug!("the settings of the store could not be read: {why}");
        }
    }

    fn try_to_follow(&mut self, hands: &Arc<Hands>) -> Result<(), StoreError> {
        let (serves, term) = {
            let state = hands.lock();
            (state.owner.serves() && state.engine.is_some(), state.term)
        };
        let Some(SettingsRead { read, whole, asks_snapshot }) = hands.read_settings(serves)? else {
            return Ok(());
        };
        if serves && asks_snapshot {
            hands.store.set(&[(COMPACT, String::new())])?;
            tracing::info!("an operator asks for a snapshot, which is made now");
            hands.tell(Input::SnapshotDue);
        }
        let differs = hands.given.differs_from(&read);
        if let Some(sentence) = differs.as_ref().filter(|_| differs != self.warned) {
            tracing::warn!("{sentence}");
        }
        self.warned = differs;
        self.go_by(hands, whole, serves.then_some(term));
        Ok(())
    }

    /// Goes by these from now on. `term` is of the engine that is to, if this server owns the store.
    fn go_by(&mut self, hands: &Arc<Hands>, whole: StoreSettings, term: Option<u64>) {
        if hands.go_by(&whole) {
            self.taken_by = None;
        }
        let engine = {
            let mut state = hands.lock();
            state.owner.forget_never(whole.forgets_never == Some(true));
            state.engine.clone()
        };
        if let Some(engine) = engine.filter(|_| term.is_some() && self.taken_by != term) {
            let options = hands.engine_options();
            begin(engine.configure(options.config, options.events_bytes));
            self.taken_by = term;
        }
    }
}

/// What was read of the settings of a store.
struct SettingsRead {
    /// What the store had.
    read: StoreSettings,
    /// What counts.
    whole: StoreSettings,
    /// An operator asks for a snapshot.
    asks_snapshot: bool,
}

impl Hands {
    /// Reads the settings, and writes those that the store lacks if this server owns it: what a store that was lost had before is
    /// known here, and a new store has what this server was started with. `None`: there is no store. Blocks.
    fn read_settings(&self, owns: bool) -> Result<Option<SettingsRead>, StoreError> {
        let all: Vec<&str> = FIELDS.into_iter().chain([COMPACT]).collect();
        let Some(texts) = self.store.settings(&all)? else { return Ok(None) };
        let read = StoreSettings::read(&texts);
        let known = self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let started = if known == StoreSettings::default() { &self.given } else { &known };
        let whole = read.clone().or(started).or(&StoreSettings::usual(&self.engine));
        if owns {
            let said = read.fields();
            let lacks = |(field, _): &(&str, String)| said.iter().all(|(name, _)| name != field);
            let lacking: Vec<_> = whole.fields().into_iter().filter(lacks).collect();
            if !lacking.is_empty() {
                // Another server may have been quicker: what is there is read in a second.
                self.store.fill_in(&lacking)?;
            }
        }
        let asked = texts.last().and_then(Option::as_ref);
        Ok(Some(SettingsRead {
            read,
            whole,
            asks_snapshot: asked.is_some_and(|at| !at.is_empty()),
        }))
    }

    /// An engine is about to be opened, here: it goes by the settings of the store from its first call on, and the store has them
    /// before its owner can die. Blocks.
    pub fn take_settings(&self) -> Result<(), StoreError> {
        if let Some(SettingsRead { whole, .. }) = self.read_settings(true)? {
            self.go_by(&whole);
        }
        Ok(())
    }

    /// Takes these for the settings of the store: appends wait for its replicas from now on. Whether they are others than before.
    fn go_by(&self, whole: &StoreSettings) -> bool {
        let mut known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.store.confirm_by(replicas);
        self.bulk.confirm_by(replicas);
        known.clone_from(whole);
        true
    }

    /// Options of an engine that goes by the settings of the store, as far as they are known.
    pub fn engine_options(&self) -> Options {
        let mut options = self.engine.clone();
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).put(&mut options);
        options
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn some() -> StoreSettings {
        StoreSettings {
            patience: Some(Span::from_s(3)),
            retain_bytes: Some(1 << 20),
            events_bytes: Some(0),
            forgets_never: Some(true),
            replicas: Some(2),
        }
    }

    #[test]
    fn settings_are_read_as_they_were_written_and_nothing_else_is_taken_for_one() {
        let texts = |settings: &StoreSettings| -> Vec<Option<String>> {
            let said = settings.fields();
            let text =
                |field| said.iter().find(|(name, _)| *name == field).map(|(_, text)| text.clone());
            FIELDS.into_iter().map(text).collect()
        };
        for settings in
            [some(), StoreSettings::default(), StoreSettings { patience: None, ..some() }]
        {
            assert_eq!(StoreSettings::read(&texts(&settings)), settings);
        }
        let odd = ["soon", "-1", "1 MiB", "always", "many"].map(|text| Some(text.to_owned()));
        assert_eq!(StoreSettings::read(&odd), StoreSettings::default());
        let none = StoreSettings::default();
        assert_eq!(none.or(&some()), some());
    }

    #[test]
    fn a_server_says_which_of_its_own_settings_do_not_count() {
        let given = StoreSettings { retain_bytes: None, replicas: Some(1), ..some() };
        let said = given.differs_from(&some()).unwrap();
        assert!(said.contains("started with replicas 1, and the store has 2: "), "{said}");
        assert_eq!(some().differs_from(&some()), None);
        // What the store does not say yet is filled in.
        assert_eq!(some().differs_from(&StoreSettings::default()), None);
    }
}
