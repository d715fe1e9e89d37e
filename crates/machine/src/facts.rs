//! What steps did, as values, beside their rows and events: what only logs and tests hear of, and what calls that waited
//! are answered.

use super::state::{Seq, TakerId};
use tenure_core::lease::Leased;
use tenure_core::names::JobId;

/// One thing that happened inside of the engine, and is no event: only logs and tests hear of it.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    /// A lane reserves.
    Reserved {
        /// The job at its head; `None` is a caller.
        job: Option<JobId>,
    },
    /// A reservation fell.
    ReservationFell,
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
