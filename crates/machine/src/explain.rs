//! Explain: the exact reasons why a job waits, and a refused grant in words. It only reads.

use crate::queue::doors::Fit;
use crate::rows::stored::lease_id;
use crate::scarce::rates::rate_fits_at;
use crate::state::{
    CALLERS, Caller, CallerId, DoorId, DoorKey, Entry, HeldNeed, LaneId, LimitId, LimitReservation,
    LiveJobId, Parent, Place, PoolId, QueueId, Space, Stand, Which, is_recent,
};
use tenure_core::bounds::{HOLDERS_SHOWN, ITEMS_MAX};
use tenure_core::job::JobState;
use tenure_core::lease::{Explained, Reason, RunningLease};
use tenure_core::names::JobId;
use tenure_core::sentences::{WaitCause, Wanted};
use tenure_core::settings::Holder;
use tenure_core::time::Moment;

impl Space {
    /// Explains a live job.
    pub(crate) fn explain_job(&self, slot: LiveJobId, now: Moment) -> Explained {
        let job = &self.jobs[slot];
        let state = self.state_of(slot);
        let mut lease = None;
        let reasons = match job.stand {
            Stand::Running(fence) => {
                lease = self.leases.get(fence).map(|held| RunningLease {
                    lease: lease_id(fence, held.seq),
                    holder: self.holder_of(held),
                    since: held.granted_at,
                    expires_at: held.expires_at,
                });
                Vec::new()
            }
            Stand::Scheduled => {
                let why = Reason::from(WaitCause::scheduled(job.lost, job.run_at));
                vec![Reason { earliest: Some(job.run_at), ..why }]
            }
            Stand::Dependent => self.explain_dependent(slot),
            Stand::Waiting(lane) => self.explain_waiting(slot, lane, now),
        };
        Explained::new(job.id.clone(), state, reasons, lease)
    }

    /// One reason for each open parent, up to a bound.
    fn explain_dependent(&self, slot: LiveJobId) -> Vec<Reason> {
        let Some(kin) = &self.jobs[slot].kin else { return Vec::new() };
        let all = kin.parents.len() as u64;
        let done = all - u64::from(kin.open);
        let child = self.jobs[slot].seq;
        let waits = |parent: &&Parent| {
            let edges = parent.key().and_then(|key| self.dependencies.edges().get(&key));
            edges.is_some_and(|edges| edges.open.get(&child) == Some(&kin.turn))
        };
        let open = kin.parents.iter().filter(waits).take(HOLDERS_SHOWN);
        open.map(|parent| {
            let name = parent.shown().to_string();
            let ended = parent.key().is_some_and(|key| self.has_ended(&key));
            let why = Reason::from(WaitCause::parent(name.clone(), ended));
            Reason { name: Some(name), in_use: Some(done), capacity: Some(all), ..why }
        })
        .collect()
    }

    /// The answer for a finished job.
    pub(crate) fn explain_finished(id: JobId, state: JobState) -> Explained {
        Explained::new(id, state, Vec::new(), None)
    }

    fn explain_waiting(&self, slot: LiveJobId, lane: LaneId, now: Moment) -> Vec<Reason> {
        let l = &self.lines[lane];
        let q = &self.lines[l.key.queue];
        let name = q.name.as_ref().map(|name| name.as_str().to_owned()).unwrap_or_default();
        let mut reasons = Vec::new();
        if let Some(until) = q.paused_until.filter(|until| *until > now) {
            let until = (until < Moment::MAX).then_some(until);
            let why = Reason::from(WaitCause::queue_paused(name.clone(), until));
            reasons.push(Reason { name: Some(name.clone()), earliest: until, ..why });
        }
        let arrival = self.jobs[slot].arrival;
        if let (Place::Parked(door) | Place::Misfit(door), Some(limit)) = (q.place, q.limit) {
            let ahead = self.lines.ahead_at_door(door, lane, arrival);
            let mut why = self.explain_limit(limit, 1, 1, None, now);
            why.iter_mut().for_each(|why| {
                (why.ahead, why.position) = (Some(ahead), Some(ahead + 1));
            });
            reasons.extend(why);
        }
        if let Some((door, entry)) = self.where_parked(lane) {
            reasons.extend(self.explain_door(door, entry, lane, arrival, now));
            return reasons;
        }
        let ahead = self.lines.ahead_in_queue(lane, arrival);
        if ahead > 0 {
            reasons.push(Reason {
                name: Some(name.clone()),
                ahead: Some(ahead),
                position: Some(ahead + 1),
                ..WaitCause::Behind { name: name.clone(), ahead }.into()
            });
        }
        reasons.extend(self.explain_workers(l.key.queue, &name, now));
        reasons
    }

    fn explain_workers(&self, queue: QueueId, name: &str, now: Moment) -> Option<Reason> {
        let q = &self.lines[queue];
        if !q.takers.is_empty() {
            return None;
        }
        if self.is_unasked(queue, now) {
            let why = Reason::from(WaitCause::NoWorker { name: name.to_owned() });
            return Some(Reason { name: Some(name.to_owned()), ..why });
        }
        let mut asking = 0u64;
        let mut busy = 0u64;
        for (id, worker) in self.workers.known() {
            if worker.queues.get(&queue).is_some_and(|at| is_recent(*at, now)) {
                asking += 1;
                let holds = self.leases.held_by(&Some(id.clone())).leases > 0;
                busy += u64::from(holds && worker.waiting == 0);
            }
        }
        let all_busy = asking > 0 && busy == asking;
        all_busy.then(|| Reason {
            name: Some(name.to_owned()),
            in_use: Some(busy),
            capacity: Some(asking),
            ..WaitCause::workers_full(name.to_owned(), asking).into()
        })
    }

    fn where_parked(&self, lane: LaneId) -> Option<(DoorId, Entry)> {
        let l = &self.lines[lane];
        match (l.place, self.lines[l.bundle].place) {
            (Place::Parked(door) | Place::Misfit(door), _) => Some((door, Entry::Lane(lane))),
            (Place::Open, Place::Parked(door) | Place::Misfit(door)) => {
                Some((door, Entry::Bundle(l.bundle)))
            }
            (Place::Open, Place::Open) => None,
        }
    }

    fn explain_door(
        &self,
        door: DoorId,
        entry: Entry,
        lane: LaneId,
        arrival: u64,
        now: Moment,
    ) -> Vec<Reason> {
        let d = &self.lines[door];
        let position = self.lines.ahead_at_door(door, lane, arrival) + 1;
        let needs = &self.lines[lane].key.needs;
        let need = needs.iter().find(|need| Space::door_key(need) == d.key);
        if d.misfits.contains(&entry) || d.retry.contains(&entry) {
            let name = self.door_name(&d.key);
            let of = name.clone();
            let why = match &d.key {
                DoorKey::Limit(limit)
                    if self.limits.setting_of(&self.limits[*limit].name).is_none() =>
                {
                    WaitCause::LimitUnset { name: of }
                }
                DoorKey::Limit(_) => WaitCause::NeverFits { name: of },
                DoorKey::Pool(..) => WaitCause::PoolGone { name: of },
            };
            return vec![Reason { name: Some(name), ..why.into() }];
        }
        let mut reasons = match (&d.key, need) {
            (DoorKey::Limit(limit), Some(HeldNeed::Limit { weight, cost, .. })) => {
                self.explain_limit(*limit, *weight, *cost, Some(lane), now)
            }
            (DoorKey::Pool(pool, which), Some(HeldNeed::Pool { count, .. })) => {
                self.explain_pool(*pool, which, *count, lane, now)
            }
            _ => Vec::new(),
        };
        for reason in &mut reasons {
            reason.position = Some(position);
            reason.ahead = Some(position - 1);
        }
        reasons
    }

    /// The reasons why a limit cannot serve a need now.
    fn explain_limit(
        &self,
        limit: LimitId,
        weight: u32,
        cost: u32,
        lane: Option<LaneId>,
        now: Moment,
    ) -> Vec<Reason> {
        let l = &self.limits[limit];
        let name = l.name.to_string();
        let Some((settings, _)) = self.limits.setting_of(&l.name) else { return Vec::new() };
        let used = l.in_use + l.resting_sum;
        let base = |why: WaitCause| Reason {
            name: Some(name.clone()),
            in_use: Some(used),
            capacity: settings.concurrency.map(u64::from),
            holders: self.holders(l.holders.iter()),
            ..why.into()
        };
        let named = || name.clone();
        let mut reasons = Vec::new();
        if let Some(until) = l.paused_until.filter(|until| *until > now) {
            let earliest = (until < Moment::MAX).then_some(until);
            let why = WaitCause::LimitPaused { name: named(), until };
            reasons.push(Reason { earliest, ..base(why) });
        }
        if let Some(gauge) = l.gauge.as_ref().filter(|gauge| !gauge.may_be_used(now)) {
            reasons.push(base(match &gauge.failure {
                Some(failure) => WaitCause::GaugeFailing {
                    name: named(),
                    since: failure.since,
                    error: failure.error.clone(),
                },
                None => WaitCause::GaugeUnread { name: named() },
            }));
        }
        let reservation = l.reservation.filter(|other| Some(other.lane) != lane);
        let exclusive = settings.concurrency.map(u64::from);
        if let (Some(until), Some(_)) = (self.closed_until(now), exclusive) {
            let why = WaitCause::LimitForgotten { name: named(), until };
            reasons.push(Reason { earliest: Some(until), ..base(why) });
        } else if let Some(cap) = exclusive {
            let own = if cap == 0 { 0 } else { self.own_permits(limit, lane) };
            let weight = u64::from(weight.saturating_sub(own));
            let external = u64::from(l.external);
            if l.in_use + weight > cap {
                reasons.push(base(WaitCause::limit_taken(named(), l.in_use, cap, weight)));
            } else if used + weight > cap {
                let earliest = self.rested_at(limit, used + weight - cap);
                reasons.push(Reason { earliest, ..base(WaitCause::Gap { name: named() }) });
            } else if used + external + weight > cap {
                let earliest = l.external_until;
                let why = WaitCause::External { name: named(), taken: external };
                reasons.push(Reason { earliest, ..base(why) });
            } else if let Some(LimitReservation { lane: other, weight: kept, .. }) = reservation
                && used + external + weight + u64::from(kept) > cap
            {
                reasons.push(base(self.reserved(named(), other, kept)));
            }
        }
        if let Some(rate) = &settings.rate
            && cost > 0
        {
            let kept = reservation.map_or(0, |other| other.cost);
            let at = rate_fits_at(rate, l.tat, cost.saturating_add(kept).min(rate.burst), now);
            if at > now {
                let why = WaitCause::Rate { name: named(), until: at };
                reasons.push(Reason { earliest: Some(at), ..base(why) });
            }
        }
        if reasons.is_empty() {
            // It fits, but others of its queue stand before it.
            reasons.push(base(WaitCause::LimitInLine { name: named() }));
        }
        reasons
    }

    /// The time at which this many permits have rested; looks at a thousand at most.
    fn rested_at(&self, limit: LimitId, missing: u64) -> Option<Moment> {
        let mut sum = 0;
        for ((at, _), weight) in self.limits[limit].resting.iter().take(ITEMS_MAX) {
            sum += u64::from(*weight);
            if sum >= missing {
                return Some(*at);
            }
        }
        None
    }

    /// The part that is reserved for a lane that waited longer.
    fn reserved(&self, name: String, lane: LaneId, kept: u32) -> WaitCause {
        let job = match self.lines.head(lane) {
            Some((_, slot)) if self.lines[lane].key.queue != CALLERS => {
                Some(self.jobs[slot.job()].id.to_string())
            }
            _ => None,
        };
        let since =
            self.lines.reservation(lane).map(|reservation| reservation.since).unwrap_or_default();
        WaitCause::reserved(name, u64::from(kept), job, since)
    }

    /// The reasons why a pool cannot serve a need now.
    fn explain_pool(
        &self,
        pool: PoolId,
        which: &Which,
        count: u32,
        lane: LaneId,
        now: Moment,
    ) -> Vec<Reason> {
        let p = &self.pools[pool];
        let name = p.name.to_string();
        let there = match which {
            Which::Any => p.resources.len() as u64,
            Which::Tag(tag) => p.tagged.get(tag).copied().unwrap_or(0),
            Which::Id(id) => u64::from(p.resources.contains_key(id)),
        };
        if let Some(other) = &p.reservation
            && other.lane != lane
            && !other.kept.is_empty()
        {
            let why = self.reserved(name.clone(), other.lane, other.count);
            return vec![Reason { name: Some(name), ..why.into() }];
        }
        let wanted = match which {
            Which::Any => Wanted::Any,
            Which::Tag(tag) => Wanted::Tag(tag.to_string()),
            Which::Id(id) => Wanted::Id(id.to_string()),
        };
        let closed_until = self.closed_until(now);
        let why = match closed_until {
            Some(until) => WaitCause::PoolForgotten { name: name.clone(), until },
            None => WaitCause::pool_taken(name.clone(), wanted, u64::from(count), there),
        };
        let matching = p.resources.values().take(ITEMS_MAX).map(|slot| &self.pools[*slot]);
        let matching = matching.filter(|r| match which {
            Which::Any => true,
            Which::Tag(tag) => r.tags.contains(tag),
            Which::Id(id) => r.id == *id,
        });
        let mut holders: Vec<Holder> = Vec::new();
        let mut held = 0;
        let mut earliest: Option<Moment> = None;
        for r in matching {
            held += u64::from(!r.holders.is_empty());
            if holders.len() < tenure_core::bounds::HOLDERS_SHOWN {
                holders.extend(self.holders(r.holders.iter()));
            }
            if let Some(at) = r.timer {
                earliest = Some(earliest.map_or(at, |old| old.min(at)));
            }
        }
        holders.truncate(tenure_core::bounds::HOLDERS_SHOWN);
        vec![Reason {
            name: Some(name),
            in_use: Some(held),
            capacity: Some(there),
            // The time is known only if no holder can end it sooner.
            earliest: closed_until.or(earliest.filter(|_| held == 0)),
            holders,
            ..why.into()
        }]
    }

    /// The reasons why a lock waiter has no grant now.
    pub(crate) fn reasons_of_caller(&self, caller: CallerId, now: Moment) -> Vec<Reason> {
        let Caller { lane, arrival, .. } = *self.waiters.lock_waiter(caller);
        let stands_at = self.where_parked(lane).map(|(door, _)| door);
        let nobody = LaneId::new(u32::MAX);
        let mut reasons = Vec::new();
        for need in self.lines[lane].key.needs.iter() {
            if self.need_fit(need, nobody, now) == Fit::Yes {
                continue;
            }
            reasons.extend(match need {
                HeldNeed::Limit { limit, weight, cost, .. } => {
                    self.explain_limit(*limit, *weight, *cost, Some(nobody), now)
                }
                HeldNeed::Pool { pool, which, count, .. } => {
                    self.explain_pool(*pool, which, *count, nobody, now)
                }
            });
            // It has a place in one line only: that of its first missing need.
            if let Some(door) = stands_at.filter(|door| self.door_of(need) == Some(*door))
                && let Some(last) = reasons.last_mut()
            {
                last.position = Some(self.lines.ahead_at_door(door, lane, arrival) + 1);
            }
        }
        reasons
    }
}
