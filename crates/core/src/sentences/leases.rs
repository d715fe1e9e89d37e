//! Refusals of calls that ask for leases, or end them.

use super::Phrase;
use super::table::refusals;
use crate::names::{LimitName, PoolName, ResourceId};
use crate::time::Moment;

/// Advice after a lock was lost.
const CHECK_WORK: &str =
    "check what was done under it: somebody else may have held the same meanwhile";

refusals! {
    /// A lease that is not granted, or not ended as the call wants.
    LeaseRefusal:

    NotFound "lease_not_found" { lease: String }
        LeaseNotFound
        detail("there is no live lease {lease:?}")
        hint("it was settled or taken back already; list the leases to see those that live");

    TtlNeedsRates "lease_ttl_needs_rates"
        InvalidField
        detail("a ttl of \"0s\" goes with needs that are only rates")
        hint("give a ttl of \"1s\" to \"1h\", and settle the lease when done");

    LineFull "lease_line_full" { most: usize }
        LineFull
        detail("{most} callers wait for this need already")
        hint("ask again later, or raise the limit")
        retry_after_s(1);

    OutcomeNeedsJob "settle_outcome_needs_job" { outcome: Phrase }
        InvalidField
        detail("a lease without a job cannot be settled as {outcome:?}")
        hint("settle it as \"released\" or \"succeeded\"");

    SnoozeTooNear "settle_snooze_too_near" { until: Moment }
        OutOfBounds
        detail("a snooze until {until} is less than 100 ms ahead")
        hint("snooze for at least \"100ms\", or settle as \"released\"");

    ResourceNotHeld "settle_resource_not_held" { resource: ResourceId, pool: PoolName }
        UnknownResource
        detail("the lease does not hold {resource:?} of pool {pool:?}")
        hint("name resources that this lease holds, as its \"resources\" show them");

    LimitNotHeld "settle_limit_not_held" { limit: LimitName }
        UnknownLimit
        detail("the lease does not hold the limit {limit:?}")
        hint("name limits that this lease holds, as its \"limits\" show them");

    ProgressTooLong "progress_too_long" { bytes: usize, most: usize }
        OutOfBounds
        detail("a progress report of {bytes} bytes is longer than {most}")
        hint("report less, or keep the details where they belong and report where that is");

    LockLost "lock_lost"
        LeaseLost
        detail("the lease was no longer held when it was given back")
        hint("{CHECK_WORK}");

    LockSettledOtherwise "lock_settled_otherwise"
        AlreadySettled
        detail("the lease was no longer held when it was given back")
        hint("{CHECK_WORK}");
}
