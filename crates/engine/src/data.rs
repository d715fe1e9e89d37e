//! Data of resources that were recently read or written, so that a grant needs no read for it.
//!
//! It is bounded, and only holds data that is committed or taken by the journal: data from a reader is
//! dropped if a change was committed during the read. Data is secret: nothing here prints it.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use tenure_core::secret::Json;
use tenure_machine::rows::DataKey;

use crate::seal::{ContentPlace, Seal};

#[derive(Default)]
struct KnownDataState {
    known: HashMap<DataKey, Json>,
    bytes: usize,
    /// Number of commits that changed any data.
    changes: u64,
}

pub(crate) struct KnownData {
    inside: Mutex<KnownDataState>,
    bytes_max: usize,
    /// Opens the data of a batch; what is known here is clear.
    seal: Seal,
}

/// Approximate size of an entry in memory.
fn bytes(data: &Json) -> usize {
    192 + data.text().len()
}

impl KnownData {
    pub(crate) fn new(bytes_max: usize, seal: Seal) -> Self {
        KnownData { inside: Mutex::default(), bytes_max, seal }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, KnownDataState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &DataKey) -> Option<Json> {
        self.lock().known.get(key).cloned()
    }

    /// The number of changes, to be read before rows are.
    pub(crate) fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Keeps data that was read since `changes` had that number.
    pub(crate) fn found(&self, changes: u64, key: DataKey, data: Json) {
        let mut inside = self.lock();
        if inside.changes == changes {
            inside.put(key, data, self.bytes_max);
        }
    }

    /// Follows a batch that is committed, or taken by the journal.
    pub(crate) fn committed(&self, data: Vec<(DataKey, Option<Json>)>) {
        if data.is_empty() {
            return;
        }
        let mut inside = self.lock();
        inside.changes += 1;
        for (key, data) in data {
            match data.and_then(|data| self.seal.open_json(&ContentPlace::Data(&key), data).ok()) {
                Some(data) => inside.put(key, data, self.bytes_max),
                None => inside.remove(&key),
            }
        }
    }
}

impl KnownDataState {
    fn remove(&mut self, key: &DataKey) {
        if let Some(old) = self.known.remove(key) {
            self.bytes -= bytes(&old);
        }
    }

    fn put(&mut self, key: DataKey, data: Json, bytes_max: usize) {
        self.remove(&key);
        let more = bytes(&data);
        if self.bytes + more > bytes_max {
            // Used data comes back with its next read; an order of use would cost each grant.
            self.known.clear();
            self.bytes = 0;
        }
        if more <= bytes_max {
            self.bytes += more;
            self.known.insert(key, data);
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::names::{Namespace, PoolName, ResourceId};

    use super::*;

    fn key(id: &str) -> DataKey {
        (Namespace::main(), PoolName::parse("p").unwrap(), ResourceId::parse(id).unwrap())
    }
    fn text(data: Option<Json>) -> Option<String> {
        data.map(|data| data.text().to_owned())
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept() {
        let known = KnownData::new(1 << 20, Seal::none());
        let before = known.changes();
        known.committed(vec![(key("a"), Some(Json::from(2)))]);
        known.found(before, key("a"), Json::from(1));
        assert_eq!(text(known.get(&key("a"))).as_deref(), Some("2"));
        known.committed(vec![(key("a"), None)]);
        known.found(before + 1, key("a"), Json::from(2));
        assert_eq!(text(known.get(&key("a"))), None);
        known.found(known.changes(), key("a"), Json::from(3));
        assert_eq!(text(known.get(&key("a"))).as_deref(), Some("3"));
    }

    #[test]
    fn the_bound_holds() {
        let known = KnownData::new(10_000, Seal::none());
        for n in 0..1_000 {
            known.found(0, key(&format!("r{n}")), Json::from("x".repeat(100).as_str()));
            assert!(known.lock().bytes <= 10_000);
        }
        known.found(0, key("big"), Json::from("x".repeat(20_000).as_str()));
        assert!(known.get(&key("big")).is_none());
        let inside = known.lock();
        let bytes: usize = inside.known.values().map(bytes).sum();
        assert_eq!(inside.bytes, bytes);
    }
}
