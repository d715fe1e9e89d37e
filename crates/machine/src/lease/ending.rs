//! The end of a lease: settle, reap, timeout and force are one step. All that it held returns together, and its outcome
//! decides the job's next state.

use crate::rows::stored::lease_id;
use crate::rows::{JobEnd, Kind};
use crate::scarce::limits::Owes;
use crate::state::{
    Awaited, HeldJob, Job, Kin, LeaseState, LiveJobId, LiveResourceId, ParentKey, PastSettle, Seq,
    Space, Stand, Tombstone,
};
use tenure_core::bounds::{
    RELEASE_AGAIN_US, SECOND_US, SETTLES_KEPT, STUB_US, SUSPECT_US_MAX, UNDELIVERED_MAX,
};
use tenure_core::events::{About, EventType, error_end};
use tenure_core::job::{Backoff, EndedJob, JobError, JobState, Outcome, Retry, retain_for};
use tenure_core::lease::Fence;
use tenure_core::names::JobId;
use tenure_core::secret::Json;
use tenure_core::sentences::{StoredNote, snoozed_too_often};
use tenure_core::settings::ResourceState;
use tenure_core::spread::{head, share};
use tenure_core::time::{Moment, Span};

/// The cause and outcome of the end of a lease.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum End {
    Succeeded {
        result: Option<Json>,
    },
    Failed {
        error: String,
        retry_in: Option<Span>,
        last: bool,
    },
    Snoozed {
        until: Moment,
        wait: Span,
        /// True if attempts start again from 0.
        reset: bool,
    },
    Released,
    /// Its holder stopped heartbeating.
    Lost,
    /// The deadline of its run passed.
    TimedOut,
    /// Taken back by an operator: like a reap, but counted nowhere.
    Forced,
    /// Reaped without any extend, although its worker made calls late in its ttl: the grant never arrived. It is no
    /// settle, so it costs no attempt and clears no `lost`; every third in a row costs one.
    Unheard,
    /// The caller never received the grant: as if it had not been made, except for the quarantine.
    Undelivered,
    /// Its store was copied. The holder cannot reach the copy, so it gave nothing back.
    Copied,
}

impl End {
    fn outcome(&self) -> Outcome {
        match self {
            End::Succeeded { .. } => Outcome::Succeeded,
            End::Failed { .. } | End::TimedOut => Outcome::Failed,
            End::Snoozed { .. } => Outcome::Snoozed,
            End::Released | End::Unheard | End::Undelivered | End::Copied => Outcome::Released,
            End::Lost | End::Forced => Outcome::Lost,
        }
    }
    /// True if the other side may still think that it is held.
    fn is_unclean(&self) -> bool {
        matches!(
            self,
            End::Lost | End::TimedOut | End::Forced | End::Unheard | End::Undelivered | End::Copied
        )
    }
    /// True if the job is given back: its permits owe no gap, and `released` goes on counting.
    fn is_untouched(&self) -> bool {
        matches!(self, End::Released | End::Unheard | End::Undelivered | End::Copied)
    }
    fn is_settle(&self) -> bool {
        matches!(
            self,
            End::Succeeded { .. } | End::Failed { .. } | End::Snoozed { .. } | End::Released
        )
    }
}

/// The state of the job after the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Became {
    pub state: JobState,
    pub run_at: Option<Moment>,
}

impl Space {
    /// Ends a lease: its permits and resources return, and its job goes on. `None` without a job, or if there is no
    /// such lease.
    pub(crate) fn end_lease(&mut self, fence: Fence, end: End, now: Moment) -> Option<Became> {
        let lease = self.leases.remove(fence, |slot| self.jobs[slot].lost > 0)?;
        self.return_needs(&lease, &end, now);
        let outcome = end.outcome();
        let Some(slot) = lease.job else {
            self.put(Kind::Lease, fence.to_string(), None);
            if !matches!(end, End::Undelivered | End::Copied) {
                let until = now.plus(Span::from_us(STUB_US));
                let outcome = if end.is_settle() { Outcome::Released } else { Outcome::Lost };
                self.leases.tombstones.insert(fence, Tombstone { outcome, until });
                self.tombstone_row(fence);
            }
            let holder = lease.holder.as_ref().map(|worker| worker.as_str().to_owned());
            let (lease, fence) = (Some(lease_id(fence, lease.seq)), Some(fence));
            let outcome = Some(outcome);
            let about = About { lease, fence, holder, outcome, ..About::default() };
            self.happens(EventType::LeaseEnded, about, now);
            return None;
        };
        let queue = self.jobs.queue_of(slot);
        self.lines[queue].counts.running -= 1;
        if lease.first && matches!(end, End::Unheard | End::Undelivered) {
            self.undo_start(slot, now);
        }
        Some(self.end_run(slot, fence, end, now))
    }

    /// The grant of a job's first run never arrived, so the run has not begun. If another job has taken its key
    /// meanwhile, the job stays one that has begun: it has no claim to the key any more.
    fn undo_start(&mut self, slot: LiveJobId, now: Moment) {
        if self.retake_key(slot, now) {
            self.jobs[slot].started_at = None;
        }
    }

    fn return_needs(&mut self, lease: &LeaseState, end: &End, now: Moment) {
        // A job that is given back untouched owes no gap.
        let back = end.is_untouched();
        let owes = Owes {
            gap: lease.job.is_none() || !back,
            quarantine: end.is_unclean(),
            granted_at: lease.granted_at,
        };
        for held in &lease.limits {
            self.limits[held.limit].holders.remove(&lease.fence);
            self.return_limit(held.limit, held.weight, owes, now);
            self.drop_limit_if_idle(held.limit);
        }
        for held in &lease.resources {
            let settings = self.pools[held.pool].settings.unwrap_or_default();
            let rest = if end.is_unclean() {
                settings.quarantine.max(settings.cooldown)
            } else {
                settings.cooldown
            };
            if rest > Span::ZERO {
                let why = if end.is_unclean() && settings.quarantine >= settings.cooldown {
                    "quarantine"
                } else {
                    "cooldown"
                };
                self.cool(held.resource, now.plus(rest), Some(why.to_owned()), now);
            }
            self.release_resource(held.resource, lease.fence, now);
        }
    }

    fn end_run(&mut self, slot: LiveJobId, fence: Fence, end: End, now: Moment) -> Became {
        let shape = self.jobs.shape_of(slot);
        let rules = RunRules {
            retry: shape.retry.clone(),
            lost_delay: self.lines[shape.queue].settings.lost_delay,
        };
        let (outcome, settled) = (end.outcome(), end.is_settle());
        let job = &mut self.jobs[slot];
        let (seq, attempt) = (job.seq, job.ended + 1);
        count_end(job, &end);
        let (next, error) = after_run(job, end, &rules, now);
        let shown = match (&error, &next) {
            (Some((text, _)), _) | (None, Next::Finish(_, _, Some(text))) => Some(error_end(text)),
            (None, Next::Finish(_, _, None) | Next::Later { .. } | Next::Back) => None,
        };
        if let Some((error, outcome)) = error {
            self.outbox.run_failed(seq, JobError { attempt, at: now, error, outcome });
        }
        let next = unless_cancelled(&self.jobs[slot], next, outcome == Outcome::Failed && settled);
        let became = match next {
            Next::Finish(state, ..) => Became { state, run_at: None },
            Next::Later { run_at, .. } if run_at > now => {
                Became { state: JobState::Scheduled, run_at: Some(run_at) }
            }
            Next::Later { .. } | Next::Back => {
                Became { state: JobState::Ready, run_at: Some(self.jobs[slot].run_at) }
            }
        };
        if settled {
            remember_settle(&mut self.jobs[slot], fence, outcome, became);
        }
        self.run_ended(slot, fence, attempt, (outcome, became, shown), now);
        self.go_on(slot, next, now);
        became
    }

    /// Brings a job whose run has ended into its next state.
    fn go_on(&mut self, slot: LiveJobId, next: Next, now: Moment) {
        match next {
            Next::Finish(state, result, error) => self.finish(slot, state, result, error, now),
            Next::Later { run_at, wait, keeps_place, error } => {
                let job = &mut self.jobs[slot];
                job.run_at = run_at;
                job.wait = wait;
                job.keeps_place = keeps_place;
                if let Some(error) = error {
                    let seq = job.seq;
                    self.outbox.job(seq).error = Some(Some(error));
                    self.jobs.edited(slot);
                }
                self.jobs.watch_expiry(slot);
                if run_at > now {
                    self.schedule(slot);
                } else {
                    self.make_ready(slot, now);
                }
            }
            Next::Back => {
                self.jobs[slot].keeps_place = true;
                self.jobs.watch_expiry(slot);
                self.make_ready(slot, now);
            }
        }
    }

    /// Emits the end of a run, before the events that follow from it.
    fn run_ended(
        &mut self,
        slot: LiveJobId,
        fence: Fence,
        attempt: u32,
        (outcome, became, error): (Outcome, Became, Option<String>),
        now: Moment,
    ) {
        let kind = match (became.state, outcome) {
            (JobState::Succeeded, _) => EventType::JobSucceeded,
            (JobState::Failed, _) => EventType::JobFailed,
            (JobState::Cancelled, _) => EventType::JobCancelled,
            (_, Outcome::Failed) => EventType::JobRetrying,
            (_, Outcome::Snoozed) => EventType::JobSnoozed,
            (_, Outcome::Lost) => EventType::JobLost,
            _ => EventType::JobReleased,
        };
        let run_at = if became.state.is_finished() { None } else { became.run_at };
        let (attempt, lease) = (Some(attempt), Some(self.lease_of(slot, fence)));
        let about = About { attempt, lease, run_at, error, ..self.about_job(slot) };
        self.happens(kind, about, now);
    }

    /// The job waits for its `run_at`.
    pub(crate) fn schedule(&mut self, slot: LiveJobId) {
        self.jobs.schedule(slot);
        let queue = self.jobs.queue_of(slot);
        self.lines[queue].counts.scheduled += 1;
        self.jobs.mark(slot);
    }

    /// Puts the job into its lane: at its old place if it keeps it, otherwise at the end.
    pub(crate) fn make_ready(&mut self, slot: LiveJobId, now: Moment) {
        let job = &self.jobs[slot];
        let arrival = if job.keeps_place && job.arrival > 0 {
            job.arrival
        } else {
            self.lines.next_arrival()
        };
        let lane = self.lane_of_job(slot);
        let job = &mut self.jobs[slot];
        job.arrival = arrival;
        job.keeps_place = false;
        job.wait = Span::ZERO;
        job.stand = Stand::Waiting(lane);
        self.jobs.mark(slot);
        self.enter_lane(lane, arrival, slot.into(), now);
    }

    /// Removes the job from the index: from now on only the archive knows it.
    pub(crate) fn finish(
        &mut self,
        slot: LiveJobId,
        state: JobState,
        result: Option<Json>,
        error: Option<String>,
        now: Moment,
    ) {
        let shape = self.jobs[slot].shape;
        let on = Awaited::Job(self.jobs[slot].seq);
        let retain = self.kept_for(&on, retain_for(state, self.jobs.shape(shape).retain));
        let queue = self.jobs.shape(shape).queue;
        let bytes_of_shape = self.jobs.shape(shape).bytes.clone();
        let bytes = self.jobs[slot].bytes + result.as_ref().map_or(0, |r| r.text().len() as u32);
        let held = HeldJob { state, until: now.plus(retain), bytes };
        let (until, kept_bytes) = self.hold_for_followers(self.jobs[slot].seq, held);
        let mut life = self.life_of(slot);
        if error.is_some() || state == JobState::Succeeded {
            life.edits = life.edits.wrapping_add(1);
        }
        life.finished_at = Some(now);
        life.lease = None;
        life.bytes = bytes;
        let job = self.forget_job(slot);
        self.lines.use_queue(queue, now);
        let counts = &mut self.lines[queue].counts;
        match state {
            JobState::Succeeded => counts.succeeded += 1,
            JobState::Failed => counts.failed += 1,
            _ => counts.cancelled += 1,
        }
        self.outbox.job_ended(job.id.clone(), job.seq);
        let change = self.outbox.job(job.seq);
        change.state = Some(state);
        change.life = Some(life.encode());
        let (namespace, id) = (self.name.clone(), job.id.clone());
        let bytes = kept_bytes;
        change.end = Some(JobEnd { namespace, id, shape: bytes_of_shape, until, bytes, result });
        match error {
            Some(error) => change.error = Some(Some(error)),
            None if state == JobState::Succeeded => change.error = Some(None),
            None => {}
        }
        if until < Moment::MAX {
            self.purge_at = Some(self.purge_at.map_or(until, |at| at.min(until)));
            self.outbox.archived.push((state, u64::from(bytes)));
        }
        if let Some(origin) = &job.origin {
            self.schedules.job_ended(origin, &job.id, Some(state), now);
        }
        if let Some(unique) = job.unique {
            let queue = self.lines[queue].name.clone();
            let created_at = job.created_at;
            let ended = queue.map(|queue| EndedJob { queue, state, created_at, finished_at: now });
            self.end_key(&unique.key, job.seq, ended, now);
        }
        self.notify_awaiting(&on);
        self.dependencies.tell_end(&ParentKey::Job(job.seq));
        self.kin_ended(job.seq, job.kin.as_deref(), Some(state), now);
    }

    /// A job ended in this state, or was deleted: frees its parents and its flow from it.
    pub(crate) fn kin_ended(
        &mut self,
        seq: Seq,
        kin: Option<&Kin>,
        state: Option<JobState>,
        now: Moment,
    ) {
        let Some(kin) = kin else { return };
        if kin.follows {
            self.let_parents_go(seq, &kin.parents);
        }
        if let Some(flow) = &kin.flow
            && self.flows.member_ended(flow, seq, state, now)
        {
            self.dependencies.tell_end(&ParentKey::Flow(flow.clone()));
        }
    }

    /// Removes a job from every index except its lane, which it has left. The caller writes its row.
    pub(crate) fn forget_job(&mut self, slot: LiveJobId) -> Job {
        let job = self.jobs.remove(slot);
        self.release_shape(job.shape);
        job
    }

    /// Applies the holder's verdict on a resource before it is given back.
    pub(crate) fn judge(
        &mut self,
        resource: LiveResourceId,
        verdict: &tenure_core::lease::Verdict,
        now: Moment,
    ) {
        match verdict {
            tenure_core::lease::Verdict::Ok => {}
            tenure_core::lease::Verdict::Cool(later) => {
                self.cool(
                    resource,
                    later.moment(now),
                    Some(StoredNote::CooledByHolder.to_string()),
                    now,
                );
            }
            tenure_core::lease::Verdict::Ban { reason } => {
                self.ban(
                    resource,
                    reason.clone().or_else(|| Some(StoredNote::BannedByHolder.to_string())),
                    now,
                );
            }
        }
        debug_assert!(matches!(
            self.pools[resource].state,
            ResourceState::Available | ResourceState::Cooling | ResourceState::Banned
        ));
    }
}

enum Next {
    Finish(JobState, Option<Json>, Option<String>),
    Later { run_at: Moment, wait: Span, keeps_place: bool, error: Option<String> },
    Back,
}

/// The rules of a job and its queue for the end of a run.
struct RunRules {
    retry: Retry,
    lost_delay: Option<Span>,
}

/// Starts and ends the counts of ends in a row.
fn count_end(job: &mut Job, end: &End) {
    job.stand = Stand::Scheduled;
    job.wait = Span::ZERO;
    job.ended_unsettled |= !end.is_settle();
    if end.is_settle() || *end == End::TimedOut {
        job.lost = 0;
        job.undelivered = 0;
    }
    if !end.is_untouched() {
        job.released = 0;
    }
}

/// Decides what follows a run, cancels aside, and counts it in the job; with the error that is stored with the attempt.
fn after_run(
    job: &mut Job,
    end: End,
    rules: &RunRules,
    now: Moment,
) -> (Next, Option<(String, Outcome)>) {
    let RunRules { retry, lost_delay } = rules;
    match end {
        End::Succeeded { result } => {
            job.ended += 1;
            (Next::Finish(JobState::Succeeded, result, None), None)
        }
        End::Failed { error, retry_in, last } => {
            let next = after_failure(job, retry, (error.clone(), retry_in, last), now);
            (next, Some((error, Outcome::Failed)))
        }
        End::TimedOut => {
            let error = StoredNote::TimedOut.to_string();
            let next = after_failure(job, retry, (error.clone(), None, false), now);
            (next, Some((error, Outcome::Failed)))
        }
        End::Snoozed { until, wait, reset } => {
            job.snoozed = job.snoozed.saturating_add(1);
            if let Some(most) = retry.max_snoozes.filter(|most| job.snoozed > *most) {
                job.ended += 1;
                let error = snoozed_too_often(most);
                let next = Next::Finish(JobState::Failed, None, Some(error.clone()));
                return (next, Some((error, Outcome::Failed)));
            }
            if reset {
                job.ended = 0;
            }
            (Next::Later { run_at: until, wait, keeps_place: false, error: None }, None)
        }
        End::Released => (back_again(job, now), None),
        End::Unheard => {
            let error = (StoredNote::GrantNeverReceived.to_string(), Outcome::Undelivered);
            job.undelivered += 1;
            if job.undelivered < UNDELIVERED_MAX {
                return (back_again(job, now), Some(error));
            }
            // A supervisor that restarts a worker under its old name looks the same, and must not hide a job
            // that kills its workers.
            job.undelivered = 0;
            (one_more_lost(job, retry, *lost_delay, now), Some(error))
        }
        End::Undelivered | End::Forced => (Next::Back, None),
        End::Copied => {
            job.released += 1;
            (Next::Back, None)
        }
        End::Lost => {
            let error = (StoredNote::HolderStopped.to_string(), Outcome::Lost);
            (one_more_lost(job, retry, *lost_delay, now), Some(error))
        }
    }
}

/// A retry after the backoff, unless the failure is final or was the last attempt.
fn after_failure(
    job: &mut Job,
    retry: &Retry,
    (error, retry_in, last): (String, Option<Span>, bool),
    now: Moment,
) -> Next {
    job.ended += 1;
    let spent = retry.max_attempts > 0 && job.ended >= retry.max_attempts;
    if last || spent {
        return Next::Finish(JobState::Failed, None, Some(error));
    }
    let wait = retry_in.unwrap_or_else(|| backoff(retry, &job.id, job.ended));
    Next::Later { run_at: now.plus(wait), wait, keeps_place: false, error: Some(error) }
}

/// A success or a failure that its holder reported as final wins over a cancel; every other end of a cancelled job
/// becomes one.
fn unless_cancelled(job: &Job, next: Next, is_reported_failure: bool) -> Next {
    let stands = match next {
        Next::Finish(JobState::Succeeded, ..) => true,
        Next::Finish(JobState::Failed, ..) => is_reported_failure,
        Next::Finish(..) | Next::Later { .. } | Next::Back => false,
    };
    if job.cancel_requested && !stands {
        return Next::Finish(JobState::Cancelled, None, None);
    }
    next
}

/// Keeps the answer to a settle for its repeats.
fn remember_settle(job: &mut Job, fence: Fence, outcome: Outcome, became: Became) {
    let Became { state, run_at } = became;
    let next_at = job.next_at.take();
    if job.settles.len() == SETTLES_KEPT {
        job.settles.remove(0);
    }
    job.settles.push(PastSettle { fence, outcome, state, run_at, next_at });
}

/// Given back: ready at once the first time, a second later after that.
fn back_again(job: &mut Job, now: Moment) -> Next {
    job.released += 1;
    if job.released < 2 {
        return Next::Back;
    }
    let wait = Span::from_us(RELEASE_AGAIN_US);
    Next::Later { run_at: now.plus(wait), wait, keeps_place: true, error: None }
}

/// Lost again: a suspect that waits as its queue says, otherwise longer each time, or poison.
fn one_more_lost(job: &mut Job, retry: &Retry, lost_delay: Option<Span>, now: Moment) -> Next {
    job.lost += 1;
    if retry.max_lost > 0 && job.lost >= retry.max_lost {
        return Next::Finish(JobState::Failed, None, Some("poison".to_owned()));
    }
    let longer = Span::from_us((SECOND_US << job.lost.min(32)).min(SUSPECT_US_MAX));
    let wait = lost_delay.unwrap_or(longer);
    Next::Later { run_at: now.plus(wait), wait, keeps_place: true, error: None }
}

/// The wait after attempt `attempt` (from 1) failed. The jitter is not random: it depends on the job's id and the
/// attempt, so that a repeat gets the same time.
pub(crate) fn backoff(retry: &Retry, id: &JobId, attempt: u32) -> Span {
    let (wait, jitter) = match &retry.backoff {
        Backoff::Exponential { base, max, jitter } => {
            let doubled = match attempt.saturating_sub(1) {
                shift @ 0..=62 => base.us().saturating_mul(1 << shift),
                _ if base.us() == 0 => 0,
                _ => u64::MAX,
            };
            (doubled.min(max.us()), *jitter)
        }
        Backoff::Fixed { base, jitter } => (base.us(), *jitter),
        Backoff::List { delays, jitter } => {
            let at = (attempt.saturating_sub(1) as usize).min(delays.len().saturating_sub(1));
            (delays.get(at).map_or(0, |delay| delay.us()), *jitter)
        }
    };
    if !jitter {
        return Span::from_us(wait);
    }
    let half = wait / 2;
    Span::from_us(half + share(head(&format!("{id}:{attempt}")), wait - half))
}
