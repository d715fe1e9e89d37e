//! A namespace as a whole: its values, and the few times and numbers beside them.

use super::{
    Dependencies, Flows, Jobs, Leases, Limits, Outbox, Pools, Schedules, Waiters, WaitingLines,
    Workers,
};
use tenure_core::names::Namespace;
use tenure_core::time::{Moment, Span};

/// The whole state of one namespace.
#[derive(Debug)]
pub(crate) struct Space {
    pub name: Namespace,
    pub patience: Span,
    /// The last call of any kind except ticks; a start counts as one.
    pub used_at: Moment,
    pub last: Moment,
    pub pulse: Moment,
    pub deaf_at: Moment,
    pub behind: Option<Span>,
    /// Set while the store may have lost answered grants: the end of that time, as far as it is known.
    pub recovers_until: Option<Moment>,
    /// The time at which the last recovery began; zero without any.
    pub recovered_at: Moment,
    pub jobs: Jobs,
    /// The earliest time at which an archived job may have to go.
    pub purge_at: Option<Moment>,
    pub lines: WaitingLines,
    pub limits: Limits,
    pub pools: Pools,
    pub schedules: Schedules,
    pub dependencies: Dependencies,
    pub flows: Flows,
    pub leases: Leases,
    pub waiters: Waiters,
    pub workers: Workers,
    pub outbox: Outbox,
}

impl Space {
    /// A namespace without content.
    pub(crate) fn new(name: Namespace, patience: Span) -> Self {
        Space {
            name,
            patience,
            used_at: Moment::ZERO,
            last: Moment::ZERO,
            pulse: Moment::ZERO,
            deaf_at: Moment::ZERO,
            behind: None,
            recovers_until: None,
            recovered_at: Moment::ZERO,
            jobs: Default::default(),
            purge_at: None,
            lines: WaitingLines::none_after(0),
            limits: Default::default(),
            pools: Default::default(),
            schedules: Default::default(),
            dependencies: Default::default(),
            flows: Default::default(),
            leases: Default::default(),
            waiters: Default::default(),
            workers: Default::default(),
            outbox: Default::default(),
        }
    }
}
