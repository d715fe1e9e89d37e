//! A table whose entries are named by small numbers; the number of a removed entry is used again.
//!
//! `slab` would do, except that it never shrinks, and that its panic on a broken link does not name the table. Entries
//! are in chunks. An empty chunk is dropped, and an insert takes the lowest free slot, so that the entries that remain
//! after a peak gather in few chunks. A chunk is only as long as its last entry needs: a server holds thousands of
//! namespaces, and each has a dozen tables with one entry.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// The number of an entry in a table of `T`. Each table has its own type of numbers, so a number cannot name an entry
/// of another table.
pub(crate) struct Id<T> {
    number: u32,
    table: PhantomData<fn() -> T>,
}

impl<T> Id<T> {
    pub(crate) const fn new(number: u32) -> Self {
        Id { number, table: PhantomData }
    }
    pub(crate) const fn number(self) -> u32 {
        self.number
    }
}

// Derived impls would require the same traits of `T`.
impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Id<T> {}
impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl<T> Eq for Id<T> {}
impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}
impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.number.hash(hasher);
    }
}
impl<T> std::fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}
impl<T> std::fmt::Display for Id<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

const CHUNK: usize = 64;

/// A table of `T`, in chunks.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    chunks: Vec<Option<Chunk<T>>>,
    /// Chunks with a free slot, including dropped ones.
    roomy: BTreeSet<u32>,
}

#[derive(Debug)]
struct Chunk<T> {
    /// One bit per present entry.
    used: u64,
    /// Up to its last present entry.
    entries: Vec<Option<T>>,
}

impl<T> Chunk<T> {
    /// Puts an entry into the lowest free slot. Returns its place.
    fn put(&mut self, entry: T) -> u32 {
        let at = self.used.trailing_ones();
        self.used |= 1 << at;
        match self.entries.get_mut(at as usize) {
            Some(slot) => *slot = Some(entry),
            None => {
                if self.entries.len() == self.entries.capacity() {
                    // A vector would start with a capacity of four.
                    self.entries.reserve_exact(self.entries.len().max(1));
                }
                self.entries.push(Some(entry));
            }
        }
        at
    }

    fn take(&mut self, at: usize) -> Option<T> {
        let entry = self.entries.get_mut(at)?.take()?;
        self.used &= !(1 << at);
        self.entries.truncate((u64::BITS - self.used.leading_zeros()) as usize);
        if self.entries.len() * 4 <= self.entries.capacity() {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        Some(entry)
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { chunks: Vec::new(), roomy: BTreeSet::new() }
    }
}

fn place<T>(id: Id<T>) -> (usize, usize) {
    (id.number as usize / CHUNK, id.number as usize % CHUNK)
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, entry: T) -> Id<T> {
        let chunk = match self.roomy.first() {
            Some(chunk) => *chunk,
            None => {
                let chunk = self.chunks.len() as u32;
                self.chunks.push(None);
                self.roomy.insert(chunk);
                chunk
            }
        };
        let there = self.chunks[chunk as usize]
            .get_or_insert_with(|| Chunk { used: 0, entries: Vec::new() });
        let at = there.put(entry);
        if there.used == u64::MAX {
            self.roomy.remove(&chunk);
        }
        Id::new(chunk * CHUNK as u32 + at)
    }
    pub(crate) fn remove(&mut self, id: Id<T>) -> Option<T> {
        let (chunk, at) = place(id);
        let here = self.chunks.get_mut(chunk)?;
        let there = here.as_mut()?;
        let was_full = there.used == u64::MAX;
        let entry = there.take(at)?;
        if there.used == 0 {
            *here = None;
            while let Some(None) = self.chunks.last() {
                self.chunks.pop();
                self.roomy.remove(&(self.chunks.len() as u32));
            }
            if self.chunks.len() * 4 < self.chunks.capacity() {
                self.chunks.shrink_to(self.chunks.len() * 2);
            }
        }
        if was_full {
            self.roomy.insert(chunk as u32);
        }
        Some(entry)
    }
    pub(crate) fn get(&self, id: Id<T>) -> Option<&T> {
        let (chunk, at) = place(id);
        self.chunks.get(chunk)?.as_ref()?.entries.get(at)?.as_ref()
    }
    pub(crate) fn get_mut(&mut self, id: Id<T>) -> Option<&mut T> {
        let (chunk, at) = place(id);
        self.chunks.get_mut(chunk)?.as_mut()?.entries.get_mut(at)?.as_mut()
    }
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().flatten().map(|chunk| chunk.used.count_ones() as usize).sum()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id<T>, &T)> {
        let chunks = (0u32..).step_by(CHUNK).zip(&self.chunks);
        let chunks = chunks.filter_map(|(first, chunk)| Some((first, chunk.as_ref()?)));
        let entries = chunks.flat_map(|(first, chunk)| (first..).zip(chunk.entries.iter()));
        entries.filter_map(|(number, entry)| Some((Id::new(number), entry.as_ref()?)))
    }
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Id<T>, &mut T)> {
        let chunks = (0u32..).step_by(CHUNK).zip(&mut self.chunks);
        let chunks = chunks.filter_map(|(first, chunk)| Some((first, chunk.as_mut()?)));
        let entries = chunks.flat_map(|(first, chunk)| (first..).zip(chunk.entries.iter_mut()));
        entries.filter_map(|(number, entry)| Some((Id::new(number), entry.as_mut()?)))
    }
}

/// Panics if there is no such entry. Every id in the state names an entry: the audit proves it, and a broken link is a
/// bug that must not reach a disk, so it ends the process.
impl<T> std::ops::Index<Id<T>> for Slots<T> {
    type Output = T;
    fn index(&self, id: Id<T>) -> &T {
        match self.get(id) {
            Some(entry) => entry,
            None => panic!("broken link to entry {id} of {}", std::any::type_name::<T>()),
        }
    }
}
impl<T> std::ops::IndexMut<Id<T>> for Slots<T> {
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        match self.get_mut(id) {
            Some(entry) => entry,
            None => panic!("broken link to entry {id} of {}", std::any::type_name::<T>()),
        }
    }
}

/// Lets a value be indexed by the ids of the entries in its tables. Panics as [`Slots`] does.
macro_rules! indexed {
    ($of:ident { $($table:ident: $entry:ty),+ $(,)? }) => {$(
        impl std::ops::Index<$crate::state::slots::Id<$entry>> for $of {
            type Output = $entry;
            fn index(&self, id: $crate::state::slots::Id<$entry>) -> &$entry {
                &self.$table[id]
            }
        }
        impl std::ops::IndexMut<$crate::state::slots::Id<$entry>> for $of {
            fn index_mut(&mut self, id: $crate::state::slots::Id<$entry>) -> &mut $entry {
                &mut self.$table[id]
            }
        }
    )+};
}
pub(crate) use indexed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_chunks_are_dropped_and_the_lowest_free_slot_is_used() {
        let mut slots = Slots::default();
        for n in 0..1_000u32 {
            assert_eq!(slots.insert(n).number(), n);
        }
        for n in (0..1_000).filter(|n| n % 500 != 7) {
            assert_eq!(
                (slots.remove(Id::new(n)), slots.remove(Id::new(n)), slots.get(Id::new(n))),
                (Some(n), None, None)
            );
        }
        let left: Vec<_> = slots.iter().map(|(id, n)| (id.number(), *n)).collect();
        assert_eq!(left, [(7, 7), (507, 507)]);
        assert_eq!(slots.chunks.len(), 507 / CHUNK + 1);
        assert_eq!(slots.chunks.iter().flatten().count(), 2);
        assert!(slots.chunks.capacity() <= 4 * slots.chunks.len());
        let more: Vec<_> = (0..70).map(|n| slots.insert(n).number()).collect();
        assert_eq!(more, (0..7).chain(8..71).collect::<Vec<_>>());
        for (_, n) in slots.iter_mut() {
            *n += 1;
        }
        assert_eq!((slots[Id::new(0)], slots[Id::new(70)], slots[Id::new(507)]), (1, 70, 508));
        for slot in (0..71).chain([507]) {
            slots.remove(Id::new(slot)).unwrap();
        }
        assert!(slots.chunks.is_empty() && slots.roomy.is_empty());
        assert_eq!(slots.insert(1).number(), 0);
    }

    #[test]
    fn a_chunk_has_room_for_few_more_than_it_holds() {
        let room = |slots: &Slots<[u64; 32]>| {
            slots.chunks.iter().flatten().map(|chunk| chunk.entries.capacity()).sum::<usize>()
        };
        let mut slots = Slots::default();
        for n in 1..=CHUNK {
            slots.insert([0; 32]);
            assert!(room(&slots) < 2 * n, "{n} entries have room for {}", room(&slots));
        }
        for n in (1..CHUNK).rev() {
            slots.remove(Id::new(n as u32));
            assert!(room(&slots) <= 4 * n, "{n} entries have room for {}", room(&slots));
        }
    }
}
