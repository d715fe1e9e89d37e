//! Occurrences of a schedule: the next one, the due ones, and its need for a plan.
//!
//! This module has no calendar and no clock. An interval is arithmetic; of a cron expression it knows only planned
//! occurrences.

use crate::state::Schedule;
use tenure_core::bounds::SECOND_US;
use tenure_core::moments::{due, interval_anchor, interval_next};
use tenure_core::schedule::{FirstPlan, PlannedMoment};
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
    pub(crate) fn wants_plan(&self, now: Moment) -> bool {
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
