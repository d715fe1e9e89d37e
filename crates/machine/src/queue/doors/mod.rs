//! Wait queues (`Door`): entries that lack a need stand here in order, and events open them.
//!
//! The invariant that the rest depends on: in each wait queue, the first entry of a job queue cannot be served, or an
//! entry of that job queue is offered, or the wait queue is pending. Every event that lets a wait queue serve more goes
//! through [`Space::door_due`]; nothing else opens it, and every call makes a bounded number of steps.

mod parking;
mod passes;

use crate::mutant::{Mutant, forgets};
use crate::state::{
    Door, DoorId, DoorKey, Entry, HeadWait, HeldNeed, LaneId, PoolId, QueueId, Space, TurnId, Which,
};
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
        let door = self.doors.insert(Door {
            key: key.clone(),
            lines: Default::default(),
            pass: 0,
            cursor: None,
            pending: false,
            timer: None,
            misfits: Default::default(),
            retry: Default::default(),
            waiting: 0,
        });
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
        let d = &mut self.doors[door];
        if let Some(line) = d.lines.get(&queue)
            && line.is_empty()
            && line.offered.is_none()
            && line.waiting == 0
        {
            d.lines.remove(&queue);
        }
        if !d.lines.is_empty() || !d.misfits.is_empty() || !d.retry.is_empty() || d.pending {
            return;
        }
        if let Some(timer) = d.timer {
            self.door_timers.clear(timer, door);
        }
        if let Some(d) = self.doors.remove(door) {
            match d.key {
                DoorKey::Limit(limit) => {
                    self.limits[limit].door = None;
                    self.drop_limit_if_idle(limit);
                }
                DoorKey::Pool(pool, which) => {
                    self.pools[pool].doors.remove(&which);
                    self.pools.drop_if_idle(pool);
                }
            }
        }
    }

    /// This wait queue may serve more than before: extends its pass to a whole lap from its current place. It never
    /// restarts at the front, because the queues behind would starve.
    pub(crate) fn door_due(&mut self, door: DoorId) {
        let d = &mut self.doors[door];
        if d.lines.is_empty() && d.retry.is_empty() {
            return;
        }
        d.pass = d.lines.len();
        if forgets(Mutant::PassStartsAgain) {
            d.cursor = None;
        }
        if !d.pending {
            d.pending = true;
            self.pending.push_back(door);
        }
    }

    /// The settings behind a wait queue changed: unsatisfiable entries may fit now. They are tried again one by one, as
    /// pending steps.
    pub(crate) fn retry_misfits(&mut self, door: DoorId) {
        let d = &mut self.doors[door];
        if d.retry.is_empty() {
            std::mem::swap(&mut d.retry, &mut d.misfits);
        } else {
            let misfits = std::mem::take(&mut d.misfits);
            d.retry.extend(misfits);
        }
        self.door_due(door);
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
            self.door_due(door);
        }
    }

    // ---- Entries ----

    pub(crate) fn entry_queue(&self, entry: Entry) -> QueueId {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].queue,
            Entry::Lane(lane) => self.lanes[lane].key.queue,
            Entry::Queue(queue) => queue,
        }
    }

    /// The lane whose head is the first job of an entry.
    pub(crate) fn entry_lane(&self, entry: Entry) -> Option<LaneId> {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].open.first().map(|first| first.1),
            Entry::Lane(lane) => Some(lane),
            Entry::Queue(_) => None,
        }
    }

    /// `None`: a whole queue belongs to no group.
    fn entry_group(&self, entry: Entry) -> Option<TurnId> {
        match entry {
            Entry::Bundle(bundle) => Some(self.bundles[bundle].group),
            Entry::Lane(lane) => Some(self.group_of(lane)),
            Entry::Queue(_) => None,
        }
    }

    fn entry_head(&self, entry: Entry) -> Option<u64> {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].open.first().map(|first| first.0),
            Entry::Lane(lane) => self.head(lane).map(|head| head.0),
            Entry::Queue(_) => Some(0),
        }
    }

    fn reserves(&self, entry: Entry) -> bool {
        matches!(entry, Entry::Lane(lane) if self.lanes[lane].reserving)
    }

    fn is_suspect(&self, entry: Entry) -> bool {
        match entry {
            Entry::Bundle(bundle) => self.bundles[bundle].suspect,
            Entry::Lane(lane) => self.lanes[lane].key.suspect,
            Entry::Queue(_) => false,
        }
    }

    fn wait_mut(&mut self, entry: Entry) -> Option<&mut HeadWait> {
        match entry {
            Entry::Bundle(bundle) => Some(&mut self.bundles[bundle].wait),
            Entry::Lane(lane) => Some(&mut self.lanes[lane].wait),
            Entry::Queue(_) => None,
        }
    }
}
