//! Resources that a sync dropped while they were banned or rested, for a sync that names them again. They are in no pool:
//! nobody is shown them, and nobody is granted them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::bounds::{DROPPED_MAX, DROPPED_US};
use tenure_core::names::ResourceId;
use tenure_core::settings::ResourceState;
use tenure_core::time::{Moment, Span};

/// What is remembered of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dropped {
    /// `Cooling` or `Banned`.
    pub state: ResourceState,
    /// Until when it is cooling.
    pub until: Moment,
    /// How long that is, to cut it by when the clock was set back.
    pub rest: Span,
    pub reason: Option<String>,
    pub uses: u64,
    pub used: u64,
    pub last_used_at: Option<Moment>,
    pub tat: Moment,
    pub dropped_at: Moment,
}

impl Dropped {
    /// Whether it counts at this moment.
    pub fn is_remembered(&self, now: Moment) -> bool {
        self.ends_at() > now
    }

    /// When it is forgotten.
    fn ends_at(&self) -> Moment {
        let most = self.dropped_at.plus(Span::from_us(DROPPED_US));
        if self.state == ResourceState::Cooling { self.until.min(most) } else { most }
    }
}

/// Those of one pool.
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

    /// Takes one out; it may be over by now.
    pub fn take(&mut self, id: &ResourceId) -> Option<Dropped> {
        let dropped = self.by_id.remove(id)?;
        self.by_end.remove(&(dropped.ends_at(), id.clone()));
        Some(dropped)
    }

    /// Forgets the next one that is over, or that is one too many.
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

    /// Whether both orders tell the same.
    pub fn is_whole(&self) -> bool {
        let has = |(id, one): (&ResourceId, &Dropped)| {
            one.state != ResourceState::Available
                && self.by_end.contains(&(one.ends_at(), id.clone()))
        };
        self.by_id.len() == self.by_end.len() && self.by_id.iter().all(has)
    }
}
