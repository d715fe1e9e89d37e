//! Settle: ends leases with an outcome; also ends by force, and of unacknowledged grants.
//!
//! Only the holder may settle, once. A late or foreign settle changes nothing; a repeat of the same settle gets the
//! first answer.

use crate::answer::{Context, acts};
use crate::lease::ending::End;
use crate::ops::follow_ups::{FollowUps, kinship_of};
use crate::ops::push::PushedBy;
use crate::ops::push_plan::PushedOne;
use crate::rows::Archive;
use crate::rows::stored::{StoredLife, parse_lease_id};
use crate::state::{LeaseState, LiveResourceId, NO_JOB, PastSettle, Seq, Space};
use tenure_core::bounds::SNOOZE_US_MIN;
use tenure_core::flow::Kinship;
use tenure_core::job::{JobState, Outcome};
use tenure_core::lease::{Ending, Fence, Later, LimitVerdict, ResourceVerdict, SettleItem};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{ForceLease, Settle};
use tenure_core::sentences::LeaseRefusal;
use tenure_core::time::{Moment, Span};

/// The answer to one settle, before pushed jobs are shown.
#[derive(Clone, PartialEq, Debug)]
pub struct SettledOne {
    /// The id of the lease.
    pub lease: String,
    /// Its new state, or the reason why it was not settled.
    pub result: Result<SettledAs, Code>,
    /// Jobs that the settle pushed.
    pub pushed: Vec<PushedOne>,
    /// True if another lease call waits for a job of this queue: its worker can take the next job too.
    pub others_wait: bool,
}

impl SettledOne {
    fn changed_nothing(
        lease: String,
        result: Result<SettledAs, Code>,
        pushed: Vec<PushedOne>,
    ) -> SettledOne {
        SettledOne { lease, result, pushed, others_wait: false }
    }
}

/// The answer to a settle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettledAs {
    /// The state of the job then; `None` for a lease without a job.
    pub state: Option<JobState>,
    /// The time of its next run, if it had one.
    pub run_at: Option<Moment>,
    /// The next occurrence of the job's schedule, if the settle moved it; `Some(None)` if no occurrence is left.
    pub next_at: Option<Option<Moment>>,
}

/// The machine's knowledge of a lease id.
enum KnownLease {
    Live(Fence),
    /// Settled before, with this outcome and answer.
    Past(Outcome, SettledAs),
    Lost,
}

impl Space {
    /// Settles leases. The engine has filled in the ids of follow-up jobs.
    pub(crate) fn settle(
        &mut self,
        items: Vec<SettleItem>,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<SettledOne>, Refusal> {
        let of_item = |no: Refusal, index: usize| no.below(&format!("/settle/{index}")).item(index);
        // The dependencies of follow-ups come from the call alone: a fault in them refuses the call, whatever the state
        // of its leases.
        let mut kinships = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            kinships.push(kinship_of(&item.push).map_err(|no| of_item(no, index))?);
        }
        for (index, item) in items.iter().enumerate() {
            let checked = self.check_settle((item, &kinships[index]), archive, now);
            checked.map_err(|no| of_item(no, index))?;
        }
        let mut answers = Vec::with_capacity(items.len());
        for (item, kinship) in items.into_iter().zip(&kinships) {
            answers.push(self.settle_one((item, kinship), next_seq, archive, now)?);
        }
        Ok(answers)
    }

    /// True if the holder of a lease has settled it.
    pub(crate) fn was_settled(&self, id: &str, archive: &dyn Archive) -> bool {
        matches!(self.known(id, archive), KnownLease::Past(..))
    }

    fn known(&self, id: &str, archive: &dyn Archive) -> KnownLease {
        let Some((fence, seq)) = parse_lease_id(id) else { return KnownLease::Lost };
        if self.leases.named((fence, seq)).is_some() {
            return KnownLease::Live(fence);
        }
        let answer = |past: &PastSettle| {
            KnownLease::Past(
                past.outcome,
                SettledAs { state: Some(past.state), run_at: past.run_at, next_at: past.next_at },
            )
        };
        if seq == NO_JOB {
            let nothing = SettledAs { state: None, run_at: None, next_at: None };
            return match self.leases.tombstones.get(&fence) {
                Some(ended) if ended.outcome == Outcome::Released => {
                    KnownLease::Past(Outcome::Released, nothing)
                }
                _ => KnownLease::Lost,
            };
        }
        let find = |settles: &[PastSettle]| settles.iter().find(|s| s.fence == fence).map(answer);
        match self.jobs.by_seq(seq) {
            Some(slot) => find(&self.jobs[slot].settles).unwrap_or(KnownLease::Lost),
            // If an earlier item of the same call ended it, only its row says so.
            None => {
                let row = self.outbox.change_of(seq);
                let row = row.filter(|change| change.end.is_some() && !change.deleted);
                let life = row.and_then(|change| change.life.clone());
                life.or_else(|| archive.by_seq(&self.name, seq).map(|job| job.life))
                    .and_then(|life| find(&StoredLife::decode(&life)?.settles))
                    .unwrap_or(KnownLease::Lost)
            }
        }
    }

    fn check_settle(
        &self,
        (item, kinship): (&SettleItem, &Kinship),
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(), Refusal> {
        // A lost lease is answered in its item, so its statements about needs no longer matter.
        let KnownLease::Live(fence) = self.known(&item.lease, archive) else { return Ok(()) };
        let Some(lease) = self.leases.get(fence) else { return Ok(()) };
        if lease.job.is_none()
            && !matches!(item.ending, Ending::Succeeded { .. } | Ending::Released)
        {
            let outcome = item.ending.outcome().as_str().into();
            return Err(Refusal::from(LeaseRefusal::OutcomeNeedsJob { outcome }).at("/outcome"));
        }
        if let Ending::Snoozed { later: Later::Until(at), .. } = item.ending
            && at.since(now) < Span::from_us(SNOOZE_US_MIN)
        {
            return Err(Refusal::from(LeaseRefusal::SnoozeTooNear { until: at }).at("/until"));
        }
        for (n, verdict) in item.resources.iter().enumerate() {
            if self.held_resource(lease, verdict).is_none() {
                let (resource, pool) = (verdict.id.clone(), verdict.pool.clone());
                let no = Refusal::from(LeaseRefusal::ResourceNotHeld { resource, pool });
                return Err(no.at(format!("/resources/{n}")));
            }
        }
        for (n, verdict) in item.limits.iter().enumerate() {
            let held = lease.limits.iter().any(|h| self.limits[h.limit].name == verdict.limit);
            let known = self.limits.setting_of(&verdict.limit).is_some();
            if !(held || known && verdict.spent.is_none()) {
                let no = Refusal::from(LeaseRefusal::LimitNotHeld { limit: verdict.limit.clone() });
                return Err(no.at(format!("/limits/{n}/limit")));
            }
        }
        let goes = self.goes_with_its_end(fence, &item.ending);
        let (pushed, heir) = ((&item.push[..], kinship), self.heir(fence));
        self.check_follow_ups(pushed, goes.as_ref(), heir.as_ref(), archive, now)
    }

    fn held_resource(
        &self,
        lease: &LeaseState,
        verdict: &ResourceVerdict,
    ) -> Option<LiveResourceId> {
        lease.resources.iter().map(|held| held.resource).find(|slot| {
            let r = &self.pools[*slot];
            r.id == verdict.id && self.pools[r.pool].name == verdict.pool
        })
    }

    fn settle_one(
        &mut self,
        (item, kinship): (SettleItem, &Kinship),
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<SettledOne, Refusal> {
        let fence = match self.known(&item.lease, archive) {
            KnownLease::Live(fence) => fence,
            KnownLease::Past(before, answer) => {
                return Ok(self.settled_again(item, (before, answer), archive, now));
            }
            KnownLease::Lost => {
                let result = Err(Code::LeaseLost);
                return Ok(SettledOne::changed_nothing(item.lease, result, Vec::new()));
            }
        };
        let goes = self.goes_with_its_end(fence, &item.ending);
        // An earlier item of the same call may have taken the room of this one's follow-ups.
        let heir = self.heir(fence).filter(|_| !item.push.is_empty());
        let by = PushedBy { heir: heir.as_ref(), ..PushedBy::default() };
        let full = goes.is_some()
            && self
                .check_follow_ups((&item.push, kinship), goes.as_ref(), heir.as_ref(), archive, now)
                .is_err();
        let mut follow_ups = FollowUps::of(item.push, kinship, goes.as_ref());
        let before = if full {
            None
        } else {
            self.push_from(follow_ups.take_before(), by, next_seq, archive, now).ok()
        };
        let Some(before) = before else {
            let result = Err(Code::QueueFull);
            return Ok(SettledOne::changed_nothing(item.lease, result, Vec::new()));
        };
        let Some(lease) = self.leases.get(fence) else {
            let result = Err(Code::LeaseLost);
            return Ok(SettledOne::changed_nothing(item.lease, result, before));
        };
        let queue = lease.job.map(|slot| self.jobs.queue_of(slot));
        let others_wait = queue.is_some_and(|queue| !self.lines[queue].takers.is_empty());
        self.apply_verdicts(fence, &item.resources, &item.limits, now);
        // The end of the run is an event of its own.
        let _ = self.report(fence, item.progress);
        let end = end_of(item.ending, now);
        let next_at = self.say_next(fence, item.next_in, now);
        let became = self.end_lease(fence, end, now);
        let by = PushedBy { brought: &before, ..by };
        let after = self.push_from(follow_ups.take_after(), by, next_seq, archive, now);
        debug_assert!(after.is_ok(), "what was checked is refused: {after:?}");
        let after = after.unwrap_or_default();
        let pushed = follow_ups.in_order(before, after);
        let answer = SettledAs {
            state: became.map(|became| became.state),
            run_at: became.and_then(|became| became.run_at),
            next_at,
        };
        Ok(SettledOne { lease: item.lease, result: Ok(answer), pushed, others_wait })
    }

    /// The answer to a settle of a lease that a settle has ended: the same again, if the outcome is the same.
    fn settled_again(
        &self,
        item: SettleItem,
        (before, answer): (Outcome, SettledAs),
        archive: &dyn Archive,
        now: Moment,
    ) -> SettledOne {
        let outcome = item.ending.outcome();
        // Without a job both outcomes mean the same.
        let same = before == outcome || answer.state.is_none() && outcome == Outcome::Succeeded;
        if !same {
            return SettledOne::changed_nothing(item.lease, Err(Code::AlreadySettled), Vec::new());
        }
        let pushed = self.pushed_before(&item.push, archive, now);
        SettledOne::changed_nothing(item.lease, Ok(answer), pushed)
    }

    /// Applies the verdicts of the holder on things that its lease holds, and its pauses of limits.
    fn apply_verdicts(
        &mut self,
        fence: Fence,
        resources: &[ResourceVerdict],
        limits: &[LimitVerdict],
        now: Moment,
    ) {
        let Some(lease) = self.leases.get(fence) else { return };
        let holder = lease.holder.clone();
        let judged = resources
            .iter()
            .filter_map(|verdict| Some((self.held_resource(lease, verdict)?, &verdict.verdict)));
        let judged: Vec<_> = judged.collect();
        let booked = limits.iter().map(|verdict| {
            let held = lease.limits.iter().find(|h| self.limits[h.limit].name == verdict.limit);
            (verdict, held.copied())
        });
        let booked: Vec<_> = booked.collect();
        self.workers.hear(holder.as_ref(), now);
        for (resource, verdict) in judged {
            self.judge(resource, verdict, now);
        }
        for (verdict, held) in booked {
            if let (Some(spent), Some(held)) = (verdict.spent, held) {
                self.correct_cost(held.limit, held.cost, spent, now);
            }
            if let Some(pause) = verdict.pause {
                self.pause_limit_until(&verdict.limit, now.plus(pause), now);
            }
        }
    }

    /// The holder of a job sets the next occurrence of its schedule.
    fn say_next(
        &mut self,
        fence: Fence,
        next_in: Option<Span>,
        now: Moment,
    ) -> Option<Option<Moment>> {
        let slot = self.leases.get(fence)?.job?;
        let origin = self.jobs[slot].origin.clone()?;
        let job = self.jobs[slot].id.clone();
        let next_at = self.move_schedule(&origin, &job, next_in?, now);
        self.jobs[slot].next_at = next_at;
        next_at
    }

    /// Ends a lease by force: like a reap, but counted nowhere.
    fn force_lease(&mut self, id: &str, now: Moment) -> Result<(), Refusal> {
        let live = parse_lease_id(id).and_then(|id| self.leases.named(id));
        let Some(fence) = live.map(|lease| lease.fence) else {
            return Err(LeaseRefusal::NotFound { lease: id.to_owned() }.into());
        };
        self.end_lease(fence, End::Forced, now);
        Ok(())
    }

    /// Undoes grants whose caller was gone; they count nowhere. A lease that was extended since, or answered to a
    /// repeat of its call, stays: the first answer was lost, but it has a holder, and must not get a second one.
    pub(crate) fn undo(&mut self, fences: &[Fence], now: Moment) {
        for fence in fences {
            let Some(lease) = self.leases.get(*fence) else { continue };
            if lease.extended || lease.answered_again {
                continue;
            }
            if let Some(request) = lease.request.clone()
                && self.leases.requests.get(&request).is_some()
            {
                self.leases.requests.keep_if(&request, |past| {
                    past.fences.retain(|other| other != fence);
                    !past.fences.is_empty()
                });
                self.request_row(&request);
            }
            self.end_lease(*fence, End::Undelivered, now);
        }
    }
}

acts! {
    // The settles alone: the lease call of the same request is the engine's next command, because it may wait.
    Settle => Vec<SettledOne>, |ask, Context { space, now, next_seq, rest }| space.settle(ask.settle, next_seq, rest, now);
    ForceLease => (), |ask, at| at.space.force_lease(&ask.lease, at.now);
}

/// The end of a lease that its holder asks for.
fn end_of(ending: Ending, now: Moment) -> End {
    match ending {
        Ending::Succeeded { result } => End::Succeeded { result },
        Ending::Failed { error, retry_in, last } => {
            let error = tenure_core::decode::last_bytes(&error).to_owned();
            End::Failed { error, retry_in, last }
        }
        Ending::Snoozed { later, reset } => {
            let wait = match later {
                Later::For(span) => span,
                Later::Until(_) => Span::ZERO,
            };
            End::Snoozed { until: later.moment(now), wait, reset }
        }
        Ending::Released => End::Released,
    }
}
