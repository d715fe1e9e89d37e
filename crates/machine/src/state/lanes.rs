//! Lanes and lane groups (`Bundle`): the places of jobs in line. They hold places, never a job
//! itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_core::events::BlockedOn;

use super::{BundleId, DoorId, HeldNeed, LaneId, QueueId, TurnId};
use crate::queue::line::Line;
use tenure_core::names::Group;
use tenure_core::time::Moment;

/// The place of a lane, a lane group or a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In its queue's ready order, if it is not empty.
    Open,
    /// Blocked, in this wait queue's line.
    Parked(DoorId),
    /// Unsatisfiable under the current settings, in this wait queue's list.
    Misfit(DoorId),
}

/// The time since which a head is blocked; starts again with each head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadWait {
    /// The arrival of the head.
    pub head: u64,
    pub since: Moment,
    /// The time of its next try for a reservation, while it is in that list.
    pub try_at: Option<Moment>,
}

/// Jobs of one queue with the same priority, group and needs, in order of arrival.
#[derive(Debug)]
pub(crate) struct Lane {
    pub key: LaneKey,
    pub bundle: BundleId,
    pub line: Line,
    pub place: Place,
    /// The wait queue that opened it and waits for a try.
    pub offered_by: Option<DoorId>,
    /// Its key in the lane group's order, while it is in it.
    pub ordered: Option<u64>,
    /// Its key in the wait queue, while it is blocked.
    pub parked_key: u64,
    pub wait: HeadWait,
    /// The arrival of its head, and the missing need in that head's last event.
    pub told: Option<(u64, BlockedOn)>,
    /// True while the lane has a reservation.
    pub reserving: bool,
    /// Number of shapes that point here; an empty lane goes with the last of them.
    pub shapes: u32,
}

/// The identity of a lane.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LaneKey {
    pub queue: QueueId,
    pub priority: i8,
    pub group: Option<Group>,
    pub needs: Arc<[HeldNeed]>,
    /// Suspects have lanes of their own.
    pub suspect: bool,
}

/// Lanes of one queue, priority and group with the same plain needs: they are blocked as one.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub queue: QueueId,
    pub group: TurnId,
    pub plain: Arc<[HeldNeed]>,
    pub suspect: bool,
    /// Non-empty open lanes, by the arrival of their heads.
    pub open: BTreeSet<(u64, LaneId)>,
    /// Number of jobs in its open lanes.
    pub waiting: u64,
    pub place: Place,
    pub offered_by: Option<DoorId>,
    pub ordered: Option<u64>,
    pub parked_key: u64,
    pub wait: HeadWait,
    /// Its lanes that wait queues have opened for a try.
    pub outs: BTreeSet<LaneId>,
    pub lanes: u32,
}
