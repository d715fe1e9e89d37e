//! Live jobs: their index, their shapes, their unique keys.

pub(crate) mod awaits;
pub(crate) mod dependencies;
pub(crate) mod flows;
pub(crate) mod replacing;

use std::borrow::Cow;
use std::sync::Arc;

use crate::rows::stored::{Stands, StoredLease, StoredLife, StoredShape};
use crate::state::{
    HeldNeed, KeyHolder, Kin, LaneId, LaneKey, LiveJobId, Seq, Shape, ShapeId, Space, Stand, Which,
};
use tenure_core::job::{EndedJob, JobState, Need, NewJob, Until};
use tenure_core::lease::Fence;
use tenure_core::names::{JobId, JobRef, UniqueKey};
use tenure_core::need_template::filled;
use tenure_core::time::Moment;

impl Space {
    /// The live job that a path names, or the id of the finished one that holds the key.
    pub(crate) fn resolve(&self, job: &JobRef) -> Option<Result<LiveJobId, JobId>> {
        match job {
            JobRef::Id(id) => Some(self.jobs.by_id(id.as_str()).ok_or_else(|| id.clone())),
            JobRef::Key(key) => {
                let holder = self.jobs.keys.get(key)?;
                Some(self.jobs.by_seq(holder.seq).ok_or_else(|| holder.id.clone()))
            }
        }
    }

    /// The contract's word for the state of a live job.
    pub(crate) fn state_of(&self, slot: LiveJobId) -> JobState {
        match self.jobs[slot].stand {
            Stand::Scheduled => JobState::Scheduled,
            Stand::Dependent => JobState::Dependent,
            Stand::Running(_) => JobState::Running,
            Stand::Waiting(lane) if self.lines.is_blocked(lane) => JobState::Blocked,
            Stand::Waiting(_) => JobState::Ready,
        }
    }

    /// The part of a live job's view that is not in its row.
    pub(crate) fn stands_of(&self, slot: LiveJobId) -> Stands {
        Stands { state: self.state_of(slot), waiting_on: self.waiting_on(slot) }
    }

    /// The content of a job's row.
    pub(crate) fn life_of(&self, slot: LiveJobId) -> StoredLife {
        let job = &self.jobs[slot];
        StoredLife {
            arrival: job.arrival,
            created_at: job.created_at,
            run_at: job.run_at,
            started_at: job.started_at,
            finished_at: None,
            expires_at: job.expires_at,
            wait: job.wait,
            ended: job.ended,
            lost: job.lost,
            released: job.released,
            undelivered: job.undelivered,
            snoozed: job.snoozed,
            ended_unsettled: job.ended_unsettled,
            cancel_requested: job.cancel_requested,
            keeps_place: job.keeps_place,
            unique: job.unique.as_deref().cloned(),
            origin: job.origin.clone(),
            kin: job.kin.as_ref().map(|kin| Box::new(Kin { open: 0, ..(**kin).clone() })),
            edits: job.edits,
            settles: job.settles.clone(),
            bytes: job.bytes,
            lease: match job.stand {
                Stand::Running(fence) => self.stored_lease(fence),
                _ => None,
            },
        }
    }

    pub(crate) fn stored_lease(&self, fence: Fence) -> Option<StoredLease> {
        let lease = self.leases.get(fence)?;
        Some(StoredLease {
            fence,
            holder: lease.holder.clone(),
            granted_at: lease.granted_at,
            ttl: lease.ttl,
            deadline: lease.deadline,
            limits: lease
                .limits
                .iter()
                .map(|held| (self.limits[held.limit].name.clone(), held.weight, held.cost))
                .collect(),
            resources: lease
                .resources
                .iter()
                .map(|held| {
                    let r = &self.pools[held.resource];
                    (self.pools[held.pool].name.clone(), r.id.clone())
                })
                .collect(),
            request: lease.request.clone(),
            local: lease.local,
            first: lease.first,
        })
    }

    // ---- Shapes ----

    /// The shape of a row's bytes, made if necessary; counts one more job with it.
    pub(crate) fn shape_for(&mut self, bytes: &[u8], now: Moment) -> Option<ShapeId> {
        if let Some(shape) = self.jobs.use_shape(bytes) {
            return Some(shape);
        }
        let stored = StoredShape::decode(bytes)?;
        let queue = self.queue_for(&stored.queue, now);
        let held = self.hold_needs(&stored.needs);
        Some(self.jobs.add_shape(Shape {
            bytes: Arc::from(bytes),
            queue,
            priority: stored.priority,
            group: stored.group,
            held,
            retry: stored.retry,
            timeout: stored.timeout,
            retain: stored.retain,
            jobs: 1,
            lane: None,
        }))
    }

    /// Counts one job less with a shape, which goes with the last.
    pub(crate) fn release_shape(&mut self, shape: ShapeId) {
        let Some(s) = self.jobs.release_shape(shape) else { return };
        if let Some(lane) = s.lane {
            self.lines[lane].shapes -= 1;
            self.lines.drop_lane_if_idle(lane);
        }
        self.drop_needs(&s.held);
    }

    /// Needs as the state holds them, in the one fixed order; counts one more user of each limit
    /// and pool.
    pub(crate) fn hold_needs(&mut self, needs: &[Need]) -> Arc<[HeldNeed]> {
        let mut sorted: Vec<(u8, &str, &Need)> = needs
            .iter()
            .map(|need| match need {
                Need::Limit { limit, .. } => {
                    (if limit.key().is_some() { 2 } else { 0 }, limit.as_str(), need)
                }
                Need::Pool { pool, id, .. } => {
                    (if id.is_some() { 3 } else { 1 }, pool.as_str(), need)
                }
            })
            .collect();
        sorted.sort_by_key(|(class, name, _)| (*class, *name));
        sorted
            .into_iter()
            .map(|(class, _, need)| match need {
                Need::Limit { limit, weight, cost } => {
                    let limit = self.limits.named(limit);
                    self.limits[limit].uses += 1;
                    HeldNeed::Limit { limit, weight: *weight, cost: *cost, keyed: class == 2 }
                }
                Need::Pool { pool, tag, prefer, id, count } => {
                    let pool = self.pools.named(pool);
                    self.pools[pool].uses += 1;
                    let which = match (id, tag) {
                        (Some(id), _) => Which::Id(id.clone()),
                        (None, Some(tag)) => Which::Tag(tag.clone()),
                        (None, None) => Which::Any,
                    };
                    HeldNeed::Pool { pool, which, prefer: prefer.clone(), count: *count }
                }
            })
            .collect()
    }

    /// The counterpart of [`Space::hold_needs`].
    pub(crate) fn drop_needs(&mut self, needs: &[HeldNeed]) {
        for need in needs {
            match need {
                HeldNeed::Limit { limit, .. } => {
                    self.limits[*limit].uses -= 1;
                    self.drop_limit_if_idle(*limit);
                }
                HeldNeed::Pool { pool, .. } => {
                    self.pools[*pool].uses -= 1;
                    self.pools.drop_if_idle(*pool);
                }
            }
        }
    }

    /// The lane of a job when it is ready.
    pub(crate) fn lane_of_job(&mut self, slot: LiveJobId) -> LaneId {
        let job = &self.jobs[slot];
        let shape = self.jobs.shape(job.shape);
        let suspect = job.lost > 0;
        if let Some(lane) = shape.lane
            && !suspect
        {
            return lane;
        }
        let key = LaneKey {
            queue: shape.queue,
            priority: shape.priority,
            group: shape.group.clone(),
            needs: shape.held.clone(),
            suspect,
        };
        let shape = job.shape;
        let lane = self.lines.lane_for(&key);
        if !suspect {
            self.lines[lane].shapes += 1;
            self.jobs.set_lane(shape, lane);
        }
        lane
    }

    /// The shape of a new job: its own settings first, then its queue's, then the defaults.
    pub(crate) fn shape_of(&self, job: &NewJob) -> StoredShape {
        let settings =
            self.lines.queue_by_name().get(&job.queue).map(|queue| &self.lines[*queue].settings);
        StoredShape {
            queue: job.queue.clone(),
            priority: job.priority,
            group: job.group.clone(),
            needs: match (&job.needs, settings) {
                (Some(needs), _) => needs.clone(),
                // The push has checked that they can be filled in.
                (None, Some(settings)) => filled(&settings.needs, &job.payload, &job.queue)
                    .map_or_else(|_| settings.needs.clone(), Cow::into_owned),
                (None, None) => Vec::new(),
            },
            retry: job
                .retry
                .clone()
                .or_else(|| settings.and_then(|s| s.retry.clone()))
                .unwrap_or_default(),
            timeout: job.timeout.or_else(|| settings.and_then(|s| s.timeout)),
            retain: job.retain.or_else(|| settings.and_then(|s| s.retain)),
        }
    }

    // ---- Unique keys ----

    /// Gives a job a free key.
    pub(crate) fn take_key(&mut self, slot: LiveJobId, now: Moment) {
        let job = &self.jobs[slot];
        let Some(unique) = job.unique.as_deref().cloned() else { return };
        let until = unique.hold.map(|span| now.plus(span));
        let holder =
            KeyHolder { seq: job.seq, id: job.id.clone(), until, by_job: true, ended: None };
        self.jobs.keys.insert(unique.key.clone(), holder);
        self.key_row(&unique.key);
    }

    /// The job's first run begins, and its key was held until then.
    pub(crate) fn release_key(&mut self, key: &UniqueKey, slot: LiveJobId) {
        let seq = self.jobs[slot].seq;
        self.drop_key(key, seq, None, self.last);
    }

    /// The first run of a job is undone because its grant never arrived: the job takes back a key
    /// that it held until its start. Returns false if another job has taken it meanwhile.
    pub(crate) fn retake_key(&mut self, slot: LiveJobId, now: Moment) -> bool {
        let job = &self.jobs[slot];
        let Some(unique) = job.unique.as_deref().filter(|u| u.until == Until::Start) else {
            return true;
        };
        let (key, seq, id) = (unique.key.clone(), job.seq, job.id.clone());
        let holder = match self.jobs.keys.remove(&key) {
            // Its time is not over, so it held the key all the while.
            Some(holder) if holder.seq == seq => KeyHolder { by_job: true, ..holder },
            Some(holder) if holder.by_job || holder.until.is_some_and(|at| at > now) => {
                self.jobs.keys.insert(key, holder);
                return false;
            }
            Some(_) | None => KeyHolder { seq, id, until: None, by_job: true, ended: None },
        };
        self.jobs.keys.insert(key.clone(), holder);
        self.key_row(&key);
        true
    }

    /// Ends the job's hold on its key. Its row may go before the key's time is over.
    pub(crate) fn end_key(
        &mut self,
        key: &UniqueKey,
        seq: Seq,
        ended: Option<EndedJob>,
        now: Moment,
    ) {
        self.drop_key(key, seq, ended.map(Box::new), now);
    }

    fn drop_key(&mut self, key: &UniqueKey, seq: Seq, ended: Option<Box<EndedJob>>, now: Moment) {
        let mut changes = false;
        self.jobs.keys.keep_if(key, |holder| {
            changes = holder.seq == seq;
            if changes {
                (holder.by_job, holder.ended) = (false, ended);
            }
            !changes || holder.until.is_some_and(|until| until > now)
        });
        if changes {
            self.key_row(key);
        }
    }

    /// The time of a key is over; its job may still hold it.
    pub(crate) fn tick_key(&mut self, key: UniqueKey, holder: KeyHolder) {
        if holder.by_job {
            self.jobs.keys.insert(key.clone(), KeyHolder { until: None, ..holder });
        }
        self.key_row(&key);
    }
}
