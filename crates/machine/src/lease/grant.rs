//! The grant: in one step a lane's head gets its turn, its permits, its tokens, its resources and its lease; otherwise
//! it gets nothing, and its lane is blocked on its first missing need.

use crate::facts::{Grant, Granted};
use crate::queue::doors::Fit;
use crate::rows::stored::lease_id;
use crate::state::{
    Asker, CALLERS, DoorKey, Entry, HeldLimit, HeldNeed, HeldRes, LaneId, LeaseState, LiveJobId,
    NO_JOB, PastRequest, Place, Queue, QueueId, Space, Stand,
};
use tenure_core::bounds::{PAGE_BYTES_FULL, REQUEST_US};
use tenure_core::events::{About, EventType};
use tenure_core::job::Until;
use tenure_core::lease::{Fence, LeaseView, LeasedResource};
use tenure_core::names::QueueName;
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};

/// The result of trying a lane.
pub(crate) enum Tried {
    /// Its head was granted, with this lease.
    Granted(Fence),
    /// It is blocked in a wait queue now.
    Parked,
}

impl Space {
    /// Tries the head of an open lane.
    pub(crate) fn try_lane(&mut self, lane: LaneId, asker: &Asker, now: Moment) -> Tried {
        let bundle = self.lines[lane].bundle;
        self.clear_out(Entry::Lane(lane));
        self.clear_out(Entry::Bundle(bundle));
        let needs = self.lines[lane].key.needs.clone();
        let reserves = self.lines[lane].reserving;
        for need in needs.iter() {
            let key = Space::door_key(need);
            let behind = match self.find_door(&key) {
                Some(door) if !reserves && !self.runs_already(need, lane) => {
                    self.lines.must_stand_behind(door, lane)
                }
                _ => false,
            };
            let fit = if behind { Fit::No(None) } else { self.need_fit(need, lane, now) };
            let whole = need.is_plain() && !reserves;
            let entry = if whole { Entry::Bundle(bundle) } else { Entry::Lane(lane) };
            match fit {
                Fit::Yes => continue,
                Fit::No(_) => self.park(entry, key, now),
                Fit::Never => self.park_misfit(entry, key),
            }
            return Tried::Parked;
        }
        Tried::Granted(self.grant_head(lane, asker, now))
    }

    /// True if a need's permits belong to a run that the lane's head already has: there is nothing to wait for.
    fn runs_already(&self, need: &HeldNeed, lane: LaneId) -> bool {
        match need {
            HeldNeed::Limit { limit, weight, .. } => {
                let own = self.own_permits(*limit, Some(lane));
                own > 0 && own >= *weight
            }
            HeldNeed::Pool { .. } => false,
        }
    }

    /// True if a queue's own limit admits another job; otherwise the queue is blocked in that wait queue. `suspects`:
    /// the asking worker may take one.
    pub(crate) fn queue_is_open(&mut self, queue: QueueId, suspects: bool, now: Moment) -> bool {
        let q = &self.lines[queue];
        if q.paused_until.is_some_and(|until| until > now) || q.place != Place::Open {
            return false;
        }
        let Some(limit) = q.limit else { return true };
        self.clear_out(Entry::Queue(queue));
        if self.limits.setting(limit).is_none() {
            return true;
        }
        match self.limit_fit(limit, 1, 1, None, now) {
            Fit::Yes => true,
            Fit::No(_) if self.next_has_own_run(queue, limit, suspects, now) => true,
            Fit::No(_) => {
                self.park(Entry::Queue(queue), DoorKey::Limit(limit), now);
                false
            }
            Fit::Never => {
                self.park_misfit(Entry::Queue(queue), DoorKey::Limit(limit));
                false
            }
        }
    }

    fn grant_head(&mut self, lane: LaneId, asker: &Asker, now: Moment) -> Fence {
        let Some((arrival, head)) = self.lines.head(lane) else {
            panic!("an empty lane was tried");
        };
        if self.lines[lane].reserving {
            self.drop_reservation(lane, now);
        }
        let key = self.lines[lane].key.clone();
        let queue = key.queue;
        let fence = self.leases.next_fence(now);
        let (limits, resources) = self.take_needs(lane, fence, now);
        self.lines.book_turn(lane);
        if self.leases.is_empty() {
            // Ticks were not needed before: the engine was not deaf.
            self.pulse = now;
        }
        let job = (queue != CALLERS).then(|| head.job());
        let (seq, deadline) = job.map_or((NO_JOB, None), |job| {
            let timeout = self.jobs.shape_of(job).timeout;
            (self.jobs[job].seq, timeout.map(|span| now.plus(span)))
        });
        let mut goes_on = false;
        for held in limits.iter().filter(|_| job.is_some()) {
            goes_on |= self.own_run_is_held(held.limit, seq, held.weight);
        }
        let lease = LeaseState {
            fence,
            job,
            seq,
            holder: asker.worker.clone(),
            granted_at: now,
            ttl: asker.ttl,
            expires_at: Moment::MAX,
            deadline,
            limits,
            resources,
            request: asker.request.clone(),
            extended: false,
            answered_again: false,
            seen_at: now,
            local: asker.local,
            first: job.is_some_and(|slot| self.jobs[slot].started_at.is_none()),
            orphaned: false,
            goes_on,
        };
        let expires_at = lease.end_of_ttl(now);
        self.leases.insert(LeaseState { expires_at, ..lease }, key.suspect);
        match job {
            Some(job) => self.start_job(job, lane, arrival, fence, now),
            None => {
                self.leave_lane(lane, arrival, now);
                self.lease_row(fence);
            }
        }
        self.emit_grant(fence, job, asker, now);
        fence
    }

    /// Takes the permits, tokens and resources of a lane's head for this lease.
    fn take_needs(
        &mut self,
        lane: LaneId,
        fence: Fence,
        now: Moment,
    ) -> (Vec<HeldLimit>, Vec<HeldRes>) {
        let key = self.lines[lane].key.clone();
        let mut limits = Vec::with_capacity(key.needs.len());
        let mut resources = Vec::new();
        if let Some(own) = self.lines[key.queue].limit
            && self.limits.setting(own).is_some()
            && !key
                .needs
                .iter()
                .any(|n| matches!(n, HeldNeed::Limit { limit, .. } if *limit == own))
        {
            limits.push((own, 1, 1));
        }
        for need in key.needs.iter() {
            match need {
                HeldNeed::Limit { limit, weight, cost, .. } => {
                    limits.push((*limit, *weight, *cost))
                }
                HeldNeed::Pool { pool, .. } => {
                    let taken = self.take_resources(need, lane, fence, now);
                    resources.extend(
                        taken.into_iter().map(|resource| HeldRes { pool: *pool, resource }),
                    );
                }
            }
        }
        let limits: Vec<HeldLimit> = limits
            .into_iter()
            .map(|(limit, weight, cost)| {
                self.limits[limit].holders.insert(fence);
                let cost = self.take_limit(limit, weight, cost, now);
                HeldLimit { limit, weight, cost }
            })
            .collect();
        (limits, resources)
    }

    /// Emits a grant.
    fn emit_grant(&mut self, fence: Fence, job: Option<LiveJobId>, asker: &Asker, now: Moment) {
        let holder = asker.worker.as_ref().map(|worker| worker.as_str().to_owned());
        let seq = job.map_or(NO_JOB, |job| self.jobs[job].seq);
        let (kind, about) = match job {
            Some(job) => {
                let attempt = Some(self.jobs[job].ended + 1);
                (EventType::JobGranted, About { attempt, ..self.about_job(job) })
            }
            None => (EventType::LeaseGranted, About::default()),
        };
        let lease = Some(lease_id(fence, seq));
        self.happens(kind, About { lease, fence: Some(fence), holder, ..about }, now);
    }

    fn start_job(
        &mut self,
        slot: LiveJobId,
        lane: LaneId,
        arrival: u64,
        fence: Fence,
        now: Moment,
    ) {
        self.leave_lane(lane, arrival, now);
        let job = &mut self.jobs[slot];
        job.stand = Stand::Running(fence);
        job.started_at = Some(now);
        let unique = job.unique.as_ref().filter(|u| u.until == Until::Start).map(|u| u.key.clone());
        self.jobs.unwatch_expiry(slot);
        let queue = self.jobs.queue_of(slot);
        self.lines[queue].counts.running += 1;
        if let Some(key) = unique {
            self.release_key(&key, slot);
        }
        self.jobs.mark(slot);
    }

    /// The lease for a grant's holder; payload and data are added from the rows.
    pub(crate) fn grant_view(&self, fence: Fence) -> Option<Grant> {
        let lease = self.leases.get(fence)?;
        Some(Grant {
            seq: lease.job.map(|_| lease.seq),
            lease: LeaseView {
                lease: Some(lease_id(fence, lease.seq)),
                fence,
                holder: self.holder_of(lease),
                granted_at: lease.granted_at,
                expires_at: lease.expires_at,
                deadline: lease.deadline,
                job: None,
                resources: lease
                    .resources
                    .iter()
                    .map(|held| LeasedResource {
                        pool: self.pools[held.pool].name.clone(),
                        id: self.pools[held.resource].id.clone(),
                        data: Json::null(),
                        tags: self.pools[held.resource].tags.clone(),
                    })
                    .collect(),
                limits: lease.limits.iter().map(|l| self.limits[l.limit].name.clone()).collect(),
            },
        })
    }

    pub(crate) fn holder_of(&self, lease: &LeaseState) -> String {
        lease.holder.as_ref().map_or("anonymous", |id| id.as_str()).to_owned()
    }

    /// Takes up to `max` jobs of these queues, in order; fewer if their bytes exceed one answer.
    pub(crate) fn take_jobs(
        &mut self,
        queues: &[QueueId],
        max: usize,
        asker: &Asker,
        steps: &mut usize,
        now: Moment,
    ) -> Vec<Fence> {
        let mut fences = Vec::new();
        let mut bytes = 0;
        for queue in queues {
            while fences.len() < max && bytes < PAGE_BYTES_FULL && *steps > 0 {
                // First opens entries that events have freed, so that the order also covers those that are about to
                // open.
                if self.has_pending() {
                    *steps -= 1;
                    self.step_pending(now);
                    continue;
                }
                let suspects = self.leases.held_by(&asker.worker).suspects == 0;
                if !self.queue_is_open(*queue, suspects, now) {
                    break;
                }
                let Some(lane) = self.lines.next_lane(*queue, suspects) else { break };
                match self.try_lane(lane, asker, now) {
                    Tried::Granted(fence) => {
                        let job = self.leases.get(fence).and_then(|lease| lease.job);
                        bytes += job.map_or(0, |slot| self.jobs[slot].bytes as usize);
                        fences.push(fence);
                    }
                    Tried::Parked => *steps -= 1,
                }
            }
        }
        fences
    }

    /// The answer of a granted call; the same step remembers it under its request id.
    pub(crate) fn granted(&mut self, fences: Vec<Fence>, asker: &Asker, now: Moment) -> Granted {
        let grants = fences.iter().filter_map(|fence| self.grant_view(*fence)).collect();
        if let Some(id) = &asker.request
            && !fences.is_empty()
        {
            let until = now.plus(Span::from_us(REQUEST_US));
            self.leases.requests.insert(id.clone(), PastRequest { fences, until });
            self.request_row(id);
        }
        Granted { grants, answer: Default::default() }
    }

    /// The queue of a name; makes it if necessary.
    pub(crate) fn queue_for(&mut self, name: &QueueName, now: Moment) -> QueueId {
        if let Some(queue) = self.lines.queue_by_name().get(name).copied() {
            if std::mem::take(&mut self.lines[queue].hidden) {
                self.lines.mark_queue(queue);
            }
            self.lines.use_queue(queue, now);
            return queue;
        }
        let limit = name.limit().map(|limit| self.limits.named(&limit));
        if let Some(limit) = limit {
            self.limits[limit].uses += 1;
        }
        self.lines.add_queue(name.clone(), Queue::new(Some(name.clone()), limit, now))
    }
}
