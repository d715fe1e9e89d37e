//! Audit of schedules. It only reads.

use std::collections::{BTreeMap, BTreeSet};

use super::{LiveScheduleId, Schedule, Schedules};
use crate::audit::findings::Findings;
use tenure_core::names::{Owner, ScheduleId};
use tenure_core::schedule::Overlap;
use tenure_core::time::Moment;

/// An order of schedules: by a moment, then by their ids.
type ScheduleOrder = BTreeSet<(Moment, ScheduleId)>;

impl Schedules {
    /// Compares each order and count with the schedules' own data. `made` counts the unfinished jobs that name each.
    pub fn audit(&self, found: &mut Findings, mut made: BTreeMap<&ScheduleId, u64>, now: Moment) {
        let shells = self.table.iter().filter(|(_, s)| s.shell).count();
        found.check(self.shells == shells, || {
            format!("{} schedules are counted as deleted, and {shells} are", self.shells)
        });
        let (mut firing, mut planning, mut waiting) =
            (ScheduleOrder::new(), ScheduleOrder::new(), ScheduleOrder::new());
        let mut owned: BTreeMap<Owner, BTreeSet<(ScheduleId, LiveScheduleId)>> = BTreeMap::new();
        let known: BTreeSet<LiveScheduleId> = self.by_id.iter().collect();
        for (slot, s) in self.table.iter() {
            let jobs = made.remove(&s.id).unwrap_or_default();
            found.check(s.unfinished == jobs, || {
                format!(
                    "schedule \"{}\": {} unfinished jobs are cached, {jobs} are",
                    s.id, s.unfinished
                )
            });
            found.check(!s.shell || s.unfinished > 0, || {
                format!("schedule \"{}\" is deleted, and kept for no job", s.id)
            });
            found.check(known.contains(&slot), || {
                format!("schedule \"{}\" is not found by its id", s.id)
            });
            firing.extend(s.place.map(|at| (at, s.id.clone())));
            planning.extend(s.wanted_at.map(|at| (at, s.id.clone())));
            let next = s.next_known().filter(|_| s.awaits_job);
            waiting.extend(next.map(|next| (next.due, s.id.clone())));
            if let Some(owner) = &s.owner {
                owned.entry(owner.clone()).or_default().insert((s.id.clone(), slot));
            }
            check_place(found, &s, now);
        }
        found.check(made.is_empty(), || "a job is of a schedule that is not there".to_owned());
        let fires = self.firing.iter();
        let fires: Vec<(Moment, ScheduleId)> =
            fires.filter_map(|(at, slot)| Some((at, self.table.get(slot)?.id.clone()))).collect();
        found.check(fires.is_sorted(), || "schedules fire in a wrong order".to_owned());
        check_order(found, "in which schedules fire", &fires.into_iter().collect(), &firing);
        check_order(found, "of schedules that want a plan", &self.planning, &planning);
        check_order(found, "of schedules that wait for a job", &self.waiting, &waiting);
        let of_owners = owned.iter().map(|(owner, all)| (owner, all.iter().map(|(_, slot)| *slot)));
        let differ = self.by_owner.len() != owned.len()
            || of_owners.into_iter().any(|(owner, all)| {
                let there = self.by_owner.get(owner);
                there.is_none_or(|there| !there.iter().eq(all))
            });
        found.check(!differ, || "schedules by their owners differ".to_owned());
        let mut ids = self.by_id.iter().filter_map(|slot| self.table.get(slot));
        let mut last: Option<ScheduleId> = None;
        let ascend = ids.all(|s| last.replace(s.id.clone()).is_none_or(|last| last < s.id));
        found.check(ascend, || "schedules and their ids differ in order".to_owned());
        found.check(self.by_id.len() == self.table.slots().count(), || {
            "schedules and their ids differ in number".to_owned()
        });
    }
}

/// Checks that a schedule is in an order that moves it on.
fn check_place(found: &mut Findings, s: &Schedule, now: Moment) {
    let stands = s.place.is_some() || s.wanted_at.is_some() || s.awaits_job;
    let fires = !s.shell && !s.has_ended() && s.pause(now) != Some(Moment::MAX);
    found.check(stands == fires, || {
        if fires {
            format!("schedule \"{}\" has moments, and stands in no order", s.id)
        } else {
            format!("schedule \"{}\" has no moment, and stands in an order", s.id)
        }
    });
    found.check(!s.awaits_job || s.overlap == Overlap::Queue && s.unfinished > 0, || {
        format!("schedule \"{}\" waits for no job", s.id)
    });
    let due = s.next_known().map(|next| next.due);
    // A schedule that was left due stands behind those that came meanwhile.
    let agree = |due: Moment, place| due == place || due.max(place) <= now;
    let agrees = s.place.is_none_or(|place| due.is_some_and(|due| agree(due, place)));
    found.check(agrees, || {
        format!("schedule \"{}\" fires at {:?}, and is next due at {due:?}", s.id, s.place)
    });
    let after = std::iter::once(s.cursor).chain(s.plan.iter().map(|planned| planned.moment));
    found.check(after.is_sorted_by(|one, next| one < next), || {
        format!("schedule \"{}\": its plan is not ascending from its cursor", s.id)
    });
}

fn check_order(found: &mut Findings, what: &str, there: &ScheduleOrder, said: &ScheduleOrder) {
    found.check(there == said, || {
        let first = there.symmetric_difference(said).next();
        let id = first.map_or("", |(_, id)| id.as_str());
        format!("the order {what} differs from the schedules, first in \"{id}\"")
    });
}
