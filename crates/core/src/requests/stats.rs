//! Requests about a namespace as a whole: workers, totals, the audit. They only read.

use crate::bounded::unbounded;
use crate::events::{EventId, StreamStands};
use crate::job::JobState;
use crate::names::{QueueName, WorkerId};
use crate::time::Moment;
use crate::view;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Page;

/// Lists the workers that called within the last minute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListWorkers {
    pub page: Page,
}

/// Shows totals of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GetStats;

view! {
    /// A worker as the contract shows it.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct WorkerView as "Worker" {
        /// The id of the worker, random for each process.
        pub id: WorkerId,
        /// The host of the worker, as it says; null if it does not.
        pub host: Option<String>,
        /// The process id of the worker, as it says; null if it does not.
        pub pid: Option<u32>,
        /// The version of the worker, as it says; null if it does not.
        pub version: Option<String>,
        /// The queues that it asked for last.
        pub queues: Vec<QueueName>,
        /// How many leases it holds.
        pub leases: u64,
        /// When it called last; it is forgotten 60s later.
        pub last_seen_at: Moment,
    }

    /// Kind and size of the store.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct StoreStats {
        /// What kind of store the server has.
        pub kind: String,
        /// How many bytes the store takes on disk; in Redis those of its log and its snapshots.
        pub bytes: u64,
    }

    /// Totals of the schedules of a namespace. A due moment is about to fire, or waits until the schedule's next moments
    /// are computed or its own job ends. `oldest_due_at` is the older one of the next due moment and the longest waiting
    /// one: the oldest of all, unless schedules make up for several moments of an outage.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct ScheduleStats {
        /// How many schedules there are.
        pub count: u64,
        /// How many of them are paused now.
        pub paused: u64,
        /// How many have a moment that is due and not decided yet.
        pub due: u64,
        /// Since when the oldest of those moments is due; null if none is.
        pub oldest_due_at: Option<Moment>,
    }

    /// The events that a namespace keeps.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct EventStats {
        /// What the events take in the store, by its own count.
        pub bytes: u64,
        /// The oldest that is kept; null if none is.
        pub first: Option<EventId>,
        /// The newest that is kept; null if none is.
        pub last: Option<EventId>,
    }

    /// The last line of a trail. `tenure trail verify --anchor` finds a line by its hash.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct TrailEnd {
        /// The address of the server that writes the trail.
        pub server: String,
        /// The number of its last line.
        pub seq: u64,
        /// SHA-256 of that line, in hex: an anchor for tenure trail verify.
        pub hash: String,
    }

    /// Totals of a namespace.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct Stats {
        /// How many jobs there are, by state.
        pub jobs: BTreeMap<JobState, u64>,
        /// How many jobs there are, by queue and state.
        pub queues: BTreeMap<QueueName, BTreeMap<JobState, u64>>,
        /// How many leases live.
        pub leases: u64,
        /// How many calls wait for the end of a job or a flow, at most 10,000.
        #[serde(default)]
        pub result_waiters: u64,
        /// Since when the oldest ready job is ready; null if none is.
        pub oldest_ready_at: Option<Moment>,
        /// Totals of the schedules.
        #[serde(default)]
        pub schedules: ScheduleStats,
        /// How many flows there are.
        #[serde(default)]
        pub flows: u64,
        /// The events that are kept.
        #[serde(default)]
        pub events: EventStats,
        /// Where state lives, and how much of it.
        pub store: StoreStats,
        /// The last line of the trail of the server that answered; absent for callers without admin, and without a
        /// trail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub trail: Option<TrailEnd>,
    }
}

impl EventStats {
    /// Stats of a stream.
    pub fn of(stands: StreamStands, bytes: u64) -> Self {
        let StreamStands { life, first, last } = stands;
        let id = |number| (first <= last).then_some(EventId { life, number });
        EventStats { bytes, first: id(first), last: id(last) }
    }
}

/// Checks that cached values agree with the live leases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// Also reads everything that is stored, payloads and results included, and checks it: as much work as there is
    /// data. It makes no difference for a store without checksums of its own.
    pub deep: bool,
}

view! {
    /// The result of an audit.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct Audited as "Audit" {
        /// Whether nothing is wrong.
        pub ok: bool,
        /// How many things were checked.
        pub checked: u64,
        /// What is wrong, a sentence each.
        pub faults: Vec<String>,
    }
}

unbounded! { GetStats }
