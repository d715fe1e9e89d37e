//! Entries that are found by a hash, in a table that never grows by much in one step.
//!
//! A hash table doubles at once: of ten million entries each is hashed again, which takes seconds, and no call is
//! answered meanwhile. So this is many small tables, and whenever there are enough entries for one more table, one is
//! split in two: the next in turn, so that all are split once before one is split again. W. Litwin, "Linear hashing: a
//! new tool for file and table addressing", VLDB 1980.

use hashbrown::HashTable;

use super::sparse::trim_index;

/// Entries per table, on average. A split looks at twice as many. In tests few, so that the random histories split
/// tables, too.
const PART: usize = if cfg!(test) { 8 } else { 1 << 13 };
/// The most tables that one trim merges.
const MERGED_MAX: usize = 64;

/// Entries that are found by a hash.
#[derive(Debug)]
pub(crate) struct Index<T> {
    parts: Vec<HashTable<T>>,
    entries: usize,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Index { parts: Vec::new(), entries: 0 }
    }
}

/// The table that is split for table `last`, which begins then.
fn split_for(last: usize) -> usize {
    last - last.checked_ilog2().map_or(0, |bits| 1 << bits)
}

/// The table of a hash, as an index of `parts` tables. It comes from other bits than the places in a table, which come from
/// the lowest, and its tags, which are the highest.
fn part_of(hash: u64, parts: usize) -> usize {
    let at = (hash >> 32) as usize & (parts.next_power_of_two() - 1);
    if at < parts { at } else { split_for(at) }
}

impl<T> Index<T> {
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The number of entries that need no more memory; zero without a table.
    pub(crate) fn capacity(&self) -> usize {
        self.parts.iter().map(HashTable::capacity).sum()
    }

    pub(crate) fn find(&self, hash: u64, is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        self.parts.get(part_of(hash, self.parts.len()))?.find(hash, is_it)
    }

    /// Adds an entry that is not there. `hash_of` tells the hash of each entry.
    pub(crate) fn insert_unique(&mut self, hash: u64, entry: T, hash_of: impl Fn(&T) -> u64) {
        if self.entries >= self.parts.len() * PART {
            self.split(&hash_of);
        }
        let part = part_of(hash, self.parts.len());
        self.parts[part].insert_unique(hash, entry, hash_of);
        self.entries += 1;
    }

    pub(crate) fn remove(&mut self, hash: u64, is_it: impl FnMut(&T) -> bool) {
        let part = part_of(hash, self.parts.len());
        let Some(part) = self.parts.get_mut(part) else { return };
        if let Ok(entry) = part.find_entry(hash, is_it) {
            entry.remove();
            self.entries -= 1;
        }
    }

    /// Gives memory back when most entries are gone, a bounded part of it at once.
    pub(crate) fn trim(&mut self, hash_of: impl Fn(&T) -> u64) {
        for _ in 0..MERGED_MAX {
            if self.parts.len() < 2 || self.entries * 8 >= self.parts.len() * PART {
                break;
            }
            let Some(last) = self.parts.pop() else { break };
            let into = split_for(self.parts.len());
            for entry in last {
                self.parts[into].insert_unique(hash_of(&entry), entry, &hash_of);
            }
        }
        self.parts.iter_mut().for_each(|part| trim_index(part, &hash_of));
    }

    fn split(&mut self, hash_of: impl Fn(&T) -> u64) {
        let last = self.parts.len();
        let mut new = HashTable::new();
        if let Some(part) = self.parts.get_mut(split_for(last)) {
            new.reserve(part.len() / 2, &hash_of);
            let moved = part.extract_if(|entry| part_of(hash_of(entry), last + 1) == last);
            for entry in moved {
                new.insert_unique(hash_of(&entry), entry, &hash_of);
            }
        }
        self.parts.push(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: &u64) -> u64 {
        n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    }

    fn of(entries: u64) -> Index<u64> {
        let mut index = Index::default();
        (0..entries).for_each(|n| index.insert_unique(hash(&n), n, hash));
        index
    }

    #[test]
    fn each_entry_is_found_while_the_index_grows_and_shrinks() {
        let most = 300 * PART as u64;
        let mut index = of(most);
        assert_eq!((index.len(), index.parts.len()), (most as usize, 300));
        for n in 0..most {
            assert_eq!(index.find(hash(&n), |m| *m == n), Some(&n));
        }
        for n in 0..most {
            index.remove(hash(&n), |m| *m == n);
            assert_eq!(index.find(hash(&n), |m| *m == n), None);
            if n % 20 == 0 {
                index.trim(hash);
                let left = (n + 1..most).step_by(7);
                left.for_each(|n| assert_eq!(index.find(hash(&n), |m| *m == n), Some(&n)));
            }
        }
        index.trim(hash);
        assert_eq!((index.is_empty(), index.parts.len()), (true, 1));
    }

    #[test]
    fn no_table_grows_with_the_number_of_all_entries() {
        let index = of(75 * PART as u64);
        for part in &index.parts {
            assert!((PART / 3..PART * 3).contains(&part.len()), "{}", part.len());
        }
    }

    #[test]
    fn an_index_without_entries_has_no_table() {
        let index = of(0);
        assert_eq!((index.capacity(), index.find(7, |_| true)), (0, None));
    }
}
