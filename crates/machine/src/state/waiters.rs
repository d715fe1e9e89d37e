//! Waiting calls, and places in line. Grants are never here; they are leases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::remembered::{Ends, Remembered};
use super::slots::Slots;
use super::sparse::trim_map;
use super::{CallerId, HeldNeed, LaneId, QueueId, Seq, TakerId};
use crate::audit::findings::Findings;
use crate::time::timers::Timers;
use tenure_core::bounds::{AWAITS_MAX, TICK_MAX, WAIT_US_MAX};
use tenure_core::names::{FlowName, RequestId, WorkerId};
use tenure_core::refusal::Refusal;
use tenure_core::sentences::JobRefusal;
use tenure_core::time::{Moment, Span};

/// A job waiter: a waiting lease call for jobs.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub queues: Vec<QueueId>,
    pub max: usize,
    pub asker: Asker,
    pub until: Moment,
}

/// The caller of a lease call, and the ttl that it wants.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub worker: Option<WorkerId>,
    pub ttl: Span,
    pub request: Option<RequestId>,
    /// True if it is in the process that has the store open.
    pub local: bool,
}

/// A lock waiter: a waiting lease call for needs alone, in a lane of [`CALLERS`].
#[derive(Debug)]
pub(crate) struct Caller {
    pub taker: TakerId,
    pub lane: LaneId,
    pub arrival: u64,
    pub asker: Asker,
    /// The request id that its place is kept under.
    pub place: Option<RequestId>,
    pub since: Moment,
    pub until: Moment,
}

/// The thing whose end a call waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Awaited {
    /// The unfinished job of this row.
    Job(Seq),
    /// This flow, which has an unfinished member.
    Flow(FlowName),
}

/// A call that waits for an end.
#[derive(Clone, Debug)]
pub(crate) struct AwaitingCall {
    pub on: Awaited,
    pub until: Moment,
    /// True if it also looks at each progress report.
    pub progress: bool,
}

/// A place in line whose caller's connection broke or whose wait ended.
#[derive(Clone, Debug)]
pub(crate) struct KeptPlace {
    pub arrival: u64,
    pub since: Moment,
    pub needs: Arc<[HeldNeed]>,
    pub until: Moment,
}

impl Ends for KeptPlace {
    fn ends_at(&self) -> Option<Moment> {
        Some(self.until)
    }
}

/// All calls that wait, each under the number that the engine chose.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    job_waiters: BTreeMap<TakerId, Taker>,
    lock_waiters: Slots<Caller>,
    lock_waiter_by_call: BTreeMap<TakerId, CallerId>,
    /// The lease call that waits for each request id.
    call_by_request: HashMap<RequestId, TakerId>,
    /// Calls that wait for the end of a job or flow.
    awaiting: BTreeMap<TakerId, AwaitingCall>,
    awaited: BTreeMap<Awaited, BTreeSet<TakerId>>,
    /// The time at which each call gets its answer in any case.
    ends: Timers<TakerId>,
    pub(crate) places: Remembered<RequestId, KeptPlace>,
}

impl Waiters {
    /// True if no call waits and no place is kept.
    pub fn are_none(&self) -> bool {
        self.no_lease_call_waits() && self.awaiting.is_empty() && self.places.is_empty()
    }

    pub fn no_lease_call_waits(&self) -> bool {
        self.job_waiters.is_empty() && self.lock_waiter_by_call.is_empty()
    }

    /// The lease call that waits for this request.
    pub fn call_of(&self, request: Option<&RequestId>) -> Option<TakerId> {
        self.call_by_request.get(request?).copied()
    }

    // ---- Lease calls ----

    pub fn job_waiter(&self, call: TakerId) -> Option<&Taker> {
        self.job_waiters.get(&call)
    }

    pub fn add_job_waiter(&mut self, call: TakerId, waiter: Taker) {
        self.add_call(call, waiter.until, &waiter.asker);
        self.job_waiters.insert(call, waiter);
    }

    pub fn remove_job_waiter(&mut self, call: TakerId) -> Option<Taker> {
        let waiter = self.job_waiters.remove(&call)?;
        self.remove_call(call, waiter.until, &waiter.asker);
        Some(waiter)
    }

    pub fn lock_waiter(&self, slot: CallerId) -> &Caller {
        &self.lock_waiters[slot]
    }

    pub fn lock_waiter_of(&self, call: TakerId) -> Option<CallerId> {
        self.lock_waiter_by_call.get(&call).copied()
    }

    pub fn add_lock_waiter(&mut self, waiter: Caller) -> CallerId {
        self.add_call(waiter.taker, waiter.until, &waiter.asker);
        let call = waiter.taker;
        let slot = self.lock_waiters.insert(waiter);
        self.lock_waiter_by_call.insert(call, slot);
        slot
    }

    pub fn remove_lock_waiter(&mut self, slot: CallerId) -> Option<Caller> {
        let waiter = self.lock_waiters.remove(slot)?;
        self.lock_waiter_by_call.remove(&waiter.taker);
        self.remove_call(waiter.taker, waiter.until, &waiter.asker);
        Some(waiter)
    }

    fn add_call(&mut self, call: TakerId, until: Moment, asker: &Asker) {
        self.ends.set(until, call);
        if let Some(request) = &asker.request {
            self.call_by_request.insert(request.clone(), call);
        }
    }

    fn remove_call(&mut self, call: TakerId, until: Moment, asker: &Asker) {
        self.ends.clear(until, call);
        if let Some(request) = &asker.request
            && self.call_by_request.get(request) == Some(&call)
        {
            self.call_by_request.remove(request);
        }
    }

    // ---- Calls that wait for an end ----

    pub fn awaiting(&self) -> usize {
        self.awaiting.len()
    }

    pub fn is_awaited(&self, on: &Awaited) -> bool {
        self.awaited.contains_key(on)
    }

    /// Registers a call, unless too many wait.
    pub fn wait_for_end(&mut self, call: TakerId, awaits: AwaitingCall) -> Result<(), Refusal> {
        if self.awaiting.len() >= AWAITS_MAX {
            return Err(JobRefusal::AwaitedByTooMany { most: AWAITS_MAX }.into());
        }
        self.ends.set(awaits.until, call);
        self.awaited.entry(awaits.on.clone()).or_default().insert(call);
        self.awaiting.insert(call, awaits);
        Ok(())
    }

    /// Removes a call. Returns the thing that it waited for.
    pub fn stop_awaiting(&mut self, call: TakerId) -> Option<Awaited> {
        let AwaitingCall { on, until, .. } = self.awaiting.remove(&call)?;
        self.ends.clear(until, call);
        if let Some(calls) = self.awaited.get_mut(&on) {
            calls.remove(&call);
            if calls.is_empty() {
                self.awaited.remove(&on);
            }
        }
        Some(on)
    }

    /// Removes all calls that wait for this.
    pub fn take_awaiting(&mut self, on: &Awaited) -> BTreeSet<TakerId> {
        let calls = self.awaited.remove(on).unwrap_or_default();
        for call in &calls {
            if let Some(awaits) = self.awaiting.remove(call) {
                self.ends.clear(awaits.until, *call);
            }
        }
        calls
    }

    /// The calls that also look at each progress report of a job.
    pub fn that_follow(&self, job: Seq) -> Vec<TakerId> {
        let Some(calls) = self.awaited.get(&Awaited::Job(job)) else { return Vec::new() };
        let follows = |call: &&TakerId| self.awaiting.get(call).is_some_and(|call| call.progress);
        calls.iter().filter(follows).copied().collect()
    }

    // ---- Time ----

    pub fn next_end(&self) -> Option<Moment> {
        self.ends.next()
    }

    /// The calls whose time is over.
    pub fn take_ended(&mut self, now: Moment) -> Vec<TakerId> {
        let due = |_| self.ends.take_due(now).map(|(_, call)| call);
        (0..TICK_MAX).map_while(due).collect()
    }

    /// A clock that was set back must not lengthen a wait for an end.
    pub fn set_back(&mut self, clock: Moment) {
        let most = clock.plus(Span::from_us(WAIT_US_MAX));
        for (call, awaits) in self.awaiting.iter_mut().filter(|(_, call)| call.until > most) {
            self.ends.clear(awaits.until, *call);
            awaits.until = most;
            self.ends.set(most, *call);
        }
    }

    // ---- Upkeep ----

    pub fn trim(&mut self) {
        trim_map(&mut self.call_by_request);
        self.places.trim();
    }

    pub fn shrink_to_fit(&mut self) {
        self.call_by_request.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    /// Compares both directions of each link, and the timers with the calls. `lives`: the thing has not ended.
    pub fn audit(&self, found: &mut Findings, lives: impl Fn(&Awaited) -> bool) {
        for (on, calls) in &self.awaited {
            found.check(lives(on), || {
                format!("the end of {on:?} is waited for, and it is not there or has ended")
            });
            for call in calls {
                found.check(self.awaiting.get(call).is_some_and(|call| call.on == *on), || {
                    format!("call {call} waits for something else than {on:?}")
                });
            }
        }
        let calls: usize = self.awaited.values().map(BTreeSet::len).sum();
        found.check(calls == self.awaiting.len(), || {
            format!("{} calls wait for an end, and {calls} of them for a job", self.awaiting.len())
        });
        for (call, slot) in &self.lock_waiter_by_call {
            let waiter = self.lock_waiters.get(*slot);
            found.check(waiter.is_some_and(|waiter| waiter.taker == *call), || {
                format!("call {call} is not the lock waiter that it is found as")
            });
        }
        let locks = (self.lock_waiters.len(), self.lock_waiter_by_call.len());
        found.check(locks.0 == locks.1, || {
            format!("there are {} lock waiters, and {} are found by their calls", locks.0, locks.1)
        });
        for (request, call) in &self.call_by_request {
            let lock = self.lock_waiter_of(*call).map(|slot| &self.lock_waiters[slot].asker);
            let asker = self.job_waiter(*call).map(|waiter| &waiter.asker).or(lock);
            found.check(asker.is_some_and(|asker| asker.request.as_ref() == Some(request)), || {
                format!("the request {request:?} is not that of its call {call}")
            });
        }
        let waits = self.job_waiters.len() + locks.1 + calls;
        found.check(self.ends.len() == waits, || {
            format!("{waits} calls wait, and {} of them have an end", self.ends.len())
        });
        self.places.audit(found, "the place of the request");
    }
}
