//! Drain: turns the things that steps touched into rows, each thing once, in its current state.

use serde::{Deserialize, Serialize};

use crate::rows::times::moment;
use crate::rows::{Kind, RowKey, Rows};
use crate::scarce::gauges::rows::{GaugeRow, SettingRow};
use crate::state::{
    Dropped, Job, KeyHolder, LimitId, LiveJobId, LiveResourceId, LiveScheduleId, QueueId, Seq,
    Space, Stand, TurnId,
};
use tenure_core::job::{EndedJob, JobState, Outcome};
use tenure_core::lease::Fence;
use tenure_core::names::{
    Group, JobId, LimitName, PoolName, QueueName, RequestId, ResourceId, Tag, UniqueKey,
};
use tenure_core::settings::{PoolSettings, QueueSettings, ResourceState};
use tenure_core::time::Moment;

/// Numbers of a namespace.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct MetaRow {
    pub fence: Fence,
    pub arrival: u64,
    pub used: u64,
    /// The latest time that was seen, in microseconds.
    pub last: u64,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct QueueRow {
    pub settings: QueueSettings,
    /// In microseconds; the greatest number means without end.
    pub paused_until: Option<u64>,
    pub since: u64,
    /// The last use, to the hour; 0 if an earlier release wrote the row.
    #[serde(default)]
    pub used_at: u64,
    /// Number of skipped occurrences of schedules.
    #[serde(default)]
    pub skipped: u64,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct TurnRow {
    pub queue: QueueName,
    pub rank: i16,
    pub group: Option<Group>,
    pub own: u64,
    pub v: u64,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct LimitRow {
    pub tat: u64,
    pub paused_until: Option<u64>,
    pub resting: Vec<(u64, u64, u32)>,
    pub external: u32,
    pub external_until: Option<u64>,
    /// The last change by a call; 0 if an earlier release wrote the row.
    #[serde(default)]
    pub touched_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<GaugeRow>,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct PoolRow {
    pub settings: PoolSettings,
    pub version: u64,
    pub generation: u64,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct ResourceRow {
    pub pool: PoolName,
    pub id: ResourceId,
    pub tags: Vec<Tag>,
    pub slots: u32,
    pub state: ResourceState,
    pub until: u64,
    pub rest: u64,
    pub reason: Option<String>,
    pub uses: u64,
    pub used: u64,
    pub last_used_at: Option<u64>,
    pub tat: u64,
    pub retiring: bool,
    pub generation: u64,
    /// True if it retires because a sync left it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// The time at which a sync dropped it; absent while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_at: Option<u64>,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct KeyRow {
    pub seq: Seq,
    pub id: JobId,
    pub until: Option<u64>,
    pub by_job: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<EndedRow>,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct EndedRow {
    pub queue: QueueName,
    pub state: JobState,
    pub created_at: u64,
    pub finished_at: u64,
}

impl EndedRow {
    pub(crate) fn of(ended: &EndedJob) -> EndedRow {
        EndedRow {
            queue: ended.queue.clone(),
            state: ended.state,
            created_at: ended.created_at.us(),
            finished_at: ended.finished_at.us(),
        }
    }

    pub(crate) fn read(self) -> EndedJob {
        EndedJob {
            queue: self.queue,
            state: self.state,
            created_at: moment(self.created_at),
            finished_at: moment(self.finished_at),
        }
    }
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct RequestRow {
    pub fences: Vec<Fence>,
    pub until: u64,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct ReplacingRow {
    pub seq: Seq,
    pub id: JobId,
    pub queue: QueueName,
    pub state: JobState,
    pub created_at: u64,
    pub run_at: u64,
    pub until: u64,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct StubRow {
    pub outcome: Outcome,
    pub until: u64,
}

impl MetaRow {
    /// The numbers of a row, if it has exactly the text of this release.
    pub(crate) fn of(text: &str) -> Option<MetaRow> {
        let row: MetaRow = serde_json::from_str(text).ok()?;
        (row.text()? == text).then_some(row)
    }

    /// The JSON text of the row.
    pub(crate) fn text(&self) -> Option<String> {
        json(self)
    }
}

fn json(row: &impl Serialize) -> Option<String> {
    // These rows are plain numbers and texts, so writing JSON cannot fail.
    serde_json::to_string(row).ok()
}

impl Space {
    fn key(&self, kind: Kind, key: impl Into<String>) -> RowKey {
        RowKey { namespace: self.name.clone(), kind, key: key.into() }
    }

    /// Writes a row in JSON; `None` deletes it.
    pub(crate) fn put_row(
        &mut self,
        kind: Kind,
        key: impl Into<String>,
        row: Option<&impl Serialize>,
    ) {
        self.put(kind, key, row.and_then(json));
    }

    /// Writes a row; `None` deletes it.
    pub(crate) fn put(&mut self, kind: Kind, key: impl Into<String>, row: Option<String>) {
        let key = self.key(kind, key);
        self.outbox.put(key, row);
    }

    /// Writes the row of a limit's setting.
    pub(crate) fn limit_setting_row(&mut self, name: &LimitName) {
        let row = self.limits.settings().get(name).and_then(|settings| {
            json(&SettingRow {
                settings: *settings,
                gauge: self.gauge_of(name).cloned().map(Box::new),
            })
        });
        self.put(Kind::LimitSetting, name.as_str(), row);
    }

    pub(crate) fn forget_resource_row(&mut self, pool: &PoolName, id: &ResourceId) {
        self.put(Kind::Resource, format!("{pool}/{id}"), None);
        self.outbox.put_data((self.name.clone(), pool.clone(), id.clone()), None);
    }

    /// Sets the job of a schedule. A long one has its own row; a short one is in the row of the schedule.
    pub(crate) fn set_scheduled_job(&mut self, slot: LiveScheduleId, job: Box<str>) {
        let s = self.schedules.open(slot);
        let (id, had_row) = (s.id.clone(), s.has_job_row());
        s.job = job;
        let job = s.has_job_row().then(|| s.job.to_string());
        if had_row || job.is_some() {
            self.put(Kind::ScheduledJob, id.as_str(), job);
        }
    }

    pub(crate) fn forget_schedule_row(&mut self, slot: LiveScheduleId) {
        let s = self.schedules.open(slot);
        let (id, had_row) = (s.id.clone(), s.has_job_row());
        self.put(Kind::Schedule, id.as_str(), None);
        if had_row {
            self.put(Kind::ScheduledJob, id.as_str(), None);
        }
    }

    /// Writes the row of a unique key with its holder.
    pub(crate) fn key_row(&mut self, key: &UniqueKey) {
        let row =
            self.jobs.keys.get(key).and_then(|KeyHolder { seq, id, until, by_job, ended }| {
                json(&KeyRow {
                    seq: *seq,
                    id: id.clone(),
                    until: until.map(Moment::us),
                    by_job: *by_job,
                    ended: ended.as_deref().map(EndedRow::of),
                })
            });
        self.put(Kind::Key, key.as_str(), row);
    }

    pub(crate) fn request_row(&mut self, id: &RequestId) {
        let row = self.leases.requests.get(id).and_then(|past| {
            json(&RequestRow { fences: past.fences.clone(), until: past.until.us() })
        });
        self.put(Kind::Request, id.as_str(), row);
    }

    pub(crate) fn tombstone_row(&mut self, fence: Fence) {
        let row =
            self.leases.tombstones.get(&fence).and_then(|ended| {
                json(&StubRow { outcome: ended.outcome, until: ended.until.us() })
            });
        self.put(Kind::Stub, fence.to_string(), row);
    }

    /// Writes the row of a lease without a job.
    pub(crate) fn lease_row(&mut self, fence: Fence) {
        let row = self.stored_lease(fence).map(|lease| lease.row());
        self.put(Kind::Lease, fence.to_string(), row);
    }

    /// Writes a changed lease into its row, which is that of its job if it has one.
    pub(crate) fn written_lease(&mut self, fence: Fence) {
        match self.leases.get(fence).map(|lease| lease.job) {
            Some(Some(slot)) => self.jobs.mark(slot),
            Some(None) | None => self.lease_row(fence),
        }
    }

    fn turn_key(&self, queue: &QueueName, rank: i16, group: Option<&Group>) -> String {
        match group {
            Some(group) => format!("{queue}/{rank}/{group}"),
            None => format!("{queue}/{rank}"),
        }
    }

    /// Turns all changes since the last call into rows.
    pub(crate) fn drain_rows(&mut self) -> Rows {
        for slot in self.jobs.take_changed() {
            self.drain_job(slot);
        }
        for limit in self.limits.take_changed() {
            self.drain_limit(limit);
        }
        for resource in self.pools.take_changed_resources() {
            self.drain_resource(resource);
        }
        for queue in self.lines.take_changed_queues() {
            self.drain_queue(queue);
        }
        for schedule in self.schedules.take_changed() {
            let s = self.schedules.read(schedule);
            if !s.shell {
                let (id, row) = (s.id.clone(), s.row());
                self.put(Kind::Schedule, id.as_str(), Some(row));
            }
        }
        self.schedules.pack_all();
        self.drain_flows();
        for pool in self.pools.take_changed() {
            let p = &self.pools[pool];
            let name = p.name.clone();
            let row = p.settings.and_then(|settings| {
                json(&PoolRow { settings, version: p.version, generation: p.generation })
            });
            self.put(Kind::Pool, name.as_str(), row);
        }
        for (queue, rank, group) in self.lines.take_forgotten_turns() {
            let key = self.turn_key(&queue, rank, group.as_ref());
            self.put(Kind::Turn, key, None);
        }
        for group in self.lines.take_changed_turns() {
            self.drain_turn(group);
        }
        let numbers = (self.leases.last_fence(), self.lines.last_arrival(), self.pools.used());
        if self.outbox.writes(numbers) {
            let (fence, arrival, used) = numbers;
            let row = MetaRow { fence, arrival, used, last: self.last.us() };
            self.put(Kind::Meta, "", json(&row));
        }
        self.outbox.take_rows()
    }

    fn drain_job(&mut self, slot: LiveJobId) {
        let Job { seq, stand, .. } = self.jobs[slot];
        let life = self.life_of(slot).encode();
        let change = self.outbox.job(seq);
        change.life = Some(life);
        change.state = Some(match stand {
            Stand::Scheduled => JobState::Scheduled,
            Stand::Dependent => JobState::Dependent,
            Stand::Waiting(_) => JobState::Ready,
            Stand::Running(_) => JobState::Running,
        });
    }

    fn drain_limit(&mut self, limit: LimitId) {
        let l = &self.limits[limit];
        let name = l.name.clone();
        let idle = l.tat <= self.last
            && l.paused_until.is_none()
            && l.resting.is_empty()
            && l.external == 0
            && l.gauge.is_none();
        let row = LimitRow {
            tat: l.tat.us(),
            paused_until: l.paused_until.map(Moment::us),
            resting: l.resting.iter().map(|((at, n), w)| (at.us(), *n, *w)).collect(),
            external: l.external,
            external_until: l.external_until.map(Moment::us),
            touched_at: l.touched_at.us(),
            gauge: l.gauge.as_deref().map(GaugeRow::of),
        };
        if idle && !self.limits[limit].stored {
            return;
        }
        self.limits[limit].stored = !idle;
        self.put(Kind::Limit, name.as_str(), if idle { None } else { json(&row) });
    }

    fn drain_resource(&mut self, resource: LiveResourceId) {
        let r = &self.pools[resource];
        let pool = self.pools[r.pool].name.clone();
        let key = format!("{pool}/{}", r.id);
        let row = ResourceRow {
            pool,
            id: r.id.clone(),
            tags: r.tags.clone(),
            slots: r.slots,
            state: r.state,
            until: r.until.us(),
            rest: r.rest.us(),
            reason: r.reason.clone(),
            uses: r.uses,
            used: r.used,
            last_used_at: r.last_used_at.map(Moment::us),
            tat: r.tat.us(),
            retiring: r.retiring,
            generation: r.generation,
            dropped: r.dropped,
            dropped_at: None,
        };
        self.put(Kind::Resource, key, json(&row));
    }

    /// Writes the record of a dropped resource in place of its row.
    pub(crate) fn put_dropped_row(
        &mut self,
        pool: &PoolName,
        id: &ResourceId,
        dropped: Option<&Dropped>,
    ) {
        let row = dropped.map(|dropped| ResourceRow {
            pool: pool.clone(),
            id: id.clone(),
            tags: Vec::new(),
            slots: 1,
            state: dropped.state,
            until: dropped.until.us(),
            rest: dropped.rest.us(),
            reason: dropped.reason.clone(),
            uses: dropped.uses,
            used: dropped.used,
            last_used_at: dropped.last_used_at.map(Moment::us),
            tat: dropped.tat.us(),
            retiring: true,
            generation: 0,
            dropped: true,
            dropped_at: Some(dropped.dropped_at.us()),
        });
        self.put_row(Kind::Resource, format!("{pool}/{id}"), row.as_ref());
    }

    fn drain_queue(&mut self, queue: QueueId) {
        if self.lines.queue(queue).is_none() {
            return;
        }
        let q = &mut self.lines[queue];
        let Some(name) = q.name.clone().filter(|_| !q.hidden) else { return };
        q.noted_at = q.used_at;
        let row = QueueRow {
            settings: q.settings.clone(),
            paused_until: q.paused_until.map(Moment::us),
            since: q.since.us(),
            used_at: q.used_at.us(),
            skipped: q.skipped,
        };
        self.put(Kind::Queue, name.as_str(), json(&row));
    }

    fn drain_turn(&mut self, group: TurnId) {
        let Some(g) = self.lines.group(group) else { return };
        let rank = crate::state::rank_of(g.priority);
        let q = &self.lines[g.queue];
        let Some(name) = q.name.clone() else { return };
        let v = q.priorities.get(&rank).map_or(0, |turns| turns.v);
        let row = TurnRow { queue: name.clone(), rank, group: g.name.clone(), own: g.own, v };
        let key = self.turn_key(&name, rank, g.name.as_ref());
        self.put(Kind::Turn, key, json(&row));
    }
}
