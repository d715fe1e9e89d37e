//! Which leases this process granted and has not seen end, and what it is to remember of each.
//!
//! A lease may end elsewhere, or never be heard of again. So the map has two generations: when the younger one is full, the
//! older one is forgotten. Nothing is searched for and nothing grows.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::{Mutex, PoisonError};

/// Callers meet at one lock only if their leases fall into the same part.
const PARTS: usize = 16;
/// Leases of one generation of a part: at least 65,536 that run at once are known.
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

/// Runs by their leases: at least 65,536 that run at once. `R` is what is remembered of a run.
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

    /// A run began.
    pub fn began(&self, lease: &str, run: R) {
        let mut part = self.part(lease).lock().unwrap_or_else(PoisonError::into_inner);
        if part.young.len() >= GENERATION {
            part.old = mem::take(&mut part.young);
        }
        part.young.insert(lease.to_owned(), run);
    }

    /// It is over; `None` if this process knows nothing of it.
    pub fn ended(&self, lease: &str) -> Option<R> {
        let mut part = self.part(lease).lock().unwrap_or_else(PoisonError::into_inner);
        let old = part.old.remove(lease);
        part.young.remove(lease).or(old)
    }

    /// All runs that are open.
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
