//! An answered lease call of a worker.

use tenure_core::lease::{LeaseView, Leased};
use tenure_core::time::Span;
use tenure_engine_api::CallError;

use crate::asking::Sent;
use crate::lease_clock::LeaseTime;

/// An answered lease call.
pub struct Asked {
    /// When it was first sent under its request id.
    pub at: LeaseTime,
    /// When it was sent last.
    pub sent: Sent,
    pub wait: Span,
    /// How many jobs were asked for.
    pub max: usize,
    pub answer: Result<Leased, CallError>,
    /// Whether its lateness was already reported.
    pub late: bool,
    /// Whether the queues are empty, if that was checked.
    pub empty: Option<Result<bool, CallError>>,
}

impl Asked {
    /// Its granted leases; none if the call failed.
    pub fn granted(self) -> Vec<LeaseView> {
        self.answer.map(|leased| leased.leases).unwrap_or_default()
    }
}
