//! Schedules: what a caller says of one, what is planned of it, and how it is shown.
//!
//! A timing is checked here as far as that needs no calendar.

use serde::{Deserialize, Serialize};

use crate::job::{JobState, Labels, Need, NewJob, Retry, When};
use crate::names::{Group, JobId, Owner, QueueName, ScheduleId};
use crate::secret::Json;
use crate::time::{Moment, Span};

/// The timing of a schedule as it was said. One of `cron` and `every` is given, and `zone` only with `cron`; what reads
/// it from a body sees to that. Whether the expression and the zone are there at all is for `tenure-calendar`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct TimingSpec {
    /// A cron expression, as it was written.
    pub cron: Option<String>,
    /// The IANA name of the zone in which `cron` is read; UTC if it is not given.
    pub zone: Option<String>,
    /// An interval: whole seconds, from 1 s to 3,650 d.
    pub every: Option<Span>,
    /// No moment lies before it, and an interval counts from it; any microsecond.
    pub starts_at: Option<Moment>,
    /// No moment lies after it; any microsecond.
    pub ends_at: Option<Moment>,
    /// The longest time by which a moment is late, at most a day; zero if it was not given.
    #[serde(default)]
    pub jitter: Span,
}

/// What becomes of a moment while a job of its schedule is unfinished, in any state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is skipped, and counted.
    #[default]
    Skip,
    /// It waits for that job's end.
    Queue,
    /// It fires all the same.
    Allow,
}

/// Which of several due moments fire, as after an outage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// The newest, if it is at most 60 s late.
    None,
    /// The newest.
    #[default]
    Last,
    /// Each of the newest `catch_up_max`, oldest first.
    All,
}

/// The job that each moment makes: as one is pushed, without what belongs to a single job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduledJob {
    /// The line of its jobs.
    pub queue: QueueName,
    /// What a worker dispatches on; `""` if none.
    #[serde(default)]
    pub kind: String,
    /// Any JSON, `null` too; absent only where a list leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "there")]
    pub payload: Option<Json>,
    /// -100..=100, higher first.
    #[serde(default)]
    pub priority: i8,
    /// To whom its jobs belong, for fair shares.
    pub group: Option<Group>,
    /// `None`: those of its queue when a moment fires.
    pub needs: Option<Vec<Need>>,
    /// `None`: that of its queue when a moment fires.
    pub retry: Option<Retry>,
    /// `None`: that of its queue when a moment fires.
    pub timeout: Option<Span>,
    /// `None`: that of its queue when a moment fires.
    pub retain: Option<Span>,
    /// A job that is not running so long after its moment is cancelled.
    pub expires_in: Option<Span>,
    /// For people and filters.
    #[serde(default)]
    pub labels: Labels,
}

/// A value that is there: `null` is one, and only a field that is absent is none.
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

    /// The job that is stored under `id` and may run at `run_at`, from which `expires_in` counts.
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

/// All that a caller sets of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduleSettings {
    /// The set from outside to which it belongs.
    pub owner: Option<Owner>,
    /// Its moments.
    #[serde(flatten)]
    pub timing: TimingSpec,
    /// What becomes of a moment while a job of it is unfinished.
    pub overlap: Overlap,
    /// Which of several due moments fire.
    pub catch_up: CatchUp,
    /// With `catch_up: all`, how many at most, 1 to 1,000.
    pub catch_up_max: u32,
    /// What each moment makes.
    pub job: ScheduledJob,
}

impl ScheduleSettings {
    /// How many of the due moments may fire.
    pub fn keeps(&self) -> usize {
        keeps(self.catch_up, self.catch_up_max)
    }
}

/// How many of the due moments may fire.
pub fn keeps(catch_up: CatchUp, most: u32) -> usize {
    match catch_up {
        CatchUp::All => most as usize,
        CatchUp::None | CatchUp::Last => 1,
    }
}

/// A moment that was computed, and is not decided yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedMoment {
    /// The moment of the timing, in whole seconds.
    pub moment: Moment,
    /// The moment and its jitter: from then on it is due.
    pub due: Moment,
    /// Moments between it and the one before that were not kept. They are counted as missed in the step that takes this
    /// moment out of the plan, so that a plan which is made anew counts nothing twice.
    pub passed: u64,
}

/// Moments of a cron expression, computed where there is a calendar: the state machine knows none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// For which schedule.
    pub schedule: ScheduleId,
    /// For which version of it; a plan for another one is dropped.
    pub version: u64,
    /// The last moment that was known when it was computed; a plan that does not go on from there is dropped.
    pub after: Moment,
    /// The moments, ascending.
    pub moments: Vec<PlannedMoment>,
    /// No moment follows.
    pub last: bool,
    /// The zone data by which it was computed.
    pub data: String,
}

/// The moments that are sent along with a new timing, by the process that handles the call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstPlan {
    /// The timing for which they were computed; with another one they are of no use.
    pub timing: TimingSpec,
    /// The engine's time, as that process knows it: the moments come after it.
    pub from: Moment,
    /// The moments, ascending.
    pub moments: Vec<PlannedMoment>,
    /// No moment follows.
    pub last: bool,
    /// The zone data by which they were computed.
    pub data: String,
}

/// A schedule that wants to be planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanWanted {
    /// Which.
    pub schedule: ScheduleId,
    /// Its version, which the plan carries.
    pub version: u64,
    /// By what its moments are computed.
    pub timing: TimingSpec,
    /// The last moment that is known: its last planned one, else its cursor.
    pub after: Moment,
    /// How many moments up to now are kept.
    pub keeps: usize,
}

/// From where the next moments of a schedule are computed, by whoever has a calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextBasis {
    /// They come after it: the cursor, or now.
    pub after: Moment,
    /// The moment that a `next_in` set and that is not decided yet: it is the first of them if it lies ahead.
    pub moved: Option<Moment>,
    /// An interval counts from it; `None`: from its start, or its own phase.
    pub anchor: Option<Moment>,
    /// It is paused until it is resumed: no moment is known.
    pub is_endless_pause: bool,
}

/// The schedule that made a job, as the job shows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MadeBy {
    /// The schedule.
    pub id: ScheduleId,
    /// The moment; null for a run-now.
    pub at: Option<Moment>,
}

/// The last moment that fired.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastFired {
    /// The moment.
    pub at: Moment,
    /// Its job.
    pub job: JobId,
}

/// The job of a schedule that ended last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastEnded {
    /// The job.
    pub job: JobId,
    /// How it ended.
    pub state: JobState,
    /// When.
    pub finished_at: Moment,
}

/// A schedule as the contract shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "ReadSchedule")]
pub struct ScheduleView {
    /// Its id.
    pub id: ScheduleId,
    /// What was set; in lists without the payload, unless asked for.
    #[serde(flatten)]
    pub settings: ScheduleSettings,
    /// In a sentence, what happens next.
    #[serde(default)]
    pub summary: String,
    /// The next moment, without its jitter; null if none is left, and while it is paused without end.
    pub next_at: Option<Moment>,
    /// The next five moments, or as many as are left; absent from lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<Moment>>,
    /// `next_at` was set by a `next_in`.
    #[serde(default)]
    pub moved: bool,
    /// Whether nothing fires now.
    #[serde(default)]
    pub paused: bool,
    /// Until when, unless without end.
    pub paused_until: Option<Moment>,
    /// No moment is left.
    #[serde(default)]
    pub ended: bool,
    /// Jobs of it that have not ended.
    #[serde(default)]
    pub unfinished: u64,
    /// The last moment that fired.
    pub last: Option<LastFired>,
    /// The job of it that ended last.
    pub last_ended: Option<LastEnded>,
    /// When a job of it succeeded last.
    pub last_succeeded_at: Option<Moment>,
    /// Moments that made a job.
    #[serde(default)]
    pub fired: u64,
    /// Moments that were skipped: a job was unfinished, or the queue was full.
    #[serde(default)]
    pub skipped: u64,
    /// Moments that were late, or too many.
    #[serde(default)]
    pub missed: u64,
    /// When it was made.
    pub created_at: Moment,
    /// When its timing was last changed.
    pub changed_at: Moment,
}

/// How a schedule is read: the job stands among its fields, since JSON that is carried as text cannot be read out of a
/// part that is flattened.
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

/// What a sync of an owner's schedules does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SyncedSchedules {
    /// Were not there.
    pub added: u64,
    /// Were there, and change.
    pub updated: u64,
    /// Were there, the same.
    pub unchanged: u64,
    /// Are absent from the set, and go.
    pub deleted: u64,
}
