//! Refusals of calls that change a pool or a resource.

use super::table::refusals;
use crate::count::{self, counted};
use crate::names::{PoolName, ResourceId};

refusals! {
    /// A pool or a set of resources that does not fit the call.
    PoolRefusal:

    NotFound PoolNotFound { pool: PoolName }
        detail("there is no pool {pool:?}")
        hint("make it first: set the pool, or sync its resources; list the pools to see those that are there");

    ResourceNotFound ResourceNotFound { pool: PoolName, resource: ResourceId }
        detail("the pool {pool:?} has no resource {resource:?}")
        hint("list the resources of the pool to see those that are there");

    Held InUse { pool: PoolName, held: u64 }
        detail("{} of pool {pool:?} {} held", counted(held, "resource", "resources"), count::of(held, "is", "are"))
        hint("wait until their leases end, or end them by force; then delete it");

    OlderVersion StaleSync { given: u64, last: u64 }
        detail("version {given} is below {last}, which was synced last")
        hint("two masters sync this pool, or this one read an old set: read it again");

    EmptySet EmptySet { pool: PoolName }
        detail("the set for pool {pool:?} is empty")
        hint("a failed query must not retire what is used; if it is meant, say so with \"force\"");

    RetiresMost RetiresMost { retires: u64, there: u64 }
        detail("it would retire {retires} of {}", counted(there, "resource", "resources"))
        hint("a failed query must not retire what is used; if it is meant, say so with \"force\"");
}
