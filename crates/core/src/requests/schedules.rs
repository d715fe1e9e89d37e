//! Requests about schedules. The process that handles a call computes the plan in it; HTTP never carries a plan, since
//! the server computes its own.

use super::{Effect, Meant, Page, Patch};
use crate::bounded::unbounded;
use crate::lease::Later;
use crate::names::{JobId, Owner, ScheduleId};
use crate::refusal::Refusal;
use crate::schedule::{CatchUp, FirstPlan, Overlap, ScheduleSettings, ScheduledJob};
use crate::sentences::BodyRefusal;
use crate::time::{Moment, Span};

/// Lists schedules in the order of their ids.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListSchedules {
    /// Only schedules of this owner.
    pub owner: Option<Owner>,
    /// Shows the payloads of their jobs.
    pub full: bool,
    pub page: Page,
}

/// Shows one schedule, with its next moments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetSchedule {
    pub schedule: ScheduleId,
}

/// Replaces all settings of a schedule; makes it if it is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutSchedule {
    pub schedule: ScheduleId,
    pub settings: Box<ScheduleSettings>,
    /// The first moments of a cron expression; the engine fills it in.
    pub plan: Option<Box<FirstPlan>>,
}

/// Changes the named settings of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchSchedule {
    pub schedule: ScheduleId,
    /// `Reset` means no owner.
    pub owner: Patch<Owner>,
    /// Setting it removes `every`.
    pub cron: Patch<String>,
    /// Zone of `cron`; `Reset` means `UTC`.
    pub zone: Patch<String>,
    /// Setting it removes `cron` and `zone`.
    pub every: Patch<Span>,
    /// `Reset` means no start.
    pub starts_at: Patch<Moment>,
    /// `Reset` means no end.
    pub ends_at: Patch<Moment>,
    /// `Reset` means no jitter.
    pub jitter: Patch<Span>,
    /// `Reset` means the default, [`Overlap::Skip`].
    pub overlap: Patch<Overlap>,
    /// `Reset` means the default, [`CatchUp::Last`].
    pub catch_up: Patch<CatchUp>,
    /// `Reset` means 100 moments.
    pub catch_up_max: Patch<u32>,
    /// The whole job; it cannot be reset.
    pub job: Patch<Box<ScheduledJob>>,
    /// The first moments of a cron expression; the engine fills it in.
    pub plan: Option<Box<FirstPlan>>,
}

impl PatchSchedule {
    /// A patch that changes nothing yet.
    pub fn new(schedule: ScheduleId) -> Self {
        PatchSchedule {
            schedule,
            owner: Patch::Keep,
            cron: Patch::Keep,
            zone: Patch::Keep,
            every: Patch::Keep,
            starts_at: Patch::Keep,
            ends_at: Patch::Keep,
            jitter: Patch::Keep,
            overlap: Patch::Keep,
            catch_up: Patch::Keep,
            catch_up_max: Patch::Keep,
            job: Patch::Keep,
            plan: None,
        }
    }

    /// The settings after the patch.
    ///
    /// # Errors
    /// Refuses a zone beside an interval, a timing of neither kind, and a reset of the job.
    pub fn applied(self, old: &ScheduleSettings) -> Result<ScheduleSettings, Refusal> {
        let mut settings = old.clone();
        self.owner.apply(&mut settings.owner);
        let timing = &mut settings.timing;
        if let Patch::Set(_) = self.cron {
            timing.every = None;
            timing.zone = timing.zone.take().or_else(|| Some("UTC".to_owned()));
        }
        if let Patch::Set(_) = self.every {
            (timing.cron, timing.zone) = (None, None);
        }
        self.cron.apply(&mut timing.cron);
        self.every.apply(&mut timing.every);
        match (self.zone, &timing.cron) {
            (Patch::Keep, _) | (Patch::Reset, None) => {}
            (Patch::Reset, Some(_)) => timing.zone = Some("UTC".to_owned()),
            (Patch::Set(zone), Some(_)) => timing.zone = Some(zone),
            (Patch::Set(_), None) => {
                let (one, other) = ("every".into(), "zone".into());
                return Err(Refusal::from(BodyRefusal::FieldsExclude { one, other }).at("/zone"));
            }
        }
        if timing.cron.is_none() && timing.every.is_none() {
            return Err(Refusal::from(BodyRefusal::TimingMissing).at("/cron"));
        }
        self.starts_at.apply(&mut timing.starts_at);
        self.ends_at.apply(&mut timing.ends_at);
        self.jitter.apply_or_default(&mut timing.jitter);
        self.overlap.apply_or_default(&mut settings.overlap);
        self.catch_up.apply_or_default(&mut settings.catch_up);
        match self.catch_up_max {
            Patch::Keep => {}
            Patch::Reset => settings.catch_up_max = crate::bounds::CATCH_UP_DEFAULT,
            Patch::Set(most) => settings.catch_up_max = most,
        }
        match self.job {
            Patch::Keep => {}
            Patch::Set(job) => settings.job = *job,
            Patch::Reset => {
                let case = BodyRefusal::FieldMissing {
                    what: "a schedule".into(),
                    name: "job".into(),
                    form: "\"job\": {\"queue\": \"news\"}".into(),
                };
                return Err(Refusal::from(case).at("/job"));
            }
        }
        Ok(settings)
    }
}

/// Forgets a schedule; its jobs go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteSchedule {
    pub schedule: ScheduleId,
}

/// Lets no moment fire for a while; moments of the pause are not made up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseSchedule {
    pub schedule: ScheduleId,
    /// Until when; `None`: until it is resumed.
    pub until: Option<Later>,
}

/// Ends the pause of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeSchedule {
    pub schedule: ScheduleId,
}

/// Makes a job of a schedule at once, beside its moments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunScheduleNow {
    pub schedule: ScheduleId,
    /// The id of the job, by which the call can be repeated; the engine makes one if it is absent.
    pub id: Option<JobId>,
}

impl RunScheduleNow {
    /// Without an id, each sending may make a job.
    pub(super) fn effect(&self) -> Effect {
        if self.id.is_some() { Effect::Sets } else { Effect::Adds }
    }
}

/// Makes a list the whole set of an owner's schedules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncSchedules {
    pub owner: Owner,
    /// The whole set, of any length; no id appears twice.
    pub schedules: Vec<(ScheduleId, ScheduleSettings)>,
    /// `?force` of the call.
    pub meant: Meant,
    /// `?version`: a number below that of the last sync is refused.
    pub version: Option<u64>,
}

unbounded! { GetSchedule DeleteSchedule ResumeSchedule RunScheduleNow }
