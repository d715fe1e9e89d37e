//! What a call asks of the stream of events.

use serde::Serialize;
use tenure_core::events::EventId;

/// A page of the stream: the last event that the reader has seen, and how many events and bytes at most, by whole entries.
#[derive(Serialize)]
pub(crate) struct ReadEventsArgs {
    life: u64,
    number: u64,
    most: usize,
    bytes: usize,
}

/// Bytes of entries that one call fetches, by whole entries.
const PAGE_BYTES: usize = 262_144;

impl ReadEventsArgs {
    /// At most so many events from this one on; none to look where the stream stands.
    pub(crate) fn after(after: EventId, most: usize) -> Self {
        ReadEventsArgs { life: after.life, number: after.number, most, bytes: PAGE_BYTES }
    }
}
