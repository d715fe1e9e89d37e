//! From requests to the arguments of the library's functions: MessagePack maps with short names.
//!
//! Only texts, numbers, booleans, lists and maps go out: the server's MessagePack knows no raw bytes.
//! Nothing here decides anything, and nothing that it makes is ever logged.

mod body;
mod copied;
mod events;
mod flows;
mod gauges;
mod items;
mod jobs;
mod leases;
mod resources;
mod schedules;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use body::{JobBody, body_of, read_body};
pub(crate) use copied::{BeginArgs, CopyArgs, FreezeArgs, InArgs, NoArgs, OutArgs};
pub(crate) use events::ReadEventsArgs;
pub(crate) use flows::{FlowArgs, ListKinArgs};
pub(crate) use gauges::{ClaimGaugesArgs, ReadingArgs};
pub(crate) use jobs::{
    EndsArgs, ListFailuresArgs, ListJobsArgs, ManyArgs, NewBody, OriginArgs, PatchJobArgs,
    PushArgs, ResultArgs, content_bytes,
};
pub(crate) use leases::{
    AwaitedArgs, DropWaitArgs, ExtendArgs, ForceArgs, KeyArgs, Knows, LeaseArgs, LeaveArgs,
    LeftAwait, LeftCall, ListLeasesArgs, SettleAndLeaseArgs, SettleArgs, SpaceArg, TickArgs,
    UndoArgs, Wait,
};
pub(crate) use resources::{SyncArgs, SyncBeginArgs, SyncEndArgs, SyncItemsArgs, new_resources};
pub(crate) use schedules::{
    FireArgs, ListSchedulesArgs, PlanArgs, RunScheduleNowArgs, ScheduleArgs, SyncSchedulesArgs,
    SyncSchedulesBeginArgs, SyncSchedulesEndArgs, SyncSchedulesItemsArgs,
};
pub(crate) use settings::PageArgs;

use serde::Serialize;
use tenure_core::requests::Operation;
use tenure_engine::Fault;

/// A request that one call of its function answers: what the call says.
pub(crate) trait OneCall: Operation {
    /// The map of its arguments.
    fn args(&self) -> Packed;

    /// Whether something happens by itself in its namespace from then on.
    fn begins_by_itself(&self) -> bool {
        false
    }
}

/// The packed map of arguments, or why there is none.
pub(crate) type Packed = Result<Vec<u8>, Fault>;

/// The last moment that the server's numbers can hold: for ever.
pub(crate) const FOREVER_US: u64 = (1 << 53) - 1;

/// The map of arguments of one call.
pub(crate) fn pack(args: &impl Serialize) -> Packed {
    rmp_serde::to_vec_named(args)
        .map_err(|why| Fault::Broken(format!("a call could not be packed: {why}")))
}
