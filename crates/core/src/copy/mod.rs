//! A store as a stream of things: what `tenure copy` carries from one engine to another.
//!
//! It is neutral: no row numbers, no lanes, no sums, nothing that an engine caches. Whoever writes it
//! builds those anew. A stream comes in [`Section`]s, in their order, each in the order of a
//! [`Cursor`], so that a copy that broke off goes on where it was. Resources carry their data, which
//! is secret: nothing here has a `Debug` that shows it, since [`Json`] has none.
//!
//! It never holds more than a page, and nothing of it is stored as it is here.

mod flows;
mod releasing;
mod schedules;

pub use flows::{CopiedEdge, CopiedFlow, CopiedKin, CopiedParent};
pub use releasing::Releasing;
pub use schedules::{CopiedOrigin, CopiedSchedule, CopiedSet};

use std::fmt;
use std::str::FromStr;

use crate::gauge::Gauge;
use crate::job::{EndedJob, JobError, JobState, Labels, Need, Retry, Unique};
use crate::lease::Fence;
use crate::names::{
    FlowName, Group, JobId, LimitName, PoolName, QueueName, ResourceId, Tag, UniqueKey,
};
use crate::secret::Json;
use crate::settings::{LimitSettings, PoolSettings, QueueSettings, ResourceState};
use crate::time::{Moment, Span};
use crate::trace::TraceParent;

/// Things of one kind. A stream brings the sections in the order of [`Section::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Section {
    /// Queues with their defaults and pauses.
    Queues,
    /// What limits are set to.
    Settings,
    /// What limits remember: debt, pauses, rests, observations.
    Limits,
    /// Live leases. They are not copied: they end, see [`Releasing`].
    Leases,
    /// Virtual times of groups that are ahead of the others.
    Turns,
    /// Pools.
    Pools,
    /// Their resources.
    Resources,
    /// Jobs, unfinished and finished, in the order in which they were pushed.
    Jobs,
    /// Unique keys that are held for a span although their job is gone.
    Keys,
    /// Whom jobs wait or waited for, behind all jobs.
    Kin,
    /// Flows, behind their members and those that wait for them.
    Flows,
    /// Schedules, behind the jobs that they made.
    Schedules,
    /// Versions of the sets of schedules that owners synced last.
    Sets,
}

impl Section {
    /// All of them, in order.
    pub const ALL: [Section; 13] = [
        Section::Queues,
        Section::Settings,
        Section::Limits,
        Section::Leases,
        Section::Turns,
        Section::Pools,
        Section::Resources,
        Section::Jobs,
        Section::Keys,
        Section::Kin,
        Section::Flows,
        Section::Schedules,
        Section::Sets,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Section::Queues => "queues",
            Section::Settings => "settings",
            Section::Limits => "limits",
            Section::Leases => "leases",
            Section::Turns => "turns",
            Section::Pools => "pools",
            Section::Resources => "resources",
            Section::Jobs => "jobs",
            Section::Keys => "keys",
            Section::Kin => "kin",
            Section::Flows => "flows",
            Section::Schedules => "schedules",
            Section::Sets => "sets",
        }
    }

    /// The one behind it.
    pub fn next(self) -> Option<Section> {
        Section::ALL.into_iter().find(|section| *section > self)
    }
}

/// Where a stream goes on: a section, and behind what in it, in words of the source's own; nothing is
/// its begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The section.
    pub section: Section,
    /// Behind what.
    pub after: String,
}

impl Cursor {
    /// The begin of a section.
    pub fn of(section: Section) -> Self {
        Cursor { section, after: String::new() }
    }
    /// Further on in the same section.
    pub fn behind(&self, after: impl Into<String>) -> Self {
        Cursor { section: self.section, after: after.into() }
    }
    /// The begin of the next section; `None` at the end of all.
    pub fn next_section(&self) -> Option<Self> {
        self.section.next().map(Cursor::of)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.section.as_str(), self.after)
    }
}

impl FromStr for Cursor {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (name, after) = text.split_once(':').ok_or(())?;
        let section = Section::ALL.into_iter().find(|section| section.as_str() == name);
        Ok(Cursor { section: section.ok_or(())?, after: after.to_owned() })
    }
}

/// A part of a stream.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedPage {
    /// What it brings, all of one section.
    pub items: Vec<Item>,
    /// Where it goes on; `None` at the end of the namespace.
    pub next: Option<Cursor>,
}

/// Numbers of a namespace, which is frozen while they are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// The last fence that was given.
    pub fence: Fence,
    /// The last arrival number that was given.
    pub arrival: u64,
    /// The counter of last uses of resources.
    pub used: u64,
    /// How many jobs there are, finished ones too.
    pub jobs: u64,
    /// The source's clock.
    pub now: Moment,
    /// Until then somebody may hold what the source has forgotten; by its clock.
    pub recovers_until: Option<Moment>,
}

/// One thing.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// See [`CopiedQueue`].
    Queue(CopiedQueue),
    /// See [`CopiedSetting`].
    Setting(CopiedSetting),
    /// See [`CopiedLimit`].
    Limit(CopiedLimit),
    /// See [`CopiedLease`].
    Lease(CopiedLease),
    /// See [`CopiedRest`].
    Rest(CopiedRest),
    /// See [`CopiedTurn`].
    Turn(CopiedTurn),
    /// See [`CopiedPool`].
    Pool(CopiedPool),
    /// See [`CopiedResource`].
    Resource(Box<CopiedResource>),
    /// See [`CopiedJob`].
    Job(Box<CopiedJob>),
    /// See [`CopiedKey`].
    Key(CopiedKey),
    /// See [`CopiedKin`].
    Kin(Box<CopiedKin>),
    /// See [`CopiedFlow`].
    Flow(CopiedFlow),
    /// See [`CopiedSchedule`].
    Schedule(Box<CopiedSchedule>),
    /// See [`CopiedSet`].
    Set(CopiedSet),
}

/// A queue that is shown. Those of finished jobs alone, which were deleted, are not here.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedQueue {
    /// Its name.
    pub name: QueueName,
    /// Its defaults and shares.
    pub settings: QueueSettings,
    /// Paused until then; [`Moment::MAX`]: until it is resumed.
    pub paused_until: Option<Moment>,
    /// When it was first used.
    pub since: Moment,
    /// Moments of schedules into it that were skipped since.
    pub skipped: u64,
}

/// What a limit or a template is set to.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedSetting {
    /// Its name.
    pub name: LimitName,
    /// Its settings.
    pub settings: LimitSettings,
    /// Its gauge, with its secrets.
    pub gauge: Option<Box<Gauge>>,
}

/// What a limit remembers beside who holds it.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedLimit {
    /// Its name.
    pub name: LimitName,
    /// Theoretical arrival time of its rate.
    pub tat: Moment,
    /// Paused until then; [`Moment::MAX`]: until it is resumed.
    pub paused_until: Option<Moment>,
    /// Permits that rest: until when, how many.
    pub resting: Vec<(Moment, u32)>,
    /// Permits that rest until a reading of the gauge shows what their runs have become.
    pub unshown: Vec<CopiedUnshown>,
    /// Permits taken by work outside.
    pub external: u32,
    /// Until when they are, unless until the next observation.
    pub external_until: Option<Moment>,
}

/// Permits whose lease has ended, and whose run the gauge may not show yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopiedUnshown {
    /// When the lease ended.
    pub ended_at: Moment,
    /// When it was granted, if it did not end by a settle.
    pub unsettled: Option<Moment>,
    /// The end of the gap or the quarantine that they owe besides.
    pub until: Moment,
    /// How many.
    pub weight: u32,
}

/// Permits of a limit that rest, beside what it remembers already.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedRest {
    /// The limit.
    pub limit: LimitName,
    /// Until when, for a gap or a quarantine.
    pub until: Moment,
    /// How many.
    pub weight: u32,
    /// Where the limit has a gauge: a reading must show as well what the run has become.
    pub unshown: Option<CopiedUnshown>,
}

/// A live lease: what it holds, and how long its holder may go on.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedLease {
    /// Whether it holds a job.
    pub has_job: bool,
    /// When it was granted, by the source's clock; where that is not known, when it runs out.
    pub granted_at: Moment,
    /// When it runs out at the latest, since it cannot be extended any more; by the source's clock.
    pub expires_at: Moment,
    /// Permits.
    pub limits: Vec<(LimitName, u32)>,
    /// Resources.
    pub resources: Vec<(PoolName, ResourceId)>,
    /// The flow of its job, if the holder was asked to stop: the copy ends the lease, and so a member of the flow.
    pub called_off_in: Option<FlowName>,
}

/// The virtual time of a group that is ahead of its priority's.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedTurn {
    /// The queue.
    pub queue: QueueName,
    /// The priority.
    pub priority: i8,
    /// The group; `None`: jobs without one.
    pub group: Option<Group>,
    /// The group's virtual time.
    pub own: u64,
    /// That of its priority.
    pub v: u64,
}

/// A pool.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedPool {
    /// Its name.
    pub name: PoolName,
    /// Its settings.
    pub settings: PoolSettings,
    /// The last version that was synced.
    pub version: u64,
    /// How many sets were synced.
    pub generation: u64,
}

/// A resource with its data, which is secret.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedResource {
    /// Its pool.
    pub pool: PoolName,
    /// Its id.
    pub id: ResourceId,
    /// Its data.
    pub data: Json,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// Holders at once.
    pub slots: u32,
    /// Whether it may be handed out.
    pub state: ResourceState,
    /// Until when it is cooling; else zero.
    pub until: Moment,
    /// How long that is, to cut it by when a clock was set back.
    pub rest: Span,
    /// Why it is cooling or banned.
    pub reason: Option<String>,
    /// Grants so far.
    pub uses: u64,
    /// Its last use, by the namespace's counter.
    pub used: u64,
    /// When it was granted last.
    pub last_used_at: Option<Moment>,
    /// Theoretical arrival time of its pace.
    pub tat: Moment,
    /// It goes when it is free.
    pub retiring: bool,
    /// The set by which it was named last.
    pub generation: u64,
}

/// A job, whole.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedJob {
    /// Its id.
    pub id: JobId,
    /// What a worker dispatches on.
    pub kind: String,
    /// Its payload.
    pub payload: Json,
    /// Its labels.
    pub labels: Labels,
    /// The trace that it was pushed in.
    pub traceparent: Option<TraceParent>,
    /// Its queue.
    pub queue: QueueName,
    /// Its priority.
    pub priority: i8,
    /// Its group.
    pub group: Option<Group>,
    /// Its needs.
    pub needs: Vec<Need>,
    /// Its retry.
    pub retry: Retry,
    /// Deadline of one run.
    pub timeout: Option<Span>,
    /// How long it is kept when finished.
    pub retain: Option<Span>,
    /// Where it stands: dependent, scheduled, ready (blocked too), running or finished. What a dependent one waits for
    /// comes behind the jobs.
    pub state: JobState,
    /// Its place in the order; 0 until it first became ready.
    pub arrival: u64,
    /// When it was pushed.
    pub created_at: Moment,
    /// When it may run, or became due.
    pub run_at: Moment,
    /// When its last run began.
    pub started_at: Option<Moment>,
    /// When it ended.
    pub finished_at: Option<Moment>,
    /// When it goes by itself, if it is finished. That it is kept longer, for unfinished jobs that name it, is decided anew
    /// by the target.
    pub kept_until: Option<Moment>,
    /// Not running by then: cancelled.
    pub expires_at: Option<Moment>,
    /// Length of a wait that the engine chose.
    pub wait: Span,
    /// Runs that ended in `succeeded` or `failed`.
    pub ended: u32,
    /// Reaps in a row.
    pub lost: u32,
    /// `released` in a row.
    pub released: u32,
    /// Leases in a row that were never delivered.
    pub undelivered: u32,
    /// Runs that ended in `snoozed`.
    pub snoozed: u32,
    /// A lease of it ended once otherwise than by a settle, so a run of it may go on that nobody holds.
    pub ended_unsettled: bool,
    /// Its holder is to stop.
    pub cancel_requested: bool,
    /// It keeps its place when it becomes due.
    pub keeps_place: bool,
    /// Its unique key.
    pub unique: Option<Unique>,
    /// When the wait began by which `within` is counted, unless it began with the job's own push: the push that let the
    /// finished job live again.
    pub wait_began: Option<Moment>,
    /// How it holds that key now, if it does.
    pub holds: Option<Holds>,
    /// About what it takes, for the byte budget.
    pub bytes: u32,
    /// What it succeeded with.
    pub result: Option<Json>,
    /// What its holder reported last.
    pub progress: Option<Json>,
    /// The last error.
    pub error: Option<String>,
    /// The last errors, oldest first.
    pub errors: Vec<JobError>,
    /// The schedule that made it.
    pub origin: Option<CopiedOrigin>,
    /// The flow that it belongs to.
    pub flow: Option<FlowName>,
    /// Children that its failure cancelled: its retry answers how many, and begins anew.
    pub cancelled_children: u64,
}

impl CopiedJob {
    /// What is known of it when it is gone, if it is finished.
    pub fn ended_job(&self) -> Option<EndedJob> {
        let finished_at = self.finished_at.filter(|_| self.state.is_finished())?;
        Some(EndedJob {
            queue: self.queue.clone(),
            state: self.state,
            created_at: self.created_at,
            finished_at,
        })
    }
}

/// How a job holds its unique key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holds {
    /// By its life: until it starts or ends, as the key says.
    pub by_job: bool,
    /// In any case until then.
    pub until: Option<Moment>,
}

/// A unique key whose job is gone.
#[derive(Clone, PartialEq, Debug)]
pub struct CopiedKey {
    /// The key.
    pub key: UniqueKey,
    /// The job that took it.
    pub job: JobId,
    /// Held until then.
    pub until: Moment,
    /// What is known of the job.
    pub ended: Option<EndedJob>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for section in Section::ALL {
            for after in ["", "17", "a:b", "größe"] {
                let cursor = Cursor::of(section).behind(after);
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        }
        for text in ["", "jobs", "nothing:1", ":1"] {
            assert_eq!(text.parse::<Cursor>(), Err(()), "{text}");
        }
    }

    #[test]
    fn sections_follow_one_another_to_the_end() {
        let mut all = vec![Section::Queues];
        while let Some(next) = all.last().and_then(|section| section.next()) {
            all.push(next);
        }
        assert_eq!(all, Section::ALL);
    }
}
