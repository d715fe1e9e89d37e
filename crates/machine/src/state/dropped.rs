//! Resources that a sync dropped while they were banned or resting, for a later sync that names them again. They are in
//! no pool: views and grants ignore them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::bounds::{DROPPED_MAX, DROPPED_US};
use tenure_core::names::ResourceId;
use tenure_core::settings::ResourceState;
use tenure_core::time::{Moment, Span};

/// The record of one dropped resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dropped {
    /// Always `Cooling` or `Banned`.
    pub state: ResourceState,
    /// The end of its cooling.
    pub until: Moment,
    /// The length of the cooling, a cap for it after the clock was set back.
    pub rest: Span,
    pub reason: Option<String>,
    pub uses: u64,
    pub used: u64,
    pub last_used_at: Option<Moment>,
    pub tat: Moment,
    pub dropped_at: Moment,
}

impl Dropped {
    /// True if the record still counts.
    pub fn is_remembered(&self, now: Moment) -> bool {
        self.ends_at() > now
    }

    /// The time at which the record is forgotten.
    fn ends_at(&self) -> Moment {
        let most = self.dropped_at.plus(Span::from_us(DROPPED_US));
        if self.state == ResourceState::Cooling { self.until.min(most) } else { most }
    }
}

/// The dropped resources of one pool.
#[derive(Debug, Default)]
pub(crate) struct DroppedResources {
    by_id: BTreeMap<ResourceId, Dropped>,
    by_end: BTreeSet<(Moment, ResourceId)>,
}

impl DroppedResources {
    pub fn insert(&mut self, id: ResourceId, dropped: Dropped) {
        self.by_end.insert((dropped.ends_at(), id.clone()));
        if let Some(old) = self.by_id.insert(id.clone(), dropped.clone())
            && old.ends_at() != dropped.ends_at()
        {
            self.by_end.remove(&(old.ends_at(), id));
        }
    }

    /// Takes a record out; it may be over by now.
    pub fn take(&mut self, id: &ResourceId) -> Option<Dropped> {
        let dropped = self.by_id.remove(id)?;
        self.by_end.remove(&(dropped.ends_at(), id.clone()));
        Some(dropped)
    }

    /// Forgets the next record that is over, or exceeds the limit.
    pub fn forget(&mut self, now: Moment) -> Option<ResourceId> {
        let (at, _) = self.by_end.first()?;
        if *at > now && self.by_id.len() <= DROPPED_MAX {
            return None;
        }
        let (_, id) = self.by_end.pop_first()?;
        self.by_id.remove(&id);
        Some(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ResourceId, &Dropped)> {
        self.by_id.iter()
    }

    /// True if both orders agree.
    pub fn is_whole(&self) -> bool {
        let has = |(id, one): (&ResourceId, &Dropped)| {
            one.state != ResourceState::Available
                && self.by_end.contains(&(one.ends_at(), id.clone()))
        };
        self.by_id.len() == self.by_end.len() && self.by_id.iter().all(has)
    }
}
