//! What happened, as values: logs, metrics and the checks of the tests are made of these and of
//! nothing else. A fact never carries a payload or the data of a resource.

use super::state::{Seq, TakerId};
use tenure_core::job::{JobState, Outcome};
use tenure_core::lease::{Fence, Leased};
use tenure_core::names::{JobId, LimitName, PoolName, QueueName};
use tenure_core::time::{Moment, Span};

/// One thing that happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    /// A lease was granted.
    Granted {
        /// Its fence.
        fence: Fence,
        /// The job, unless needs alone were granted.
        job: Option<JobId>,
        /// The job's queue.
        queue: Option<QueueName>,
        /// Its arrival number.
        arrival: u64,
    },
    /// A lane's head lacks a need, so the lane stands in that need's line.
    Blocked {
        /// The job at its head; `None` is a caller.
        job: Option<JobId>,
        /// What it lacks.
        on: BlockedOn,
    },
    /// A lease ended.
    Ended {
        /// Its fence.
        fence: Fence,
        /// The job.
        job: Option<JobId>,
        /// How.
        outcome: Outcome,
        /// Where the job stands now.
        state: Option<JobState>,
    },
    /// A lane reserves.
    Reserved {
        /// The job at its head; `None` is a caller.
        job: Option<JobId>,
    },
    /// A reservation fell.
    ReservationFell,
    /// The clock is behind what was seen before.
    ClockBehind {
        /// By so much.
        by: Span,
        /// Whether it was accepted as the new time.
        accepted: bool,
    },
    /// The wall clock gained this much on the monotonic clock since the last look, while leases live. It is answered
    /// like deafness.
    ClockLeapt {
        /// By so much.
        by: Span,
    },
    /// Nobody ticked for so long that no lease may be blamed for it.
    Deaf {
        /// The last tick.
        since: Moment,
    },
}

/// The need that a lane lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockedOn {
    /// A limit.
    Limit(LimitName),
    /// A pool.
    Pool(PoolName),
}

/// A grant as the state made it; the engine adds payload and data from the rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Grant {
    /// What the holder gets, `job` and the data of `resources` still empty.
    pub lease: tenure_core::lease::LeaseView,
    /// Row number of the job.
    pub seq: Option<Seq>,
}

/// The answer of a lease call before payload and data are added.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Granted {
    /// Grants.
    pub grants: Vec<Grant>,
    /// The rest of the answer.
    pub answer: Leased,
}

/// A call that waited for the end of a job is to look at it.
#[derive(Clone, PartialEq, Debug)]
pub struct Notified {
    /// The call, which waits no more.
    pub taker: TakerId,
    /// What it looks at.
    pub look: crate::Look,
    /// The time of the call is over: it is answered whatever it finds.
    pub over: bool,
}

/// An answer to a call that waited.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    /// Who waited.
    pub taker: TakerId,
    /// What it gets.
    pub granted: Granted,
}
