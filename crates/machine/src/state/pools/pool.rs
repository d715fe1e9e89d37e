//! A pool, a resource, and the reservation of one. Data without actions.

use std::collections::{BTreeMap, BTreeSet};

use crate::state::{DoorId, DroppedResources, LaneId, LiveResourceId, PoolId, Which};
use tenure_core::lease::Fence;
use tenure_core::names::{PoolName, ResourceId, Tag};
use tenure_core::settings::{PoolSettings, ResourceState};
use tenure_core::time::{Moment, Span};

/// One resource of a pool.
#[derive(Debug)]
pub(crate) struct Resource {
    pub pool: PoolId,
    pub id: ResourceId,
    pub tags: Vec<Tag>,
    pub slots: u32,
    pub state: ResourceState,
    /// The end of its cooling.
    pub until: Moment,
    /// The length of the cooling, a cap for it after the clock was set back.
    pub rest: Span,
    pub reason: Option<String>,
    pub holders: Vec<Fence>,
    pub uses: u64,
    /// A counter, not a time: the least recently used one is first.
    pub used: u64,
    pub last_used_at: Option<Moment>,
    pub tat: Moment,
    /// Not handed out before this time, by the pool's rate.
    pub paced_until: Moment,
    pub retiring: bool,
    /// True if a sync left it out: it is remembered if it goes while it is banned or resting.
    pub dropped: bool,
    pub generation: u64,
    /// The reserving lane for which it is kept.
    pub kept_for: Option<LaneId>,
    /// Its key in the sets of free ones, while it is in them.
    pub free: Option<u64>,
    pub timer: Option<Moment>,
}

/// A lane's reservation of a pool, until the lane is granted or stops reserving.
#[derive(Debug)]
pub(crate) struct PoolReservation {
    pub lane: LaneId,
    pub which: Which,
    /// Number of resources that the lane needs.
    pub count: u32,
    /// Resources kept up to now, at most `count`: no other lane is granted these.
    pub kept: Vec<LiveResourceId>,
}

/// A named set of resources.
#[derive(Debug)]
pub(crate) struct Pool {
    pub name: PoolName,
    /// `None`: the pool does not exist, but jobs need it.
    pub settings: Option<PoolSettings>,
    pub uses: u32,
    pub resources: BTreeMap<ResourceId, LiveResourceId>,
    /// Banned and resting resources that a sync dropped.
    pub dropped: DroppedResources,
    /// Resources that may be handed out, by last use.
    pub free: BTreeSet<(u64, LiveResourceId)>,
    pub free_by_tag: BTreeMap<Tag, BTreeSet<(u64, LiveResourceId)>>,
    /// Number of resources with each tag.
    pub tagged: BTreeMap<Tag, u64>,
    pub doors: BTreeMap<Which, DoorId>,
    /// The reservation of the one lane that reserves here.
    pub reservation: Option<PoolReservation>,
    /// The version of the last finished sync.
    pub version: u64,
    pub generation: u64,
    pub leased: u64,
    pub cooling: u64,
    pub banned: u64,
    /// The source of keys for a pick that is not `lru`.
    pub draw: u64,
}
