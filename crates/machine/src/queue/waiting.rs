//! Waiting calls: job waiters of queues, and lock waiters for needs alone.
//!
//! A waiting call is state: the step that frees something hands it over at once, in the order of the line. Callers do
//! not poll, so no wake-up can be lost.

use crate::facts::{Delivery, Granted};
use crate::lease::ending::End;
use crate::lease::grant::Tried;
use crate::state::{
    Asker, CALLERS, Caller, CallerId, HeldNeed, KeptPlace, LaneKey, Place, QueueId, Space, Taker,
    TakerId,
};
use tenure_core::bounds::{LINE_MAX, PLACE_US, STEPS_MAX};
use tenure_core::lease::{Leased, Worker};
use tenure_core::names::RequestId;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::LeaseRefusal;
use tenure_core::time::{Moment, Span};

/// Lanes tried for one call before the call is continued as a new step.
pub(crate) const TRIES_MAX: usize = 1_000;

impl Space {
    // ---- Workers ----

    /// Notes a call of a worker, and the queues in it.
    pub(crate) fn see_worker(&mut self, worker: &Worker, queues: &[QueueId], now: Moment) {
        for queue in queues {
            self.lines[*queue].asked_at = Some(now);
        }
        self.workers.see(worker, queues, now);
    }

    // ---- Job waiters ----

    /// Registers a lease call for jobs that has to wait.
    pub(crate) fn wait_for_jobs(&mut self, id: TakerId, taker: Taker) {
        for queue in &taker.queues {
            self.lines[*queue].takers.insert(id);
        }
        self.workers.count_waiting(taker.asker.worker.as_ref(), 1);
        self.waiters.add_job_waiter(id, taker);
    }

    fn forget_taker(&mut self, id: TakerId) -> Option<Taker> {
        let taker = self.waiters.remove_job_waiter(id)?;
        for queue in &taker.queues {
            if self.lines.queue(*queue).is_some() {
                self.lines[*queue].takers.remove(&id);
            }
            self.lines.freed_queue(*queue, self.last);
        }
        self.workers.count_waiting(taker.asker.worker.as_ref(), -1);
        Some(taker)
    }

    /// Hands open jobs and needs to waiting calls, as far as bounded work goes.
    pub(crate) fn serve(&mut self, now: Moment) {
        let mut steps = STEPS_MAX;
        loop {
            while steps > 0 && self.has_pending() {
                steps -= 1;
                self.step_pending(now);
            }
            let Some(queue) = self.lines.next_to_serve() else { return };
            if steps == 0 {
                return;
            }
            self.lines.served(queue);
            if queue == CALLERS {
                self.serve_callers(&mut steps, now);
            } else if self.lines.queue(queue).is_some() {
                self.serve_takers(queue, &mut steps, now);
            }
        }
    }

    fn serve_takers(&mut self, queue: QueueId, steps: &mut usize, now: Moment) {
        let mut after = TakerId::default();
        while let Some(id) = self.lines[queue].takers.range(after..).next().copied() {
            if *steps == 0 {
                self.lines.serve(queue);
                return;
            }
            if !self.queue_is_open(queue, true, now) || self.lines.next_lane(queue, true).is_none()
            {
                return;
            }
            *steps -= 1;
            after = id.next();
            let Some(taker) = self.waiters.job_waiter(id).cloned() else { continue };
            let mut tries = TRIES_MAX;
            let fences = self.take_jobs(&taker.queues, taker.max, &taker.asker, &mut tries, now);
            if !fences.is_empty() {
                self.forget_taker(id);
                let granted = self.granted(fences, &taker.asker, now);
                self.outbox.deliveries.push(Delivery { taker: id, granted });
            }
        }
    }

    // ---- Lock waiters ----

    /// Puts a lock waiter in line; grants it at once if that is possible.
    pub(crate) fn call(&mut self, caller: NewCaller, now: Moment) -> Result<Called, Refusal> {
        let key = LaneKey {
            queue: CALLERS,
            priority: 0,
            group: None,
            needs: caller.needs.clone(),
            suspect: false,
        };
        let kept = caller.place.as_ref().and_then(|place| self.waiters.places.remove(place));
        if let Some(kept) = &kept {
            self.drop_needs(&kept.needs);
        }
        let kept = kept.filter(|kept| kept.needs == caller.needs);
        let (arrival, since) = match &kept {
            Some(kept) => (kept.arrival, kept.since),
            None => (self.lines.next_arrival(), now),
        };
        let lane = self.lines.lane_for(&key);
        self.workers.count_waiting(caller.asker.worker.as_ref(), 1);
        let slot = self.waiters.add_lock_waiter(Caller {
            taker: caller.taker,
            lane,
            arrival,
            asker: caller.asker,
            place: caller.place,
            since,
            until: caller.until,
        });
        self.enter_lane(lane, arrival, slot.into(), now);
        let mut tries = TRIES_MAX;
        self.serve_callers(&mut tries, now);
        if let Some(granted) = self.outbox.take_delivery(caller.taker) {
            return Ok(Called::Granted(granted));
        }
        if let Some(no) = self.line_is_full(slot) {
            self.leave_line(caller.taker, now);
            return Err(no);
        }
        Ok(Called::Waits)
    }

    fn line_is_full(&self, caller: CallerId) -> Option<Refusal> {
        let lane = self.waiters.lock_waiter(caller).lane;
        let bundle = self.lines[lane].bundle;
        let place = match self.lines[lane].place {
            Place::Open => self.lines[bundle].place,
            place => place,
        };
        let (Place::Parked(door) | Place::Misfit(door)) = place else { return None };
        let waiting = self.lines[door].lines.get(&CALLERS).map_or(0, |line| line.waiting);
        (waiting > LINE_MAX as u64).then(|| LeaseRefusal::LineFull { most: LINE_MAX }.into())
    }

    /// Grants lock waiters that may go, lane by lane.
    fn serve_callers(&mut self, steps: &mut usize, now: Moment) {
        while *steps > 0 {
            *steps -= 1;
            if self.has_pending() {
                self.step_pending(now);
                continue;
            }
            let Some(lane) = self.lines.next_lane(CALLERS, true) else { return };
            let Some((_, slot)) = self.lines.head(lane) else { return };
            let asker = self.waiters.lock_waiter(slot.caller()).asker.clone();
            let needs = self.lines[lane].key.needs.clone();
            if let Tried::Granted(fence) = self.try_lane(lane, &asker, now) {
                let Some(caller) = self.forget_caller(slot.caller()) else { return };
                let mut granted = self.granted(vec![fence], &asker, now);
                if asker.ttl == Span::ZERO {
                    // Tokens only: granted and given back in one step, nothing to settle.
                    self.end_lease(fence, End::Undelivered, now);
                    granted.grants.iter_mut().for_each(|grant| grant.lease.lease = None);
                }
                self.outbox.deliveries.push(Delivery { taker: caller.taker, granted });
                self.drop_needs(&needs);
            }
        }
        self.lines.serve(CALLERS);
    }

    fn forget_caller(&mut self, slot: CallerId) -> Option<Caller> {
        let caller = self.waiters.remove_lock_waiter(slot)?;
        self.workers.count_waiting(caller.asker.worker.as_ref(), -1);
        Some(caller)
    }

    /// Takes a lock waiter out of line; its place is kept for a while if it has a request id.
    fn leave_line(&mut self, taker: TakerId, now: Moment) -> Option<CallerId> {
        let slot = self.waiters.lock_waiter_of(taker)?;
        let Caller { lane, arrival, .. } = *self.waiters.lock_waiter(slot);
        let needs = self.lines[lane].key.needs.clone();
        self.leave_lane(lane, arrival, now);
        let caller = self.forget_caller(slot)?;
        if let Some(place) = caller.place {
            let until = now.plus(Span::from_us(PLACE_US));
            self.keep_place(place, KeptPlace { arrival, since: caller.since, needs, until });
        } else {
            self.drop_needs(&needs);
        }
        Some(slot)
    }

    fn keep_place(&mut self, place: RequestId, kept: KeptPlace) {
        if let Some(old) = self.waiters.places.insert(place, kept) {
            self.drop_needs(&old.needs);
        }
    }

    // ---- The end of a wait ----

    /// Ends the waits of calls whose time is over. Lock waiters behind them move up; then the calls that wait for an
    /// end look.
    pub(crate) fn end_waits(&mut self, over: &[TakerId], now: Moment) {
        for taker in over {
            self.end_wait(*taker, now);
        }
        self.serve(now);
        for taker in over {
            self.end_awaiting(*taker);
        }
    }

    /// The wait is over, or the same request came again: the answer is an empty list.
    pub(crate) fn end_wait(&mut self, id: TakerId, now: Moment) {
        // Lock waiters get the reasons for their wait.
        let caller = self.waiters.lock_waiter_of(id);
        let reasons = caller.map(|slot| self.reasons_of_caller(slot, now)).unwrap_or_default();
        let known = self.forget_taker(id).is_some() || self.leave_line(id, now).is_some();
        if known {
            let next_at = self.next_change();
            let answer = Leased { leases: Vec::new(), next_at, reasons };
            let granted = Granted { grants: Vec::new(), answer };
            self.outbox.deliveries.push(Delivery { taker: id, granted });
        }
    }

    /// The connection of a waiting call broke: there is no answer.
    pub(crate) fn drop_wait(&mut self, id: TakerId, now: Moment) {
        if self.forget_taker(id).is_none() && self.forget_awaiting(id).is_none() {
            self.leave_line(id, now);
        }
    }
}

/// A lease call for needs alone.
pub(crate) struct NewCaller {
    pub taker: TakerId,
    pub needs: std::sync::Arc<[HeldNeed]>,
    pub asker: Asker,
    pub place: Option<RequestId>,
    pub until: Moment,
}

/// The outcome of a lock waiter's call.
pub(crate) enum Called {
    Granted(Granted),
    Waits,
}
