//! A table whose entries are named by a small number that is used again when an entry goes.
//!
//! `slab` would do, but for its words when a slot is not there: this one names the table.

/// See the module.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = Some(entry);
                slot
            }
            None => {
                self.entries.push(Some(entry));
                (self.entries.len() - 1) as u32
            }
        }
    }
    pub(crate) fn remove(&mut self, slot: u32) -> Option<T> {
        let entry = self.entries.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(entry)
    }
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.entries.get(slot as usize)?.as_ref()
    }
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.entries.get_mut(slot as usize)?.as_mut()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(slot, entry)| Some((slot as u32, entry.as_ref()?)))
    }
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let entries = self.entries.iter_mut().enumerate();
        entries.filter_map(|(slot, entry)| Some((slot as u32, entry.as_mut()?)))
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
