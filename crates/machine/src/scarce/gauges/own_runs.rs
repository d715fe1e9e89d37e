//! Runs that go on after the death of their holder. The job of such a run already has its permit, so it does not wait
//! behind its own run: its next holder finds the run, and can be told to stop it.
//!
//! Only the last reading knows these jobs. They are kept in memory, because the next reading lists them again.

use std::collections::BTreeMap;

use crate::mutant::{Mutant, forgets};
use crate::queue::doors::Fit;
use crate::state::{CALLERS, Entry, HeldNeed, LaneId, LimitId, Place, QueueId, Seq, Space, Stand};
use tenure_core::bounds::STEPS_MAX;
use tenure_core::time::Moment;

/// The number of listed runs of each job whose holder died.
pub(crate) type OwnRuns = BTreeMap<Seq, u32>;

impl Space {
    /// Listed runs of jobs that lost their holder and have no new one.
    pub(super) fn own_runs(&self, ids: &[String]) -> OwnRuns {
        let mut own = OwnRuns::new();
        for slot in ids.iter().filter_map(|id| self.jobs.by_id(id)) {
            let job = &self.jobs[slot];
            // If the job never lost a holder, the run is outside work, even with the job's id.
            if job.ended_unsettled && !matches!(job.stand, Stand::Running(_)) {
                *own.entry(job.seq).or_default() += 1;
            }
        }
        own
    }

    /// Permits of a limit that the job at the head of a lane already has.
    pub(crate) fn own_permits(&self, limit: LimitId, lane: Option<LaneId>) -> u32 {
        let Some(gauge) = &self.limits[limit].gauge else { return 0 };
        let (Some(lane), false) = (lane, gauge.own_runs.is_empty()) else { return 0 };
        if forgets(Mutant::AnyRunIsOwn) {
            return 1;
        }
        let Some((_, head)) =
            self.lines.head(lane).filter(|_| self.lines[lane].key.queue != CALLERS)
        else {
            return 0;
        };
        gauge.own_runs.get(&self.jobs[head.job()].seq).copied().unwrap_or(0)
    }

    /// True if the next job of a queue already has the permit of the queue's own limit.
    pub(crate) fn next_has_own_run(
        &self,
        queue: QueueId,
        limit: LimitId,
        suspects: bool,
        now: Moment,
    ) -> bool {
        if self.limits[limit].gauge.as_ref().is_none_or(|gauge| gauge.own_runs.is_empty()) {
            return false;
        }
        let lane = self.lines.next_lane(queue, suspects);
        self.own_permits(limit, lane) > 0 && self.limit_fit(limit, 1, 1, lane, now) == Fit::Yes
    }

    /// A job is granted: the permits of its run now belong to its lease, and no longer count as outside work. `true` if
    /// it has such a run.
    pub(crate) fn own_run_is_held(&mut self, limit: LimitId, seq: Seq, weight: u32) -> bool {
        let l = &mut self.limits[limit];
        let Some(own) = l.gauge.as_mut().and_then(|gauge| gauge.own_runs.remove(&seq)) else {
            return false;
        };
        l.external = l.external.saturating_sub(own.min(weight));
        self.limits.mark(limit);
        true
    }

    /// Jobs of newly listed runs leave the line of the limit, where others may stand before them. A bounded number do
    /// so at once; the wait queue opens the others.
    pub(super) fn open_own_runs(&mut self, limit: LimitId, now: Moment) {
        let Some(gauge) = &self.limits[limit].gauge else { return };
        let jobs: Vec<Seq> = gauge.own_runs.keys().copied().take(STEPS_MAX).collect();
        for slot in jobs.into_iter().filter_map(|seq| self.jobs.by_seq(seq)).collect::<Vec<_>>() {
            // The last one to leave it removes the wait queue.
            let Some(door) = self.limits[limit].door else { return };
            let Stand::Waiting(lane) = self.jobs[slot].stand else { continue };
            if self.lines.head(lane).is_none_or(|(_, head)| head.job() != slot) {
                continue;
            }
            let queue = self.lines[lane].key.queue;
            let needs = self.lines[lane].key.needs.iter();
            let need = needs.rev().find_map(|need| match need {
                HeldNeed::Limit { limit: other, weight, cost, .. } if *other == limit => {
                    Some((*weight, *cost))
                }
                _ => None,
            });
            // Without a need of its own it uses the queue's.
            let (weight, cost) = need.unwrap_or((1, 1));
            if self.limit_fit(limit, weight, cost, Some(lane), now) != Fit::Yes {
                // It stays there, so that the gauge is read.
                continue;
            }
            let bundle = self.lines[lane].bundle;
            if self.lines[queue].place == Place::Parked(door) {
                self.leave_door(Entry::Queue(queue));
            } else if self.lines[lane].place == Place::Parked(door) {
                self.leave_door(Entry::Lane(lane));
                // It may be blocked with its lane group in another wait queue.
                self.bundle_changed(bundle, now);
            } else if self.lines[bundle].place == Place::Parked(door) {
                self.leave_door(Entry::Bundle(bundle));
            } else {
                continue;
            }
            self.lines.serve(queue);
        }
    }
}
