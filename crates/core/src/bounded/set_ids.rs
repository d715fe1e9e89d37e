//! Sets in which each id may appear once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::at::At;
use crate::refusal::Refusal;
use crate::sentences::{BodyRefusal, SetPlace, cut};

/// The ids of a set as far as it is read, each with its place.
///
/// A set comes from a query outside. If a join repeated a row, one of the two would win silently, and each sync would
/// be an update.
#[derive(Debug)]
pub(crate) struct SetIds<I>(HashMap<I, SetPlace>);

impl<I> Default for SetIds<I> {
    fn default() -> Self {
        SetIds(HashMap::new())
    }
}

impl<I: Hash + Eq + AsRef<str>> SetIds<I> {
    /// Refuses an id that an earlier item of the set has; `at` is the place of the id.
    pub(crate) fn once(&mut self, id: I, place: SetPlace, at: &At<'_>) -> Result<(), Refusal> {
        match self.0.entry(id) {
            Entry::Vacant(free) => {
                free.insert(place);
                Ok(())
            }
            Entry::Occupied(taken) => {
                let (shown, first, second) = (cut(taken.key().as_ref()), *taken.get(), place);
                Err(at.refuse(BodyRefusal::IdTwice { shown, first, second }))
            }
        }
    }
}
