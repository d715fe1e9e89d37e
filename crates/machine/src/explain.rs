//! explain: what a job waits for, exactly; a refused grant told in words. It only reads.

use super::doors::Fit;
use super::limits::rate_fits_at;
use super::state::{
    CALLERS, CallerId, DoorId, DoorKey, Entry, HeldNeed, LaneId, LimitId, LimitReservation,
    LiveJobId, Place, PoolId, QueueId, Space, Stand, Which,
};
use super::stored::lease_id;
use tenure_core::bounds::{ITEMS_MAX, WORKER_US};
use tenure_core::count::{self, counted};
use tenure_core::job::JobState;
use tenure_core::lease::{Explained, Reason, ReasonKind, RunningLease};
use tenure_core::names::JobId;
use tenure_core::settings::Holder;
use tenure_core::time::{Moment, Span};

fn reason(kind: ReasonKind, detail: String) -> Reason {
    Reason {
        kind,
        name: None,
        in_use: None,
        capacity: None,
        holders: Vec::new(),
        position: None,
        ahead: None,
        earliest: None,
        detail,
    }
}

impl Space {
    /// Explains a live job.
    pub(crate) fn explain(&self, slot: LiveJobId, now: Moment) -> Explained {
        let job = &self.jobs[slot];
        let state = self.state_of(slot);
        let mut lease = None;
        let reasons = match job.stand {
            Stand::Running(fence) => {
                lease = self.leases.get(&fence).map(|held| RunningLease {
                    lease: lease_id(fence, held.seq),
                    holder: self.holder_of(held),
                    since: held.granted_at,
                    expires_at: held.expires_at,
                });
                Vec::new()
            }
            Stand::Scheduled => {
                let why = match job.lost {
                    0 => format!("it may run at {}", job.run_at),
                    1 => "its holder died, so it waits and runs alone".to_owned(),
                    n => format!("its holders died {n} times in a row, so it waits and runs alone"),
                };
                vec![Reason { earliest: Some(job.run_at), ..reason(ReasonKind::Scheduled, why) }]
            }
            Stand::Waiting(lane) => self.explain_waiting(slot, lane, now),
        };
        let summary = match (&lease, reasons.first()) {
            (Some(lease), _) => format!("{:?} holds it since {}", lease.holder, lease.since),
            (None, Some(first)) => match reasons.len() as u64 - 1 {
                0 => first.detail.clone(),
                more => format!(
                    "{} (and {})",
                    first.detail,
                    counted(more, "more reason", "more reasons")
                ),
            },
            (None, None) => "the next worker that asks gets it".to_owned(),
        };
        Explained { id: job.id.clone(), state, summary, reasons, lease }
    }

    /// Explains a job that is finished.
    pub(crate) fn explain_finished(id: JobId, state: JobState) -> Explained {
        let summary = "it is finished, and waits for nothing".to_owned();
        Explained { id, state, summary, reasons: Vec::new(), lease: None }
    }

    fn explain_waiting(&self, slot: LiveJobId, lane: LaneId, now: Moment) -> Vec<Reason> {
        let l = &self.lanes[lane];
        let q = &self.queues[l.key.queue];
        let name = q.name.as_ref().map(|name| name.as_str().to_owned()).unwrap_or_default();
        let mut reasons = Vec::new();
        if let Some(until) = q.paused_until.filter(|until| *until > now) {
            let forever = until == Moment::MAX;
            let detail = if forever {
                format!("queue {name:?} is paused until it is resumed")
            } else {
                format!("queue {name:?} is paused until {until}")
            };
            reasons.push(Reason {
                name: Some(name.clone()),
                earliest: (!forever).then_some(until),
                ..reason(ReasonKind::QueuePaused, detail)
            });
        }
        let arrival = self.jobs[slot].arrival;
        if let (Place::Parked(door) | Place::Misfit(door), Some(limit)) = (q.place, q.limit) {
            let ahead = self.ahead_at_door(door, lane, arrival);
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
        let ahead = self.ahead_in_queue(lane, arrival);
        if ahead > 0 {
            reasons.push(Reason {
                name: Some(name.clone()),
                ahead: Some(ahead),
                position: Some(ahead + 1),
                ..reason(
                    ReasonKind::Behind,
                    format!(
                        "{} of queue {name:?} {} first",
                        counted(ahead, "job", "jobs"),
                        count::of(ahead, "goes", "go")
                    ),
                )
            });
        }
        reasons.extend(self.explain_workers(l.key.queue, &name, now));
        reasons
    }

    fn explain_workers(&self, queue: QueueId, name: &str, now: Moment) -> Option<Reason> {
        let q = &self.queues[queue];
        let recent = |at: Moment| at.plus(Span::from_us(WORKER_US)) > now;
        if !q.takers.is_empty() {
            return None;
        }
        if q.asked_at.is_none_or(|at| !recent(at)) {
            let detail = format!("nobody asked for queue {name:?} within the last minute");
            let name = Some(name.to_owned());
            return Some(Reason { name, ..reason(ReasonKind::NoWorker, detail) });
        }
        let mut asking = 0u64;
        let mut busy = 0u64;
        for (id, worker) in &self.workers {
            if worker.queues.get(&queue).is_some_and(|at| recent(*at)) {
                asking += 1;
                let holds = self.holding.contains_key(&Some(id.clone()));
                busy += u64::from(holds && worker.waiting == 0);
            }
        }
        let all_busy = asking > 0 && busy == asking;
        all_busy.then(|| Reason {
            name: Some(name.to_owned()),
            in_use: Some(busy),
            capacity: Some(asking),
            ..reason(
                ReasonKind::WorkersFull,
                match asking {
                    1 => format!(
                        "the one worker that asks for queue {name:?} is busy: let it run more at \
                         once, or start another"
                    ),
                    _ => format!(
                        "all {asking} workers that ask for queue {name:?} are busy: let them run \
                         more at once, or start more"
                    ),
                },
            )
        })
    }

    fn where_parked(&self, lane: LaneId) -> Option<(DoorId, Entry)> {
        let l = &self.lanes[lane];
        match (l.place, self.bundles[l.bundle].place) {
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
        let d = &self.doors[door];
        let position = self.ahead_at_door(door, lane, arrival) + 1;
        let needs = &self.lanes[lane].key.needs;
        let need = needs.iter().find(|need| Space::door_key(need) == d.key);
        if d.misfits.contains(&entry) || d.retry.contains(&entry) {
            let name = self.door_name(&d.key);
            let detail = match &d.key {
                DoorKey::Limit(limit) if self.setting_of(&self.limits[*limit].name).is_none() => {
                    format!("the limit {name:?} is not set any more")
                }
                DoorKey::Limit(_) => {
                    format!("what it needs of the limit {name:?} is above what the limit can give")
                }
                DoorKey::Pool(..) => format!("the pool {name:?} is not there any more"),
            };
            return vec![Reason { name: Some(name), ..reason(ReasonKind::NeverFits, detail) }];
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

    /// Why a limit cannot serve a need now.
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
        let Some((settings, _)) = self.setting_of(&l.name) else { return Vec::new() };
        let used = l.in_use + l.resting_sum;
        let base = |kind, detail| Reason {
            name: Some(name.clone()),
            in_use: Some(used),
            capacity: settings.concurrency.map(u64::from),
            holders: self.holders(l.holders.iter()),
            ..reason(kind, detail)
        };
        let mut reasons = Vec::new();
        if let Some(until) = l.paused_until.filter(|until| *until > now) {
            let detail = format!("the limit {name:?} is paused until {until}");
            let earliest = (until < Moment::MAX).then_some(until);
            reasons.push(Reason { earliest, ..base(ReasonKind::LimitPaused, detail) });
        }
        let reservation = l.reservation.filter(|other| Some(other.lane) != lane);
        if let Some(cap) = settings.concurrency.map(u64::from) {
            let weight = u64::from(weight);
            let external = u64::from(l.external);
            if l.in_use + weight > cap {
                let detail = if cap == 0 {
                    format!("the limit {name:?} is closed: its concurrency is 0")
                } else {
                    let (permits, are) =
                        (counted(cap, "permit", "permits"), count::of(l.in_use, "is", "are"));
                    let more = match weight {
                        1 => String::new(),
                        _ => format!(", and it needs {weight}"),
                    };
                    format!("{} of {permits} of {name:?} {are} in use{more}", l.in_use)
                };
                reasons.push(base(ReasonKind::Limit, detail));
            } else if used + weight > cap {
                let detail = format!("the permits of {name:?} that are free still rest");
                let earliest = self.rested_at(limit, used + weight - cap);
                reasons.push(Reason { earliest, ..base(ReasonKind::Gap, detail) });
            } else if used + external + weight > cap {
                let detail = format!(
                    "{} of {name:?} {} taken by work outside",
                    counted(external, "permit", "permits"),
                    count::of(external, "is", "are")
                );
                let earliest = l.external_until;
                reasons.push(Reason { earliest, ..base(ReasonKind::External, detail) });
            } else if let Some(LimitReservation { lane: other, weight: kept, .. }) = reservation
                && used + external + weight + u64::from(kept) > cap
            {
                reasons.push(base(ReasonKind::Reserved, self.reserved_text(&name, other, kept)));
            }
        }
        if let Some(rate) = &settings.rate
            && cost > 0
        {
            let kept = reservation.map_or(0, |other| other.cost);
            let at = rate_fits_at(rate, l.tat, cost.saturating_add(kept).min(rate.burst), now);
            if at > now {
                let detail = format!("the rate of {name:?} has no token before {at}");
                reasons.push(Reason { earliest: Some(at), ..base(ReasonKind::Rate, detail) });
            }
        }
        if reasons.is_empty() {
            // It fits, but others of its queue stand before it.
            reasons.push(base(ReasonKind::Limit, format!("others stand before it at {name:?}")));
        }
        reasons
    }

    /// When so many permits have rested; at most a thousand are looked at.
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

    fn reserved_text(&self, name: &str, lane: LaneId, kept: u32) -> String {
        let who = match self.head(lane) {
            Some((_, slot)) if self.lanes[lane].key.queue != CALLERS => {
                format!("job {:?}", self.jobs[slot.job()].id.as_str())
            }
            _ => "a caller".to_owned(),
        };
        let since =
            self.reservations.get(&lane).map(|reservation| reservation.since).unwrap_or_default();
        let are = count::of(u64::from(kept), "is", "are");
        format!("{kept} of {name:?} {are} kept for {who}, which waited longer, since {since}")
    }

    /// Why a pool cannot serve a need now.
    fn explain_pool(
        &self,
        pool: PoolId,
        which: &Which,
        count: u32,
        lane: LaneId,
        _now: Moment,
    ) -> Vec<Reason> {
        let p = &self.pools[pool];
        let name = p.name.to_string();
        let there = match which {
            Which::Any => p.resources.len() as u64,
            Which::Tag(tag) => p.tagged.get(tag).copied().unwrap_or(0),
            Which::Id(id) => u64::from(p.resources.contains_key(id)),
        };
        let text = Space::which_text(which);
        if let Some(other) = &p.reservation
            && other.lane != lane
            && !other.kept.is_empty()
        {
            let detail = self.reserved_text(&name, other.lane, other.count);
            return vec![Reason { name: Some(name), ..reason(ReasonKind::Reserved, detail) }];
        }
        let detail = if there < u64::from(count) {
            format!("it needs {count} of pool {name:?}{text}, which has {there}")
        } else {
            format!("no resource of pool {name:?}{text} is free ({there} there)")
        };
        let matching = p.resources.values().take(ITEMS_MAX).map(|slot| &self.resources[*slot]);
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
            // Only where no holder can decide it sooner is the moment known.
            earliest: if held == 0 { earliest } else { None },
            holders,
            ..reason(ReasonKind::Pool, detail)
        }]
    }

    /// Why a caller who waits for needs alone is not granted them now.
    pub(crate) fn reasons_of_caller(&self, caller: CallerId, now: Moment) -> Vec<Reason> {
        let (lane, arrival) = (self.callers[caller].lane, self.callers[caller].arrival);
        let stands_at = self.where_parked(lane).map(|(door, _)| door);
        let nobody = LaneId::new(u32::MAX);
        let mut reasons = Vec::new();
        for need in self.lanes[lane].key.needs.iter() {
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
            // It has a place in one line only: that of the first need that it lacks.
            if let Some(door) = stands_at.filter(|door| self.door_of(need) == Some(*door))
                && let Some(last) = reasons.last_mut()
            {
                last.position = Some(self.ahead_at_door(door, lane, arrival) + 1);
            }
        }
        reasons
    }
}
