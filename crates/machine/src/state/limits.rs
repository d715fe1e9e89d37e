//! Limits: what is in use, rests or is booked. A setting is cached here, never kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{DoorId, GaugeState, LaneId};
use tenure_core::lease::Fence;
use tenure_core::names::LimitName;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Moment;

/// What a limit keeps for a lane: from when the lane reserves until it is granted or ceases to reserve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitReservation {
    pub lane: LaneId,
    /// Permits.
    pub weight: u32,
    /// Tokens of the rate.
    pub cost: u32,
}

/// A limit: its state, which outlives its setting.
#[derive(Debug)]
pub(crate) struct Limit {
    pub name: LimitName,
    /// Shapes, callers and queues that point here.
    pub uses: u32,
    /// Weights of live leases.
    pub in_use: u64,
    pub holders: BTreeSet<Fence>,
    /// Permits that rest for a time: when each is free again.
    pub resting: BTreeMap<(Moment, u64), u32>,
    /// All permits that rest: these, and those that wait for a reading of the gauge.
    pub resting_sum: u64,
    pub external: u32,
    pub external_until: Option<Moment>,
    /// Where that is read; set and taken away with the settings of the limit.
    pub gauge: Option<Box<GaugeState>>,
    /// The last observation, pause or deletion: what is left of a limit that nobody has set any more goes
    /// a day later.
    pub touched_at: Moment,
    /// GCRA's theoretical arrival time.
    pub tat: Moment,
    /// `Some(Moment::MAX)`: until it is resumed.
    pub paused_until: Option<Moment>,
    pub door: Option<DoorId>,
    /// What is kept here for the one lane that reserves.
    pub reservation: Option<LimitReservation>,
    /// The setting that holds, and the generation of settings it was read at.
    pub cached: Option<(u64, Option<LimitSettings>)>,
    /// Its timer in `limit_timers`.
    pub timer: Option<Moment>,
    /// It has a row.
    pub stored: bool,
}

impl Limit {
    /// Whether anybody or anything points to it, or a permit is in use.
    pub(crate) fn is_held(&self) -> bool {
        self.uses > 0
            || self.in_use > 0
            || self.resting_sum > 0
            || self.gauge.is_some()
            || self.door.is_some()
            || self.reservation.is_some()
    }
}
