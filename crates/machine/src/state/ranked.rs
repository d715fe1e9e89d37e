//! A sorted set of small keys without an order of their own: numbers of a table's entries, sorted by the names of the
//! entries.
//!
//! A `BTreeSet` would hold the names as well, 16 bytes in each key, and its leaves stay half empty if keys come in
//! ascending order, as those of a synced set do. Here each call brings a comparison, and such runs are full.

use std::cmp::Ordering;

/// Keys in one run.
const RUN: usize = 256;

/// The set. A call that searches a key passes a function that compares any key of the set with it.
#[derive(Debug)]
pub(crate) struct Ranked<K> {
    /// Ascending; no run is empty.
    runs: Vec<Vec<K>>,
    len: usize,
}

impl<K> Default for Ranked<K> {
    fn default() -> Self {
        Ranked { runs: Vec::new(), len: 0 }
    }
}

impl<K: Copy> Ranked<K> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub(crate) fn first(&self) -> Option<K> {
        self.runs.first()?.first().copied()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = K> {
        self.runs.iter().flatten().copied()
    }
    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        *self = Ranked::default();
    }

    /// The keys from the first that is not `before`; all that are stand in front of it.
    pub(crate) fn from(&self, before: impl Fn(K) -> bool) -> impl Iterator<Item = K> {
        let ends_before = |run: &Vec<K>| run.last().is_some_and(|last| before(*last));
        let first = self.runs.partition_point(ends_before);
        let at = self.runs.get(first).map_or(0, |run| run.partition_point(|key| before(*key)));
        self.runs.iter().skip(first).flatten().skip(at).copied()
    }

    pub(crate) fn find(&self, compare: impl Fn(K) -> Ordering) -> Option<K> {
        let (run, at) = self.place(compare).ok()?;
        Some(self.runs[run][at])
    }

    /// Inserts a key, unless it is there.
    pub(crate) fn insert(&mut self, key: K, compare: impl Fn(K) -> Ordering) {
        let Err((mut run, mut at)) = self.place(compare) else { return };
        self.len += 1;
        if run == self.runs.len() {
            self.runs.push(vec![key]);
            return;
        }
        if self.runs[run].len() == RUN {
            let behind = self.runs[run].split_off(RUN / 2);
            self.runs[run].shrink_to_fit();
            self.runs.insert(run + 1, behind);
            if at > RUN / 2 {
                (run, at) = (run + 1, at - RUN / 2);
            }
        }
        self.runs[run].insert(at, key);
    }

    /// Appends a key without sorting: [`Ranked::sort`] must follow before any search.
    pub(crate) fn push(&mut self, key: K) {
        match self.runs.last_mut().filter(|run| run.len() < RUN) {
            Some(run) => run.push(key),
            None => self.runs.push(vec![key]),
        }
        self.len += 1;
    }

    /// Restores the order after [`Ranked::push`].
    pub(crate) fn sort(&mut self, compare: impl Fn(K, K) -> Ordering) {
        let mut all: Vec<K> = self.iter().collect();
        // Often they, or parts of them, are sorted; a stable sort is quick then.
        all.sort_by(|one, other| compare(*one, *other));
        self.runs = all.chunks(RUN).map(<[K]>::to_vec).collect();
    }

    /// Removes a key, if it is there.
    pub(crate) fn remove(&mut self, compare: impl Fn(K) -> Ordering) {
        let Ok((run, at)) = self.place(compare) else { return };
        self.len -= 1;
        self.runs[run].remove(at);
        if self.runs[run].is_empty() {
            self.runs.remove(run);
            return;
        }
        // Half a run for two: the next insert does not split it again.
        let fit = |pair: &[Vec<K>]| pair[0].len() + pair[1].len() <= RUN / 2;
        for first in [run.checked_sub(1), Some(run)].into_iter().flatten() {
            if self.runs.get(first..first + 2).is_some_and(fit) {
                let next = self.runs.remove(first + 1);
                self.runs[first].extend(next);
                return;
            }
        }
    }

    /// The place of a key (`Ok`), or its future place (`Err`): the run, and the index in it. Behind a full last run it
    /// begins another.
    fn place(&self, compare: impl Fn(K) -> Ordering) -> Result<(usize, usize), (usize, usize)> {
        let Some(last) = self.runs.len().checked_sub(1) else { return Err((0, 0)) };
        // Many come in ascending order: a synced set, and the rows at a start.
        if self.runs[last].last().is_some_and(|key| compare(*key) == Ordering::Less) {
            let len = self.runs[last].len();
            return Err(if len == RUN { (last + 1, 0) } else { (last, len) });
        }
        let begins = |run: &Vec<K>| run.first().is_some_and(|key| compare(*key).is_le());
        let run = self.runs.partition_point(begins).saturating_sub(1);
        match self.runs[run].binary_search_by(|key| compare(*key)) {
            Ok(at) => Ok((run, at)),
            Err(at) => Err((run, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn put(ranked: &mut Ranked<u32>, key: u32) {
        ranked.insert(key, |there| there.cmp(&key));
    }

    #[test]
    fn keys_that_come_in_ascending_order_fill_their_runs() {
        let mut ranked = Ranked::default();
        for key in 0..10 * RUN as u32 {
            put(&mut ranked, key);
        }
        assert_eq!((ranked.runs.len(), ranked.len()), (10, 10 * RUN));
        for key in 0..10 * RUN as u32 {
            ranked.remove(|there| there.cmp(&key));
        }
        assert!(ranked.runs.is_empty() && ranked.is_empty());
    }

    #[test]
    fn runs_that_lost_most_of_their_keys_become_one() {
        let mut ranked = Ranked::default();
        for key in 0..10 * RUN as u32 {
            put(&mut ranked, key);
        }
        for key in (0..10 * RUN as u32).filter(|key| key % 64 != 0) {
            ranked.remove(|there| there.cmp(&key));
        }
        assert_eq!((ranked.runs.len(), ranked.len()), (1, 40));
    }

    #[test]
    fn what_was_pushed_is_found_once_it_is_sorted() {
        let mut ranked = Ranked::default();
        let keys = 3 * RUN as u32;
        (0..keys).for_each(|key| ranked.push(key * 7 % keys));
        ranked.sort(|one, other| one.cmp(&other));
        assert!(ranked.iter().eq(0..keys));
        assert_eq!((ranked.runs.len(), ranked.len()), (3, 3 * RUN));
        assert_eq!(ranked.find(|there| there.cmp(&500)), Some(500));
    }

    proptest! {
        #[test]
        fn it_holds_what_a_sorted_set_holds(steps in prop::collection::vec((0u32..2_000, any::<bool>()), 0..4_000)) {
            let (mut ranked, mut set) = (Ranked::default(), BTreeSet::new());
            for (key, comes) in steps {
                if comes {
                    put(&mut ranked, key);
                    set.insert(key);
                } else {
                    ranked.remove(|there| there.cmp(&key));
                    set.remove(&key);
                }
                prop_assert_eq!(ranked.len(), set.len());
                prop_assert_eq!(ranked.first(), set.first().copied());
            }
            prop_assert!(ranked.iter().eq(set.iter().copied()));
            prop_assert!(ranked.runs.iter().all(|run| (1..=RUN).contains(&run.len())));
            for key in [0, 1, 999, 1_000, 1_999, 2_000] {
                prop_assert_eq!(ranked.find(|there| there.cmp(&key)), set.get(&key).copied());
                prop_assert!(ranked.from(|there| there < key).eq(set.range(key..).copied()));
            }
        }
    }
}
