//! Shrinks hash tables and rings after a peak; they keep their capacity otherwise. Trees and
//! [`Slots`](super::slots::Slots) shrink by themselves.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::mem::size_of;

use hashbrown::{HashMap, HashTable};

/// Smaller tables, in bytes, do not shrink.
const BYTES_MIN: usize = 64 * 1024;
/// A table shrinks if its entries would fit in it this many times.
const TIMES: usize = 8;

/// True if a table with this many entries should shrink, to room for twice as many.
fn is_sparse(entries: usize, entry_bytes: usize, table_bytes: usize) -> bool {
    table_bytes > BYTES_MIN && entries * entry_bytes.max(1) * TIMES < table_bytes
}

pub(crate) fn trim_map<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if is_sparse(map.len(), size_of::<(K, V)>(), map.allocation_size()) {
        map.shrink_to(map.len() * 2);
    }
}

pub(crate) fn trim_index<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if is_sparse(table.len(), size_of::<T>(), table.allocation_size()) {
        table.shrink_to(table.len() * 2, hash);
    }
}

pub(crate) fn trim_ring<T>(ring: &mut VecDeque<T>) {
    if is_sparse(ring.len(), size_of::<T>(), ring.capacity() * size_of::<T>()) {
        ring.shrink_to(ring.len() * 2);
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
