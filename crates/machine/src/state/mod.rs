//! What a namespace knows: the structures, and nothing that acts on them.
//!
//! Truth is the jobs, the leases, the settings and the resources. Everything else here (lines,
//! doors, sums, sets of what is free) is an index of it, kept in the same step, and `audit` proves
//! that it agrees.

mod doors;
mod jobs;
mod lanes;
mod leases;
mod limits;
mod needs;
mod pools;
mod queues;
mod space;
mod waiting;

pub(crate) use doors::{Door, DoorKey, DoorLine, Entry, Mark};
pub(crate) use jobs::{Job, KeyHolder, PastSettle, Shape, Stand};
pub(crate) use lanes::{Bundle, HeadWait, Lane, LaneKey, Place};
pub(crate) use leases::{HeldLimit, HeldRes, LeaseState, PastRequest, Stub};
pub(crate) use limits::Limit;
pub(crate) use needs::{HeldNeed, Which};
pub(crate) use pools::{Pool, Resource};
pub(crate) use queues::{GroupTurn, Queue};
pub(crate) use space::{Out, Space};
pub(crate) use waiting::{Asker, Caller, Holding, KeptPlace, Taker, WorkerState};

/// A slot number: of a job, a lane, a limit. Which table it points into is said by the name.
pub(crate) type Slot = u32;
/// Row number of a job: grows with every push, never used again.
pub type Seq = u64;
/// Who waits: chosen by the engine, growing.
pub type TakerId = u64;
/// The queue of callers who wait for needs alone. It has no name, so no job can be in it.
pub(crate) const CALLERS: Slot = 0;
