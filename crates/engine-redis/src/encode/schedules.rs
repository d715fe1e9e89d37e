//! Arguments of the calls about schedules.

use serde::Serialize;
use tenure_core::copy::CopiedSchedule;
use tenure_core::job::Retry;
use tenure_core::lease::Later as Until;
use tenure_core::names::{JobId, Owner};
use tenure_core::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, PauseSchedule, ResumeSchedule,
};
use tenure_core::schedule::{
    FirstPlan, Plan, PlannedMoment, ScheduleSettings, ScheduledJob, TimingSpec,
};

use super::body::body_of;
use super::items::{Later, NeedArg, OrFalse, RetryArg, moment, needs, span};
use super::jobs::ROW_BYTES;
use super::{OneCall, Packed, content_bytes, pack};
use crate::alphabet::{catch_up, overlap, state};
use crate::bucket::bucket;

/// `[cron, zone, every, starts_at, ends_at, jitter]`.
#[derive(Serialize)]
struct TimingArg<'a>(
    OrFalse<&'a str>,
    OrFalse<&'a str>,
    OrFalse<u64>,
    OrFalse<u64>,
    OrFalse<u64>,
    u64,
);

impl<'a> TimingArg<'a> {
    fn of(timing: &'a TimingSpec) -> Self {
        TimingArg(
            OrFalse(timing.cron.as_deref()),
            OrFalse(timing.zone.as_deref()),
            OrFalse(timing.every.map(span)),
            OrFalse(timing.starts_at.map(moment)),
            OrFalse(timing.ends_at.map(moment)),
            span(timing.jitter),
        )
    }
}

/// `[queue, priority, group, needs, retry, timeout, retain, expires_in, body, bytes]`.
#[derive(Serialize)]
struct ScheduledArg<'a>(
    &'a str,
    i8,
    OrFalse<&'a str>,
    OrFalse<Vec<NeedArg<'a>>>,
    OrFalse<RetryArg<'a>>,
    OrFalse<u64>,
    OrFalse<u64>,
    OrFalse<u64>,
    String,
    usize,
);

impl<'a> ScheduledArg<'a> {
    fn of(job: &'a ScheduledJob) -> Self {
        let payload = job.payload.clone().unwrap_or_default();
        ScheduledArg(
            job.queue.as_str(),
            job.priority,
            OrFalse(job.group.as_ref().map(|group| group.as_str())),
            OrFalse(job.needs.as_deref().map(needs)),
            OrFalse(job.retry.as_ref().map(RetryArg)),
            OrFalse(job.timeout.map(span)),
            OrFalse(job.retain.map(span)),
            OrFalse(job.expires_in.map(span)),
            body_of(&job.kind, &payload, &job.labels, None),
            content_bytes(payload.text(), &job.labels) + ROW_BYTES,
        )
    }
}

/// `[moment, due, passed, …]`.
fn flat(moments: &[PlannedMoment]) -> Vec<u64> {
    moments.iter().flat_map(|one| [moment(one.moment), moment(one.due), one.passed]).collect()
}

/// The moments that come with a new timing.
#[derive(Serialize)]
struct FirstPlanArg<'a> {
    from: u64,
    moments: Vec<u64>,
    last: bool,
    data: &'a str,
}

/// Of `put_schedule`; an item of a set is the same without what is about one call.
#[derive(Serialize)]
pub(crate) struct ScheduleArgs<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    timing: TimingArg<'a>,
    overlap: &'static str,
    catch_up: &'static str,
    catch_up_max: u32,
    job: ScheduledArg<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<FirstPlanArg<'a>>,
    /// The settings were made of this revision of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
}

impl<'a> ScheduleArgs<'a> {
    pub(crate) fn of(
        id: &'a str,
        settings: &'a ScheduleSettings,
        plan: Option<&'a FirstPlan>,
        revision: Option<u64>,
    ) -> Self {
        let plan = plan.map(|plan| FirstPlanArg {
            from: moment(plan.from),
            moments: flat(&plan.moments),
            last: plan.last,
            data: &plan.data,
        });
        ScheduleArgs {
            id,
            owner: settings.owner.as_ref().map(Owner::as_str),
            timing: TimingArg::of(&settings.timing),
            overlap: overlap::letter(settings.overlap),
            catch_up: catch_up::letter(settings.catch_up),
            catch_up_max: settings.catch_up_max,
            job: ScheduledArg::of(&settings.job),
            plan,
            revision,
        }
    }
}

/// A schedule in a copy.
#[derive(Serialize)]
pub(crate) struct CopiedScheduleArgs<'a> {
    #[serde(flatten)]
    settings: ScheduleArgs<'a>,
    version: u64,
    era: u64,
    cursor: u64,
    decided: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_made: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_made_b: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_job: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_job: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    succeeded_at: Option<u64>,
    fired: u64,
    skipped: u64,
    missed: u64,
    created_at: u64,
    changed_at: u64,
}

impl<'a> CopiedScheduleArgs<'a> {
    pub(crate) fn of(one: &'a CopiedSchedule) -> Self {
        let (made, last, ended) =
            (one.last_made.as_ref(), one.last.as_ref(), one.last_ended.as_ref());
        CopiedScheduleArgs {
            settings: ScheduleArgs::of(one.id.as_str(), &one.settings, None, None),
            version: one.version,
            era: one.era,
            cursor: moment(one.cursor),
            decided: moment(one.decided),
            moved: one.moved.map(moment),
            paused_until: one.paused_until.map(moment),
            last_made: made.map(JobId::as_str),
            last_made_b: made.map(|job| bucket(job.as_str()).to_string()),
            last_at: last.map(|last| moment(last.at)),
            last_job: last.map(|last| last.job.as_str()),
            ended_job: ended.map(|ended| ended.job.as_str()),
            ended_state: ended.map(|ended| state::letter(ended.state)),
            ended_at: ended.map(|ended| moment(ended.finished_at)),
            succeeded_at: one.last_succeeded_at.map(moment),
            fired: one.fired,
            skipped: one.skipped,
            missed: one.missed,
            created_at: moment(one.created_at),
            changed_at: moment(one.changed_at),
        }
    }
}

/// Of `sync_schedules`.
#[derive(Serialize)]
pub(crate) struct SyncSchedulesArgs<'a> {
    pub owner: &'a str,
    pub items: Vec<ScheduleArgs<'a>>,
    /// An empty set, or one that deletes most, is meant.
    pub meant: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Of `sync_schedules_begin`.
#[derive(Serialize)]
pub(crate) struct SyncSchedulesBeginArgs<'a> {
    pub owner: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Of `sync_schedules_items`.
#[derive(Serialize)]
pub(crate) struct SyncSchedulesItemsArgs<'a> {
    pub owner: &'a str,
    pub sync: u64,
    /// Up to which id the set was compared; `""`: nothing was yet.
    pub after: &'a str,
    /// In the order of their ids, all of them behind `after`.
    pub items: Vec<ScheduleArgs<'a>>,
    /// None follows.
    pub last: bool,
}

/// Of `sync_schedules_end`.
#[derive(Serialize)]
pub(crate) struct SyncSchedulesEndArgs<'a> {
    pub owner: &'a str,
    pub sync: u64,
    pub meant: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Of `run_schedule_now`.
#[derive(Serialize)]
pub(crate) struct RunScheduleNowArgs<'a> {
    id: &'a str,
    job: &'a str,
    b: String,
    dr: RetryArg<'a>,
}

impl<'a> RunScheduleNowArgs<'a> {
    pub(crate) fn of(id: &'a str, job: &'a JobId, default: &'a Retry) -> Self {
        let b = bucket(job.as_str()).to_string();
        RunScheduleNowArgs { id, job: job.as_str(), b, dr: RetryArg(default) }
    }
}

/// Of `fire`.
#[derive(Serialize)]
pub(crate) struct FireArgs<'a> {
    dr: RetryArg<'a>,
}

impl<'a> FireArgs<'a> {
    pub(crate) fn of(default: &'a Retry) -> Self {
        FireArgs { dr: RetryArg(default) }
    }
}

/// Of `plan`.
#[derive(Serialize)]
pub(crate) struct PlanArgs<'a> {
    plans: Vec<PlanArg<'a>>,
}

#[derive(Serialize)]
struct PlanArg<'a> {
    id: &'a str,
    version: u64,
    after: u64,
    moments: Vec<u64>,
    last: bool,
    data: &'a str,
}

impl<'a> PlanArgs<'a> {
    pub(crate) fn of(plans: &'a [Plan]) -> Self {
        let one = |plan: &'a Plan| PlanArg {
            id: plan.schedule.as_str(),
            version: plan.version,
            after: moment(plan.after),
            moments: flat(&plan.moments),
            last: plan.last,
            data: &plan.data,
        };
        PlanArgs { plans: plans.iter().map(one).collect() }
    }
}

/// Which schedule, and how long something is to last.
#[derive(Serialize)]
struct ScheduleNamed<'a> {
    id: &'a str,
    #[serde(flatten)]
    later: Later,
}

fn named(id: &tenure_core::names::ScheduleId, until: Option<Until>) -> Packed {
    let later = until.map_or_else(Later::default, Later::of);
    pack(&ScheduleNamed { id: id.as_str(), later })
}

impl OneCall for GetSchedule {
    fn args(&self) -> Packed {
        named(&self.schedule, None)
    }
}

impl OneCall for DeleteSchedule {
    fn args(&self) -> Packed {
        named(&self.schedule, None)
    }
}

impl OneCall for ResumeSchedule {
    fn args(&self) -> Packed {
        named(&self.schedule, None)
    }
}

impl OneCall for PauseSchedule {
    fn args(&self) -> Packed {
        named(&self.schedule, self.until)
    }
}

/// Of `list_schedules`.
#[derive(Serialize)]
pub(crate) struct ListSchedulesArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a str>,
}

impl<'a> ListSchedulesArgs<'a> {
    pub(crate) fn of(list: &'a ListSchedules, max: usize, after: Option<&'a str>) -> Self {
        ListSchedulesArgs { owner: list.owner.as_ref().map(Owner::as_str), max, after }
    }
}
