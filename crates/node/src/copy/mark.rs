//! The mark of a copy on a store in Redis: its owner alone writes it, and every server reads it before it serves the store.

use serde::{Deserialize, Serialize};
use tenure_core::sentences::PausedStore;
use tenure_core::time::Moment;
use tenure_engine::copy::Mark;

/// See the module.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(crate) enum StoreMark {
    /// It is copied elsewhere, or was. `frozen_at`: from then on nothing was answered, in microseconds by Redis's clock.
    Source { copy: String, to: String, whole: bool, frozen_at: u64 },
    /// It becomes a copy, and has no entry until that is whole.
    Target { copy: String },
    /// It was made by this copy, and is in use.
    Copied { copy: String },
}

/// This release does not understand the mark, so the store is served to nobody.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the mark of a copy on {place} cannot be read; use the release of Tenure that began that copy"
)]
pub(crate) struct StrangeMark {
    place: String,
}

/// The store at this address, as sentences name it.
pub(crate) fn place(address: &str) -> String {
    format!("the store in {address}")
}

impl StoreMark {
    /// Of the text that is there; `None` if there is none. `address` is that of the store.
    pub fn read(text: &str, address: &str) -> Result<Option<StoreMark>, StrangeMark> {
        if text.is_empty() {
            return Ok(None);
        }
        serde_json::from_str(text).map(Some).map_err(|_| StrangeMark { place: place(address) })
    }

    /// The text that is written to Redis.
    pub fn text(&self) -> String {
        // Plain texts and numbers, for which writing JSON cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The mark of a source with these words.
    pub fn source(mark: &Mark, frozen_at: Moment) -> StoreMark {
        let Mark { copy, to, whole } = mark.clone();
        StoreMark::Source { copy, to, whole, frozen_at: frozen_at.us() }
    }
}

/// Why a store with this mark is served to nobody; `None` if it may be served.
pub(crate) fn pause(text: &str, address: &str) -> Option<String> {
    let place = place(address);
    let address = address.to_owned();
    match StoreMark::read(text, &address) {
        Ok(None | Some(StoreMark::Copied { .. })) => None,
        Ok(Some(StoreMark::Source { to, whole, .. })) => {
            Some(PausedStore::Source { place, address, to, whole }.to_string())
        }
        Ok(Some(StoreMark::Target { .. })) => {
            Some(PausedStore::Target { place, address }.to_string())
        }
        Err(strange) => Some(strange.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_except_copied_pauses_a_store() {
        let (copy, to) = ("c".to_owned(), "file:/b".to_owned());
        for (mark, part) in [
            (
                StoreMark::Source { copy: copy.clone(), to: to.clone(), whole: true, frozen_at: 1 },
                "was copied to file:/b",
            ),
            (
                StoreMark::Source { copy: copy.clone(), to, whole: false, frozen_at: 1 },
                "--thaw --from 'redis://h'",
            ),
            (StoreMark::Target { copy: copy.clone() }, "--thaw --to 'redis://h'"),
            (StoreMark::Copied { copy }, ""),
        ] {
            assert_eq!(StoreMark::read(&mark.text(), ""), Ok(Some(mark.clone())));
            let paused = pause(&mark.text(), "redis://h");
            assert_eq!(paused.is_none(), part.is_empty(), "{mark:?}");
            assert!(paused.unwrap_or_default().contains(part), "{mark:?}");
        }
        assert_eq!(pause("", "redis://h"), None);
        for text in ["x", "{}", r#"{"role":"moved","copy":"c"}"#] {
            assert!(pause(text, "redis://h").is_some(), "{text}");
        }
    }
}
