//! The orders of schedules: the one in which they fire, those that want a plan, those that wait, and paused ones.

use super::{LiveScheduleId, Schedules};
use tenure_core::bounds::{FIRE_MAX, PLAN_AGAIN_US};
use tenure_core::requests::ScheduleStats;
use tenure_core::schedule::PlanWanted;
use tenure_core::time::{Moment, Span};

impl Schedules {
    /// The first place in the firing order.
    pub fn next_fire(&self) -> Option<Moment> {
        self.firing.first().map(|(at, _)| at)
    }

    /// The schedules whose place has come, in the order in which they fire.
    pub fn due(&self, now: Moment) -> impl Iterator<Item = LiveScheduleId> {
        self.firing.iter().take_while(move |(at, _)| *at <= now).map(|(_, slot)| slot)
    }

    /// The time of the next request for a plan.
    pub fn next_request(&self) -> Option<Moment> {
        self.planning.first().map(|(at, _)| *at)
    }

    /// Sorts a schedule after any change: into the firing order, by its next due time or, if it was left due, by
    /// `again`; among those that wait for their own jobs; or nowhere. Also sorts it among those that want a plan.
    pub fn order(&mut self, slot: LiveScheduleId, again: Option<Moment>, now: Moment) {
        self.leave_orders(slot);
        let Some(s) = self.table.get_open(slot) else { return };
        if s.shell {
            return;
        }
        if let Some(until) = s.pause(now) {
            self.paused.insert((until, s.id.clone()));
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
            self.waiting.insert((next.due, s.id.clone()));
            return;
        }
        let place = if next.due > now { next.due } else { again.unwrap_or(next.due) };
        s.place = Some(place);
        self.enter_firing(place, slot);
    }

    /// The clock was set back to `now`: decided occurrences come again with the same ids; otherwise a leap of a year
    /// would silence a daily schedule for a year. An occurrence that a `next_in` set stays.
    pub fn set_back(&mut self, now: Moment) {
        let all: Vec<LiveScheduleId> = self.table.slots().collect();
        for slot in all {
            self.leave_orders(slot);
            let s = self.table.open(slot);
            s.wanted_at = None;
            if s.cursor > now && s.pause(now).is_none() {
                s.decided = s.decided.min(now);
                s.begin_after(now);
                self.changed.insert(slot);
            }
            self.order(slot, None, now);
            self.table.pack(slot);
        }
    }

    /// Removes a schedule from every order; the time of its request for a plan stays.
    pub fn leave_orders(&mut self, slot: LiveScheduleId) {
        let Some(s) = self.table.get_open(slot) else { return };
        let place = s.place.take();
        if place.is_none()
            && !self.waiting.is_empty()
            && let Some(next) = s.next_known()
        {
            // It is there if it waits for its own jobs, or for a plan.
            self.waiting.remove(&(next.due, s.id.clone()));
        }
        if let Some(at) = s.wanted_at {
            self.planning.remove(&(at, s.id.clone()));
        }
        if let Some(until) = s.paused_until {
            self.paused.remove(&(until, s.id.clone()));
        }
        if let Some(place) = place {
            self.leave_firing(place, slot);
        }
    }

    /// Removes a schedule from the firing order until a plan puts it back.
    pub fn wait_for_plan(&mut self, slot: LiveScheduleId, now: Moment) {
        let Some(s) = self.table.get_open(slot) else { return };
        let place = s.place.take();
        if s.wanted_at.is_none() {
            s.wanted_at = Some(now);
            self.planning.insert((now, s.id.clone()));
        }
        if let Some(next) = s.next_known() {
            self.waiting.insert((next.due, s.id.clone()));
        }
        if let Some(place) = place {
            self.leave_firing(place, slot);
        }
    }

    /// Counts the schedules: all, paused ones, and those with a due occurrence. Looks only at paused and due ones.
    pub fn stats(&self, now: Moment) -> ScheduleStats {
        let paused = self.paused.iter().rev().take_while(|(until, _)| *until > now);
        let due = self.firing.iter().take_while(|(place, _)| *place <= now).count();
        let first = self.firing.first().filter(|(place, _)| *place <= now);
        let first = first.and_then(|(_, slot)| self.table.read(slot).next_known());
        let waits = self.waiting.first().map(|(due, _)| *due);
        ScheduleStats {
            count: (self.by_id.len() - self.shells) as u64,
            paused: paused.count() as u64,
            due: (due + self.waiting.len()) as u64,
            oldest_due_at: first.map(|next| next.due).into_iter().chain(waits).min(),
        }
    }

    /// Names the schedules that want a plan, oldest request first. Without a plan, each is named again a second later,
    /// behind all others.
    pub fn ask_for_plans(&mut self, now: Moment) -> Vec<PlanWanted> {
        let mut all = Vec::new();
        while all.len() < FIRE_MAX {
            let Some((at, id)) = self.planning.first().cloned() else { break };
            if at > now {
                break;
            }
            self.planning.pop_first();
            let Some(slot) = self.with_id(id.as_str()) else { continue };
            let s = self.table.open(slot);
            let again = now.plus(Span::from_us(PLAN_AGAIN_US));
            s.wanted_at = Some(again);
            self.planning.insert((again, id.clone()));
            all.push(PlanWanted {
                schedule: id,
                version: s.version,
                timing: s.timing.clone(),
                after: s.last_known(),
                keeps: s.keeps(),
            });
        }
        all
    }
}
