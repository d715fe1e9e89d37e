//! Wait queues (`Door`): entries that lack a need stand here in order, and events open them.
//!
//! The invariant that the rest depends on: in each wait queue, the first entry of a job queue cannot be served, or an
//! entry of that job queue is offered, or the wait queue is pending. Every event that lets a wait queue serve more goes
//! through [`WaitingLines::door_due`](crate::state::WaitingLines::door_due); nothing else opens it, and every call makes a bounded number of steps.

mod parking;
mod passes;

use crate::state::{DoorId, DoorKey, HeldNeed, PoolId, QueueId, Space, Which};
use tenure_core::time::Moment;

/// The possible answers to a need at the current time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// The need can be served now.
    Yes,
    /// The need cannot be served now; time alone may allow it at this moment, if that is known.
    No(Option<Moment>),
    /// The need can never be served under the current settings.
    Never,
}

impl Space {
    /// The wait queue of a need.
    pub(crate) fn door_key(need: &HeldNeed) -> DoorKey {
        match need {
            HeldNeed::Limit { limit, .. } => DoorKey::Limit(*limit),
            HeldNeed::Pool { pool, which, .. } => DoorKey::Pool(*pool, which.clone()),
        }
    }

    pub(crate) fn find_door(&self, key: &DoorKey) -> Option<DoorId> {
        match key {
            DoorKey::Limit(limit) => self.limits[*limit].door,
            DoorKey::Pool(pool, which) => self.pools[*pool].doors.get(which).copied(),
        }
    }

    fn door_for(&mut self, key: DoorKey) -> DoorId {
        if let Some(door) = self.find_door(&key) {
            return door;
        }
        let door = self.lines.add_door(key.clone());
        match key {
            DoorKey::Limit(limit) => self.limits[limit].door = Some(door),
            DoorKey::Pool(pool, which) => {
                self.pools[pool].doors.insert(which, door);
            }
        }
        door
    }

    /// Drops the parts of a wait queue that hold no entry.
    fn tidy_door(&mut self, door: DoorId, queue: QueueId) {
        match self.lines.tidy_door(door, queue) {
            Some(DoorKey::Limit(limit)) => {
                self.limits[limit].door = None;
                self.drop_limit_if_idle(limit);
            }
            Some(DoorKey::Pool(pool, which)) => {
                self.pools[pool].doors.remove(&which);
                self.pools.drop_if_idle(pool);
            }
            None => {}
        }
    }

    /// The wait queues of a pool; wait queues of tags and ids only if they are named.
    pub(crate) fn pool_doors_due(
        &mut self,
        pool: PoolId,
        tags: &[tenure_core::names::Tag],
        id: &tenure_core::names::ResourceId,
    ) {
        let doors = &self.pools[pool].doors;
        let mut due: Vec<DoorId> = Vec::with_capacity(2 + tags.len());
        due.extend(doors.get(&Which::Any));
        if doors.len() > due.len() {
            due.extend(tags.iter().filter_map(|tag| doors.get(&Which::Tag(tag.clone()))));
            due.extend(doors.get(&Which::Id(id.clone())));
        }
        for door in due {
            self.lines.door_due(door);
        }
    }
}
