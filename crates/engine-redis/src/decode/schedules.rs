//! Schedules in replies, and what a tick asks of a calendar.

use serde::Deserialize;
use tenure_core::copy::{CopiedSchedule, CopiedSet, Item};
use tenure_core::names::{Group, JobId, Owner, QueueName, ScheduleId};
use tenure_core::schedule::{
    LastEnded, LastFired, NextBasis, PlanWanted, ScheduleSettings, ScheduleView, ScheduledJob,
    SyncedSchedules, TimingSpec,
};
use tenure_core::sentences::Coming;
use tenure_core::time::{Moment, Span};
use tenure_engine::schedules::show_next;

use super::copied::{Copied, endless, until};
use super::jobs::{NeedReply, RetryReply, State, moment, needs, span};
use super::lenient::Maybe;
use super::{Blobs, FromWire, Malformed};
use crate::alphabet::{catch_up, overlap};
use crate::encode::{FOREVER_US, JobBody, read_body};

/// `[cron, zone, every, starts_at, ends_at, jitter]`.
#[derive(Deserialize)]
pub(crate) struct TimingReply(
    Maybe<String>,
    Maybe<String>,
    Maybe<u64>,
    Maybe<u64>,
    Maybe<u64>,
    u64,
);

impl TimingReply {
    fn read(self) -> TimingSpec {
        TimingSpec {
            cron: self.0.0,
            zone: self.1.0,
            every: span(self.2),
            starts_at: moment(self.3),
            ends_at: moment(self.4),
            jitter: Span::from_us(self.5),
        }
    }
}

/// `[queue, priority, group, needs, retry, timeout, retain, expires_in, body, bytes]`.
#[derive(Deserialize)]
struct ScheduledReply(
    QueueName,
    i8,
    Maybe<Group>,
    Maybe<Vec<NeedReply>>,
    Maybe<RetryReply>,
    Maybe<u64>,
    Maybe<u64>,
    Maybe<u64>,
    String,
    serde::de::IgnoredAny,
);

impl ScheduledReply {
    fn of(packed: &[u8]) -> Result<ScheduledJob, Malformed> {
        let job: ScheduledReply =
            rmp_serde::from_slice(packed).map_err(|_| Malformed("the job of a schedule"))?;
        job.read()
    }

    fn read(self) -> Result<ScheduledJob, Malformed> {
        let body = read_body(self.8.as_bytes()).ok_or(Malformed("the body of a schedule's job"))?;
        let JobBody { kind, payload, labels, .. } = body;
        Ok(ScheduledJob {
            queue: self.0,
            kind,
            payload: Some(payload),
            priority: self.1,
            group: self.2.0,
            needs: self.3.0.map(needs),
            retry: self.4.0.map(RetryReply::read).transpose()?,
            timeout: span(self.5),
            retain: span(self.6),
            expires_in: span(self.7),
            labels,
        })
    }
}

/// What happens next, and of it a moment or a job.
#[derive(Deserialize)]
#[serde(untagged)]
enum ComingOf {
    At(u64),
    Job(JobId),
}

/// What is set of a schedule, but for its job: where that is.
#[derive(Deserialize)]
struct SettingsReply {
    #[serde(default)]
    owner: Maybe<Owner>,
    timing: TimingReply,
    overlap: String,
    catch_up: String,
    catch_up_max: u32,
    job: usize,
}

impl SettingsReply {
    fn read(self, blobs: &Blobs) -> Result<ScheduleSettings, Malformed> {
        Ok(ScheduleSettings {
            owner: self.owner.0,
            timing: self.timing.read(),
            overlap: overlap::read(&self.overlap).unwrap_or_default(),
            catch_up: catch_up::read(&self.catch_up).unwrap_or_default(),
            catch_up_max: self.catch_up_max,
            job: ScheduledReply::of(blobs.get(self.job)?)?,
        })
    }
}

/// What fired last, and what ended last.
#[derive(Deserialize)]
struct LastsReply {
    #[serde(default)]
    last_at: Maybe<u64>,
    #[serde(default)]
    last_job: Maybe<JobId>,
    #[serde(default)]
    ended_job: Maybe<JobId>,
    #[serde(default)]
    ended_state: Maybe<State>,
    #[serde(default)]
    ended_at: Maybe<u64>,
}

impl LastsReply {
    fn read(self) -> (Option<LastFired>, Option<LastEnded>) {
        let last = self.last_at.0.zip(self.last_job.0);
        let last = last.map(|(at, job)| LastFired { at: Moment::from_us(at), job });
        let ended = match (self.ended_job.0, self.ended_state.0, moment(self.ended_at)) {
            (Some(job), Some(State(state)), Some(finished_at)) => {
                Some(LastEnded { job, state, finished_at })
            }
            _ => None,
        };
        (last, ended)
    }
}

/// What a schedule has done, and when it was made and changed.
#[derive(Deserialize)]
struct HistoryReply {
    #[serde(flatten)]
    lasts: LastsReply,
    #[serde(default)]
    succeeded_at: Maybe<u64>,
    fired: u64,
    skipped: u64,
    missed: u64,
    created_at: u64,
    changed_at: u64,
}

/// A schedule.
#[derive(Deserialize)]
pub(crate) struct ScheduleReply {
    id: ScheduleId,
    #[serde(flatten)]
    settings: SettingsReply,
    what: String,
    #[serde(default)]
    of: Maybe<ComingOf>,
    after: u64,
    #[serde(default)]
    moved: Maybe<u64>,
    #[serde(default)]
    anchor: Maybe<u64>,
    #[serde(default)]
    paused_until: Maybe<u64>,
    #[serde(default)]
    ended: bool,
    unfinished: u64,
    #[serde(flatten)]
    history: HistoryReply,
    revision: u64,
}

/// A schedule, and what has a meaning for this engine alone.
pub(crate) struct ShownSchedule {
    pub view: ScheduleView,
    /// Grows with each change of its settings.
    pub revision: u64,
}

impl ScheduleReply {
    /// `whole`: with the next five moments; otherwise `next_at` alone.
    pub(crate) fn shown(self, blobs: &Blobs, whole: bool) -> Result<ShownSchedule, Malformed> {
        let paused = moment(self.paused_until);
        let endless = paused.is_some_and(|until| until.us() >= FOREVER_US);
        let (at, of_job) = match self.of.0 {
            Some(ComingOf::At(at)) => (Some(Moment::from_us(at)), None),
            Some(ComingOf::Job(job)) => (None, Some(job)),
            None => (None, None),
        };
        let coming = match (self.what.as_str(), at) {
            ("paused", until) => Coming::Paused(until),
            ("ended", _) => Coming::Ended,
            ("waits", _) => Coming::WaitsForJob(of_job),
            ("due", _) => Coming::IsDue,
            ("fires", Some(at)) => Coming::Fires(at),
            ("planned", _) => Coming::IsPlanned,
            _ => return Err(Malformed("what a schedule does next")),
        };
        let (last, last_ended) = self.history.lasts.read();
        let basis = NextBasis {
            after: Moment::from_us(self.after),
            moved: moment(self.moved),
            anchor: moment(self.anchor),
            is_endless_pause: endless,
        };
        let mut view = ScheduleView {
            id: self.id,
            settings: self.settings.read(blobs)?,
            summary: coming.to_string(),
            next_at: None,
            next: None,
            moved: basis.moved.is_some() && !self.ended,
            paused: paused.is_some(),
            paused_until: paused.filter(|_| !endless),
            ended: self.ended,
            unfinished: self.unfinished,
            last,
            last_ended,
            last_succeeded_at: moment(self.history.succeeded_at),
            fired: self.history.fired,
            skipped: self.history.skipped,
            missed: self.history.missed,
            created_at: Moment::from_us(self.history.created_at),
            changed_at: Moment::from_us(self.history.changed_at),
        };
        show_next(&mut view, &basis, whole);
        Ok(ShownSchedule { view, revision: self.revision })
    }
}

/// A schedule in a copy.
#[derive(Deserialize)]
pub(crate) struct ScheduleCopied {
    id: ScheduleId,
    #[serde(flatten)]
    settings: SettingsReply,
    version: u64,
    era: u64,
    cursor: u64,
    decided: u64,
    #[serde(default)]
    moved: Maybe<u64>,
    #[serde(default)]
    paused_until: Maybe<u64>,
    #[serde(default)]
    last_made: Maybe<JobId>,
    #[serde(flatten)]
    history: HistoryReply,
}

impl Copied for ScheduleCopied {
    fn item(self, blobs: &Blobs) -> Result<Item, Malformed> {
        let (last, last_ended) = self.history.lasts.read();
        Ok(Item::Schedule(Box::new(CopiedSchedule {
            id: self.id,
            settings: self.settings.read(blobs)?,
            version: self.version,
            era: self.era,
            cursor: endless(self.cursor),
            decided: Moment::from_us(self.decided),
            moved: moment(self.moved),
            paused_until: until(self.paused_until),
            last_made: self.last_made.0,
            last,
            last_ended,
            last_succeeded_at: moment(self.history.succeeded_at),
            fired: self.history.fired,
            skipped: self.history.skipped,
            missed: self.history.missed,
            created_at: Moment::from_us(self.history.created_at),
            changed_at: Moment::from_us(self.history.changed_at),
        })))
    }
}

/// The version of the set of an owner in a copy.
#[derive(Deserialize)]
pub(crate) struct SetCopied {
    owner: Owner,
    version: u64,
}

impl Copied for SetCopied {
    fn item(self, _: &Blobs) -> Result<Item, Malformed> {
        Ok(Item::Set(CopiedSet { owner: self.owner, version: self.version }))
    }
}

impl FromWire for Box<ScheduleView> {
    type Wire = ScheduleReply;
    fn read(wire: ScheduleReply, blobs: &Blobs) -> Result<Self, Malformed> {
        wire.shown(blobs, true).map(|shown| Box::new(shown.view))
    }
}

/// What a put is answered; nothing but `again` if the schedule was changed meanwhile.
#[derive(Deserialize)]
pub(crate) struct PutScheduleReply {
    #[serde(default)]
    pub view: Maybe<ScheduleReply>,
    #[serde(default)]
    pub created: bool,
    #[serde(default)]
    pub again: bool,
}

/// How far a set of schedules is.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SyncedSchedulesReply {
    /// Nothing is left to do.
    pub done: bool,
    /// The number by which it goes on.
    pub sync: u64,
    /// Another set came between: it is to be compared from the start.
    pub again: bool,
    added: u64,
    updated: u64,
    unchanged: u64,
    deleted: u64,
}

impl SyncedSchedulesReply {
    pub(crate) fn read(self) -> SyncedSchedules {
        let SyncedSchedulesReply { added, updated, unchanged, deleted, .. } = self;
        SyncedSchedules { added, updated, unchanged, deleted }
    }
}

/// How far a set of schedules was compared.
#[derive(Deserialize)]
pub(crate) struct ComparedReply {
    /// Up to this id.
    pub after: String,
    /// To its end.
    #[serde(default)]
    pub whole: bool,
    /// Another set came between: it is to be compared from the start.
    #[serde(default)]
    pub again: bool,
}

/// What `fire` is answered.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct FireReply {
    /// Moments are due still.
    pub more: bool,
}

/// A schedule that wants a plan: `[id, version, timing, after, keeps]`.
#[derive(Deserialize)]
pub(crate) struct WantedReply(ScheduleId, u64, TimingReply, u64, usize);

impl WantedReply {
    pub(crate) fn read(self) -> PlanWanted {
        PlanWanted {
            schedule: self.0,
            version: self.1,
            timing: self.2.read(),
            after: Moment::from_us(self.3),
            keeps: self.4,
        }
    }
}
