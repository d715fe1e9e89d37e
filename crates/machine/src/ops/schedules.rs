//! Schedules: put, patch, delete, pause, resume, run-now, a synced set of an owner, and `next_in`.

use crate::time::firing::SKIPPED_BY_JOB;
use std::collections::BTreeSet;
use tenure_core::events::{About, EventType};
use tenure_core::flow::Kinship;

use crate::answer::{Context, acts};
use crate::ops::push::PushedBy;
use crate::ops::push_plan::PushedOne;
use crate::rows::schedule_text::job_text;
use crate::rows::stored::Stands;
use crate::rows::{Archive, Kind};
use crate::state::{LiveScheduleId, Origin, Schedule, Seq, Space};
use tenure_core::job::MadeBy;
use tenure_core::lease::Later;
use tenure_core::moments::{first_cursor, round_up};
use tenure_core::names::{JobId, JobRef, Owner, ScheduleId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, Listed, Meant, PatchSchedule, PauseSchedule, Put,
    PutSchedule, ResumeSchedule, RunScheduleNow, SyncSchedules,
};
use tenure_core::schedule::{
    FirstPlan, NextBasis, Overlap, ScheduleSettings, ScheduleView, ScheduledJob, SyncedSchedules,
    TimingSpec,
};
use tenure_core::sentences::{Coming, ScheduleRefusal, TimingRefusal};
use tenure_core::time::{Moment, Span};

/// A schedule without its next occurrences, which only a calendar knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithoutNext {
    /// The machine's part of the view.
    pub view: Box<ScheduleView>,
    /// The start for the computation of the next occurrences.
    pub basis: NextBasis,
}

/// A job that a run-now made or found, for the reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushedAt {
    /// The job, new or found.
    pub one: PushedOne,
    /// The part of its state that is not in its row.
    pub stands: Stands,
}

/// A list is shown with `next_at` alone.
pub type ListedWithoutNext = Listed<WithoutNext>;

impl Space {
    pub(crate) fn schedule_named(&self, id: &ScheduleId) -> Result<LiveScheduleId, Refusal> {
        let slot = self.schedules.with_id(id.as_str());
        slot.filter(|slot| !self.schedules.read(*slot).shell)
            .ok_or_else(|| ScheduleRefusal::NotFound { schedule: id.clone() }.into())
    }

    /// Checks the job of a schedule, as a push would.
    fn check_scheduled(&self, settings: &ScheduleSettings) -> Result<(), Refusal> {
        let job = &settings.job;
        let payload = job.payload.clone().unwrap_or_default();
        self.check_needs_exist(job.needs.as_deref(), &job.queue, &payload)
            .map_err(|no| no.below("/job"))
    }

    /// Checks that a timing has an occurrence after its first cursor.
    fn check_fires(
        &self,
        id: &ScheduleId,
        old: Option<LiveScheduleId>,
        timing: &TimingSpec,
        plan: Option<&FirstPlan>,
        now: Moment,
    ) -> Result<(), Refusal> {
        if old.is_some_and(|slot| self.schedules.read(slot).timing == *timing) {
            return Ok(());
        }
        let never = match plan {
            _ if timing.every.is_some() => {
                let mut probe = Schedule::shell(id.clone());
                probe.timing = timing.clone();
                let before = old.and_then(|slot| self.schedules.read(slot).timing.starts_at);
                probe.cursor = first_cursor(timing.starts_at, before, now);
                probe.has_ended()
            }
            Some(plan) if plan.timing == *timing => plan.last && plan.moments.is_empty(),
            _ => false,
        };
        let pointer = if timing.cron.is_some() { "/cron" } else { "/every" };
        if never { Err(Refusal::from(TimingRefusal::NeverFires).at(pointer)) } else { Ok(()) }
    }

    fn put_schedule(
        &mut self,
        id: &ScheduleId,
        settings: ScheduleSettings,
        plan: Option<Box<FirstPlan>>,
        now: Moment,
    ) -> Result<(LiveScheduleId, bool), Refusal> {
        let old = self.schedule_named(id).ok();
        self.check_scheduled(&settings)?;
        self.check_fires(id, old, &settings.timing, plan.as_deref(), now)?;
        let (slot, _) = self.set_schedule(id, settings, plan, now);
        Ok((slot, old.is_none()))
    }

    /// Gives a schedule these settings; equal ones change nothing. Returns true if it changed.
    fn set_schedule(
        &mut self,
        id: &ScheduleId,
        settings: ScheduleSettings,
        plan: Option<Box<FirstPlan>>,
        now: Moment,
    ) -> (LiveScheduleId, bool) {
        let slot = self.schedules.or_shell(id);
        let there = self.schedules.read(slot);
        let is_new = there.shell;
        if !is_new && settings_of(&there) == settings {
            return (slot, false);
        }
        let had_ended = !is_new && there.has_ended();
        self.schedules.leave_orders(slot);
        if is_new {
            self.schedules.begin(slot, now);
        }
        let ScheduleSettings { owner, timing, overlap, catch_up, catch_up_max, job } = settings;
        self.schedules.set_owner(slot, owner);
        let s = self.schedules.open(slot);
        let before = if is_new { None } else { s.timing.starts_at };
        let new_timing = is_new || s.timing != timing;
        let overlap_changed = s.overlap != overlap;
        (s.overlap, s.catch_up, s.catch_up_max) = (overlap, catch_up, catch_up_max);
        self.set_scheduled_job(slot, job_text(&job));
        if new_timing {
            let version = self.lines.next_arrival();
            let s = self.schedules.open(slot);
            (s.version, s.era, s.changed_at) = (version, version, now);
            (s.timing, s.moved, s.awaits_job) = (timing, None, false);
            let cursor = first_cursor(s.timing.starts_at, before, now).max(s.decided);
            let cursor = s.pause(now).unwrap_or(cursor);
            s.begin_after(cursor);
            if let Some(plan) = plan {
                s.take_first_plan(*plan);
            }
            s.wanted_at = None;
        } else if overlap_changed {
            self.schedules.open(slot).awaits_job = false;
        }
        self.schedules.mark(slot);
        let again = overlap_changed && !new_timing;
        self.schedules.order(slot, again.then_some(now), now);
        self.schedule_happens(slot, EventType::ScheduleChanged, About::default(), now);
        self.tell_schedule_end(slot, had_ended, now);
        (slot, true)
    }

    fn delete_schedule(&mut self, slot: LiveScheduleId, now: Moment) {
        self.schedule_happens(slot, EventType::ScheduleDeleted, About::default(), now);
        self.forget_schedule_row(slot);
        self.schedules.delete(slot);
    }

    fn pause_schedule(&mut self, slot: LiveScheduleId, until: Option<Later>, now: Moment) {
        let until = until.map_or(Moment::MAX, |later| later.moment(now));
        let until = Some(until).filter(|until| *until > now);
        let paused = self.schedules.read(slot).pause(now);
        if until == paused {
            return;
        }
        let ends = until.filter(|until| *until < Moment::MAX);
        let (kind, about) = match until {
            Some(_) => (EventType::SchedulePaused, About { until: ends, ..About::default() }),
            None => (EventType::ScheduleResumed, About::default()),
        };
        self.schedule_happens(slot, kind, about, now);
        self.begin_again(slot, until, now);
    }

    fn resume_schedule(&mut self, slot: LiveScheduleId, now: Moment) {
        if self.schedules.read(slot).pause(now).is_some() {
            self.schedule_happens(slot, EventType::ScheduleResumed, About::default(), now);
            self.begin_again(slot, None, now);
        }
    }

    /// A pause begins, changes or is ended: occurrences before its end do not count.
    fn begin_again(&mut self, slot: LiveScheduleId, until: Option<Moment>, now: Moment) {
        self.schedules.leave_orders(slot);
        let version = self.lines.next_arrival();
        let s = self.schedules.open(slot);
        (s.version, s.paused_until, s.awaits_job, s.wanted_at) = (version, until, false, None);
        let cursor = until.unwrap_or(now).max(s.decided);
        s.begin_after(cursor);
        self.schedules.mark(slot);
        self.schedules.order(slot, None, now);
    }

    // ---- run-now ----

    fn run_schedule_now(
        &mut self,
        slot: LiveScheduleId,
        id: Option<JobId>,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<PushedOne, Refusal> {
        let Some(id) = id else { panic!("the engine gives every job an id") };
        let s = self.schedules.read(slot);
        let mut job = job_of(&s);
        let expires_at = job.expires_in.take().map(|span| now.plus(span));
        let mut job = job.made(id.clone(), now);
        job.expires_at = expires_at;
        let known = self.jobs.by_id(id.as_str()).is_some()
            || self.ended(&id, archive).is_some_and(|there| there.until > now);
        if !known && s.overlap != Overlap::Allow && s.unfinished > 0 {
            return self.run_unfinished_now(slot, archive, now);
        }
        let origin = Origin { by: MadeBy { id: s.id.clone(), at: None }, era: s.era };
        let mut pushed = {
            let by = PushedBy { origin: Some(&origin), ..PushedBy::default() };
            self.push_from((vec![job], Kinship::default()), by, next_seq, archive, now)?
        };
        match pushed.pop() {
            Some(one) => Ok(one),
            None => panic!("a push of one job answered none"),
        }
    }

    /// Makes the existing job ready, as run-now of a job does.
    fn run_unfinished_now(
        &mut self,
        slot: LiveScheduleId,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<PushedOne, Refusal> {
        let s = self.schedules.read(slot);
        let schedule = s.id.clone();
        let Some(job) = s.last_made.clone() else {
            return Err(ScheduleRefusal::NotFound { schedule }.into());
        };
        if self.jobs.by_id(job.as_str()).is_none() {
            return Err(ScheduleRefusal::JobEnded { schedule, job }.into());
        }
        let seq = self.run_job_now(&JobRef::Id(job.clone()), archive, now)?;
        let known = self.known_job(seq, &job, archive);
        let live = self.jobs.by_seq(seq);
        let unasked = live.is_some_and(|live| {
            let queue = self.jobs.queue_of(live);
            self.is_unasked(queue, now)
        });
        Ok(PushedOne { seq, id: job, duplicate: true, replaced: false, unasked, known })
    }

    // ---- next_in ----

    /// A job of a schedule sets the next occurrence. Returns its time: `Some(None)` if the schedule has no occurrence
    /// any more, `None` if this job may not move it.
    pub(crate) fn move_schedule(
        &mut self,
        origin: &Origin,
        job: &JobId,
        next_in: Span,
        now: Moment,
    ) -> Option<Option<Moment>> {
        let slot = self.schedule_named(&origin.by.id).ok()?;
        if self.schedules.read(slot).era != origin.era {
            return None;
        }
        self.schedules.leave_orders(slot);
        let version = self.lines.next_arrival();
        let s = self.schedules.open(slot);
        let had_ended = s.has_ended();
        if let Some(due) = s.due_moments(now) {
            let newest = s.due_moment(due, due.count - 1).moment;
            let skipped = due.count + s.decide(due, due.count);
            s.skipped += skipped;
            self.skipped_some(slot, newest, (SKIPPED_BY_JOB, skipped), now);
        }
        let s = self.schedules.open(slot);
        let first = s.timing.starts_at.map_or(Moment::ZERO, round_up);
        let moved = round_up(now.plus(next_in)).max(first);
        (s.version, s.awaits_job, s.wanted_at) = (version, false, None);
        s.moved = Some(moved);
        let cursor = s.pause(now).unwrap_or(now).max(s.decided);
        s.begin_after(cursor);
        let next = (!s.has_ended()).then_some(moved);
        self.schedules.mark(slot);
        self.schedules.order(slot, None, now);
        if next.is_some() {
            let about = About { job: Some(job.clone()), moment: next, ..About::default() };
            self.schedule_happens(slot, EventType::ScheduleMoved, about, now);
        }
        self.tell_schedule_end(slot, had_ended, now);
        Some(next)
    }

    // ---- Sets ----

    fn sync_schedules(
        &mut self,
        sync: SyncSchedules,
        now: Moment,
    ) -> Result<SyncedSchedules, Refusal> {
        let SyncSchedules { owner, mut schedules, meant, version } = sync;
        for (_, settings) in &mut schedules {
            settings.owner = Some(owner.clone());
        }
        let last = self.schedules.version_of_set(&owner);
        if let Some(given) = version.filter(|given| *given < last) {
            let no = Refusal::from(ScheduleRefusal::OlderVersion { given, last });
            return Err(no.at("/query/version"));
        }
        for (index, (id, settings)) in schedules.iter().enumerate() {
            let old = self.schedule_named(id).ok();
            self.check_set_item(id, old, &owner, settings, now).map_err(|no| no.item(index))?;
        }
        let named: BTreeSet<&str> = schedules.iter().map(|(id, _)| id.as_str()).collect();
        let mut absent: Vec<LiveScheduleId> = self.schedules.behind(Some(&owner), None).collect();
        let there = absent.len() as u64;
        absent.retain(|slot| !named.contains(self.schedules.id_of(*slot)));
        if meant == Meant::Ask {
            let deletes = absent.len() as u64;
            if schedules.is_empty() {
                return Err(Refusal::from(ScheduleRefusal::EmptySet { owner }).at(""));
            }
            if deletes * 2 > there {
                return Err(Refusal::from(ScheduleRefusal::DeletesMost { deletes, there }).at(""));
            }
        }
        drop(named);
        let mut done = SyncedSchedules { deleted: absent.len() as u64, ..Default::default() };
        for (id, settings) in schedules {
            let is_new = self.schedule_named(&id).is_err();
            match self.set_schedule(&id, settings, None, now) {
                (slot, true) => {
                    *(if is_new { &mut done.added } else { &mut done.updated }) += 1;
                    self.schedules.pack(slot);
                }
                (_, false) => done.unchanged += 1,
            }
        }
        for slot in absent {
            self.delete_schedule(slot, now);
        }
        if let Some(version) = version {
            self.put(Kind::SyncedSet, owner.as_str(), Some(version.to_string()));
            self.schedules.set_version_of_set(owner, version);
        }
        Ok(done)
    }

    fn check_set_item(
        &self,
        id: &ScheduleId,
        old: Option<LiveScheduleId>,
        owner: &Owner,
        settings: &ScheduleSettings,
        now: Moment,
    ) -> Result<(), Refusal> {
        if let Some(slot) = old {
            let schedule = id.clone();
            match &self.schedules.read(slot).owner {
                Some(other) if other != owner => {
                    let owner = other.clone();
                    let no = ScheduleRefusal::OtherOwner { schedule, owner };
                    return Err(Refusal::from(no).at("/id"));
                }
                None => return Err(Refusal::from(ScheduleRefusal::NoOwner { schedule }).at("/id")),
                Some(_) => {}
            }
        }
        self.check_scheduled(settings)?;
        self.check_fires(id, old, &settings.timing, None, now)
    }

    // ---- How they are shown ----

    pub(crate) fn schedule_view(&self, slot: LiveScheduleId, now: Moment) -> WithoutNext {
        let s = self.schedules.read(slot);
        let pause = s.pause(now);
        let next = s.next_known();
        let coming = match (pause, next) {
            (Some(Moment::MAX), _) => Coming::Paused(None),
            (Some(until), _) => Coming::Paused(Some(until)),
            _ if s.has_ended() => Coming::Ended,
            _ if s.awaits_job => Coming::WaitsForJob(s.last_made.clone()),
            (None, Some(next)) if next.due <= now => Coming::IsDue,
            (None, Some(next)) => Coming::Fires(next.due),
            (None, None) => Coming::IsPlanned,
        };
        let basis = NextBasis {
            after: s.cursor.max(now),
            moved: s.moved.filter(|moved| *moved > s.cursor),
            anchor: s.moved,
            is_endless_pause: pause == Some(Moment::MAX),
        };
        let view = ScheduleView {
            id: s.id.clone(),
            settings: settings_of(&s),
            summary: coming.to_string(),
            next_at: None,
            next: None,
            moved: basis.moved.is_some() && !s.has_ended(),
            paused: pause.is_some(),
            paused_until: pause.filter(|until| *until < Moment::MAX),
            ended: s.has_ended(),
            unfinished: s.unfinished,
            last: s.last.clone(),
            last_ended: s.last_ended.clone(),
            last_succeeded_at: s.last_succeeded_at,
            fired: s.fired,
            skipped: s.skipped,
            missed: s.missed,
            created_at: s.created_at,
            changed_at: s.changed_at,
        };
        WithoutNext { view: Box::new(view), basis }
    }

    fn list_schedules(&self, list: &ListSchedules, now: Moment) -> ListedWithoutNext {
        let show = |slot| {
            if self.schedules.read(slot).shell {
                return None;
            }
            let mut shown = self.schedule_view(slot, now);
            if !list.full {
                shown.view.settings.job.payload = None;
            }
            Some((shown.view.id.clone(), shown))
        };
        let behind = self.schedules.behind(list.owner.as_ref(), list.page.cursor.as_deref());
        crate::views::page(behind.filter_map(show), &list.page)
    }
}

/// The settings of a schedule, as its caller gave them.
fn settings_of(schedule: &Schedule) -> ScheduleSettings {
    ScheduleSettings {
        owner: schedule.owner.clone(),
        timing: schedule.timing.clone(),
        overlap: schedule.overlap,
        catch_up: schedule.catch_up,
        catch_up_max: schedule.catch_up_max,
        job: job_of(schedule),
    }
}

/// The job that a schedule makes; an empty one if its text cannot be read.
fn job_of(schedule: &Schedule) -> ScheduledJob {
    schedule.scheduled_job().unwrap_or_else(|| ScheduledJob::new(unnamed_queue()))
}

/// The queue of a schedule whose job cannot be read.
fn unnamed_queue() -> tenure_core::names::QueueName {
    match tenure_core::names::QueueName::parse("default") {
        Ok(queue) => queue,
        Err(_) => panic!("\"default\" is no queue name"),
    }
}

acts! {
    ListSchedules => ListedWithoutNext, |ask, at| Ok(at.space.list_schedules(&ask, at.now));
    GetSchedule => WithoutNext, |ask, at| {
        let slot = at.space.schedule_named(&ask.schedule)?;
        Ok(at.space.schedule_view(slot, at.now))
    };
    PutSchedule => Put<WithoutNext>, |ask, Context { space, now, .. }| {
        let (slot, created) = space.put_schedule(&ask.schedule, *ask.settings, ask.plan, now)?;
        Ok(Put { view: space.schedule_view(slot, now), created })
    };
    PatchSchedule => Put<WithoutNext>, |mut ask, Context { space, now, .. }| {
        let (id, plan) = (ask.schedule.clone(), ask.plan.take());
        let old = settings_of(&space.schedules.read(space.schedule_named(&id)?));
        let (slot, created) = space.put_schedule(&id, ask.applied(&old)?, plan, now)?;
        Ok(Put { view: space.schedule_view(slot, now), created })
    };
    DeleteSchedule => (), |ask, at| {
        let slot = at.space.schedule_named(&ask.schedule)?;
        at.space.delete_schedule(slot, at.now);
        Ok(())
    };
    PauseSchedule => WithoutNext, |ask, Context { space, now, .. }| {
        let slot = space.schedule_named(&ask.schedule)?;
        space.pause_schedule(slot, ask.until, now);
        Ok(space.schedule_view(slot, now))
    };
    ResumeSchedule => WithoutNext, |ask, Context { space, now, .. }| {
        let slot = space.schedule_named(&ask.schedule)?;
        space.resume_schedule(slot, now);
        Ok(space.schedule_view(slot, now))
    };
    RunScheduleNow => PushedAt, |ask, Context { space, now, next_seq, rest }| {
        let slot = space.schedule_named(&ask.schedule)?;
        let one = space.run_schedule_now(slot, ask.id, next_seq, rest, now)?;
        let live = space.jobs.by_seq(one.seq);
        let stands = live.map(|live| space.stands_of(live)).unwrap_or_default();
        Ok(PushedAt { one, stands })
    };
    SyncSchedules => SyncedSchedules, |ask, at| at.space.sync_schedules(ask, at.now);
}
