//! `/v1/leases`.

use tenure_core::decode;
use tenure_core::requests::{Extend, ForceLease, Lease, ListLeases, Settle};

use super::{Route, Takes, route};

pub(super) static ROUTES: &[Route] = &[
    route!(Lease, "Ask for jobs, or for needs alone", |asked| decode::lease(asked.body))
        .takes(Takes::Json("LeaseCall"))
        .answers(&[(200, "Leased")]),
    route!(ListLeases, "List live leases", |asked| decode::list_leases(asked.query))
        .query::<ListLeases>()
        .answers(&[(200, "Leases")]),
    route!(Extend, "Keep leases alive", |asked| decode::extend(asked.body))
        .takes(Takes::Json("ExtendCall"))
        .answers(&[(200, "Extended")])
        .vital(),
    route!(Settle, "End leases, and ask for the next ones", |asked| decode::settle(asked.body))
        .takes(Takes::Json("SettleCall"))
        .answers(&[(200, "Settled")])
        .vital(),
    route!(ForceLease, "Take a lease back by force", |asked| Ok(ForceLease {
        lease: decode::lease_path(asked.first())?
    })),
];
