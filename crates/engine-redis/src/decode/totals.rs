//! What is told of a namespace as a whole: workers, totals, the audit, the tick.

use serde::Deserialize;
use tenure_core::job::JobState;
use tenure_core::names::{QueueName, WorkerId};
use tenure_core::requests::{EventStats, ScheduleStats, Stats, WorkerView};
use tenure_core::time::Moment;

use super::events::EventStatsReply;
use super::findings::Told;
use super::jobs::moment;
use super::lenient::{LuaMap, Maybe};
use super::schedules::WantedReply;
use super::{Blobs, FromWire, Malformed};
use crate::alphabet::state;

/// A worker.
#[derive(Deserialize)]
pub(crate) struct WorkerReply {
    id: WorkerId,
    #[serde(default)]
    host: Maybe<String>,
    #[serde(default)]
    pid: Maybe<u32>,
    #[serde(default)]
    version: Maybe<String>,
    #[serde(default)]
    queues: Vec<QueueName>,
    #[serde(default)]
    leases: u64,
    last_seen_at: u64,
}

impl FromWire for WorkerView {
    type Wire = WorkerReply;
    fn read(wire: WorkerReply, _: &Blobs) -> Result<Self, Malformed> {
        Ok(WorkerView {
            id: wire.id,
            host: wire.host.0,
            pid: wire.pid.0,
            version: wire.version.0,
            queues: wire.queues,
            leases: wire.leases,
            last_seen_at: Moment::from_us(wire.last_seen_at),
        })
    }
}

/// Totals of some queues, and of the namespace.
#[derive(Deserialize)]
pub(crate) struct StatsReply {
    #[serde(default)]
    queues: Vec<(QueueName, LuaMap<u64>, Maybe<u64>)>,
    #[serde(default)]
    leases: u64,
    #[serde(default)]
    result_waiters: u64,
    #[serde(default)]
    schedules: Maybe<ScheduleStatsReply>,
    #[serde(default)]
    flows: Maybe<u64>,
    #[serde(default)]
    events: Maybe<EventStatsReply>,
    #[serde(default)]
    bytes: Maybe<u64>,
    #[serde(default)]
    pub next: Maybe<String>,
}

/// Totals of the schedules.
#[derive(Deserialize)]
struct ScheduleStatsReply {
    count: u64,
    paused: u64,
    due: u64,
    #[serde(default)]
    oldest_due_at: Maybe<u64>,
}

impl From<ScheduleStatsReply> for ScheduleStats {
    fn from(reply: ScheduleStatsReply) -> Self {
        let ScheduleStatsReply { count, paused, due, oldest_due_at } = reply;
        ScheduleStats { count, paused, due, oldest_due_at: moment(oldest_due_at) }
    }
}

impl StatsReply {
    /// Adds a page of queues to the totals.
    pub(crate) fn add_to(self, stats: &mut Stats) -> Result<(), Malformed> {
        for (queue, counts, oldest) in self.queues {
            let mut by_state: std::collections::BTreeMap<JobState, u64> =
                JobState::ALL.into_iter().map(|state| (state, 0)).collect();
            for (letter, n) in counts.0 {
                let state = state::read(&letter).ok_or(Malformed("the letter of a state"))?;
                by_state.insert(state, n);
                *stats.jobs.entry(state).or_default() += n;
            }
            stats.queues.insert(queue, by_state);
            let oldest = moment(oldest);
            stats.oldest_ready_at = match (stats.oldest_ready_at, oldest) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        stats.leases = self.leases;
        stats.result_waiters = self.result_waiters;
        stats.schedules = self.schedules.0.map_or(stats.schedules, ScheduleStats::from);
        stats.flows = self.flows.0.unwrap_or(stats.flows);
        stats.events = self.events.0.map_or(stats.events, EventStats::from);
        stats.store.bytes = self.bytes.0.unwrap_or(stats.store.bytes);
        Ok(())
    }
}

/// A part of an audit.
#[derive(Deserialize)]
pub(crate) struct AuditReply {
    #[serde(default)]
    pub checked: u64,
    #[serde(default)]
    faults: Vec<Told>,
    /// Where it goes on; only the library looks into it.
    #[serde(default)]
    pub next: Maybe<String>,
}

impl AuditReply {
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> + '_ {
        self.faults.iter().map(Told::to_string)
    }
}

/// The key of a namespace, and its name.
#[derive(Deserialize)]
pub(crate) struct KeyReply {
    pub key: String,
    pub kid: String,
}

/// What a tick tells who ticks.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct TickReply {
    /// Something is due still.
    pub more: bool,
    /// This process ticks at due moments.
    pub claim: bool,
    /// The clock is behind what was seen, in µs.
    pub behind: Maybe<u64>,
    /// How many parcels this process was sent.
    pub sent: Maybe<u64>,
    /// Schedules that want a plan.
    pub wanted: Maybe<Vec<WantedReply>>,
    /// Moments of schedules are to be decided.
    pub fires: bool,
    /// There are schedules that fire by themselves.
    pub schedules: bool,
    /// A gauge is to be claimed; only to who said that it reads.
    pub reads: bool,
    /// There are gauges that are to be read, now or later.
    pub gauges: bool,
}
