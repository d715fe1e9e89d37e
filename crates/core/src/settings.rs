//! Settings that are put and patched at run time, and how what they govern is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::gauge::GaugeView;
use crate::job::{Need, Retry};
use crate::names::{Group, JobId, LimitName, PoolName, QueueName, ResourceId, Tag};
use crate::refusal::Refusal;
use crate::secret::Json;
use crate::sentences::LimitRefusal;
use crate::time::{Moment, Span};

/// Defaults of a queue for its jobs, and its shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSettings {
    /// Needs of a job that states none.
    pub needs: Vec<Need>,
    /// Retry of a job that states none.
    pub retry: Option<Retry>,
    /// Timeout of a job that states none.
    pub timeout: Option<Span>,
    /// Retain of a job that states none.
    pub retain: Option<Span>,
    /// Most jobs that may wait; pushes beyond it are refused.
    pub max_waiting: Option<u32>,
    /// How long a job waits whose holder was lost, before it runs again; `None`: 2 s after the first time, twice as long after
    /// each further one in a row, at most a minute. Read when the holder is lost.
    pub lost_delay: Option<Span>,
    /// Turns of each group; 1 for all that are not named.
    pub shares: BTreeMap<Group, u32>,
    /// Whether lists of the dashboard show one line of each payload. Rows from before this setting have none, and show it.
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
    /// What [`QueueSettings::show_payload`] is if nobody has set it.
    pub const SHOW_PAYLOAD_DEFAULT: bool = true;
}

/// GCRA: `count` tokens per `per`, of which `burst` may go at once after a rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens per period, 1 or more.
    pub count: u32,
    /// The period.
    pub per: Span,
    /// Tokens that may go at once after a rest, 1 or more; 1 = evenly spaced.
    pub burst: u32,
}

/// A named cap. At least one of the three is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitSettings {
    /// How many at once; 0 = closed for now.
    pub concurrency: Option<u32>,
    /// How many per period.
    pub rate: Option<Rate>,
    /// How long each permit rests after its release; needs `concurrency`.
    pub gap: Option<Span>,
    /// How long each permit rests after an end that its holder did not settle, since what that holder
    /// started may still run; needs `concurrency`. Of this and `gap` the longer counts.
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

    /// How long a permit may rest at most; zero without a concurrency.
    pub fn longest_rest(&self) -> Span {
        match self.concurrency {
            Some(_) => self.gap.unwrap_or_default().max(self.quarantine),
            None => Span::ZERO,
        }
    }
}

/// Which of the free resources is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The one whose last use is longest ago.
    #[default]
    Lru,
    /// Any.
    Random,
}

/// What holds for each resource of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolSettings {
    /// Rest of a resource that was taken back from a dead holder.
    pub quarantine: Span,
    /// Rest after every use.
    pub cooldown: Span,
    /// Grants per period of one resource.
    pub rate: Option<Rate>,
    /// Grants after which a resource is banned.
    pub max_uses: Option<u32>,
    /// Which of the free ones.
    pub pick: Pick,
}

/// A resource as it comes from outside: what a sync may change, and nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewResource {
    /// Unique in its pool.
    pub id: ResourceId,
    /// Often secret.
    pub data: Json,
    /// By which needs tell resources apart.
    pub tags: Vec<Tag>,
    /// Holders at once, 1 or more.
    pub slots: u32,
}

/// Jobs of a queue by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QueueCounts {
    /// Wait for their turn.
    pub ready: u64,
    /// Stand in a need's line.
    pub blocked: u64,
    /// Wait for a moment.
    pub scheduled: u64,
    /// Wait for other jobs.
    pub dependent: u64,
    /// Are held.
    pub running: u64,
}

/// A queue as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueView {
    /// Its name.
    pub name: QueueName,
    /// Whether nothing is granted now.
    pub paused: bool,
    /// Until when, unless without end.
    pub paused_until: Option<Moment>,
    /// Settings.
    #[serde(flatten)]
    pub settings: QueueSettings,
    /// Jobs by state.
    pub counts: QueueCounts,
    /// Since when the oldest ready job is ready.
    pub oldest_ready_at: Option<Moment>,
    /// Who asked for it within the last minute.
    pub workers: u64,
    /// Moments of schedules into it that were skipped since it is there.
    #[serde(default)]
    pub skipped: u64,
}

/// Who holds something, and since when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The lease.
    pub lease: String,
    /// The worker's id.
    pub holder: String,
    /// The job, unless needs alone are held.
    pub job: Option<JobId>,
    /// When it was granted.
    pub since: Moment,
}

/// Who stands in a line, and since when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// The job; null for a caller who waits for needs alone.
    pub job: Option<JobId>,
    /// Its queue; null for a caller.
    pub queue: Option<QueueName>,
    /// Since when it stands there.
    pub since: Moment,
}

/// A limit as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitView {
    /// Its name.
    pub name: LimitName,
    /// The template whose settings hold for it; null if it has its own.
    pub template: Option<LimitName>,
    /// Settings.
    #[serde(flatten)]
    pub settings: LimitSettings,
    /// Permits of live leases, and resting ones.
    pub in_use: u64,
    /// Of these, permits that rest after their lease's end, for a gap, a quarantine or a reading of the gauge.
    #[serde(default)]
    pub resting: u64,
    /// Permits taken by work outside.
    pub external: u64,
    /// Where that is read.
    #[serde(default)]
    pub gauge: Option<Box<GaugeView>>,
    /// Jobs and callers that stand in its line.
    pub waiting: u64,
    /// In use beyond a lowered cap.
    pub over_limit: u64,
    /// Nobody is granted it before.
    pub paused_until: Option<Moment>,
    /// Who holds it; at most 20.
    pub holders: Vec<Holder>,
    /// Who is first in its line; at most 20, and only where one limit is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line: Vec<Waiter>,
}

/// A pool as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolView {
    /// Its name.
    pub name: PoolName,
    /// Settings.
    #[serde(flatten)]
    pub settings: PoolSettings,
    /// Resources with a free slot.
    pub available: u64,
    /// Resources with a holder.
    pub leased: u64,
    /// Resources that rest.
    pub cooling: u64,
    /// Resources that are banned.
    pub banned: u64,
    /// Jobs and callers that stand in its lines.
    pub waiting: u64,
}

/// Whether a resource may be handed out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceState {
    /// It may, as far as its slots go.
    Available,
    /// Not until a moment.
    Cooling,
    /// Not until it is restored.
    Banned,
}

/// A resource as the contract shows it, its data hidden.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResourceView {
    /// Its id.
    pub id: ResourceId,
    /// Its keys, with `"•"` for values.
    pub data: Json,
    /// Tags.
    pub tags: Vec<Tag>,
    /// Holders at once.
    pub slots: u32,
    /// Whether it may be handed out.
    pub state: ResourceState,
    /// Why it is cooling or banned.
    pub reason: Option<String>,
    /// Leases that hold it.
    pub in_use: u32,
    /// Until when it is cooling.
    pub until: Option<Moment>,
    /// It goes when it is free.
    pub retiring: bool,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// Grants so far.
    pub uses: u64,
    /// When it was granted last.
    pub last_used_at: Option<Moment>,
}

/// What a sync of a whole set did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Synced {
    /// Were not there.
    pub added: u64,
    /// Were there, and changed.
    pub updated: u64,
    /// Were there, the same.
    pub unchanged: u64,
    /// Were absent from the set, and went.
    pub retired: u64,
    /// Were absent from the set, and go when they are free.
    pub retiring: u64,
}
