//! Seals contents before they leave the memory of this process: payloads, results, errors, progress, schedules, and the data
//! of resources. The rows of a step are sealed before any batch, journal or disk sees them; what is shown is opened last.
//! So rows, journals, snapshots, copies and backups hold sealed text, and need no key.
//!
//! Ids, names, kinds, labels, settings and times stay clear: they are what the store works with.
//!
//! The cipher is AES-256-GCM. Each process seals with a key of its own, which HKDF-SHA-256 (RFC 5869) makes of the key in
//! the file and a random salt, and counts its texts: no nonce is used twice with a key. Each text is bound to its place
//! ([`ContentPlace`]): one that was moved to another does not open.

mod contents;
mod keys;
mod place;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use tenure_core::events::Happened;
use tenure_core::names::Namespace;
use tenure_core::secret::Json;
use tenure_machine::Changes;
use tenure_machine::rows::{Kind, RowKey, Rows};

use crate::sqlite::scan::damage::UNREADABLE;

use self::contents::{ContentMut, each, each_event, is_content};
pub use self::keys::SealKeyError;
use self::keys::SealKeys;
pub(crate) use self::place::{ContentPlace, Unopened};

/// The keys that seal contents, or none: then contents stay clear. Clones share the keys; it prints none of them.
#[derive(Clone)]
pub struct Seal(Option<Arc<SealKeys>>);

impl Seal {
    /// Seals nothing, and opens nothing.
    pub fn none() -> Seal {
        Seal(None)
    }

    /// Reads the content of a file of keys: a line for each, 32 bytes in base64, as `openssl rand -base64 32` prints them.
    /// Empty lines and those that begin with `#` do not count. The first key seals; all of them open.
    ///
    /// # Errors
    /// There is no key, there are more than eight, a line is no key, or two are the same.
    pub fn read(text: &str) -> Result<Seal, SealKeyError> {
        SealKeys::read(text).map(|keys| Seal(Some(Arc::new(keys))))
    }

    /// True if contents are sealed.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The name of the key that seals: a part of its hash.
    pub fn sealing(&self) -> Option<&str> {
        self.0.as_ref().map(|keys| keys.first().name())
    }

    /// True if the key with this name is here.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.named(name).is_some())
    }

    /// The row that says that contents are sealed with this key.
    pub(crate) fn row(name: &str) -> RowKey {
        RowKey { namespace: Namespace::main(), kind: Kind::SealKey, key: name.to_owned() }
    }

    /// Seals the contents of a step's rows.
    pub(crate) fn rows(&self, rows: &mut Rows) {
        let Some(keys) = &self.0 else { return };
        each(rows, &mut |place, content| keys.seal(&place, content));
    }

    /// Seals the contents of a step's events.
    pub(crate) fn events(&self, namespace: &Namespace, events: &mut [Happened]) {
        let Some(keys) = &self.0 else { return };
        each_event(namespace, events, &mut |place, content| keys.seal(&place, content));
    }

    /// Seals contents that may be sealed with another key, or clear: with the key that seals here. Without keys a
    /// sealed content is refused.
    pub(crate) fn reseal(&self, changes: &mut Changes) -> Result<(), Unopened> {
        let Some(keys) = &self.0 else {
            let is_sealed = changes.rows.other.keys().any(|key| key.kind == Kind::SealKey);
            return if is_sealed { Err(Unopened) } else { Ok(()) };
        };
        let Changes { rows, events, .. } = changes;
        let is_other = |key: &RowKey| key.kind == Kind::SealKey && keys.named(&key.key).is_none();
        if rows.other.keys().any(is_other) {
            return Err(Unopened);
        }
        let mut all_open = true;
        let mut reseal = |place: ContentPlace<'_>, content: ContentMut<'_>| {
            all_open &= keys.reseal(&place, content).is_ok();
        };
        each(rows, &mut reseal);
        for (namespace, new) in &mut events.new {
            each_event(namespace, &mut new.events, &mut reseal);
        }
        if !all_open {
            return Err(Unopened);
        }
        rows.other.retain(|key, _| key.kind != Kind::SealKey);
        if !rows.is_empty() {
            rows.other.insert(Seal::row(keys.first().name()), Some(String::new()));
        }
        Ok(())
    }

    /// Opens a text of this place. One that is not sealed is as it is: it was written before contents were sealed.
    pub(crate) fn open<'t>(
        &self,
        place: &ContentPlace<'_>,
        text: &'t str,
    ) -> Result<Cow<'t, str>, Unopened> {
        match &self.0 {
            Some(keys) => keys.open(place, text),
            None => Ok(Cow::Borrowed(text)),
        }
    }

    /// Opens a value of this place.
    pub(crate) fn open_json(&self, place: &ContentPlace<'_>, json: Json) -> Result<Json, Unopened> {
        match &self.0 {
            Some(keys) => keys.open_json(place, json),
            None => Ok(json),
        }
    }

    /// Opens the value of a row that is no job; rows without contents are as they are.
    pub(crate) fn open_row<'t>(
        &self,
        namespace: &Namespace,
        kind: Kind,
        key: &str,
        value: &'t str,
    ) -> Result<Cow<'t, str>, Unopened> {
        match &self.0 {
            Some(keys) if is_content(kind) => {
                let row = RowKey { namespace: namespace.clone(), kind, key: key.to_owned() };
                keys.open(&ContentPlace::Row(&row), value)
            }
            Some(_) | None => Ok(Cow::Borrowed(value)),
        }
    }

    /// Opens a text of this place where it is.
    pub(crate) fn open_text(
        &self,
        place: &ContentPlace<'_>,
        text: &mut String,
    ) -> Result<(), Unopened> {
        if let Cow::Owned(open) = self.open(place, text)? {
            *text = open;
        }
        Ok(())
    }

    /// Opens the contents of events; false if one of them does not open, which is then shown as unreadable.
    pub(crate) fn open_events(&self, namespace: &Namespace, events: &mut [Happened]) -> bool {
        if self.0.is_none() {
            return true;
        }
        let mut all_open = true;
        each_event(namespace, events, &mut |place, content| {
            let ContentMut::Text(text) = content else { return };
            if self.open_text(&place, text).is_err() {
                all_open = false;
                UNREADABLE.clone_into(text);
            }
        });
        all_open
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Seal").field(&self.sealing()).finish()
    }
}
