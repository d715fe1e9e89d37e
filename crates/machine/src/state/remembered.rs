//! Records that are kept for a while, each until an end of its own: requests, tombstones, places in line, unique keys.

use std::fmt::Debug;
use std::hash::Hash;

use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, Equivalent, HashMap};

use super::sparse::trim_map;
use crate::audit::findings::Findings;
use crate::time::timers::Timers;
use tenure_core::time::Moment;

/// A record with an end.
pub(crate) trait Ends {
    /// The time at which a tick takes it; `None`: it stays until a step removes it.
    fn ends_at(&self) -> Option<Moment>;
}

/// Records by their keys, and a timer for each end.
#[derive(Debug)]
pub(crate) struct Remembered<K: Ord, V> {
    records: HashMap<K, V>,
    ends: Timers<K>,
}

impl<K: Ord, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Remembered { records: HashMap::default(), ends: Timers::default() }
    }
}

impl<K: Ord + Hash + Clone + Debug, V: Ends> Remembered<K, V> {
    pub fn get(&self, key: &(impl Hash + Equivalent<K> + ?Sized)) -> Option<&V> {
        self.records.get(key)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All records, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.records.iter()
    }

    /// The end that comes first.
    pub fn next_end(&self) -> Option<Moment> {
        self.ends.next()
    }

    /// Keeps a record in place of an earlier one with its key, which it returns.
    pub fn insert(&mut self, key: K, record: V) -> Option<V> {
        let end = record.ends_at();
        if let Some(at) = end {
            self.ends.set(at, key.clone());
        }
        match self.records.entry(key) {
            Entry::Occupied(mut there) => {
                let old = there.insert(record);
                if let Some(at) = old.ends_at().filter(|at| Some(*at) != end) {
                    self.ends.clear(at, there.key().clone());
                }
                Some(old)
            }
            Entry::Vacant(free) => {
                free.insert(record);
                None
            }
        }
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let record = self.records.remove(key)?;
        if let Some(at) = record.ends_at() {
            self.ends.clear(at, key.clone());
        }
        Some(record)
    }

    /// Changes a record, which goes if the change returns false.
    pub fn keep_if(&mut self, key: &K, change: impl FnOnce(&mut V) -> bool) {
        let Some(record) = self.records.get_mut(key) else { return };
        let before = record.ends_at();
        let stays = change(record);
        let after = record.ends_at().filter(|_| stays);
        if !stays {
            self.records.remove(key);
        }
        if before != after {
            if let Some(at) = before {
                self.ends.clear(at, key.clone());
            }
            if let Some(at) = after {
                self.ends.set(at, key.clone());
            }
        }
    }

    /// Takes the record that ended first, if its end has come.
    pub fn take_ended(&mut self, now: Moment) -> Option<(K, V)> {
        let (_, key) = self.ends.take_due(now)?;
        let record = self.records.remove(&key)?;
        Some((key, record))
    }

    /// The hash of its keys, which no stranger can predict.
    pub fn hasher(&self) -> &DefaultHashBuilder {
        self.records.hasher()
    }

    pub fn trim(&mut self) {
        trim_map(&mut self.records);
    }

    pub fn shrink_to_fit(&mut self) {
        self.records.shrink_to_fit();
    }

    /// Compares the records with their ends; `what` names such a record.
    pub fn audit(&self, found: &mut Findings, what: &str) {
        let mut ending = 0;
        for (key, record) in &self.records {
            let Some(at) = record.ends_at() else { continue };
            ending += 1;
            found.check(self.ends.has(at, key), || {
                format!("{what} {key:?} is remembered without an end")
            });
        }
        found.check(self.ends.len() == ending, || {
            format!("of {what}, records and ends differ in number")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ends for Option<u64> {
        fn ends_at(&self) -> Option<Moment> {
            self.map(Moment::from_us)
        }
    }

    fn faults(kept: &Remembered<u8, Option<u64>>) -> String {
        let mut found = Findings::default();
        kept.audit(&mut found, "a number");
        found.done().faults.join("; ")
    }

    #[test]
    fn each_record_goes_at_its_last_end() {
        let mut kept = Remembered::default();
        for (key, end) in [(1, Some(10)), (2, Some(20)), (3, None), (1, Some(30)), (4, Some(5))] {
            kept.insert(key, end);
        }
        kept.keep_if(&2, |end| end.replace(25).is_some());
        kept.keep_if(&3, |end| end.replace(40).is_none());
        kept.keep_if(&4, |end| end.is_none());
        kept.insert(5, Some(1));
        assert_eq!(kept.remove(&5), Some(Some(1)));
        assert_eq!((kept.len(), faults(&kept)), (3, String::new()));
        let mut took = |now| kept.take_ended(Moment::from_us(now)).map(|(key, _)| key);
        assert_eq!(
            [took(24), took(30), took(30), took(30), took(50)],
            [None, Some(2), Some(1), None, Some(3)]
        );
        assert!(kept.is_empty() && kept.next_end().is_none());
    }

    #[test]
    fn the_audit_finds_a_record_without_its_end() {
        let mut kept = Remembered::default();
        kept.insert(1, Some(10));
        kept.ends.drain();
        assert!(faults(&kept).contains("a number 1 is remembered without an end"));
        kept.insert(1, Some(10));
        kept.records.clear();
        assert_eq!(faults(&kept), "of a number, records and ends differ in number");
    }
}
