//! The keys of a store in Redis. No other place knows their names.

use crate::generation::Generation;

/// The names of a store's keys. They share a hash tag, so a cluster keeps them in one slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreKeys {
    name: String,
}

impl StoreKeys {
    /// The keys of the store with this name, which must contain no `{` and no `}`.
    pub fn of(name: &str) -> StoreKeys {
        StoreKeys { name: name.to_owned() }
    }

    /// The prefix of a store's keys in the layout of earlier releases.
    pub fn earlier(&self) -> String {
        format!("{}:", self.name)
    }

    /// A hash: the id of the store, its format and its settings.
    pub fn store(&self) -> String {
        self.key("store")
    }

    /// A hash: the leader of the store, and the last entry of its journal.
    pub fn own(&self) -> String {
        self.key("own")
    }

    /// A stream: the entries of the journal. Entry `N` has the id `N-0`.
    pub fn log(&self) -> String {
        self.key("log")
    }

    /// A hash: the entry that each server of the store writes about itself.
    pub fn servers(&self) -> String {
        self.key("servers")
    }

    /// A string: the secret by which servers authenticate each other.
    pub fn secret(&self) -> String {
        self.key("secret")
    }

    /// A string: one piece of a snapshot.
    pub fn piece(&self, generation: Generation, index: u32) -> String {
        self.key(&format!("snap:{generation}:{index}"))
    }

    fn key(&self, rest: &str) -> String {
        format!("{{{}}}:{rest}", self.name)
    }
}
