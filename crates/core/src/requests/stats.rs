//! Requests about a namespace as a whole: workers, totals, the audit. They only read.

use crate::bounded::{bounded_pages, unbounded};
use crate::events::{EventId, StreamStands};
use crate::job::JobState;
use crate::names::{QueueName, WorkerId};
use crate::time::Moment;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Page;

/// Lists who called within the last minute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListWorkers {
    /// The page.
    pub page: Page,
}

/// A worker as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its host.
    pub host: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Its version.
    pub version: Option<String>,
    /// Queues it asked for.
    pub queues: Vec<QueueName>,
    /// Leases it holds.
    pub leases: u64,
    /// When it called last.
    pub last_seen_at: Moment,
}

/// Totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GetStats;

/// Where state lives, and how much of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoreStats {
    /// The kind of the store, in the contract's word for it.
    pub kind: String,
    /// Bytes that it takes there: on disk, or those of the log and the snapshots of a journal.
    pub bytes: u64,
}

/// Totals of the schedules of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ScheduleStats {
    /// How many there are.
    pub count: u64,
    /// Number of those that are paused now; a pause that is over by itself counts no more.
    pub paused: u64,
    /// Number of those with a moment that is due and not decided: it is about to fire, or waits for the schedule's next
    /// moments to be computed or for the end of its own job.
    pub due: u64,
    /// Since when the moment is due whose turn is next or that waits longest, whichever is older; `None` if nothing is
    /// due. It is the oldest of all, unless schedules make up for several moments of an outage.
    pub oldest_due_at: Option<Moment>,
}

/// The events of a namespace that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EventStats {
    /// Bytes that they take in the store, by its own count.
    pub bytes: u64,
    /// The oldest; `None` if none is kept.
    pub first: Option<EventId>,
    /// The newest.
    pub last: Option<EventId>,
}

impl EventStats {
    /// Of a stream as it stands.
    pub fn of(stands: StreamStands, bytes: u64) -> Self {
        let StreamStands { life, first, last } = stands;
        let id = |number| (first <= last).then_some(EventId { life, number });
        EventStats { bytes, first: id(first), last: id(last) }
    }
}

/// Totals of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Jobs by state.
    pub jobs: BTreeMap<JobState, u64>,
    /// Jobs by queue and state.
    pub queues: BTreeMap<QueueName, BTreeMap<JobState, u64>>,
    /// Live leases.
    pub leases: u64,
    /// Calls that wait for the end of a job or a flow; at most 10,000.
    #[serde(default)]
    pub result_waiters: u64,
    /// Since when the oldest ready job is ready.
    pub oldest_ready_at: Option<Moment>,
    /// Schedules, counted when the call is answered; all zero from a server that does not count them yet.
    #[serde(default)]
    pub schedules: ScheduleStats,
    /// How many flows there are.
    #[serde(default)]
    pub flows: u64,
    /// The events that are kept; all empty from a server that keeps none.
    #[serde(default)]
    pub events: EventStats,
    /// Where state lives.
    pub store: StoreStats,
}

/// Checks that what is cached agrees with what is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// Reads all that is stored too, payloads and results included, and checks it: as much work as
    /// there is data. A store without checksums of its own does the same without it.
    pub deep: bool,
}

/// What an audit found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Audited {
    /// Nothing is wrong.
    pub ok: bool,
    /// Things that were checked.
    pub checked: u64,
    /// What is wrong, a sentence each.
    pub faults: Vec<String>,
}

unbounded! { GetStats Audit }

bounded_pages! { ListWorkers }
