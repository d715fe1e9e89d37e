//! Schedules: settings of a caller, plans of their moments, and the views.
//!
//! A timing is checked here as far as that needs no calendar.

use serde::{Deserialize, Serialize};

use crate::job::{JobState, Labels, Need, NewJob, Retry, When};
use crate::names::{Group, JobId, Owner, QueueName, ScheduleId};
use crate::secret::Json;
use crate::time::{Moment, Span};
use crate::view;
use crate::words;

/// The timing of a schedule as the caller gave it. The reader of bodies makes sure that one of `cron` and `every` is
/// given, and `zone` only with `cron`. `tenure-calendar` checks the expression and the zone.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct TimingSpec {
    /// A cron expression, as the caller wrote it.
    pub cron: Option<String>,
    /// The IANA name of the zone in which `cron` is read; UTC if it is not given.
    pub zone: Option<String>,
    /// An interval: whole seconds, from 1 s to 3,650 d.
    pub every: Option<Span>,
    /// No moment lies before it, and an interval counts from it; any microsecond.
    pub starts_at: Option<Moment>,
    /// No moment lies after it; any microsecond.
    pub ends_at: Option<Moment>,
    /// The longest delay of a moment, at most a day; zero if it was not given.
    #[serde(default)]
    pub jitter: Span,
}

words! {
    /// Policy for a moment that comes while a job of its schedule is unfinished, in any state.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Overlap {
        /// It is skipped and counted.
        #[default]
        Skip = "skip",
        /// It waits for the end of that job.
        Queue = "queue",
        /// It fires all the same.
        Allow = "allow",
    }
}

words! {
    /// The due moments that fire, for example after an outage.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CatchUp {
        /// The newest, if it is at most 60 s late.
        None = "none",
        /// The newest due moment.
        #[default]
        Last = "last",
        /// Each of the newest `catch_up_max`, oldest first.
        All = "all",
    }
}

/// The job that each moment makes: like a pushed one, without the fields that belong to a single job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduledJob {
    pub queue: QueueName,
    /// A worker library chooses the handler by it; `""` if none.
    #[serde(default)]
    pub kind: String,
    /// Any JSON, `null` too; absent only where a list leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "there")]
    pub payload: Option<Json>,
    /// -100..=100; higher goes first.
    #[serde(default)]
    pub priority: i8,
    /// Groups of a queue take turns by their shares; jobs without a group are one group.
    pub group: Option<Group>,
    /// `None`: those of its queue when a moment fires.
    pub needs: Option<Vec<Need>>,
    /// `None`: that of its queue when a moment fires.
    pub retry: Option<Retry>,
    /// `None`: that of its queue when a moment fires.
    pub timeout: Option<Span>,
    /// `None`: that of its queue when a moment fires.
    pub retain: Option<Span>,
    /// A job is cancelled if it is not running this long after its due moment; `None`: never.
    pub expires_in: Option<Span>,
    /// For people and filters.
    #[serde(default)]
    pub labels: Labels,
}

/// A field that is present is `Some`, even if it is null.
fn there<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(d).map(Some)
}

impl ScheduledJob {
    /// A job with every field at its default.
    pub fn new(queue: QueueName) -> Self {
        ScheduledJob {
            queue,
            kind: String::new(),
            payload: Some(Json::null()),
            priority: 0,
            group: None,
            needs: None,
            retry: None,
            timeout: None,
            retain: None,
            expires_in: None,
            labels: Labels::new(),
        }
    }

    /// The job that is stored under `id` and may run at `run_at`; `expires_in` counts from there.
    pub fn made(self, id: JobId, run_at: Moment) -> NewJob {
        NewJob {
            id: Some(id),
            kind: self.kind,
            payload: self.payload.unwrap_or_default(),
            when: When::At(run_at),
            priority: self.priority,
            group: self.group,
            needs: self.needs,
            retry: self.retry,
            timeout: self.timeout,
            expires_at: self.expires_in.map(|span| run_at.plus(span)),
            retain: self.retain,
            labels: self.labels,
            ..NewJob::new(self.queue)
        }
    }
}

/// All settings of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduleSettings {
    /// The set from outside to which it belongs; a sync of that set may change and delete it.
    pub owner: Option<Owner>,
    #[serde(flatten)]
    pub timing: TimingSpec,
    /// Policy for a moment that comes while a job of the schedule is unfinished.
    pub overlap: Overlap,
    /// The due moments that fire.
    pub catch_up: CatchUp,
    /// With `catch_up: all`, the most moments that fire, 1 to 1,000.
    pub catch_up_max: u32,
    /// The job that each moment makes.
    pub job: ScheduledJob,
}

impl ScheduleSettings {
    /// The most due moments that may fire.
    pub fn keeps(&self) -> usize {
        keeps(self.catch_up, self.catch_up_max)
    }
}

/// The most due moments that may fire.
pub fn keeps(catch_up: CatchUp, most: u32) -> usize {
    match catch_up {
        CatchUp::All => most as usize,
        CatchUp::None | CatchUp::Last => 1,
    }
}

/// A computed moment that has not been decided yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedMoment {
    /// The moment of the timing, in whole seconds.
    pub moment: Moment,
    /// The moment with its jitter: it is due from then on.
    pub due: Moment,
    /// Moments between it and the one before that were not kept. The step that takes this moment out of the plan counts
    /// them as missed, so that a new plan counts nothing twice.
    pub passed: u64,
}

/// Moments of a cron expression, computed outside the state machine, which has no calendar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub schedule: ScheduleId,
    /// Version of the schedule; a plan for another version is dropped.
    pub version: u64,
    /// The last known moment when it was computed; a plan that does not continue from there is dropped.
    pub after: Moment,
    /// Moments in ascending order.
    pub moments: Vec<PlannedMoment>,
    /// No moment follows these.
    pub last: bool,
    /// Version of the zone data that it was computed with.
    pub data: String,
}

/// The moments that the process which handles the call sends along with a new timing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstPlan {
    /// The timing for which they were computed; they are useless for another one.
    pub timing: TimingSpec,
    /// The engine's time as that process knows it; all moments come after it.
    pub from: Moment,
    /// Moments in ascending order.
    pub moments: Vec<PlannedMoment>,
    /// No moment follows these.
    pub last: bool,
    /// Version of the zone data that they were computed with.
    pub data: String,
}

/// A schedule that needs a new plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanWanted {
    pub schedule: ScheduleId,
    /// Its version, which the plan must carry.
    pub version: u64,
    /// The timing to compute its moments from.
    pub timing: TimingSpec,
    /// The last known moment: its last planned one, otherwise its cursor.
    pub after: Moment,
    /// How many moments up to now the plan keeps.
    pub keeps: usize,
}

/// Basis for the next moments of a schedule, for a process that has a calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextBasis {
    /// All moments come after it: the cursor, or now.
    pub after: Moment,
    /// A moment that a `next_in` set and that is not decided yet: the first one, if it lies ahead.
    pub moved: Option<Moment>,
    /// An interval counts from it; `None`: from its start, or from its own phase.
    pub anchor: Option<Moment>,
    /// It is paused until it is resumed, so no moment is known.
    pub is_endless_pause: bool,
}

view! {
    /// The last moment that fired.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct LastFired {
        /// The moment that fired last.
        pub at: Moment,
        /// The id of the job that it made.
        pub job: JobId,
    }

    /// The job of a schedule that ended last.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct LastEnded {
        /// The id of the job.
        pub job: JobId,
        /// How the job ended.
        pub state: JobState,
        /// When the job ended.
        pub finished_at: Moment,
    }

    /// The result of a sync of an owner's schedules.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct SyncedSchedules {
        /// Schedules that were not there before.
        pub added: u64,
        /// Schedules that were there and changed.
        pub updated: u64,
        /// Schedules that were there, the same.
        pub unchanged: u64,
        /// Schedules that the set does not have, and that are gone.
        pub deleted: u64,
    }

    /// A schedule as the contract shows it.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(from = "ReadSchedule")]
    pub struct ScheduleView as "Schedule" {
        /// The id of the schedule.
        pub id: ScheduleId,
        /// The settings; lists leave out the payload unless asked for it.
        #[serde(flatten)]
        pub settings: ScheduleSettings,
        /// In one sentence, what happens next.
        #[serde(default)]
        pub summary: String,
        /// The next moment, without its jitter; null if none is left or it is paused without end.
        pub next_at: Option<Moment>,
        /// The next five moments, or as many as are left; lists leave them out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<Vec<Moment>>,
        /// Whether next_at was set by the next_in of a settle.
        #[serde(default)]
        pub moved: bool,
        /// Whether nothing fires now.
        #[serde(default)]
        pub paused: bool,
        /// Until when it is paused; null if without end, or not paused.
        pub paused_until: Option<Moment>,
        /// Whether no moment is left.
        #[serde(default)]
        pub ended: bool,
        /// How many of its jobs have not ended.
        #[serde(default)]
        pub unfinished: u64,
        /// The last moment that fired; null if none did.
        pub last: Option<LastFired>,
        /// The job of it that ended last; null if none did.
        pub last_ended: Option<LastEnded>,
        /// When a job of it succeeded last; null if none did.
        pub last_succeeded_at: Option<Moment>,
        /// How many moments made a job.
        #[serde(default)]
        pub fired: u64,
        /// How many moments were skipped: by an unfinished job, a full queue, a payload that lacks a field, or a
        /// next_in.
        #[serde(default)]
        pub skipped: u64,
        /// How many moments were too late, or too many.
        #[serde(default)]
        pub missed: u64,
        /// When the schedule was made.
        pub created_at: Moment,
        /// When its timing was changed last.
        pub changed_at: Moment,
    }
}

/// Reads a schedule with the job among its own fields: JSON that is kept as text cannot be read from a flattened part.
#[derive(Deserialize)]
struct ReadSchedule {
    id: ScheduleId,
    owner: Option<Owner>,
    #[serde(flatten)]
    timing: TimingSpec,
    #[serde(default)]
    overlap: Overlap,
    #[serde(default)]
    catch_up: CatchUp,
    catch_up_max: u32,
    job: ScheduledJob,
    #[serde(default)]
    summary: String,
    next_at: Option<Moment>,
    next: Option<Vec<Moment>>,
    #[serde(default)]
    moved: bool,
    #[serde(default)]
    paused: bool,
    paused_until: Option<Moment>,
    #[serde(default)]
    ended: bool,
    #[serde(default)]
    unfinished: u64,
    last: Option<LastFired>,
    last_ended: Option<LastEnded>,
    last_succeeded_at: Option<Moment>,
    #[serde(default)]
    fired: u64,
    #[serde(default)]
    skipped: u64,
    #[serde(default)]
    missed: u64,
    created_at: Moment,
    changed_at: Moment,
}

impl From<ReadSchedule> for ScheduleView {
    fn from(read: ReadSchedule) -> Self {
        ScheduleView {
            id: read.id,
            settings: ScheduleSettings {
                owner: read.owner,
                timing: read.timing,
                overlap: read.overlap,
                catch_up: read.catch_up,
                catch_up_max: read.catch_up_max,
                job: read.job,
            },
            summary: read.summary,
            next_at: read.next_at,
            next: read.next,
            moved: read.moved,
            paused: read.paused,
            paused_until: read.paused_until,
            ended: read.ended,
            unfinished: read.unfinished,
            last: read.last,
            last_ended: read.last_ended,
            last_succeeded_at: read.last_succeeded_at,
            fired: read.fired,
            skipped: read.skipped,
            missed: read.missed,
            created_at: read.created_at,
            changed_at: read.changed_at,
        }
    }
}
