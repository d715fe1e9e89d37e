//! Resources of a pool, and sets in which no id may stand twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::leases::later;
use super::{Bounded, COUNT, Spans};
use crate::at::At;
use crate::bounds::{ERROR_BYTES_MAX, ITEMS_MAX, RESOURCE_DATA_BYTES_MAX, TAGS_MAX};
use crate::names::Tag;
use crate::refusal::Refusal;
use crate::requests::{AddResources, BanResource, CoolResource, PatchResource, SyncResources};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, SetPlace, cut};
use crate::settings::NewResource;

/// The ids of a set so far, and where each stands.
///
/// A set comes from a query outside. A join that repeats a row would otherwise leave one of the two to win in silence,
/// and each sync would be an update.
#[derive(Debug)]
pub(crate) struct SetIds<I>(HashMap<I, SetPlace>);

impl<I> Default for SetIds<I> {
    fn default() -> Self {
        SetIds(HashMap::new())
    }
}

impl<I: Hash + Eq + AsRef<str>> SetIds<I> {
    /// Refuses an id that an earlier item of the set has; `at` is where the id stands.
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

impl Bounded for SyncResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let mut ids = SetIds::default();
        for (index, one) in self.resources.iter().enumerate() {
            let at = At::Item(&At::Body, index);
            let once = ids.once(&one.id, SetPlace::Item(index), &At::Member(&at, "id"));
            once.and_then(|()| resource(one, &at)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for AddResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let (sent, most) = (self.resources.len(), ITEMS_MAX);
        if !(1..=most).contains(&sent) {
            return Err(At::Body.refuse(BodyRefusal::ResourcesOutside { sent, most }));
        }
        for (index, one) in self.resources.iter().enumerate() {
            resource(one, &At::Item(&At::Body, index)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for PatchResource {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let body = At::Body;
        self.data.each(|json| data(json, &body))?;
        self.tags.each(|all| tags(all, &body))?;
        self.slots.each(|slots| At::Member(&body, "slots").number(*slots, COUNT))
    }
}

impl Bounded for CoolResource {
    fn within_bounds(&self) -> Result<(), Refusal> {
        later(&self.until, Spans::ANY, &At::Body)
    }
}

impl Bounded for BanResource {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let at = At::Member(&At::Body, "reason");
        self.reason.as_ref().map_or(Ok(()), |reason| at.text(reason, ERROR_BYTES_MAX))
    }
}

fn resource(one: &NewResource, at: &At<'_>) -> Result<(), Refusal> {
    data(&one.data, at)?;
    tags(&one.tags, at)?;
    At::Member(at, "slots").number(one.slots, COUNT)
}

fn data(data: &Json, of: &At<'_>) -> Result<(), Refusal> {
    At::Member(of, "data").content(data.text().len(), RESOURCE_DATA_BYTES_MAX)
}

fn tags(tags: &[Tag], of: &At<'_>) -> Result<(), Refusal> {
    At::Member(of, "tags").items(tags.len(), 0..=TAGS_MAX)
}
