//! Restores a namespace from rows: at a start every lane is open and every lease is fresh.
//!
//! Rows do not have these, by design: expiries of leases; blocked, offered and pending entries; reservations; waiting
//! calls. All else must be as before; a test compares.

use crate::mutant::{Mutant, forgets};
use crate::rows::drain::{
    KeyRow, LimitRow, MetaRow, PoolRow, QueueRow, RequestRow, ResourceRow, StubRow, TurnRow,
};
use crate::rows::stored::{StoredLease, StoredLife};
use crate::rows::times::{moment, span};
use crate::rows::{Kind, LiveRow};
use crate::scarce::gauges::rows::SettingRow;
use crate::state::{
    Dropped, GaugeState, HeldLimit, HeldRes, Job, KeyHolder, LeaseState, LiveJobId, LiveResourceId,
    NO_JOB, Outbox, PastRequest, QueueId, Schedule, Seq, Space, Stand, Tombstone,
};
use tenure_core::bounds::FORGET_AGAIN_US;
use tenure_core::job::JobState;
use tenure_core::lease::Fence;
use tenure_core::names::{
    JobId, LimitName, Owner, PoolName, QueueName, RequestId, ScheduleId, UniqueKey,
};
use tenure_core::time::{Moment, Span};

/// A row that is not of this format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRow {
    /// A description of the row, for the log.
    pub row: String,
}

impl std::fmt::Display for BadRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the row of {} cannot be read", self.row)
    }
}
impl std::error::Error for BadRow {}

fn bad(kind: Kind, key: &str) -> BadRow {
    BadRow { row: format!("{} {key:?}", kind.as_str()) }
}

/// The last fence in the row of a namespace; `None` if it is not of this format.
pub fn last_fence(meta: &str) -> Option<Fence> {
    serde_json::from_str::<MetaRow>(meta).ok().map(|row| row.fence)
}

impl Space {
    /// Restores one row that is not a job. Rows come in the order of [`Kind::ALL`], leases last.
    pub(crate) fn restore_row(&mut self, kind: Kind, key: &str, value: &str) -> Result<(), BadRow> {
        self.restore_known(kind, key, value).ok_or_else(|| bad(kind, key))
    }

    fn restore_known(&mut self, kind: Kind, key: &str, value: &str) -> Option<()> {
        match kind {
            Kind::Meta => {
                let row: MetaRow = serde_json::from_str(value).ok()?;
                self.leases.raise_fence(row.fence);
                self.lines.restore_arrival(row.arrival);
                self.pools.restore_used(row.used);
                self.last = moment(row.last);
                self.outbox = Outbox::after(Some((row.fence, row.arrival, row.used)));
            }
            Kind::Queue => {
                let row: QueueRow = serde_json::from_str(value).ok()?;
                let queue = self.queue_for(&QueueName::known(key).ok()?, moment(row.since));
                // The row may be an hour behind; a row of an earlier release has no time.
                let used = match row.used_at {
                    0 => self.last,
                    us => moment(us).plus(Span::from_us(FORGET_AGAIN_US)),
                };
                let q = &mut self.lines[queue];
                (q.used_at, q.noted_at) = (q.used_at.max(used), moment(row.used_at));
                q.settings = row.settings;
                q.skipped = row.skipped;
                self.lines.pause_queue(queue, row.paused_until.map(moment));
            }
            Kind::Turn => {
                let row: TurnRow = serde_json::from_str(value).ok()?;
                self.restore_turn(row);
            }
            Kind::LimitSetting => {
                let row: SettingRow = serde_json::from_str(value).ok()?;
                let name = LimitName::known(key).ok()?;
                if let Some(gauge) = row.gauge {
                    let limit = self.limits.named(&name);
                    self.limits[limit].gauge = Some(Box::new(GaugeState::new(gauge)));
                }
                self.limits.restore_setting(name, row.settings);
            }
            Kind::Limit => {
                let row: LimitRow = serde_json::from_str(value).ok()?;
                let limit = self.limits.named(&LimitName::known(key).ok()?);
                let last = self.last;
                let l = &mut self.limits[limit];
                l.touched_at = if row.touched_at == 0 { last } else { moment(row.touched_at) };
                l.stored = true;
                l.tat = moment(row.tat);
                l.paused_until = row.paused_until.map(moment);
                l.external = row.external;
                l.external_until = row.external_until.map(moment);
                for (at, n, weight) in row.resting {
                    l.resting.insert((moment(at), n), weight);
                    l.resting_sum += u64::from(weight);
                }
                // Its setting came before it. Without a setting there is nothing left to show.
                if let (Some(state), Some(row)) = (&mut l.gauge, row.gauge) {
                    let state = &mut **state;
                    *state = row.read(state.gauge.clone());
                    l.resting_sum += state.rests.iter().map(|r| u64::from(r.weight)).sum::<u64>();
                }
                self.limits.arm(limit, self.last);
            }
            Kind::Pool => {
                let row: PoolRow = serde_json::from_str(value).ok()?;
                let pool = self.pools.named(&PoolName::known(key).ok()?);
                let p = &mut self.pools[pool];
                p.settings = Some(row.settings);
                p.version = row.version;
                p.generation = row.generation;
            }
            Kind::Resource => {
                let row: ResourceRow = serde_json::from_str(value).ok()?;
                self.restore_resource_row(row);
            }
            Kind::Schedule => {
                self.schedules.restore(Schedule::of_row(ScheduleId::known(key).ok()?, value)?)?;
            }
            Kind::ScheduledJob => {
                let slot = self.schedules.with_id(key)?;
                let s = self.schedules.open(slot);
                if !s.job.is_empty() {
                    return None;
                }
                s.job = value.into();
                self.schedules.pack(slot);
            }
            Kind::SyncedSet => {
                self.schedules.set_version_of_set(Owner::known(key).ok()?, value.parse().ok()?);
            }
            Kind::Edge | Kind::Followed | Kind::Leaving | Kind::Flow => {
                self.restore_kin(kind, key, value)?;
            }
            Kind::Lease => {
                let stored = StoredLease::of_row(value)?;
                self.restore_lease(stored, None, NO_JOB)?;
            }
            Kind::Key => {
                let row: KeyRow = serde_json::from_str(value).ok()?;
                let key = UniqueKey::known(key).ok()?;
                let until = row.until.map(moment);
                let ended = row.ended.map(|ended| Box::new(ended.read()));
                let holder =
                    KeyHolder { seq: row.seq, id: row.id, until, by_job: row.by_job, ended };
                self.jobs.keys.insert(key, holder);
            }
            Kind::Request => {
                let row: RequestRow = serde_json::from_str(value).ok()?;
                let id = RequestId::known(key).ok()?;
                let until = moment(row.until);
                self.leases.requests.insert(id, PastRequest { fences: row.fences, until });
            }
            Kind::Replacing => self.restore_replacing(key, value)?,
            // The engine's own.
            Kind::SealKey => {}
            Kind::Stub => {
                let row: StubRow = serde_json::from_str(value).ok()?;
                let fence = key.parse().ok()?;
                let until = moment(row.until);
                self.leases.tombstones.insert(fence, Tombstone { outcome: row.outcome, until });
            }
        }
        Some(())
    }

    /// The queue of a row that outlives it: without a row of its own it was deleted, and stays hidden while its
    /// finished jobs are kept and its groups are to be forgotten.
    pub(crate) fn queue_of_remains(&mut self, name: &QueueName) -> QueueId {
        if let Some(queue) = self.lines.queue_by_name().get(name) {
            return *queue;
        }
        let queue = self.queue_for(name, self.last);
        self.lines[queue].hidden = true;
        queue
    }

    fn restore_turn(&mut self, row: TurnRow) {
        let queue = self.queue_of_remains(&row.queue);
        self.lines.restore_turn(queue, (row.rank, row.group), row.own, row.v);
    }

    fn restore_resource_row(&mut self, row: ResourceRow) {
        let pool = self.pools.named(&row.pool);
        if let Some(dropped_at) = row.dropped_at {
            let dropped = Dropped {
                state: row.state,
                until: moment(row.until),
                rest: span(row.rest),
                reason: row.reason,
                uses: row.uses,
                used: row.used,
                last_used_at: row.last_used_at.map(moment),
                tat: moment(row.tat),
                dropped_at: moment(dropped_at),
            };
            self.pools[pool].dropped.insert(row.id, dropped);
            return;
        }
        let slot = self.pools.add(pool, row.id, row.tags, row.slots);
        let (until, rest) = (moment(row.until), span(row.rest));
        self.pools.set_state(slot, row.state, until, rest, row.reason);
        let r = &mut self.pools[slot];
        r.uses = row.uses;
        r.used = row.used;
        r.last_used_at = row.last_used_at.map(moment);
        r.tat = moment(row.tat);
        (r.retiring, r.dropped) = (row.retiring, row.dropped);
        r.generation = row.generation;
    }

    /// Restores one live job.
    pub(crate) fn restore_job(&mut self, row: &LiveRow<'_>, now: Moment) -> Result<(), BadRow> {
        self.restore_known_job(row, now).ok_or_else(|| BadRow { row: format!("job {:?}", row.id) })
    }

    fn restore_known_job(&mut self, row: &LiveRow<'_>, now: Moment) -> Option<()> {
        let life = StoredLife::decode(row.life)?;
        let id = JobId::known(row.id).ok()?;
        // All checks come first: a rejected job leaves nothing behind, and the others go on without it.
        let stands = match (row.state, &life.lease) {
            (JobState::Running, Some(lease)) => self.can_hold(lease),
            (JobState::Ready | JobState::Scheduled | JobState::Dependent, _) => true,
            _ => false,
        };
        if !stands || self.jobs.by_id(row.id).is_some() {
            return None;
        }
        let shape = self.shape_for(row.shape, now)?;
        let queue = self.jobs.shape(shape).queue;
        let slot = self.jobs.insert(Job {
            seq: row.seq,
            id,
            shape,
            stand: Stand::Scheduled,
            arrival: life.arrival,
            created_at: life.created_at,
            run_at: life.run_at,
            started_at: life.started_at,
            expires_at: life.expires_at,
            wait: life.wait,
            ended: life.ended,
            lost: life.lost,
            released: life.released,
            undelivered: life.undelivered,
            snoozed: life.snoozed,
            ended_unsettled: life.ended_unsettled,
            cancel_requested: life.cancel_requested,
            keeps_place: life.keeps_place,
            unique: life.unique.map(Box::new),
            origin: life.origin,
            kin: life.kin,
            settles: life.settles,
            next_at: None,
            edits: life.edits,
            bytes: life.bytes,
            dirty: false,
        });
        if let Some(origin) = &self.jobs[slot].origin {
            self.schedules.restore_job(origin, &self.jobs[slot].id);
        }
        if let Some(flow) = self.jobs[slot].flow() {
            self.flows.restore_member(flow, row.seq, now);
        }
        match row.state {
            JobState::Running => {
                let stored = life.lease?;
                self.jobs[slot].stand = Stand::Running(stored.fence);
                self.lines[queue].counts.running += 1;
                self.restore_lease(stored, Some(slot), row.seq)?;
            }
            JobState::Ready => {
                let lane = self.lane_of_job(slot);
                self.jobs[slot].stand = Stand::Waiting(lane);
                let arrival = self.jobs[slot].arrival;
                self.enter_lane(lane, arrival, slot.into(), now);
                self.jobs.watch_expiry(slot);
            }
            JobState::Dependent => {
                self.jobs[slot].stand = Stand::Dependent;
                self.lines[queue].counts.dependent += 1;
                self.jobs.watch_expiry(slot);
            }
            JobState::Scheduled => {
                self.jobs.schedule(slot);
                self.lines[queue].counts.scheduled += 1;
                self.jobs.watch_expiry(slot);
            }
            _ => return None,
        }
        Some(())
    }

    /// True if everything that a lease holds exists.
    fn can_hold(&self, lease: &StoredLease) -> bool {
        self.leases.get(lease.fence).is_none()
            && lease.resources.iter().all(|(pool, id)| {
                let pool = self.pools.by_name().get(pool);
                pool.is_some_and(|pool| self.pools[*pool].resources.contains_key(id))
            })
    }

    fn restore_lease(
        &mut self,
        stored: StoredLease,
        job: Option<LiveJobId>,
        seq: Seq,
    ) -> Option<()> {
        let fence = stored.fence;
        let mut limits = Vec::with_capacity(stored.limits.len());
        for (name, weight, cost) in stored.limits {
            let limit = self.limits.named(&name);
            let l = &mut self.limits[limit];
            l.in_use += u64::from(weight);
            l.holders.insert(fence);
            limits.push(HeldLimit { limit, weight, cost });
        }
        let mut resources = Vec::with_capacity(stored.resources.len());
        for (pool, id) in stored.resources {
            let pool = self.pools.named(&pool);
            let resource = self.pools[pool].resources.get(&id).copied()?;
            self.pools.hold(resource, fence);
            resources.push(HeldRes { pool, resource });
        }
        let lease = LeaseState {
            fence,
            job,
            seq,
            holder: stored.holder,
            granted_at: stored.granted_at,
            ttl: stored.ttl,
            expires_at: Moment::ZERO,
            deadline: stored.deadline,
            limits,
            resources,
            request: stored.request,
            extended: false,
            answered_again: false,
            seen_at: stored.granted_at,
            local: stored.local,
            first: stored.first,
            orphaned: stored.local,
            goes_on: false,
        };
        self.leases.insert(lease, job.is_some_and(|slot| self.jobs[slot].lost > 0));
        Some(())
    }

    /// After the last row: downtime of the engine does not count.
    pub(crate) fn restored(&mut self, clock: Moment) {
        let now = self.advance(clock);
        self.pulse = now;
        let ends_all = forgets(Mutant::TakeoverEndsLeases);
        if !ends_all {
            self.deaf_at = now;
        }
        // The process that this one replaces is gone, and so are its workers. All other holders may live, with an unknown
        // last sign of life.
        self.leases.expire_each_at(|lease| {
            if lease.orphaned || ends_all { now } else { now.plus(lease.ttl) }
        });
        let resources: Vec<LiveResourceId> = self.pools.resources().map(|(slot, _)| slot).collect();
        for resource in resources {
            self.pools.pace(resource, now);
            self.refresh_resource(resource, now);
        }
        self.schedules.restored(now);
        let gauged = self.limits.iter().filter(|(_, l)| l.gauge.is_some());
        let gauged: Vec<_> = gauged.map(|(slot, _)| slot).collect();
        for limit in gauged {
            self.order_gauge(limit, now);
            self.limits.arm(limit, self.last);
        }
        self.restored_kin(now);
        self.lines.restored_turns();
        self.used_at = now;
        // A job that could not be read holds no key any more.
        let held = self.jobs.keys.iter().filter(|(_, holder)| holder.by_job);
        let orphans: Vec<_> = held
            .filter(|(_, holder)| self.jobs.by_seq(holder.seq).is_none())
            .map(|(key, holder)| (key.clone(), holder.seq))
            .collect();
        for (key, seq) in orphans {
            self.end_key(&key, seq, None, now);
        }
        self.purge_at = Some(now);
        // The state equals the rows: nothing of it must be written again.
        self.outbox = Outbox::after(self.outbox.written());
        self.lines.forget_changes();
        self.jobs.take_changed();
        self.limits.take_changed();
        self.pools.take_changed();
        self.pools.take_changed_resources();
        self.flows.restored();
    }
}
