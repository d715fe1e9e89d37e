//! Live leases with their ends and holders, and records of ended ones.

mod lease;

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::remembered::Remembered;
use super::sparse::trim_map;
use super::{LiveJobId, Seq};
use crate::audit::findings::Findings;
use crate::time::timers::Timers;
use tenure_core::bounds::{REQUEST_US, TICK_MAX};
use tenure_core::lease::Fence;
use tenure_core::names::{RequestId, WorkerId};
use tenure_core::time::{Moment, Span};

pub(crate) use lease::{HeldLimit, HeldRes, Holding, LeaseState, PastRequest, Tombstone};

/// All leases of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    live: BTreeMap<Fence, LeaseState>,
    /// The expiry of each live lease.
    expiries: Timers<Fence>,
    /// The deadline of each live lease that has one.
    deadlines: Timers<Fence>,
    /// What each holder has; a holder without a lease has no entry.
    holding: HashMap<Option<WorkerId>, Holding>,
    /// The fence of the last grant. Never falls.
    last_fence: Fence,
    /// The longest ttl of any lease that was granted, extended or restored here. Never falls.
    largest_ttl: Span,
    pub(crate) requests: Remembered<RequestId, PastRequest>,
    pub(crate) tombstones: Remembered<Fence, Tombstone>,
}

impl Leases {
    /// Those of a namespace without content, which had leases before.
    pub fn none_after(last_fence: Fence, largest_ttl: Span) -> Self {
        Leases { last_fence, largest_ttl, ..Leases::default() }
    }

    pub fn last_fence(&self) -> Fence {
        self.last_fence
    }

    pub fn raise_fence(&mut self, least: Fence) {
        self.last_fence = self.last_fence.max(least);
    }

    /// The fence of a new grant.
    pub fn next_fence(&mut self, now: Moment) -> Fence {
        self.last_fence = self.last_fence.next().max(Fence::new(now.us()));
        self.last_fence
    }

    pub fn largest_ttl(&self) -> Span {
        self.largest_ttl
    }

    // ---- Live leases ----

    pub fn get(&self, fence: Fence) -> Option<&LeaseState> {
        self.live.get(&fence)
    }

    /// The live lease of this id.
    pub fn named(&self, (fence, seq): (Fence, Seq)) -> Option<&LeaseState> {
        self.get(fence).filter(|lease| lease.seq == seq)
    }

    pub fn len(&self) -> usize {
        self.live.len()
    }

    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// All live leases, by their fences.
    pub fn iter(&self) -> impl Iterator<Item = &LeaseState> {
        self.live.values()
    }

    /// The live leases from a fence.
    pub fn from(&self, fence: Fence) -> impl Iterator<Item = &LeaseState> {
        self.live.range(fence..).map(|(_, lease)| lease)
    }

    /// The number of leases of a holder, and of suspects among them.
    pub fn held_by(&self, holder: &Option<WorkerId>) -> Holding {
        self.holding.get(holder).copied().unwrap_or_default()
    }

    /// Adds a new or restored lease. `suspect`: its job is one.
    pub fn insert(&mut self, lease: LeaseState, suspect: bool) {
        let fence = lease.fence;
        self.largest_ttl = self.largest_ttl.max(lease.ttl);
        self.expiries.set(lease.expires_at, fence);
        if let Some(deadline) = lease.deadline {
            self.deadlines.set(deadline, fence);
        }
        let holding = self.holding.entry(lease.holder.clone()).or_default();
        holding.leases += 1;
        holding.suspects += u64::from(suspect);
        self.live.insert(fence, lease);
    }

    /// Removes an ended lease.
    pub fn remove(
        &mut self,
        fence: Fence,
        is_suspect: impl FnOnce(LiveJobId) -> bool,
    ) -> Option<LeaseState> {
        let lease = self.live.remove(&fence)?;
        self.expiries.clear(lease.expires_at, fence);
        if let Some(deadline) = lease.deadline {
            self.deadlines.clear(deadline, fence);
        }
        if let Some(holding) = self.holding.get_mut(&lease.holder) {
            holding.leases -= 1;
            holding.suspects -= u64::from(lease.job.is_some_and(is_suspect));
            if holding.leases == 0 {
                self.holding.remove(&lease.holder);
            }
        }
        Some(lease)
    }

    /// Its holder gives a sign of life, and with it a new ttl if it wants another one.
    pub fn extend(
        &mut self,
        fence: Fence,
        ttl: Option<Span>,
        seen_at: Moment,
        now: Moment,
    ) -> Option<&LeaseState> {
        let lease = self.live.get_mut(&fence)?;
        lease.ttl = ttl.unwrap_or(lease.ttl);
        self.largest_ttl = self.largest_ttl.max(lease.ttl);
        lease.extended = true;
        lease.seen_at = seen_at;
        let expires_at = lease.end_of_ttl(now).max(lease.expires_at);
        expire_at(lease, &mut self.expiries, expires_at);
        Some(lease)
    }

    /// A repeat of its call was answered with it.
    pub fn answered_again(&mut self, fence: Fence) {
        if let Some(lease) = self.live.get_mut(&fence) {
            lease.answered_again = true;
        }
    }

    // ---- Time ----

    /// The first end by time.
    pub fn next_end(&self) -> Option<Moment> {
        self.expiries.next().into_iter().chain(self.deadlines.next()).min()
    }

    /// The lease that expired first.
    pub fn first_expired(&self, now: Moment) -> Option<&LeaseState> {
        self.get(self.expiries.first_due(now)?)
    }

    /// The lease whose deadline passed first.
    pub fn first_timed_out(&self, now: Moment) -> Option<Fence> {
        self.deadlines.first_due(now)
    }

    /// Moves the expiry of a lease.
    pub fn expire_at(&mut self, fence: Fence, at: Moment) {
        if let Some(lease) = self.live.get_mut(&fence) {
            expire_at(lease, &mut self.expiries, at);
        }
    }

    /// Moves the expiry of each lease.
    pub fn expire_each_at(&mut self, at: impl Fn(&LeaseState) -> Moment) {
        for lease in self.live.values_mut() {
            let at = at(lease);
            expire_at(lease, &mut self.expiries, at);
        }
    }

    /// The clock was set back: cuts times that are further ahead than their own length.
    pub fn set_back(&mut self, clock: Moment) {
        for (fence, lease) in &mut self.live {
            let most = clock.plus(lease.ttl).min(lease.expires_at);
            expire_at(lease, &mut self.expiries, most);
            if let Some(deadline) = lease.deadline {
                let most = clock.plus(deadline.since(lease.granted_at)).min(deadline);
                self.deadlines.clear(deadline, *fence);
                lease.deadline = Some(most);
                self.deadlines.set(most, *fence);
            }
            lease.granted_at = lease.granted_at.min(clock);
            lease.seen_at = lease.seen_at.min(clock);
        }
    }

    /// Takes the request ids that are over: each is remembered for the life of its leases, and at least 60 s.
    pub fn forget_requests(&mut self, now: Moment) -> Vec<RequestId> {
        let mut gone = Vec::new();
        for _ in 0..TICK_MAX {
            let Some((id, mut past)) = self.requests.take_ended(now) else { break };
            if past.fences.iter().any(|fence| self.live.contains_key(fence)) {
                past.until = now.plus(Span::from_us(REQUEST_US));
                self.requests.insert(id, past);
            } else {
                gone.push(id);
            }
        }
        gone
    }

    // ---- Upkeep ----

    /// True if it has neither a lease nor a record.
    pub fn hold_nothing(&self) -> bool {
        self.live.is_empty() && self.requests.is_empty() && self.tombstones.is_empty()
    }

    pub fn trim(&mut self) {
        self.requests.trim();
        self.tombstones.trim();
        trim_map(&mut self.holding);
    }

    pub fn shrink_to_fit(&mut self) {
        self.requests.shrink_to_fit();
        self.tombstones.shrink_to_fit();
        self.holding.shrink_to_fit();
    }

    /// Compares the timers and the sums of holders with the leases.
    pub fn audit(&self, found: &mut Findings, is_suspect: impl Fn(LiveJobId) -> bool) {
        let mut holding: HashMap<_, Holding> = HashMap::new();
        let mut deadlines = 0;
        for (fence, lease) in &self.live {
            found.check(lease.fence == *fence && *fence <= self.last_fence, || {
                format!("the fence {fence} is above the namespace's")
            });
            found.check(lease.ttl <= self.largest_ttl, || {
                format!("the ttl of the lease {fence} is above the largest")
            });
            let ends = lease.deadline.is_none_or(|at| self.deadlines.has(at, fence));
            found.check(ends && self.expiries.has(lease.expires_at, fence), || {
                format!("the lease {fence} has no timer for its end")
            });
            deadlines += usize::from(lease.deadline.is_some());
            let sum = holding.entry(lease.holder.clone()).or_default();
            sum.leases += 1;
            sum.suspects += u64::from(lease.job.is_some_and(&is_suspect));
        }
        let timers = (self.expiries.len(), self.deadlines.len());
        found.check(timers == (self.live.len(), deadlines), || {
            "leases and their ends differ in number".to_owned()
        });
        found
            .check(holding == self.holding, || "what each worker holds is cached wrong".to_owned());
        self.requests.audit(found, "the request");
        self.tombstones.audit(found, "the ended lease");
    }
}

fn expire_at(lease: &mut LeaseState, expiries: &mut Timers<Fence>, at: Moment) {
    if lease.expires_at != at {
        expiries.clear(lease.expires_at, lease.fence);
        lease.expires_at = at;
        expiries.set(at, lease.fence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::NO_JOB;

    fn leases() -> Leases {
        let mut leases = Leases::default();
        let (fence, now) = (leases.next_fence(Moment::ZERO), Moment::ZERO);
        let ttl = Span::from_s(4);
        let deadline = Some(Moment::from_us(2_000_000));
        let lease = LeaseState {
            fence,
            job: None,
            seq: NO_JOB,
            holder: None,
            granted_at: now,
            ttl,
            expires_at: now.plus(ttl),
            deadline,
            limits: Vec::new(),
            resources: Vec::new(),
            request: None,
            extended: false,
            answered_again: false,
            seen_at: now,
            local: false,
            first: false,
            orphaned: false,
            goes_on: false,
        };
        leases.insert(lease, false);
        leases
    }

    fn faults(leases: &Leases) -> String {
        let mut found = Findings::default();
        leases.audit(&mut found, |_| false);
        found.done().faults.join("; ")
    }

    type Damage = fn(&mut Leases);

    #[test]
    fn the_audit_finds_each_fault_of_the_leases() {
        let faulty: &[(Damage, &str)] = &[
            (|leases| leases.last_fence = Fence::default(), "is above the namespace's"),
            (|leases| leases.largest_ttl = Span::ZERO, "is above the largest"),
            (|leases| drop(leases.expiries.drain()), "has no timer for its end"),
            (|leases| drop(leases.deadlines.drain()), "has no timer for its end"),
            (|leases| leases.holding.clear(), "what each worker holds is cached wrong"),
            (|leases| leases.live.clear(), "leases and their ends differ in number"),
        ];
        for (damage, told) in faulty {
            let mut leases = leases();
            assert_eq!(faults(&leases), "");
            damage(&mut leases);
            assert!(faults(&leases).contains(told), "{told}: {}", faults(&leases));
        }
    }

    #[test]
    fn an_extend_keeps_a_lease_a_quarter_of_its_ttl_after_the_deadline() {
        let mut leases = leases();
        let (fence, now) = (leases.last_fence(), Moment::from_us(1_500_000));
        let lease = leases.extend(fence, Some(Span::from_s(8)), now, now).unwrap();
        assert_eq!(lease.expires_at, Moment::from_us(4_000_000));
        assert_eq!(leases.next_end(), Some(Moment::from_us(2_000_000)));
        assert_eq!(leases.largest_ttl(), Span::from_s(8));
        assert_eq!(leases.first_timed_out(Moment::from_us(2_000_000)), Some(fence));
        assert!(leases.first_expired(now).is_none());
    }
}
