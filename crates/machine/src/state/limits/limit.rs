//! A limit: used, resting and booked permits and tokens. A setting is only cached here. Data without actions.

use std::collections::{BTreeMap, BTreeSet};

use crate::state::{DoorId, GaugeState, LaneId};
use tenure_core::lease::Fence;
use tenure_core::names::LimitName;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Moment;

/// A lane's reservation of a limit, until the lane is granted or stops reserving.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitReservation {
    pub lane: LaneId,
    /// Permits of the concurrency.
    pub weight: u32,
    /// Tokens of the rate.
    pub cost: u32,
}

/// A limit: its state, which outlives its setting.
#[derive(Debug)]
pub(crate) struct Limit {
    pub name: LimitName,
    /// Number of shapes, lock waiters and queues that point here.
    pub uses: u32,
    /// Sum of the weights of live leases.
    pub in_use: u64,
    pub holders: BTreeSet<Fence>,
    /// Permits that rest for a time, by the end of the rest.
    pub resting: BTreeMap<(Moment, u64), u32>,
    /// All resting permits: these, and those that wait for a reading of the gauge.
    pub resting_sum: u64,
    pub external: u32,
    pub external_until: Option<Moment>,
    /// The source of `external`; set and removed with the settings of the limit.
    pub gauge: Option<Box<GaugeState>>,
    /// The last observation, pause or deletion: an unset limit goes a day later.
    pub touched_at: Moment,
    /// GCRA's theoretical arrival time.
    pub tat: Moment,
    /// `Some(Moment::MAX)`: until it is resumed.
    pub paused_until: Option<Moment>,
    pub door: Option<DoorId>,
    /// The reservation of the one lane that reserves here.
    pub reservation: Option<LimitReservation>,
    /// The setting that applies, and the generation of settings at which it was read.
    pub cached: Option<(u64, Option<LimitSettings>)>,
    /// The next time at which it changes.
    pub timer: Option<Moment>,
    /// True if it has a row.
    pub stored: bool,
}

impl Limit {
    /// True if anything points to it, or a permit is in use.
    pub(crate) fn is_held(&self) -> bool {
        self.uses > 0
            || self.in_use > 0
            || self.resting_sum > 0
            || self.gauge.is_some()
            || self.door.is_some()
            || self.reservation.is_some()
    }
}
