//! Lease: asks for jobs of queues, or for needs alone; answered at once, or when something frees.

use std::borrow::Cow;

use crate::answer::{Elsewhere, acts};
use crate::facts::Granted;
use crate::queue::waiting::{Called, NewCaller, TRIES_MAX};
use crate::state::{Asker, HeldLimit, QueueId, Space, Taker, TakerId};
use tenure_core::job::Need;
use tenure_core::lease::{Fence, LeaseSummary, Leased, Reason};
use tenure_core::names::{QueueName, RequestId};
use tenure_core::need_template::filled;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Ask, Lease, ListLeases, Listed};
use tenure_core::secret::Json;
use tenure_core::sentences::{LeaseRefusal, NeedRefusal};
use tenure_core::time::{Moment, Span};

/// The outcome of a lease call.
#[derive(Clone, PartialEq, Debug)]
pub enum LeaseOutcome {
    /// The answer is ready.
    Now(Granted),
    /// The call waits; a delivery answers it.
    Waits,
    /// Its bounded work was not enough: the caller must apply it again.
    Again,
}

impl Space {
    /// One lease call. `taker` names it if it has to wait.
    pub(crate) fn lease(
        &mut self,
        ask: &Lease,
        taker: TakerId,
        now: Moment,
    ) -> Result<LeaseOutcome, Refusal> {
        match &ask.ask {
            Ask::Jobs { queues, max } => self.lease_jobs(ask, queues, *max, taker, now),
            Ask::Needs(needs) => self.lease_needs(ask, needs, taker, now),
        }
    }

    fn asker(ask: &Lease) -> Asker {
        Asker {
            worker: ask.worker.id.clone(),
            ttl: ask.ttl,
            request: ask.request_id.clone(),
            local: ask.local,
        }
    }

    /// A repeat gets those of its leases that live, and never a second grant. During a recovery it gets no exclusive
    /// lease: forgotten steps may have ended that lease and made the same grant to another holder.
    fn repeated(&mut self, request: Option<&RequestId>, now: Moment) -> Option<LeaseOutcome> {
        let mut fences = self.leases.requests.get(request?)?.fences.clone();
        if self.closed_until(now).is_some() {
            fences.retain(|fence| !self.holds_exclusive(*fence));
        }
        for fence in &fences {
            self.leases.answered_again(*fence);
        }
        let grants = fences.iter().filter_map(|fence| self.grant_view(*fence)).collect();
        Some(LeaseOutcome::Now(Granted { grants, answer: Leased::default() }))
    }

    /// True if a lease has permits of a limit with a concurrency, or a resource.
    fn holds_exclusive(&self, fence: Fence) -> bool {
        self.leases.get(fence).is_some_and(|lease| {
            let is_capped = |held: &HeldLimit| {
                self.limits
                    .setting_now(held.limit)
                    .is_some_and(|settings| settings.concurrency.is_some())
            };
            !lease.resources.is_empty() || lease.limits.iter().any(is_capped)
        })
    }

    fn lease_jobs(
        &mut self,
        ask: &Lease,
        queues: &[QueueName],
        max: usize,
        taker: TakerId,
        now: Moment,
    ) -> Result<LeaseOutcome, Refusal> {
        self.check_tokens(ask, &[])?;
        let mut slots: Vec<QueueId> = Vec::with_capacity(queues.len());
        for name in queues {
            let queue = self.queue_for(name, now);
            if !slots.contains(&queue) {
                slots.push(queue);
            }
        }
        self.see_worker(&ask.worker, &slots, now);
        if let Some(again) = self.repeated(ask.request_id.as_ref(), now) {
            return Ok(again);
        }
        // A repeated request takes over the place of the first, which still waits.
        if let Some(first) = self.waiters.call_of(ask.request_id.as_ref()) {
            self.end_wait(first, now);
        }
        let asker = Space::asker(ask);
        let mut tries = TRIES_MAX;
        let fences = self.take_jobs(&slots, max, &asker, &mut tries, now);
        if !fences.is_empty() {
            return Ok(LeaseOutcome::Now(self.granted(fences, &asker, now)));
        }
        if tries == 0 {
            return Ok(LeaseOutcome::Again);
        }
        if ask.wait > Span::ZERO {
            let until = now.plus(ask.wait);
            self.wait_for_jobs(taker, Taker { queues: slots, max, asker, until });
            return Ok(LeaseOutcome::Waits);
        }
        Ok(self.nothing(Vec::new()))
    }

    fn nothing(&self, reasons: Vec<Reason>) -> LeaseOutcome {
        let answer = Leased { leases: Vec::new(), next_at: self.next_change(), reasons };
        LeaseOutcome::Now(Granted { grants: Vec::new(), answer })
    }

    fn lease_needs(
        &mut self,
        ask: &Lease,
        needs: &[Need],
        taker: TakerId,
        now: Moment,
    ) -> Result<LeaseOutcome, Refusal> {
        // Whoever repeats has leases, whatever has become of the limits since.
        if let Some(again) = self.repeated(ask.request_id.as_ref(), now) {
            return Ok(again);
        }
        self.check_needs(needs).map_err(|no| no.below("/needs"))?;
        self.see_worker(&ask.worker, &[], now);
        let place = ask.place.clone().or_else(|| ask.request_id.clone());
        if let Some(first) = self.waiters.call_of(place.as_ref()) {
            self.end_wait(first, now);
        }
        self.check_tokens(ask, needs)?;
        let held = self.hold_needs(needs);
        let asker = Space::asker(ask);
        let until = now.plus(ask.wait);
        let caller = NewCaller { taker, needs: held, asker, place, until };
        match self.call(caller, now) {
            Ok(Called::Granted(granted)) => Ok(LeaseOutcome::Now(granted)),
            Ok(Called::Waits) if ask.wait > Span::ZERO => Ok(LeaseOutcome::Waits),
            Ok(Called::Waits) => {
                let caller = self.waiters.lock_waiter_of(taker);
                let reasons =
                    caller.map(|slot| self.reasons_of_caller(slot, now)).unwrap_or_default();
                self.drop_wait(taker, now);
                Ok(self.nothing(reasons))
            }
            Err(no) => Err(no),
        }
    }

    /// `ttl: 0s` leaves no lease, so it is only for needs that are never given back.
    fn check_tokens(&self, ask: &Lease, needs: &[Need]) -> Result<(), Refusal> {
        let is_rate = |need: &Need| match need {
            Need::Limit { limit, .. } => self
                .limits
                .setting_of(limit)
                .is_some_and(|(s, _)| s.rate.is_some() && s.concurrency.is_none()),
            Need::Pool { .. } => false,
        };
        if ask.ttl > Span::ZERO || !needs.is_empty() && needs.iter().all(is_rate) {
            return Ok(());
        }
        Err(Refusal::from(LeaseRefusal::TtlNeedsRates).at("/ttl"))
    }

    // ---- Refusals of needs that can never be met ----

    /// Checks a job's needs, or its queue's, filled in from its payload: refuses unknown names, needs that never fit,
    /// and a payload that lacks a field.
    pub(crate) fn check_needs_exist(
        &self,
        needs: Option<&[Need]>,
        queue: &QueueName,
        payload: &Json,
    ) -> Result<(), Refusal> {
        match needs {
            Some(needs) => self.check_needs(needs).map_err(|no| no.below("/needs")),
            None => self.check_needs(&self.queue_needs(queue, payload)?),
        }
    }

    /// The needs of a job with this payload, by the settings of its queue.
    pub(crate) fn queue_needs(
        &self,
        queue: &QueueName,
        payload: &Json,
    ) -> Result<Cow<'_, [Need]>, Refusal> {
        match self.lines.queue_by_name().get(queue) {
            Some(slot) => filled(&self.lines[*slot].settings.needs, payload, queue),
            None => Ok(Cow::Borrowed(&[])),
        }
    }

    /// Refuses an unknown limit, pool or resource, a weight above the cap, a cost above the burst.
    pub(crate) fn check_needs(&self, needs: &[Need]) -> Result<(), Refusal> {
        tenure_core::decode::needs_distinct(needs)?;
        for (index, need) in needs.iter().enumerate() {
            self.check_need(need).map_err(|no| no.below(&format!("/{index}")))?;
        }
        Ok(())
    }

    fn check_need(&self, need: &Need) -> Result<(), Refusal> {
        match need {
            Need::Limit { limit, weight, cost } => {
                let Some((settings, _)) = self.limits.setting_of(limit) else {
                    let no = Refusal::from(NeedRefusal::limit_unknown(limit.clone()));
                    return Err(no.at("/limit"));
                };
                if let Some(cap) = settings.concurrency
                    && cap > 0
                    && *weight > cap
                {
                    let (weight, concurrency, limit) = (*weight, cap, limit.clone());
                    let no = NeedRefusal::WeightNeverFits { weight, concurrency, limit };
                    return Err(Refusal::from(no).at("/weight"));
                }
                if let Some(rate) = &settings.rate
                    && *cost > rate.burst
                {
                    let (cost, burst, limit) = (*cost, rate.burst, limit.clone());
                    let no = NeedRefusal::CostNeverFits { cost, burst, limit };
                    return Err(Refusal::from(no).at("/cost"));
                }
                Ok(())
            }
            Need::Pool { pool, id, .. } => {
                let known =
                    self.pools.by_name().get(pool).filter(|p| self.pools[**p].settings.is_some());
                let Some(slot) = known else {
                    let no = Refusal::from(NeedRefusal::PoolUnknown { pool: pool.clone() });
                    return Err(no.at("/pool"));
                };
                if let Some(id) = id
                    && !self.pools[*slot].resources.contains_key(id)
                {
                    let (pool, resource) = (pool.clone(), id.clone());
                    let no = Refusal::from(NeedRefusal::ResourceUnknown { pool, resource });
                    return Err(no.at("/id"));
                }
                Ok(())
            }
        }
    }
}

acts! {
    // A lease call is a command of its own, because it may wait: see [`crate::Command::Lease`].
    Lease => Elsewhere, |_, _| Ok(Elsewhere);
    ListLeases => Listed<LeaseSummary>, |ask, at| Ok(at.space.list_leases(&ask));
}
