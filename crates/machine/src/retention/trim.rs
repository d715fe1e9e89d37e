//! Shrinks tables after a peak. It changes no state.
//!
//! Trees and [`Slots`](crate::state::slots::Slots) shrink by themselves; hash tables and rings keep their capacity.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::mem::size_of;

use hashbrown::{HashMap, HashTable};

use crate::queue::order::hash_seq;
use crate::state::Space;

/// Smaller tables, in bytes, do not shrink.
const BYTES_MIN: usize = 64 * 1024;
/// A table shrinks if its entries would fit in it this many times.
const TIMES: usize = 8;

/// True if a table with this many entries should shrink, to room for twice as many.
fn is_sparse(entries: usize, entry_bytes: usize, table_bytes: usize) -> bool {
    table_bytes > BYTES_MIN && entries * entry_bytes.max(1) * TIMES < table_bytes
}

fn trim_map<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if is_sparse(map.len(), size_of::<(K, V)>(), map.allocation_size()) {
        map.shrink_to(map.len() * 2);
    }
}

fn trim_index<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if is_sparse(table.len(), size_of::<T>(), table.allocation_size()) {
        table.shrink_to(table.len() * 2, hash);
    }
}

fn trim_ring<T>(ring: &mut VecDeque<T>) {
    if is_sparse(ring.len(), size_of::<T>(), ring.capacity() * size_of::<T>()) {
        ring.shrink_to(ring.len() * 2);
    }
}

impl Space {
    /// Shrinks every sparse table. A shrink costs a step per remaining entry, and comes at most once per seven times as
    /// many removed ones.
    pub(crate) fn trim(&mut self) {
        let (hasher, jobs) = (self.keys.hasher(), &self.jobs);
        trim_index(&mut self.by_id, |slot| hasher.hash_one(jobs[*slot].id.as_str()));
        trim_index(&mut self.by_seq, |slot| hash_seq(jobs[*slot].seq));
        trim_map(&mut self.shape_by_bytes);
        trim_map(&mut self.keys);
        trim_map(&mut self.lane_by_key);
        trim_map(&mut self.requests);
        trim_map(&mut self.replacing);
        trim_map(&mut self.stubs);
        trim_map(&mut self.waiting_requests);
        trim_map(&mut self.places);
        trim_map(&mut self.holding);
        trim_ring(&mut self.pending);
        trim_ring(&mut self.families);
    }
}

impl Space {
    /// Drops the tables of a namespace without live jobs and recent calls: a queue that is left there for a day must
    /// not keep them.
    pub(crate) fn drop_empty_tables(&mut self) {
        let is_quiet = self.by_id.is_empty()
            && self.leases.is_empty()
            && self.takers.is_empty()
            && self.workers.is_empty()
            && self.caller_by_taker.is_empty()
            && self.requests.is_empty();
        if !is_quiet || self.by_id.capacity() == 0 {
            return;
        }
        self.by_id = HashTable::new();
        self.by_seq = HashTable::new();
        self.shape_by_bytes.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.lane_by_key.shrink_to_fit();
        self.requests.shrink_to_fit();
        self.replacing.shrink_to_fit();
        self.stubs.shrink_to_fit();
        self.waiting_requests.shrink_to_fit();
        self.places.shrink_to_fit();
        self.holding.shrink_to_fit();
        self.out.ended.shrink_to_fit();
        self.pending.shrink_to_fit();
        self.families.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shrinks_when_most_of_its_entries_were_removed() {
        let mut map: HashMap<u64, u64> = (0..100_000).map(|n| (n, n)).collect();
        let most = map.allocation_size();
        for n in 0..100_000 {
            map.remove(&n);
            trim_map(&mut map);
            assert!(map.contains_key(&(n + 1)) == (n + 1 < 100_000));
        }
        assert!(
            most > 1_000_000 && map.allocation_size() <= 2 * BYTES_MIN,
            "{}",
            map.allocation_size()
        );
        let mut ring: VecDeque<u64> = (0..100_000).collect();
        while ring.pop_front().is_some() {
            trim_ring(&mut ring);
        }
        assert!(ring.capacity() * 8 <= 2 * BYTES_MIN, "{}", ring.capacity());
    }
}
