//! Remembers data of leases that this process granted and has not seen end.
//!
//! A lease may end elsewhere, or never be mentioned again. So the map has two generations: when the younger one is
//! full, the older one is forgotten. Nothing is searched and nothing grows.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::{Mutex, PoisonError};

/// Callers share a lock only if their leases are in the same part.
const PARTS: usize = 16;
/// Leases of one generation of a part: at least 65,536 open runs are known.
const GENERATION: usize = 4096;

#[derive(Debug)]
struct Generations<R> {
    young: HashMap<String, R>,
    old: HashMap<String, R>,
}

impl<R> Default for Generations<R> {
    fn default() -> Self {
        Generations { young: HashMap::new(), old: HashMap::new() }
    }
}

/// Open runs by their leases: at least 65,536 of them. `R` is the data of a run.
#[derive(Debug)]
pub struct OpenRuns<R> {
    parts: [Mutex<Generations<R>>; PARTS],
    hasher: RandomState,
}

impl<R> Default for OpenRuns<R> {
    fn default() -> Self {
        OpenRuns { parts: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}

impl<R> OpenRuns<R> {
    fn part(&self, lease: &str) -> &Mutex<Generations<R>> {
        &self.parts[(self.hasher.hash_one(lease) % PARTS as u64) as usize]
    }

    /// Adds a run; if the young generation is full, the old one is forgotten.
    pub fn began(&self, lease: &str, run: R) {
        let mut part = self.part(lease).lock().unwrap_or_else(PoisonError::into_inner);
        if part.young.len() >= GENERATION {
            part.old = mem::take(&mut part.young);
        }
        part.young.insert(lease.to_owned(), run);
    }

    /// Removes a run; `None` if this process does not know it.
    pub fn ended(&self, lease: &str) -> Option<R> {
        let mut part = self.part(lease).lock().unwrap_or_else(PoisonError::into_inner);
        let old = part.old.remove(lease);
        part.young.remove(lease).or(old)
    }

    /// All open runs, with their leases.
    pub fn into_open(self) -> impl Iterator<Item = (String, R)> {
        self.parts.into_iter().flat_map(|part| {
            let Generations { young, mut old } =
                part.into_inner().unwrap_or_else(PoisonError::into_inner);
            old.extend(young);
            old
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_ended_once_and_old_ones_are_forgotten() {
        let held = OpenRuns::default();
        held.began("first", 0);
        assert!(held.ended("first").is_some());
        assert!(held.ended("first").is_none());
        held.began("first", 0);
        for n in 0..4 * PARTS * GENERATION {
            held.began(&n.to_string(), n);
        }
        assert!(held.ended("first").is_none(), "it was forgotten");
        let known = |part: &Mutex<Generations<usize>>| {
            let part = part.lock().unwrap();
            part.young.len() + part.old.len()
        };
        let all = held.parts.iter().map(known).sum::<usize>();
        assert!(all <= 2 * PARTS * GENERATION);
        assert_eq!(held.into_open().count(), all);
    }
}
