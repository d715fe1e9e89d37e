//! Resources in replies. Their data comes as it is stored and leaves here redacted.

use serde::Deserialize;
use tenure_core::names::{ResourceId, Tag};
use tenure_core::redact::redacted;
use tenure_core::secret::Json;
use tenure_core::settings::{ResourceState, ResourceView, Synced};

use super::jobs::{Noted, UNREADABLE, moment};
use super::lenient::Maybe;
use super::settings::{HolderReply, holders};
use super::{Blobs, FromWire, Malformed};
use crate::alphabet::resource;

/// A resource.
#[derive(Deserialize)]
pub(crate) struct ResourceReply {
    id: ResourceId,
    #[serde(default)]
    data: Maybe<usize>,
    #[serde(default)]
    tags: Vec<Tag>,
    slots: u32,
    state: String,
    #[serde(default)]
    reason: Maybe<Noted>,
    #[serde(default)]
    in_use: u32,
    #[serde(default)]
    until: Maybe<u64>,
    #[serde(default)]
    retiring: bool,
    #[serde(default)]
    holders: Vec<HolderReply>,
    #[serde(default)]
    uses: u64,
    #[serde(default)]
    last_used_at: Maybe<u64>,
}

/// A state by its letter.
pub(super) fn resource_state(letter: &str) -> Result<ResourceState, Malformed> {
    resource::read(letter).ok_or(Malformed("the state of a resource"))
}

impl FromWire for ResourceView {
    type Wire = ResourceReply;
    fn read(wire: ResourceReply, blobs: &Blobs) -> Result<Self, Malformed> {
        // Of a resource whose data cannot be read all else is shown.
        let data = wire.data.0.map(|number| blobs.json(number).map(|data| redacted(&data)));
        let (data, unread) = match data {
            Some(Ok(data)) => (data, None),
            Some(Err(_)) => {
                (Json::null(), Some(format!("{UNREADABLE}: its data is not what was written")))
            }
            None => (Json::null(), None),
        };
        Ok(ResourceView {
            id: wire.id,
            data,
            tags: wire.tags,
            slots: wire.slots,
            state: resource_state(&wire.state)?,
            reason: wire.reason.0.map(Noted::text).or(unread),
            in_use: wire.in_use,
            until: moment(wire.until),
            retiring: wire.retiring,
            holders: holders(wire.holders, blobs)?,
            uses: wire.uses,
            last_used_at: moment(wire.last_used_at),
        })
    }
}

/// A sync, or a step of one.
#[derive(Clone, Copy, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct SyncedReply {
    /// Nothing is left to do.
    pub done: bool,
    /// The number by which it goes on.
    pub sync: u64,
    added: u64,
    updated: u64,
    unchanged: u64,
    retired: u64,
    retiring: u64,
}

impl SyncedReply {
    pub(crate) fn view(self) -> Synced {
        Synced {
            added: self.added,
            updated: self.updated,
            unchanged: self.unchanged,
            retired: self.retired,
            retiring: self.retiring,
        }
    }
}
