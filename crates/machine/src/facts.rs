//! Facts of steps, beside their rows and events: observations for logs and tests, and answers to waiting calls.

use crate::state::{Seq, TakerId};
use tenure_core::lease::Leased;
use tenure_core::names::JobId;

/// An internal observation that is no event: only logs and tests read it.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    /// A lane got a reservation.
    Reserved {
        /// The job at its head; `None`: a lock waiter.
        job: Option<JobId>,
    },
    /// A lane lost its reservation.
    ReservationFell,
}

/// A grant as the state made it; the engine adds payload and data from the rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Grant {
    /// The lease for the holder; `job` and the data of `resources` are still empty.
    pub lease: tenure_core::lease::LeaseView,
    /// The row number of the job.
    pub seq: Option<Seq>,
}

/// The answer of a lease call before payload and data are added.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Granted {
    pub grants: Vec<Grant>,
    /// The rest of the answer.
    pub answer: Leased,
}

/// A notification of a call that waited for the end of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct Notified {
    /// The call, which no longer waits.
    pub taker: TakerId,
    /// The thing to look at.
    pub look: crate::Look,
    /// True if the time of the call is over: it answers with any result.
    pub over: bool,
}

/// An answer to a call that waited.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    /// The call that gets the answer.
    pub taker: TakerId,
    /// Its answer, without payload and data.
    pub granted: Granted,
}
