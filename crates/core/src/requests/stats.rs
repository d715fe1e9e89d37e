//! Requests about a namespace as a whole: workers, totals, the audit. They only read.

use crate::bounded::unbounded;
use crate::events::{EventId, StreamStands};
use crate::job::JobState;
use crate::names::{QueueName, WorkerId};
use crate::time::Moment;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Page;

/// Lists the workers that called within the last minute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListWorkers {
    pub page: Page,
}

/// A worker as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerView {
    pub id: WorkerId,
    /// As the worker stated it; `None` if it did not.
    pub host: Option<String>,
    /// As the worker stated it; `None` if it did not.
    pub pid: Option<u32>,
    /// As the worker stated it; `None` if it did not.
    pub version: Option<String>,
    /// Queues that it asked for last.
    pub queues: Vec<QueueName>,
    /// Leases that it holds.
    pub leases: u64,
    /// When it called last.
    pub last_seen_at: Moment,
}

/// Shows totals of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GetStats;

/// Kind and size of the store.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoreStats {
    /// The word of the contract for the kind of the store.
    pub kind: String,
    /// Bytes on disk; for a store on Redis, those of its log and snapshots.
    pub bytes: u64,
}

/// Totals of the schedules of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScheduleStats {
    pub count: u64,
    /// Schedules that are paused now; one whose pause is over does not count.
    pub paused: u64,
    /// Schedules with a moment that is due and not decided: it is about to fire, or waits until the schedule's next
    /// moments are computed or its own job ends.
    pub due: u64,
    /// Since when the next due moment or the longest waiting one is due, the older of both; `None` if nothing is due.
    /// It is the oldest of all, unless schedules make up for several moments of an outage.
    pub oldest_due_at: Option<Moment>,
}

/// The events that a namespace keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EventStats {
    /// Bytes that they take in the store, by its own count.
    pub bytes: u64,
    /// The oldest; `None` if no event is kept.
    pub first: Option<EventId>,
    /// The newest; `None` if no event is kept.
    pub last: Option<EventId>,
}

impl EventStats {
    /// Stats of a stream.
    pub fn of(stands: StreamStands, bytes: u64) -> Self {
        let StreamStands { life, first, last } = stands;
        let id = |number| (first <= last).then_some(EventId { life, number });
        EventStats { bytes, first: id(first), last: id(last) }
    }
}

/// The last line of a trail. `tenure trail verify --anchor` finds a line by its hash.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TrailEnd {
    /// The address of the server that writes it.
    pub server: String,
    /// The number of the line.
    pub seq: u64,
    /// SHA-256 of the line, in hex.
    pub hash: String,
}

/// Totals of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    pub jobs: BTreeMap<JobState, u64>,
    pub queues: BTreeMap<QueueName, BTreeMap<JobState, u64>>,
    /// Leases that live now.
    pub leases: u64,
    /// Calls that wait for the end of a job or a flow; at most 10,000.
    #[serde(default)]
    pub result_waiters: u64,
    /// Since when the oldest ready job is ready; `None` if no job is ready.
    pub oldest_ready_at: Option<Moment>,
    /// Counted when the call is answered; all zero from an older server that does not count them.
    #[serde(default)]
    pub schedules: ScheduleStats,
    #[serde(default)]
    pub flows: u64,
    /// All empty from a server that keeps no events.
    #[serde(default)]
    pub events: EventStats,
    pub store: StoreStats,
    /// The trail of the server that answered; `None` for a caller that may not read it, and for a server without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail: Option<TrailEnd>,
}

/// Checks that cached values agree with the live leases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// Also reads everything that is stored, payloads and results included, and checks it: as much work as there is
    /// data. It makes no difference for a store without checksums of its own.
    pub deep: bool,
}

/// The result of an audit.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Audited {
    /// True if `faults` is empty.
    pub ok: bool,
    /// Things that were checked.
    pub checked: u64,
    /// One sentence for each fault.
    pub faults: Vec<String>,
}

unbounded! { GetStats }
