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

    NotFound LeaseNotFound { lease: String }
        detail("there is no live lease {lease:?}")
        hint("it was settled or taken back already; list the leases to see those that live");

    TtlNeedsRates InvalidField
        detail("a ttl of \"0s\" goes with needs that are only rates")
        hint("give a ttl of \"1s\" to \"1h\", and settle the lease when done");

    LineFull LineFull { most: usize }
        detail("{most} callers wait for this need already")
        hint("ask again later, or raise the limit")
        retry_after_s(1);

    OutcomeNeedsJob InvalidField { outcome: Phrase }
        detail("a lease without a job cannot be settled as {outcome:?}")
        hint("settle it as \"released\" or \"succeeded\"");

    SnoozeTooNear OutOfBounds { until: Moment }
        detail("a snooze until {until} is less than 100 ms ahead")
        hint("snooze for at least \"100ms\", or settle as \"released\"");

    ResourceNotHeld UnknownResource { resource: ResourceId, pool: PoolName }
        detail("the lease does not hold {resource:?} of pool {pool:?}")
        hint("name resources that this lease holds, as its \"resources\" show them");

    LimitNotHeld UnknownLimit { limit: LimitName }
        detail("the lease does not hold the limit {limit:?}")
        hint("name limits that this lease holds, as its \"limits\" show them");

    ProgressTooLong OutOfBounds { bytes: usize, most: usize }
        detail("a progress report of {bytes} bytes is longer than {most}")
        hint("report less, or keep the details where they belong and report where that is");

    LockLost LeaseLost
        detail("the lease was no longer held when it was given back")
        hint("{CHECK_WORK}");

    LockSettledOtherwise AlreadySettled
        detail("the lease was no longer held when it was given back")
        hint("{CHECK_WORK}");
}
