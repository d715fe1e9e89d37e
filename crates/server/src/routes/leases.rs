//! `/v1/leases`.

use tenure_core::requests::{Extend, ForceLease, Lease, ListLeases, Settle};

use super::{Route, route};

pub(super) static ROUTES: &[Route] = &[
    route!(Lease, "Ask for jobs, or for needs alone", 200 "Leased"),
    route!(ListLeases, "List live leases", 200 "Leases"),
    route!(Extend, "Keep leases alive", 200 "Extended").vital(),
    route!(Settle, "End leases, and ask for the next ones", 200 "Settled").vital(),
    route!(ForceLease, "Take a lease back by force", 204 ""),
];
