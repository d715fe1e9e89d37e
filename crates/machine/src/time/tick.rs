//! `tick`: the only step that starts or ends things because of time.
//!
//! Reaps, deadlines, due jobs, due wait queues, reservations, purges: at most 256 of each, oldest first; the rest is
//! due at once again. No other call does due work, so a settle before the tick that would reap is honoured, however
//! late it is.

use crate::lease::ending::End;
use crate::mutant::{Mutant, forgets};
use crate::rows::Archive;
use crate::rows::stored::StoredShape;
use crate::state::{LeaseState, LimitId, LiveJobId, LiveResourceId, Space, Stand, TakerId};
use tenure_core::bounds::{
    CLOCK_BEHIND_ACCEPT_US, CLOCK_BEHIND_LOUD_US, DEAF_US, LEAP_US, PULSE_US, STEPS_MAX, TICK_MAX,
};
use tenure_core::events::{About, EventType, error_end};
use tenure_core::job::JobState;
use tenure_core::lease::Fence;
use tenure_core::sentences::{clock_behind, clock_leapt, deaf};
use tenure_core::time::{Moment, Span};

impl Space {
    /// The time of a call: the engine's clock, but never before an earlier time.
    pub(crate) fn advance(&mut self, clock: Moment) -> Moment {
        self.last = self.last.max(clock);
        self.last
    }

    /// The time of the next tick.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if self.lines.have_work()
            || self.limits.have_changed_templates()
            || self.dependencies.have_untold()
            || self.flows.first_cancelling().is_some()
        {
            return Some(self.last);
        }
        let pulse = (!self.leases.is_empty()).then(|| self.pulse.plus(Span::from_us(PULSE_US)));
        let housekeeping = [
            self.jobs.keys.next_end(),
            self.leases.requests.next_end(),
            self.jobs.replacing.next_end(),
            self.leases.tombstones.next_end(),
            self.waiters.places.next_end(),
            self.lines.next_check(),
            self.ends_at(),
            self.workers.next_end(),
            self.waiters.next_end(),
            self.jobs.reports.next_end(),
            self.purge_at,
            self.lines.reservations_due(self.last),
            self.schedules.next_request(),
            pulse,
        ];
        housekeeping.into_iter().flatten().chain(self.next_change()).min()
    }

    /// The earliest time at which time alone may change the answer of a lease call.
    pub(crate) fn next_change(&self) -> Option<Moment> {
        [
            self.jobs.next_change(),
            // No lease ends by time during a recovery.
            self.recovers_until.or(self.leases.next_end()),
            self.lines.next_change(),
            self.limits.next_change(),
            self.pools.next_change(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// One tick at the time of the engine's clock; `leapt` is that clock's gain over a monotonic clock since the last
    /// tick. Returns the calls whose wait is over: they are answered after this tick has opened all that it frees, so
    /// that they get it or see it.
    pub(crate) fn tick(
        &mut self,
        clock: Moment,
        leapt: Span,
        archive: &dyn Archive,
    ) -> Vec<TakerId> {
        let now = self.look_at_clock(clock);
        // A holder works by its own clock, which did not leap: a ttl shorter than the leap would end early.
        if leapt > Span::from_us(LEAP_US)
            && !self.leases.is_empty()
            && !forgets(Mutant::LeapIsNoEvent)
        {
            let why = Some(clock_leapt(leapt).into());
            self.happens(EventType::EngineDeaf, About { why, ..About::default() }, now);
            self.deaf_at = now;
        }
        if now.since(self.pulse) > Span::from_us(DEAF_US) && !self.leases.is_empty() {
            let why = Some(deaf(now.since(self.pulse)).into());
            self.happens(EventType::EngineDeaf, About { why, ..About::default() }, now);
            self.deaf_at = now;
        }
        self.pulse = now;
        self.tick_jobs(now);
        self.tick_leases(now);
        self.tick_flows(now);
        self.tick_doors(now);
        self.tick_progress(now);
        let over = self.tick_waits(now);
        self.tick_reservations(now);
        self.tick_memory(now);
        self.tick_turns();
        self.purge(now, archive);
        self.tick_queues(now);
        self.tell(now);
        self.outbox.wanted = self.schedules.ask_for_plans(now);
        self.trim();
        over
    }

    fn look_at_clock(&mut self, clock: Moment) -> Moment {
        let behind = self.last.since(clock);
        if behind > Span::from_us(CLOCK_BEHIND_ACCEPT_US) {
            self.behind = None;
            self.set_back(clock);
            self.clock_is_behind(behind, clock);
        } else if behind > Span::from_us(CLOCK_BEHIND_LOUD_US) {
            if self.behind.is_none() {
                self.clock_is_behind(behind, self.last);
            }
            self.behind = Some(behind);
        } else {
            self.behind = None;
        }
        self.advance(clock)
    }

    fn clock_is_behind(&mut self, by: Span, now: Moment) {
        let why = Some(clock_behind(by).into());
        self.happens(EventType::ClockBehind, About { why, ..About::default() }, now);
    }

    /// Accepts a clock that is behind: cuts stored times that are further ahead than their own length. At most once per
    /// step of the clock, so it may look at everything.
    fn set_back(&mut self, clock: Moment) {
        self.last = clock;
        self.deaf_at = clock;
        self.pulse = clock;
        self.leases.set_back(clock);
        let fences: Vec<Fence> = self.leases.iter().map(|lease| lease.fence).collect();
        for fence in fences {
            self.written_lease(fence);
        }
        self.jobs.set_back(clock);
        let limits: Vec<LimitId> = self.limits.iter().map(|(slot, _)| slot).collect();
        for limit in limits {
            let settings = self.limits.setting(limit).unwrap_or_default();
            let l = &mut self.limits[limit];
            if let Some(rate) = &settings.rate {
                l.tat = l.tat.min(clock.plus(crate::scarce::rates::tokens(rate, rate.burst)));
            }
            self.cut_rests(limit, clock);
            self.set_gauge_back(limit, clock);
            self.limits.mark(limit);
            self.limits.arm(limit, self.last);
            self.limit_due(limit);
        }
        self.waiters.set_back(clock);
        self.cut_reported(clock);
        let resources: Vec<LiveResourceId> = self.pools.resources().map(|(slot, _)| slot).collect();
        for resource in resources {
            let r = &mut self.pools[resource];
            r.until = r.until.min(clock.plus(r.rest));
            self.pools.pace_again(resource, clock);
            self.refresh_resource(resource, clock);
        }
        self.schedules.set_back(clock);
        self.recovered_at = self.recovered_at.min(clock);
        self.lines.move_door_timers(clock);
    }

    fn tick_jobs(&mut self, now: Moment) {
        for _ in 0..TICK_MAX {
            let Some(slot) = self.jobs.first_due(now) else { break };
            self.stop_waiting(slot, now);
            self.make_ready(slot, now);
            self.job_is_ready(slot, "due", now);
        }
        for _ in 0..TICK_MAX {
            let Some(slot) = self.jobs.first_expired(now) else { break };
            self.call_off(slot, Some("expired".to_owned()), now);
        }
    }

    /// Cancels a job that does not run.
    pub(crate) fn call_off(&mut self, slot: LiveJobId, error: Option<String>, now: Moment) {
        self.stop_waiting(slot, now);
        self.cancelled_at_rest(slot, error, now);
    }

    /// The same for a job that waits nowhere yet.
    pub(crate) fn cancelled_at_rest(
        &mut self,
        slot: LiveJobId,
        error: Option<String>,
        now: Moment,
    ) {
        let shown = error.as_deref().map(error_end);
        let about = About { error: shown, ..self.about_job(slot) };
        self.happens(EventType::JobCancelled, about, now);
        self.finish(slot, JobState::Cancelled, None, error, now);
    }

    /// Removes a job that is not running from its place.
    pub(crate) fn stop_waiting(&mut self, slot: LiveJobId, now: Moment) {
        let (queue, arrival) = (self.jobs.queue_of(slot), self.jobs[slot].arrival);
        match self.jobs[slot].stand {
            Stand::Scheduled => {
                if self.jobs.unschedule(slot) {
                    self.lines[queue].counts.scheduled -= 1;
                }
            }
            Stand::Waiting(lane) => {
                self.jobs[slot].stand = Stand::Scheduled;
                self.leave_lane(lane, arrival, now);
            }
            Stand::Dependent => {
                self.jobs[slot].stand = Stand::Scheduled;
                self.lines[queue].counts.dependent -= 1;
            }
            Stand::Running(_) => {}
        }
    }

    fn tick_leases(&mut self, now: Moment) {
        if self.recovers_until.is_some() && !forgets(Mutant::RecoveryReaps) {
            return;
        }
        for _ in 0..TICK_MAX {
            let Some(lease) = self.leases.first_expired(now) else { break };
            let (fence, at) = (lease.fence, lease.expires_at);
            // After a deaf time every lease lives at least one ttl of its own from then.
            let quiet = lease.seen_at <= self.deaf_at && self.deaf_at > Moment::ZERO;
            let grace = self.deaf_at.plus(lease.ttl);
            if quiet && grace > at && grace > now && !lease.orphaned {
                self.leases.expire_at(fence, grace);
                continue;
            }
            let end = match lease.deadline {
                // A holder stops at the deadline, so one that died with its process died before.
                Some(deadline) if deadline <= at && !lease.orphaned => End::TimedOut,
                _ => self.lost_end(lease),
            };
            self.end_lease(fence, end, now);
        }
        for _ in 0..TICK_MAX {
            let Some(fence) = self.leases.first_timed_out(now) else { break };
            self.end_lease(fence, End::TimedOut, now);
        }
    }

    /// A living, working holder extends each fifth of the ttl: a worker that calls in the second half of the ttl and
    /// never extended does not know its lease. In the first half it may have called once more before the job killed it.
    fn lost_end(&self, lease: &LeaseState) -> End {
        let half = lease.expires_at.minus(Span::from_us(lease.ttl.us() / 2));
        let heard = lease
            .holder
            .as_ref()
            .and_then(|id| self.workers.known().get(id))
            .is_some_and(|worker| worker.seen_at >= half);
        if !lease.extended && heard { End::Unheard } else { End::Lost }
    }

    fn tick_doors(&mut self, now: Moment) {
        for _ in 0..TICK_MAX {
            let Some(limit) = self.limits.tick(now) else { break };
            self.tick_limit(limit, now);
        }
        for _ in 0..TICK_MAX {
            let Some(resource) = self.pools.tick(now) else { break };
            self.refresh_resource(resource, now);
        }
        for _ in 0..TICK_MAX {
            if !self.lines.end_door_timer(now) {
                break;
            }
        }
        for _ in 0..TICK_MAX {
            if !self.lines.end_pause(now) {
                break;
            }
        }
    }

    /// Takes the calls whose wait is over. Ends places that were kept for absent callers.
    fn tick_waits(&mut self, now: Moment) -> Vec<TakerId> {
        let over = self.waiters.take_ended(now);
        for _ in 0..TICK_MAX {
            let Some((_, kept)) = self.waiters.places.take_ended(now) else { break };
            self.drop_needs(&kept.needs);
        }
        over
    }

    fn tick_memory(&mut self, now: Moment) {
        for _ in 0..TICK_MAX {
            let Some((key, holder)) = self.jobs.keys.take_ended(now) else { break };
            self.tick_key(key, holder);
        }
        for id in self.leases.forget_requests(now) {
            self.request_row(&id);
        }
        self.tick_replacing(now);
        for _ in 0..TICK_MAX {
            let Some((fence, _)) = self.leases.tombstones.take_ended(now) else { break };
            self.tombstone_row(fence);
        }
        self.workers.tick(now);
    }

    /// Continues to forget idle groups, as far as one tick may.
    fn tick_turns(&mut self) {
        for _ in 0..TICK_MAX / STEPS_MAX {
            let Some(queue) = self.lines.forget_more_groups() else { return };
            self.drop_hidden_queue_if_idle(queue);
        }
    }

    /// Checks queues that may be unused; each check looks at all workers.
    fn tick_queues(&mut self, now: Moment) {
        for _ in 0..STEPS_MAX {
            let Some(queue) = self.lines.take_queue_to_check(now) else { break };
            self.forget_unused_queue(queue, now);
        }
    }

    fn purge(&mut self, now: Moment, archive: &dyn Archive) {
        if self.purge_at.is_none_or(|at| at > now) {
            return;
        }
        let over = archive.over(&self.name, now, TICK_MAX);
        let more = over.len() == TICK_MAX;
        for job in over {
            self.forget_archived(&job);
        }
        // Jobs that ended in this very tick, or lost their last dependent in it, are not in the archive yet.
        let ended = self.outbox.first_kept_until();
        let next = archive.next_over(&self.name);
        let next = next.into_iter().chain(ended).min().filter(|until| *until < Moment::MAX);
        self.purge_at = if more { Some(now) } else { next };
    }

    /// Purges a finished job.
    pub(crate) fn forget_archived(&mut self, job: &crate::rows::Archived) {
        if let Some(kin) = Space::kin_in(&job.life) {
            if let Some(flow) = &kin.flow {
                self.flows.loses_row(flow);
            }
            self.children_rows_go(job.seq, &kin);
        }
        self.forget_cancelled_children(job.seq);
        if let Some(shape) = StoredShape::decode(&job.shape)
            && let Some(queue) = self.lines.queue_by_name().get(&shape.queue).copied()
        {
            let counts = &mut self.lines[queue].counts;
            match job.state {
                JobState::Succeeded => counts.succeeded = counts.succeeded.saturating_sub(1),
                JobState::Failed => counts.failed = counts.failed.saturating_sub(1),
                _ => counts.cancelled = counts.cancelled.saturating_sub(1),
            }
            self.lines.freed_queue(queue, self.last);
        }
        self.outbox.job(job.seq).deleted = true;
        self.outbox.purged.push((job.state, u64::from(job.bytes)));
    }
}
