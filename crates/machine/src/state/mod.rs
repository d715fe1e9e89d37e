//! State of a namespace: values that keep their own parts in agreement.
//!
//! Truth is the jobs, the leases, the settings and the resources. Everything else here (lines, wait queues, sums, sets of
//! free resources) is an index of it, kept in the same step, and `audit` proves that it agrees.
//!
//! Each value ([`Jobs`], [`WaitingLines`], [`Limits`], [`Pools`], [`Schedules`], [`Dependencies`], [`Flows`], [`Leases`],
//! [`Waiters`], [`Workers`], [`Outbox`]) has private tables and timers. It knows no other value: a rule that needs two is
//! a step of [`Space`]. It answers with what such a step must do next, and audits itself.

mod dependencies;
mod doors;
mod dropped;
mod flows;
mod gauges;
mod index;
mod jobs;
mod lanes;
mod leases;
mod limits;
mod lines;
mod needs;
mod outbox;
mod pools;
mod queues;
mod ranked;
mod remembered;
mod schedules;
pub(crate) mod slots;
mod space;
pub(crate) mod sparse;
mod waiters;
mod workers;

use crate::state::slots::Id;

pub(crate) use dependencies::{
    Dependencies, Followed, HeldJob, Kin, PORTION, Parent, ParentKey, Portion,
};
pub(crate) use doors::{Door, DoorKey, DoorLine, Entry, Reservation};
pub(crate) use dropped::{Dropped, DroppedResources};
pub(crate) use flows::{Flow, Flows};
pub(crate) use gauges::{GaugeRest, GaugeState, GoodReading, OpenClaim, ReadingFailure};
pub(crate) use jobs::{
    Job, JobKey, Jobs, KeyHolder, Origin, PastSettle, Replacing, Report, Shape, Stand,
};
pub(crate) use lanes::{Bundle, HeadWait, Lane, LaneKey, Place};
pub(crate) use leases::{HeldLimit, HeldRes, LeaseState, Leases, PastRequest, Tombstone};
pub(crate) use limits::{LOCK, Limit, LimitReservation, Limits};
pub(crate) use lines::{WaitingLines, rank_of};
pub(crate) use needs::{HeldNeed, Which};
pub(crate) use outbox::Outbox;
pub(crate) use pools::{Pool, PoolReservation, Pools, Refreshed, Resource};
pub(crate) use queues::{GroupTurn, Queue};
pub(crate) use ranked::Ranked;
pub(crate) use schedules::{PackedSchedule, Schedule, Schedules};
pub(crate) use space::Space;
pub(crate) use waiters::{Asker, Awaited, AwaitingCall, Caller, KeptPlace, Taker, Waiters};
pub(crate) use workers::{Workers, is_recent};

pub(crate) type QueueId = Id<Queue>;
pub(crate) type TurnId = Id<GroupTurn>;
pub(crate) type BundleId = Id<Bundle>;
pub(crate) type LaneId = Id<Lane>;
pub(crate) type DoorId = Id<Door>;
pub(crate) type LimitId = Id<Limit>;
pub(crate) type PoolId = Id<Pool>;
pub(crate) type ShapeId = Id<Shape>;
/// A schedule, or the shell of a deleted one. (`ScheduleId` is the id that users see.)
pub(crate) type LiveScheduleId = Id<PackedSchedule>;
pub(crate) type CallerId = Id<Caller>;
/// A job that has not ended. (`JobId` is the id that users see, and outlives it.)
pub(crate) type LiveJobId = Id<Job>;
/// A resource of a pool that exists. (`ResourceId` is the id that users see, unique in its pool.)
pub(crate) type LiveResourceId = Id<Resource>;
tenure_core::number! {
    /// Row number of a job: from 1, grows with every push, never used again.
    Seq
}
/// The row number of no job: for a lease without a job, and a key without one.
pub const NO_JOB: Seq = Seq::new(0);
tenure_core::number! {
    /// The number of a waiting call; the engine chooses it, and it grows.
    TakerId
}
/// The queue of lock waiters. It has no name, so no job can be in it.
pub(crate) const CALLERS: QueueId = Id::new(0);
