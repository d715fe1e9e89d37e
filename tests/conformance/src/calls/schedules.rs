//! Short words for the settings of schedules, and short calls.

use std::future::Future;

use tenure_core::job::PushedJob;
use tenure_core::names::{Owner, ScheduleId};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_core::schedule::{
    CatchUp, Overlap, ScheduleSettings, ScheduleView, ScheduledJob, SyncedSchedules, TimingSpec,
};
use tenure_core::time::{Moment, Span};

use crate::bench::Bench;
use crate::words::*;

pub(crate) fn schedule(id: &str) -> ScheduleId {
    ScheduleId::parse(id).expect("a schedule id that is well formed")
}

pub(crate) fn owner(name: &str) -> Owner {
    Owner::parse(name).expect("an owner that is well formed")
}

/// A schedule whose jobs go to the queue `q`.
pub(crate) fn settings(timing: TimingSpec) -> ScheduleSettings {
    ScheduleSettings {
        owner: None,
        timing,
        overlap: Overlap::Skip,
        catch_up: CatchUp::Last,
        catch_up_max: 100,
        job: ScheduledJob::new(queue("q")),
    }
}

/// An interval with a phase of its own.
pub(crate) fn every(span: Span) -> ScheduleSettings {
    settings(TimingSpec { every: Some(span), ..TimingSpec::default() })
}

/// An interval that starts at a moment.
pub(crate) fn every_from(span: Span, start: Moment) -> ScheduleSettings {
    let starts_at = Some(start);
    settings(TimingSpec { every: Some(span), starts_at, ..TimingSpec::default() })
}

pub(crate) fn cron(expression: &str, zone: &str) -> ScheduleSettings {
    let (cron, zone) = (Some(expression.to_owned()), Some(zone.to_owned()));
    settings(TimingSpec { cron, zone, ..TimingSpec::default() })
}

/// Builder methods for settings.
pub(crate) trait ScheduleWords: Sized {
    fn overlap(self, overlap: Overlap) -> Self;
    fn catch_up(self, catch_up: CatchUp) -> Self;
    fn catch_up_max(self, most: u32) -> Self;
    fn jitter(self, span: Span) -> Self;
    fn until(self, end: Moment) -> Self;
    fn of(self, name: &str) -> Self;
    fn making(self, job: impl FnOnce(&mut ScheduledJob)) -> Self;
}
impl ScheduleWords for ScheduleSettings {
    fn overlap(self, overlap: Overlap) -> Self {
        ScheduleSettings { overlap, ..self }
    }
    fn catch_up(self, catch_up: CatchUp) -> Self {
        ScheduleSettings { catch_up, ..self }
    }
    fn catch_up_max(self, catch_up_max: u32) -> Self {
        ScheduleSettings { catch_up_max, ..self }
    }
    fn jitter(mut self, span: Span) -> Self {
        self.timing.jitter = span;
        self
    }
    fn until(mut self, end: Moment) -> Self {
        self.timing.ends_at = Some(end);
        self
    }
    fn of(self, name: &str) -> Self {
        ScheduleSettings { owner: Some(owner(name)), ..self }
    }
    fn making(mut self, job: impl FnOnce(&mut ScheduledJob)) -> Self {
        job(&mut self.job);
        self
    }
}

/// The id `ID@MOMENT` of the job of an occurrence.
pub(crate) fn job_at(id: &str, moment: Moment) -> String {
    tenure_core::moments::moment_id(id, moment)
}

impl Bench {
    #[track_caller]
    pub(crate) fn put(
        &self,
        id: &str,
        settings: ScheduleSettings,
    ) -> impl Future<Output = ScheduleView> + Send + use<> {
        let call = self.ok(PutSchedule {
            schedule: schedule(id),
            settings: Box::new(settings),
            plan: None,
        });
        async move { *call.await.view }
    }
    #[track_caller]
    pub(crate) fn no_put(
        &self,
        code: Code,
        id: &str,
        settings: ScheduleSettings,
    ) -> impl Future<Output = Refusal> + Send + use<> {
        self.refused(
            code,
            PutSchedule { schedule: schedule(id), settings: Box::new(settings), plan: None },
        )
    }
    #[track_caller]
    pub(crate) fn schedule(&self, id: &str) -> impl Future<Output = ScheduleView> + Send + use<> {
        let call = self.ok(GetSchedule { schedule: schedule(id) });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn run_schedule(
        &self,
        id: &str,
        job: &str,
    ) -> impl Future<Output = PushedJob> + Send + use<> {
        let call = self.ok(RunScheduleNow { schedule: schedule(id), id: Some(job_id(job)) });
        async move { *call.await }
    }
    #[track_caller]
    pub(crate) fn sync_of(
        &self,
        name: &str,
        set: Vec<(&str, ScheduleSettings)>,
    ) -> impl Future<Output = SyncedSchedules> + Send + use<> {
        self.ok(sync_of(name, set))
    }

    /// How often it fired, was skipped, and was missed.
    pub(crate) async fn counted(&self, id: &str) -> (u64, u64, u64) {
        let view = self.schedule(id).await;
        (view.fired, view.skipped, view.missed)
    }

    /// Lets time pass in one jump up to a future moment.
    pub(crate) async fn leap_to(&self, moment: Moment) {
        self.leap(moment.since(self.now())).await;
    }
}

/// The whole set of an owner.
pub(crate) fn sync_of(name: &str, set: Vec<(&str, ScheduleSettings)>) -> SyncSchedules {
    SyncSchedules {
        owner: owner(name),
        schedules: set.into_iter().map(|(id, one)| (schedule(id), one)).collect(),
        meant: Meant::Ask,
        version: None,
    }
}
