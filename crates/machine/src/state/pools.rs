//! Pools and their resources, and which are free. The data of a resource is never here: it is a
//! row.

use std::collections::{BTreeMap, BTreeSet};

use super::{DoorId, DroppedResources, LaneId, LiveResourceId, PoolId, Which};
use tenure_core::lease::Fence;
use tenure_core::names::{PoolName, ResourceId, Tag};
use tenure_core::settings::{PoolSettings, ResourceState};
use tenure_core::time::{Moment, Span};

/// One thing of a pool.
#[derive(Debug)]
pub(crate) struct Resource {
    pub pool: PoolId,
    pub id: ResourceId,
    pub tags: Vec<Tag>,
    pub slots: u32,
    pub state: ResourceState,
    /// Until when it is cooling.
    pub until: Moment,
    /// How long that is, to cut it by when the clock was set back.
    pub rest: Span,
    pub reason: Option<String>,
    pub holders: Vec<Fence>,
    pub uses: u64,
    /// A counter, not a time: least recently used first.
    pub used: u64,
    pub last_used_at: Option<Moment>,
    pub tat: Moment,
    /// Not before this, by the pool's rate.
    pub paced_until: Moment,
    pub retiring: bool,
    /// A sync left it out, so it is remembered if it goes while it is banned or rests.
    pub dropped: bool,
    pub generation: u64,
    /// Kept for this lane, which reserves.
    pub kept_for: Option<LaneId>,
    /// Its key in the sets of what is free, while it is in them.
    pub free: Option<u64>,
    pub timer: Option<Moment>,
}

/// What a pool keeps for a lane: from when the lane reserves until it is granted or ceases to reserve.
#[derive(Debug)]
pub(crate) struct PoolReservation {
    pub lane: LaneId,
    pub which: Which,
    /// How many resources the lane needs.
    pub count: u32,
    /// Those that are kept so far, at most `count`: nobody else is granted them.
    pub kept: Vec<LiveResourceId>,
}

/// A named set of resources.
#[derive(Debug)]
pub(crate) struct Pool {
    pub name: PoolName,
    /// `None`: it is not there, but jobs need it.
    pub settings: Option<PoolSettings>,
    pub uses: u32,
    pub resources: BTreeMap<ResourceId, LiveResourceId>,
    /// Banned and resting ones that a sync dropped.
    pub dropped: DroppedResources,
    /// Resources that may be handed out: by last use.
    pub free: BTreeSet<(u64, LiveResourceId)>,
    pub free_by_tag: BTreeMap<Tag, BTreeSet<(u64, LiveResourceId)>>,
    /// Resources that have each tag.
    pub tagged: BTreeMap<Tag, u64>,
    pub doors: BTreeMap<Which, DoorId>,
    /// What is kept here for the one lane that reserves.
    pub reservation: Option<PoolReservation>,
    /// The last finished sync.
    pub version: u64,
    pub generation: u64,
    pub leased: u64,
    pub cooling: u64,
    pub banned: u64,
    /// A pick that is not `lru` draws its keys from here.
    pub draw: u64,
}
