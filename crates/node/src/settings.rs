//! The settings of a store, on which its servers must agree because they decide about stored things. They are kept
//! beside the store's id.
//!
//! The server that makes the store writes the settings that it was started with, and the defaults for the rest. After
//! that the store's settings count, whatever a server was started with.

use tenure_core::time::Span;
use tenure_engine::Options;
use tenure_redis::{RedisStore, StoreError};

const PATIENCE: &str = "patience";
const RETAIN_BYTES: &str = "retain_bytes";
const EVENTS_BYTES: &str = "events_bytes";
const FORGETS: &str = "forgets";
const REPLICAS: &str = "replicas";
/// The fields that are settings.
pub(crate) const FIELDS: [&str; 5] = [PATIENCE, RETAIN_BYTES, EVENTS_BYTES, FORGETS, REPLICAS];
/// Not empty: an operator asks the leader for a snapshot.
pub(crate) const COMPACT: &str = "compact";
const NEVER: &str = "never";
const PERHAPS: &str = "perhaps";

/// The known settings of a store, or a change of them. `None`: unknown, or unchanged.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StoreSettings {
    /// A job that was blocked this long reserves its needs.
    pub patience: Option<Span>,
    /// Bytes that finished jobs may take.
    pub retain_bytes: Option<u64>,
    /// Bytes of events that each namespace keeps; 0: none are kept.
    pub events_bytes: Option<u64>,
    /// The operator declares that the store never forgets an answered change: a takeover under another run of Redis
    /// does not recover.
    pub forgets_never: Option<bool>,
    /// The number of replicas that must have a write before it counts; 0: only the primary counts.
    pub replicas: Option<u32>,
}

impl StoreSettings {
    /// The defaults of a store without settings.
    pub fn usual(engine: &Options) -> StoreSettings {
        StoreSettings {
            patience: Some(engine.config.patience),
            retain_bytes: Some(engine.config.retain_bytes),
            events_bytes: Some(engine.events_bytes),
            forgets_never: Some(false),
            replicas: Some(0),
        }
    }

    /// These settings, with those of `rest` where these are `None`.
    pub fn or(self, rest: &StoreSettings) -> StoreSettings {
        StoreSettings {
            patience: self.patience.or(rest.patience),
            retain_bytes: self.retain_bytes.or(rest.retain_bytes),
            events_bytes: self.events_bytes.or(rest.events_bytes),
            forgets_never: self.forgets_never.or(rest.forgets_never),
            replicas: self.replicas.or(rest.replicas),
        }
    }

    /// The settings that are not `None`: the name of each field, and its text.
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

    /// The settings of a store; empty if there is no store. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached.
    pub(crate) fn of(store: &RedisStore) -> Result<StoreSettings, StoreError> {
        Ok(StoreSettings::read(&store.settings(&FIELDS)?.unwrap_or_default()))
    }

    /// Reads the texts of all fields. A text without a meaning is read as `None`.
    pub(crate) fn read(texts: &[Option<String>]) -> StoreSettings {
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

    /// A sentence on the settings with which a server was started and which differ in the store, if there are any.
    pub(crate) fn differs_from(&self, store: &StoreSettings) -> Option<String> {
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

    /// Puts the settings that are not `None` into the options of an engine.
    pub(crate) fn put(&self, options: &mut Options) {
        options.config.patience = self.patience.unwrap_or(options.config.patience);
        options.config.retain_bytes = self.retain_bytes.unwrap_or(options.config.retain_bytes);
        options.events_bytes = self.events_bytes.unwrap_or(options.events_bytes);
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
    fn settings_are_read_as_written_and_odd_texts_are_ignored() {
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
        // A setting that the store lacks is no difference: it is filled in.
        assert_eq!(some().differs_from(&StoreSettings::default()), None);
    }
}
