//! `fire` and `plan`: the only commands that decide occurrences of schedules, and that accept computed ones.
//!
//! A `fire` makes one decision for each of at most 64 schedules. The decision, the job and the new cursor are one step.

use crate::ops::after::Fate;
use crate::ops::push::Arriving;
use crate::rows::Archive;
use crate::state::{LiveScheduleId, Origin, Seq, Space};
use tenure_core::bounds::{CATCH_UP_NONE_US, FIRE_MAX};
use tenure_core::events::{About, EventType};
use tenure_core::job::MadeBy;
use tenure_core::moments::moment_id;
use tenure_core::names::{JobId, QueueName};
use tenure_core::schedule::{CatchUp, LastFired, Overlap, Plan, PlannedMoment};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};

/// The reason for a skipped occurrence while a job of the schedule is unfinished.
pub(crate) const SKIPPED_BY_JOB: &str = "overlap";

impl Space {
    /// The earliest time at which a `fire` has something to decide.
    pub(crate) fn next_fire(&self) -> Option<Moment> {
        self.schedules.next_fire()
    }

    /// Decides one due occurrence of each schedule, in their order.
    pub(crate) fn fire(&mut self, next_seq: &mut Seq, archive: &dyn Archive, now: Moment) {
        // A decision drops no other: only a shell goes with its last job, and no shell stands in the order.
        let due: Vec<LiveScheduleId> = self.schedules.due(now).take(FIRE_MAX).collect();
        for slot in due {
            self.decide_one(slot, next_seq, archive, now);
        }
    }

    fn decide_one(
        &mut self,
        slot: LiveScheduleId,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) {
        let s = self.schedules.open(slot);
        let Some(due) = s.due_moments(now) else {
            return self.schedules.order(slot, None, now);
        };
        // Other due occurrences are unknown before a plan has them.
        if s.is_cron() && !s.planned_all && due.count == s.plan.len() as u64 {
            return self.schedules.wait_for_plan(slot, now);
        }
        if s.overlap == Overlap::Queue && s.unfinished > 0 {
            self.schedules.leave_orders(slot);
            self.schedules.open(slot).awaits_job = true;
            return self.schedules.order(slot, None, now);
        }
        let mut missed = due.count.saturating_sub(s.keeps() as u64);
        let newest = s.due_moment(due, due.count - 1);
        let late = now.since(newest.due) > Span::from_us(CATCH_UP_NONE_US);
        if s.catch_up == CatchUp::None && late && s.overlap != Overlap::Queue {
            missed = due.count;
        }
        let decided = (missed < due.count).then(|| s.due_moment(due, missed));
        let last_missed = (missed > 0).then(|| s.due_moment(due, missed - 1).moment);
        self.schedules.leave_orders(slot);
        let taken = missed + u64::from(decided.is_some());
        let s = self.schedules.open(slot);
        let missed = missed + s.decide(due, taken);
        s.missed += missed;
        if missed > 0 {
            let moment = last_missed.or(decided.map(|decided| decided.moment));
            self.missed_some(slot, moment, missed, now);
        }
        if let Some(moment) = decided {
            self.decide_moment(slot, moment, next_seq, archive, now);
        }
        self.schedules.mark(slot);
        self.schedules.order(slot, Some(now), now);
        self.tell_schedule_end(slot, false, now);
    }

    fn missed_some(&mut self, slot: LiveScheduleId, moment: Option<Moment>, n: u64, now: Moment) {
        let about = About { moment, n: Some(n), ..About::default() };
        self.schedule_happens(slot, EventType::ScheduleMissed, about, now);
    }

    /// Emits skipped occurrences; this is the last of them.
    pub(crate) fn skipped_some(
        &mut self,
        slot: LiveScheduleId,
        moment: Moment,
        (why, n): (&'static str, u64),
        now: Moment,
    ) {
        let about =
            About { moment: Some(moment), why: Some(why.into()), n: Some(n), ..About::default() };
        self.schedule_happens(slot, EventType::ScheduleSkipped, about, now);
    }

    /// Emits an event of a schedule.
    pub(crate) fn schedule_happens(
        &mut self,
        slot: LiveScheduleId,
        kind: EventType,
        about: About,
        now: Moment,
    ) {
        let schedule = Some(self.schedules.open(slot).id.clone());
        self.happens(kind, About { schedule, ..about }, now);
    }

    /// Emits the end of a schedule whose last occurrence is over.
    pub(crate) fn tell_schedule_end(&mut self, slot: LiveScheduleId, had_ended: bool, now: Moment) {
        if !had_ended && self.schedules.open(slot).has_ended() {
            self.schedule_happens(slot, EventType::ScheduleEnded, About::default(), now);
        }
    }

    /// Skips, misses or fires the oldest remaining occurrence.
    fn decide_moment(
        &mut self,
        slot: LiveScheduleId,
        moment: PlannedMoment,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) {
        let s = self.schedules.read(slot);
        let Some(job) = s.scheduled_job() else { return };
        let overlaps = s.overlap == Overlap::Skip && s.unfinished > 0;
        // The settings of the queue may be newer than the schedule.
        let payload = job.payload.as_ref();
        let lacks = || job.needs.is_none() && self.lacks_field(&job.queue, payload);
        let why = if overlaps {
            Some(SKIPPED_BY_JOB)
        } else if self.check_room(&job.queue, 1).is_err() {
            Some("queue_full")
        } else if lacks() {
            Some("invalid_field")
        } else {
            None
        };
        if let Some(why) = why {
            self.schedules.open(slot).skipped += 1;
            self.skipped_some(slot, moment.moment, (why, 1), now);
            let queue = self.queue_for(&job.queue, now);
            self.lines[queue].skipped += 1;
            self.lines.mark_queue(queue);
            return;
        }
        if job.expires_in.is_some_and(|span| moment.due.plus(span) <= now) {
            self.schedules.open(slot).missed += 1;
            return self.missed_some(slot, Some(moment.moment), 1, now);
        }
        let (id, era) = (s.id.clone(), s.era);
        let Ok(job_id) = JobId::known(&moment_id(id.as_str(), moment.moment)) else { return };
        let lives = self.jobs.by_id(job_id.as_str()).is_some();
        let ended = if lives { None } else { self.ended(&job_id, archive) };
        if !lives && ended.as_ref().is_none_or(|there| there.until <= now) {
            if let Some(over) = ended {
                self.forget_over(&over);
            }
            self.queue_for(&job.queue, now);
            let origin = Origin { by: MadeBy { id, at: Some(moment.moment) }, era };
            let seq = *next_seq;
            *next_seq = seq.next();
            let arriving = Arriving {
                job: job.made(job_id.clone(), moment.due),
                seq,
                run_at: moment.due,
                origin: Some(origin),
                fate: Fate::default(),
            };
            self.store_job(arriving, archive, now);
        }
        let s = self.schedules.open(slot);
        s.fired += 1;
        s.last = Some(LastFired { at: moment.moment, job: job_id.clone() });
        let about = About { job: Some(job_id), moment: Some(moment.moment), ..About::default() };
        self.schedule_happens(slot, EventType::ScheduleFired, about, now);
    }

    /// True if the needs of the queue cannot be filled in from this payload.
    fn lacks_field(&self, queue: &QueueName, payload: Option<&Json>) -> bool {
        let null = Json::null();
        self.queue_needs(queue, payload.unwrap_or(&null)).is_err()
    }

    /// Accepts computed occurrences, if they continue from the current state of the schedule; otherwise drops them
    /// silently.
    pub(crate) fn plan(&mut self, plan: Plan, now: Moment) {
        let Some(slot) = self.schedules.with_id(plan.schedule.as_str()) else { return };
        let s = self.schedules.read(slot);
        if s.shell || !s.is_cron() || s.version != plan.version || s.last_known() != plan.after {
            return;
        }
        let (place, had_ended) = (s.place, s.has_ended());
        self.schedules.leave_orders(slot);
        let s = self.schedules.open(slot);
        s.wanted_at = None;
        s.extend_plan(plan.moments, plan.last);
        self.schedules.mark(slot);
        self.schedules.order(slot, place, now);
        self.tell_schedule_end(slot, had_ended, now);
    }
}
