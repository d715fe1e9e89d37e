//! Occurrences of a schedule: the next one, the due ones, the schedule's place in the firing order, and its need for a
//! plan.
//!
//! This module has no calendar and no clock. An interval is arithmetic; of a cron expression it knows only planned
//! occurrences.

use crate::state::{LiveScheduleId, Schedule, Space};
use tenure_core::bounds::{FIRE_MAX, PLAN_AGAIN_US, SECOND_US};
use tenure_core::moments::{due, interval_anchor, interval_next};
use tenure_core::requests::ScheduleStats;
use tenure_core::schedule::{FirstPlan, PlanWanted, PlannedMoment};
use tenure_core::time::{Moment, Span};

/// The due, undecided occurrences of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DueMoments {
    /// The number of due occurrences.
    pub count: u64,
    /// The earliest due occurrence.
    pub first: Moment,
}

impl Schedule {
    /// The time from which an interval counts.
    fn anchor(&self) -> Moment {
        let every = self.timing.every.unwrap_or(Span::from_s(1));
        let anchor = || interval_anchor(self.id.as_str(), every, self.timing.starts_at);
        self.moved.unwrap_or_else(anchor)
    }

    /// An occurrence of an interval with its jitter; one that a `next_in` set has no jitter.
    fn interval_due(&self, moment: Moment) -> Moment {
        if self.moved == Some(moment) {
            return moment;
        }
        let every = self.timing.every.unwrap_or(Span::from_s(1));
        let next = moment.plus(every);
        let next = Some(next).filter(|next| self.timing.ends_at.is_none_or(|end| *next <= end));
        due(self.id.as_str(), moment, next, self.timing.jitter)
    }

    /// The first occurrence of an interval after a time.
    fn interval_after(&self, after: Moment) -> Option<Moment> {
        let next = interval_next(self.anchor(), self.timing.every?, after);
        let ends_at = self.timing.ends_at.unwrap_or(Moment::MAX);
        (next <= ends_at && next < Moment::MAX).then_some(next)
    }

    /// The next undecided occurrence, if it is known.
    pub(crate) fn next_known(&self) -> Option<PlannedMoment> {
        if self.is_cron() {
            return self.plan.front().copied();
        }
        let moment = self.interval_after(self.cursor)?;
        Some(PlannedMoment { moment, due: self.interval_due(moment), passed: 0 })
    }

    /// True if no occurrence is left.
    pub(crate) fn has_ended(&self) -> bool {
        if self.is_cron() {
            return self.planned_all && self.plan.is_empty();
        }
        self.paused_until != Some(Moment::MAX) && self.interval_after(self.cursor).is_none()
    }

    /// The occurrences that are due at `now`; `None` without any.
    pub(crate) fn due_moments(&self, now: Moment) -> Option<DueMoments> {
        if self.is_cron() {
            let count = self.plan.iter().take_while(|planned| planned.due <= now).count() as u64;
            let first = self.plan.front().filter(|_| count > 0)?.moment;
            return Some(DueMoments { count, first });
        }
        let first = self.interval_after(self.cursor)?;
        if self.interval_due(first) > now {
            return None;
        }
        let every = self.timing.every?.us().max(SECOND_US);
        let last = self.timing.ends_at.map_or(now, |end| end.min(now));
        let mut count = last.since(first).us() / every + 1;
        // The jitter of the newest may lie ahead; that of the one before never goes beyond it.
        if count > 1 && self.interval_due(self.nth_of_interval(first, count - 1)) > now {
            count -= 1;
        }
        Some(DueMoments { count, first })
    }

    fn nth_of_interval(&self, first: Moment, n: u64) -> Moment {
        let every = self.timing.every.map_or(SECOND_US, Span::us);
        first.plus(Span::from_us(every.saturating_mul(n)))
    }

    /// The `n`th due occurrence.
    pub(crate) fn due_moment(&self, due: DueMoments, n: u64) -> PlannedMoment {
        if self.is_cron() {
            let nothing = PlannedMoment { moment: due.first, due: due.first, passed: 0 };
            return self.plan.get(n as usize).copied().unwrap_or(nothing);
        }
        let moment = self.nth_of_interval(due.first, n);
        PlannedMoment { moment, due: self.interval_due(moment), passed: 0 }
    }

    /// Removes the first `count` due occurrences, which are decided. Returns the number of occurrences between them
    /// that the plan did not keep.
    pub(crate) fn decide(&mut self, due: DueMoments, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let last = self.due_moment(due, count - 1).moment;
        let mut passed = 0;
        if self.is_cron() {
            passed = self.plan.drain(..count as usize).map(|planned| planned.passed).sum();
            // From now on it is a normal occurrence. (An interval counts from it.)
            self.moved = self.moved.filter(|moved| *moved > last);
        }
        self.cursor = self.cursor.max(last);
        self.decided = self.decided.max(last);
        passed
    }

    /// True if it wants a plan: fewer than two planned occurrences lie ahead, and more may follow.
    fn wants_plan(&self, now: Moment) -> bool {
        let ahead = self.plan.iter().rev().take_while(|planned| planned.due > now).take(2).count();
        let endless = self.paused_until == Some(Moment::MAX);
        self.is_cron() && !self.shell && !self.planned_all && !endless && ahead < 2
    }

    /// Drops the plan, and ignores occurrences up to `cursor`. An occurrence that a `next_in` set counts if it lies
    /// behind it.
    pub(crate) fn begin_after(&mut self, cursor: Moment) {
        self.cursor = cursor;
        self.plan.clear();
        self.planned_all = false;
        if let Some(moved) = self.moved.filter(|moved| self.is_cron() && *moved > cursor) {
            self.plan_moved(moved);
        }
    }

    /// Plans this occurrence alone, unless the schedule ends before it.
    fn plan_moved(&mut self, moved: Moment) {
        let beyond = self.timing.ends_at.is_some_and(|end| moved > end);
        self.plan.clear();
        self.planned_all = beyond;
        if !beyond {
            self.plan.push_back(PlannedMoment { moment: moved, due: moved, passed: 0 });
        }
    }

    /// Adds occurrences. If the plan exceeds its limit, the oldest are removed, and the next one counts them.
    pub(crate) fn extend_plan(&mut self, moments: Vec<PlannedMoment>, last: bool) {
        self.plan.extend(moments);
        self.planned_all = last;
        let most = tenure_core::bounds::PLAN_AHEAD + self.keeps();
        let over = self.plan.len().saturating_sub(most);
        let left: u64 = self.plan.drain(..over).map(|planned| planned.passed + 1).sum();
        if let Some(first) = self.plan.front_mut() {
            first.passed += left;
        }
    }

    /// Takes the plan that came with a new timing, without occurrences up to the cursor. Returns false for a plan that
    /// was computed from a time after the cursor, which is useless.
    pub(crate) fn take_first_plan(&mut self, plan: FirstPlan) -> bool {
        if plan.timing != self.timing || plan.from > self.cursor || !self.plan.is_empty() {
            return false;
        }
        let cursor = self.cursor;
        let mut moments: Vec<PlannedMoment> = plan.moments;
        moments.retain(|planned| planned.moment > cursor);
        if let Some(first) = moments.first_mut() {
            first.passed = 0;
        }
        self.extend_plan(moments, plan.last);
        true
    }
}

impl Space {
    /// Sorts a schedule after any change: into the firing order, by its next due time or, if it was left due, by
    /// `again`; among those that wait for their own jobs; or nowhere. Also sorts it among those that want a plan.
    pub(crate) fn order_schedule(
        &mut self,
        slot: LiveScheduleId,
        again: Option<Moment>,
        now: Moment,
    ) {
        self.leave_orders(slot);
        let Some(s) = self.schedules.get_open(slot) else { return };
        if s.shell {
            return;
        }
        if let Some(until) = s.pause(now) {
            self.paused_schedules.insert((until, s.id.clone()));
        }
        if s.wants_plan(now) {
            let at = s.wanted_at.unwrap_or(now);
            s.wanted_at = Some(at);
            self.planning.insert((at, s.id.clone()));
        } else {
            s.wanted_at = None;
        }
        let Some(next) = s.next_known() else { return };
        if s.pause(now) == Some(Moment::MAX) {
            return;
        }
        if s.awaits_job {
            self.waiting_schedules.insert((next.due, s.id.clone()));
            return;
        }
        let place = if next.due > now { next.due } else { again.unwrap_or(next.due) };
        s.place = Some(place);
        self.enter_firing(place, slot);
    }

    /// The clock was set back to `now`: decided occurrences come again with the same ids; otherwise a leap of a year
    /// would silence a daily schedule for a year. An occurrence that a `next_in` set stays.
    pub(crate) fn set_schedules_back(&mut self, now: Moment) {
        let all: Vec<LiveScheduleId> = self.schedules.slots().collect();
        for slot in all {
            self.leave_orders(slot);
            let s = self.schedules.open(slot);
            s.wanted_at = None;
            if s.cursor > now && s.pause(now).is_none() {
                s.decided = s.decided.min(now);
                s.begin_after(now);
                self.out.dirty_schedules.insert(slot);
            }
            self.order_schedule(slot, None, now);
            self.schedules.pack(slot);
        }
    }

    /// Removes a schedule from every order; the time of its request for a plan stays.
    pub(crate) fn leave_orders(&mut self, slot: LiveScheduleId) {
        let Some(s) = self.schedules.get_open(slot) else { return };
        let place = s.place.take();
        if place.is_none()
            && !self.waiting_schedules.is_empty()
            && let Some(next) = s.next_known()
        {
            // It is there if it waits for its own jobs, or for a plan.
            self.waiting_schedules.remove(&(next.due, s.id.clone()));
        }
        if let Some(at) = s.wanted_at {
            self.planning.remove(&(at, s.id.clone()));
        }
        if let Some(until) = s.paused_until {
            self.paused_schedules.remove(&(until, s.id.clone()));
        }
        if let Some(place) = place {
            self.leave_firing(place, slot);
        }
    }

    /// Removes a schedule from the firing order until a plan puts it back.
    pub(crate) fn wait_for_plan(&mut self, slot: LiveScheduleId, now: Moment) {
        let Some(s) = self.schedules.get_open(slot) else { return };
        let place = s.place.take();
        if s.wanted_at.is_none() {
            s.wanted_at = Some(now);
            self.planning.insert((now, s.id.clone()));
        }
        if let Some(next) = s.next_known() {
            self.waiting_schedules.insert((next.due, s.id.clone()));
        }
        if let Some(place) = place {
            self.leave_firing(place, slot);
        }
    }

    /// Counts the schedules: all, paused ones, and those with a due occurrence. Looks only at paused and due ones.
    pub(crate) fn schedule_stats(&self, now: Moment) -> ScheduleStats {
        let paused = self.paused_schedules.iter().rev().take_while(|(until, _)| *until > now);
        let due = self.firing.iter().take_while(|(place, _)| *place <= now).count();
        let first = self.firing.first().filter(|(place, _)| *place <= now);
        let first = first.and_then(|(_, slot)| self.schedules.read(slot).next_known());
        let waits = self.waiting_schedules.first().map(|(due, _)| *due);
        ScheduleStats {
            count: (self.schedule_by_id.len() - self.shells) as u64,
            paused: paused.count() as u64,
            due: (due + self.waiting_schedules.len()) as u64,
            oldest_due_at: first.map(|next| next.due).into_iter().chain(waits).min(),
        }
    }

    /// Names the schedules that want a plan, oldest request first. Without a plan, each is named again a second later,
    /// behind all others.
    pub(crate) fn ask_for_plans(&mut self, now: Moment) {
        self.out.wanted.clear();
        while self.out.wanted.len() < FIRE_MAX {
            let Some((at, id)) = self.planning.first().cloned() else { break };
            if at > now {
                break;
            }
            self.planning.pop_first();
            let Some(slot) = self.schedule_with_id(id.as_str()) else { continue };
            let s = self.schedules.open(slot);
            let again = now.plus(Span::from_us(PLAN_AGAIN_US));
            s.wanted_at = Some(again);
            self.planning.insert((again, id.clone()));
            self.out.wanted.push(PlanWanted {
                schedule: id,
                version: s.version,
                timing: s.timing.clone(),
                after: s.last_known(),
                keeps: s.keeps(),
            });
        }
    }
}
