//! A table whose entries are named by a small number; the number of a removed entry is used again.
//!
//! `slab` would do, except that it never shrinks, and that its panic on a broken link does not name the table. Entries
//! lie in chunks. An empty chunk is dropped, and an insert takes the lowest free slot, so that the entries that are left
//! after a peak gather in few chunks.

use std::collections::BTreeSet;

const CHUNK: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    chunks: Vec<Option<Chunk<T>>>,
    /// Chunks with a free slot, dropped ones included.
    roomy: BTreeSet<u32>,
}

#[derive(Debug)]
struct Chunk<T> {
    /// One bit per entry that is present.
    used: u64,
    entries: Box<[Option<T>]>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { chunks: Vec::new(), roomy: BTreeSet::new() }
    }
}

fn place(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        let chunk = match self.roomy.first() {
            Some(chunk) => *chunk,
            None => {
                let chunk = self.chunks.len() as u32;
                self.chunks.push(None);
                self.roomy.insert(chunk);
                chunk
            }
        };
        let Chunk { used, entries } = self.chunks[chunk as usize]
            .get_or_insert_with(|| Chunk { used: 0, entries: (0..CHUNK).map(|_| None).collect() });
        let at = used.trailing_ones();
        *used |= 1 << at;
        entries[at as usize] = Some(entry);
        if *used == u64::MAX {
            self.roomy.remove(&chunk);
        }
        chunk * CHUNK as u32 + at
    }
    pub(crate) fn remove(&mut self, slot: u32) -> Option<T> {
        let (chunk, at) = place(slot);
        let here = self.chunks.get_mut(chunk)?;
        let there = here.as_mut()?;
        let entry = there.entries[at].take()?;
        let was_full = there.used == u64::MAX;
        there.used &= !(1 << at);
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
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk)?.as_ref()?.entries[at].as_ref()
    }
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let (chunk, at) = place(slot);
        self.chunks.get_mut(chunk)?.as_mut()?.entries[at].as_mut()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let chunks = (0u32..).step_by(CHUNK).zip(&self.chunks);
        let chunks = chunks.filter_map(|(first, chunk)| Some((first, chunk.as_ref()?)));
        let entries = chunks.flat_map(|(first, chunk)| (first..).zip(chunk.entries.iter()));
        entries.filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let chunks = (0u32..).step_by(CHUNK).zip(&mut self.chunks);
        let chunks = chunks.filter_map(|(first, chunk)| Some((first, chunk.as_mut()?)));
        let entries = chunks.flat_map(|(first, chunk)| (first..).zip(chunk.entries.iter_mut()));
        entries.filter_map(|(slot, entry)| Some((slot, entry.as_mut()?)))
    }
}

/// A slot number held by the state itself is there: the audit proves it, and a broken link is a
/// bug that must not be written to disk, so it ends the process.
impl<T> std::ops::Index<u32> for Slots<T> {
    type Output = T;
    fn index(&self, slot: u32) -> &T {
        match self.get(slot) {
            Some(entry) => entry,
            None => panic!("broken link to slot {slot} of {}", std::any::type_name::<T>()),
        }
    }
}
impl<T> std::ops::IndexMut<u32> for Slots<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        match self.get_mut(slot) {
            Some(entry) => entry,
            None => panic!("broken link to slot {slot} of {}", std::any::type_name::<T>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_chunk_is_dropped_and_the_lowest_free_slot_is_taken_first() {
        let mut slots = Slots::default();
        for n in 0..1_000u32 {
            assert_eq!(slots.insert(n), n);
        }
        for n in (0..1_000).filter(|n| n % 500 != 7) {
            assert_eq!((slots.remove(n), slots.remove(n), slots.get(n)), (Some(n), None, None));
        }
        let left: Vec<_> = slots.iter().map(|(slot, n)| (slot, *n)).collect();
        assert_eq!(left, [(7, 7), (507, 507)]);
        assert_eq!(slots.chunks.len(), 507 / CHUNK + 1);
        assert_eq!(slots.chunks.iter().flatten().count(), 2);
        assert!(slots.chunks.capacity() <= 4 * slots.chunks.len());
        let more: Vec<_> = (0..70).map(|n| slots.insert(n)).collect();
        assert_eq!(more, (0..7).chain(8..71).collect::<Vec<_>>());
        for (_, n) in slots.iter_mut() {
            *n += 1;
        }
        assert_eq!((slots[0], slots[70], slots[507]), (1, 70, 508));
        for slot in (0..71).chain([507]) {
            slots.remove(slot).unwrap();
        }
        assert!(slots.chunks.is_empty() && slots.roomy.is_empty());
        assert_eq!(slots.insert(1), 0);
    }
}
