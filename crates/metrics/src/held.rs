//! Which leases this process granted and has not seen end: their queue, and since when they run.
//!
//! A lease may end elsewhere, or never be heard of again. So the map has two generations: when the younger one is full, the
//! older one is forgotten. Nothing is searched for and nothing grows.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::counts::QueueCounts;

/// Callers meet at one lock only if their leases fall into the same part.
const PARTS: usize = 16;
/// Leases of one generation of a part: at least 65,536 that run at once are known.
const GENERATION: usize = 4096;

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct OpenRun {
    pub queue: Arc<QueueCounts>,
    pub since: Instant,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<String, OpenRun>,
    old: HashMap<String, OpenRun>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct OpenRuns {
    parts: [Mutex<Generations>; PARTS],
    hasher: RandomState,
}

impl OpenRuns {
    fn part(&self, lease: &str) -> &Mutex<Generations> {
        &self.parts[(self.hasher.hash_one(lease) % PARTS as u64) as usize]
    }

    /// A run began.
    pub(crate) fn began(&self, lease: &str, run: OpenRun) {
        let mut part = self.part(lease).lock().unwrap_or_else(PoisonError::into_inner);
        if part.young.len() >= GENERATION {
            part.old = mem::take(&mut part.young);
        }
        part.young.insert(lease.to_owned(), run);
    }

    /// It is over; `None` if this process knows nothing of it.
    pub(crate) fn ended(&self, lease: &str) -> Option<OpenRun> {
        let mut part = self.part(lease).lock().unwrap_or_else(PoisonError::into_inner);
        let old = part.old.remove(lease);
        part.young.remove(lease).or(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_ended_once_and_old_ones_are_forgotten() {
        let held = OpenRuns::default();
        let run = OpenRun { queue: Arc::default(), since: Instant::now() };
        held.began("first", run.clone());
        assert!(held.ended("first").is_some());
        assert!(held.ended("first").is_none());
        held.began("first", run.clone());
        for n in 0..4 * PARTS * GENERATION {
            held.began(&n.to_string(), run.clone());
        }
        assert!(held.ended("first").is_none(), "it was forgotten");
        let known = |part: &Mutex<Generations>| {
            let part = part.lock().unwrap();
            part.young.len() + part.old.len()
        };
        assert!(held.parts.iter().map(known).sum::<usize>() <= 2 * PARTS * GENERATION);
    }
}
