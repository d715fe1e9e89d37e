//! From requests to the arguments of the library's functions: MessagePack maps with short names.
//!
//! Only texts, numbers, booleans, lists and maps go out: the server's MessagePack knows no raw bytes.
//! Nothing here decides anything, and nothing that it makes is ever logged.

mod body;
mod copied;
mod items;
mod jobs;
mod leases;
mod resources;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use body::{body_of, read_body};
pub(crate) use copied::{BeginArgs, CopyArgs, FreezeArgs, InArgs, NoArgs, OutArgs};
pub(crate) use items::Later;
pub(crate) use jobs::{
    ListJobsArgs, ManyArgs, NewBody, PatchJobArgs, PushArgs, RefArgs, content_bytes, letter,
};
pub(crate) use leases::{
    DropWaitArgs, ExtendArgs, ForceArgs, KeyArgs, Knows, LeaseArgs, ListLeasesArgs, SettleArgs,
    SpaceArg, TickArgs, UndoArgs, Wait,
};
pub(crate) use resources::{
    PatchResourceArgs, PoolResourcesArgs, ResourceArgs, SyncArgs, SyncBeginArgs, SyncEndArgs,
    SyncItemsArgs, new_resources,
};
pub(crate) use settings::{
    LimitArgs, NameArgs, PageArgs, PatchLimitArgs, PatchPoolArgs, PatchQueueArgs, PoolArgs,
    QueueArgs,
};

use serde::Serialize;
use tenure_engine::Fault;

/// The last moment that the server's numbers can hold: for ever.
pub(crate) const FOREVER_US: u64 = (1 << 53) - 1;

/// The map of arguments of one call.
pub(crate) fn pack(args: &impl Serialize) -> Result<Vec<u8>, Fault> {
    rmp_serde::to_vec_named(args)
        .map_err(|why| Fault::Broken(format!("a call could not be packed: {why}")))
}
