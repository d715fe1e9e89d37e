//! Lanes and the bundles that they park in: where jobs stand in line. They hold places, never a job
//! itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_core::events::BlockedOn;

use super::{BundleId, DoorId, HeldNeed, LaneId, QueueId, TurnId};
use crate::line::Line;
use tenure_core::names::Group;
use tenure_core::time::Moment;

/// Where a lane, a bundle or a queue stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In its queue's ready order, if it is not empty.
    Open,
    /// At this door.
    Parked(DoorId),
    /// In this door's list of what can never fit as the settings are.
    Misfit(DoorId),
}

/// Since when a head stands parked; counts anew for each head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadWait {
    /// The head that this is about, by its arrival.
    pub head: u64,
    pub since: Moment,
    /// When it is tried for a reservation, while it is in that list.
    pub try_at: Option<Moment>,
}

/// Jobs of one queue with the same priority, group and needs, in order of arrival.
#[derive(Debug)]
pub(crate) struct Lane {
    pub key: LaneKey,
    pub bundle: BundleId,
    pub line: Line,
    pub place: Place,
    /// The door that opened it and waits for it to be tried.
    pub offered_by: Option<DoorId>,
    /// Its key in the bundle's order, while it is in it.
    pub ordered: Option<u64>,
    /// Its key at the door, while it is parked.
    pub parked_key: u64,
    pub wait: HeadWait,
    /// Its head, by its arrival, and what everybody was told that it lacks.
    pub told: Option<(u64, BlockedOn)>,
    /// It reserves.
    pub reserving: bool,
    /// Shapes that point here; the lane goes when there is none and it is empty.
    pub shapes: u32,
}

/// What makes a lane.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LaneKey {
    pub queue: QueueId,
    pub priority: i8,
    pub group: Option<Group>,
    pub needs: Arc<[HeldNeed]>,
    /// Suspects have lanes of their own.
    pub suspect: bool,
}

/// Lanes of one queue, priority and group with the same plain needs: they park as one.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub queue: QueueId,
    pub group: TurnId,
    pub plain: Arc<[HeldNeed]>,
    pub suspect: bool,
    /// Non-empty open lanes, by the arrival of their heads.
    pub open: BTreeSet<(u64, LaneId)>,
    /// Jobs in its open lanes.
    pub waiting: u64,
    pub place: Place,
    pub offered_by: Option<DoorId>,
    pub ordered: Option<u64>,
    pub parked_key: u64,
    pub wait: HeadWait,
    /// Its lanes that are out for a door.
    pub outs: BTreeSet<LaneId>,
    pub lanes: u32,
}
