//! Settings of queues, limits and pools, changed at run time, and the views of all three.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::gauge::GaugeView;
use crate::job::{Need, Retry};
use crate::names::{Group, JobId, LimitName, PoolName, QueueName, ResourceId, Tag};
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::sentences::LimitRefusal;
use crate::time::{Moment, Span};
use crate::view;
use crate::words;

/// Defaults of a queue for its jobs, its bounds, and its shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSettings {
    /// Needs of a pushed job that states none, at most 16.
    pub needs: Vec<Need>,
    /// Retry of a pushed job that states none; `None`: the default.
    pub retry: Option<Retry>,
    /// Timeout of a pushed job that states none; `None`: unlimited.
    pub timeout: Option<Span>,
    /// Retain of a pushed job that states none; `None`: 1 h, or 7 d if it failed.
    pub retain: Option<Span>,
    /// Most jobs that may wait; pushes beyond it are refused. `None`: any number.
    pub max_waiting: Option<u32>,
    /// How long a job waits after its holder was lost; `None`: 2 s after the first loss, twice as long after each
    /// further one in a row, at most a minute. Read when the holder is lost.
    pub lost_delay: Option<Span>,
    /// Turns of each group, 1 to 1,000; 1 for a group that is not named.
    pub shares: BTreeMap<Group, u32>,
    /// True if lists of the dashboard show one line of each payload. Rows from before this setting lack it, and count
    /// as true.
    pub show_payload: bool,
}

impl Default for QueueSettings {
    fn default() -> Self {
        QueueSettings {
            needs: Vec::new(),
            retry: None,
            timeout: None,
            retain: None,
            max_waiting: None,
            lost_delay: None,
            shares: BTreeMap::new(),
            show_payload: QueueSettings::SHOW_PAYLOAD_DEFAULT,
        }
    }
}

impl QueueSettings {
    /// [`QueueSettings::show_payload`] of a queue that has not set it.
    pub const SHOW_PAYLOAD_DEFAULT: bool = true;
}

/// GCRA: `count` tokens in each period `per`; up to `burst` of them may go at once after a rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens per period, 1 or more.
    pub count: u32,
    /// The period, more than 0 s.
    pub per: Span,
    /// Tokens that may go at once after a rest, 1 or more; 1 = evenly spaced.
    pub burst: u32,
}

/// A named cap. At least one of `concurrency`, `rate` and `gap` is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitSettings {
    /// Permits in all; 0 closes the limit for now, `None` is no bound.
    pub concurrency: Option<u32>,
    /// Tokens per period; `None` is no bound.
    pub rate: Option<Rate>,
    /// How long each permit rests after its release; needs `concurrency`.
    pub gap: Option<Span>,
    /// How long each permit rests after a lease that its holder did not settle, since the work of that holder may still
    /// run; needs `concurrency`. The longer of this and `gap` counts.
    pub quarantine: Span,
}

impl LimitSettings {
    /// Refuses settings that bound nothing, and a rest without a concurrency, which has no permits that could rest.
    pub fn check(&self) -> Result<(), Refusal> {
        let LimitSettings { concurrency, rate, gap, quarantine } = self;
        let rests = *quarantine > Span::ZERO;
        if concurrency.is_none() && rate.is_none() && gap.is_none() && !rests {
            return Err(Refusal::from(LimitRefusal::WithoutBound).at(""));
        }
        if gap.is_some() && concurrency.is_none() {
            return Err(Refusal::from(LimitRefusal::GapAlone).at("/concurrency"));
        }
        if rests && concurrency.is_none() {
            return Err(Refusal::from(LimitRefusal::QuarantineAlone).at("/concurrency"));
        }
        Ok(())
    }

    /// The longest rest of a permit; zero without a concurrency.
    pub fn longest_rest(&self) -> Span {
        match self.concurrency {
            Some(_) => self.gap.unwrap_or_default().max(self.quarantine),
            None => Span::ZERO,
        }
    }
}

words! {
    /// The order in which free resources are handed out.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Pick {
        /// The one whose last use is longest ago.
        #[default]
        Lru = "lru",
        /// Any free one, at random.
        Random = "random",
    }
}

/// Settings that hold for each resource of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolSettings {
    /// Rest of a resource that was taken back from a dead holder; zero by default.
    pub quarantine: Span,
    /// Rest after every use; zero by default.
    pub cooldown: Span,
    /// Grants of one resource per period; `None` is no bound.
    pub rate: Option<Rate>,
    /// Grants after which a resource is banned; `None`: never.
    pub max_uses: Option<u32>,
    pub pick: Pick,
}

/// A resource as it comes from outside: everything that a sync may change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewResource {
    /// Unique in its pool.
    pub id: ResourceId,
    /// Often secret; at most 64 KiB.
    pub data: Json,
    /// Words by which a need asks for it, at most 16.
    pub tags: Vec<Tag>,
    /// Holders at once, 1 or more.
    pub slots: u32,
}

/// The state of a resource: it may be handed out, or not yet, or not at all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceState {
    /// As long as it has a free slot.
    Available,
    /// Not before a moment, its `until`.
    Cooling,
    /// Not until it is restored.
    Banned,
}

view! {
    /// Jobs of a queue by state.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct QueueCounts {
        /// Jobs that wait for their turn.
        pub ready: u64,
        /// Jobs whose turn came and that lack a need.
        pub blocked: u64,
        /// Jobs that wait for a moment: a delay, a retry, a snooze.
        pub scheduled: u64,
        /// Jobs that wait for other jobs.
        pub dependent: u64,
        /// Jobs that a worker holds.
        pub running: u64,
    }

    /// A queue as the contract shows it. Moments that a `next_in` passed over do not count as skipped.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct QueueView as "Queue" {
        /// The name of the queue.
        pub name: QueueName,
        /// Whether nothing is granted now.
        pub paused: bool,
        /// Until when it is paused; null if without end, or not paused.
        pub paused_until: Option<Moment>,
        #[serde(flatten)]
        pub settings: QueueSettings,
        /// Its jobs by state.
        pub counts: QueueCounts,
        /// Since when the oldest ready job is ready; null if none is.
        pub oldest_ready_at: Option<Moment>,
        /// How many workers asked for it within the last minute.
        pub workers: u64,
        /// How many moments of schedules into it were skipped: by an unfinished job, a full queue, or a payload that
        /// lacks a field.
        #[serde(default)]
        pub skipped: u64,
    }

    /// A lease that holds something.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Holder {
        /// The id of the lease that holds it.
        pub lease: String,
        /// The id of the worker.
        pub holder: String,
        /// The id of the job; null for a lease without a job.
        pub job: Option<JobId>,
        /// When the lease was granted.
        pub since: Moment,
    }

    /// A job or a caller that waits in a line.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Waiter {
        /// The id of the job that waits; null for a caller who asks for needs alone.
        pub job: Option<JobId>,
        /// The queue of the job; null for a caller.
        pub queue: Option<QueueName>,
        /// Since when it stands in the line.
        pub since: Moment,
    }

    /// A limit as the contract shows it.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct LimitView as "Limit" {
        /// The name of the limit: family or family:key.
        pub name: LimitName,
        /// The template whose settings hold for it; null if it has its own.
        pub template: Option<LimitName>,
        #[serde(flatten)]
        pub settings: LimitSettings,
        /// Permits of live leases, and those that rest.
        pub in_use: u64,
        /// How many of those permits rest.
        #[serde(default)]
        pub resting: u64,
        /// Permits that work outside uses, as observed or read.
        pub external: u64,
        /// The gauge and what it read; null without one.
        #[serde(default)]
        pub gauge: Option<Box<GaugeView>>,
        /// How many jobs and callers stand in its line.
        pub waiting: u64,
        /// How many permits are in use beyond the concurrency, as after it was lowered.
        pub over_limit: u64,
        /// Until when nothing is granted; null if it is not paused.
        pub paused_until: Option<Moment>,
        /// Who holds permits, at most 20.
        pub holders: Vec<Holder>,
        /// Who waits in its line, the first 20; in GET of one limit alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub line: Vec<Waiter>,
    }

    /// A pool as the contract shows it.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PoolView as "Pool" {
        /// The name of the pool.
        pub name: PoolName,
        #[serde(flatten)]
        pub settings: PoolSettings,
        /// How many resources have a free slot.
        pub available: u64,
        /// How many resources have a holder.
        pub leased: u64,
        /// How many resources rest.
        pub cooling: u64,
        /// How many resources are banned.
        pub banned: u64,
        /// How many jobs and callers stand in its lines.
        pub waiting: u64,
    }

    /// A resource as the contract shows it, its data hidden. A restore that lifts a ban by `max_uses` resets its uses.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct ResourceView as "Resource" {
        /// The id of the resource.
        pub id: ResourceId,
        /// The keys of its data, with • for each value.
        pub data: Json,
        /// Words by which a need asks for it.
        pub tags: Vec<Tag>,
        /// How many leases may hold it at once.
        pub slots: u32,
        /// Whether it may be handed out: available, cooling until a moment, or banned until it is restored.
        pub state: ResourceState as view::words(&["available", "cooling", "banned"]),
        /// Why it is cooling or banned; null if it is neither.
        pub reason: Option<String>,
        /// How many leases hold it now.
        pub in_use: u32,
        /// Until when it is cooling; null if it is not.
        pub until: Option<Moment>,
        /// Whether it goes as soon as it is free.
        pub retiring: bool,
        /// The leases that hold it.
        pub holders: Vec<Holder>,
        /// How many times it was granted.
        pub uses: u64,
        /// When it was granted last; null if never.
        pub last_used_at: Option<Moment>,
    }

    /// The result of a sync of a whole set.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct Synced {
        /// Resources that were not there before.
        pub added: u64,
        /// Resources that were there and changed.
        pub updated: u64,
        /// Resources that were there, the same.
        pub unchanged: u64,
        /// Resources that the set does not have, and that are gone.
        pub retired: u64,
        /// Resources that the set does not have, and that go when they are free.
        pub retiring: u64,
    }
}

impl LimitView {
    /// Whether it has settings of its own. A limit without any shows those of its template; without a template it is
    /// shown for as long as something of it is in use, and has neither a concurrency nor a rate.
    pub fn has_own_settings(&self) -> bool {
        let LimitSettings { concurrency, rate, .. } = &self.settings;
        self.template.is_none() && (concurrency.is_some() || rate.is_some())
    }
}
