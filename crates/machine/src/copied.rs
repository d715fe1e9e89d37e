//! Between the rows of a store and what a copy carries: see [`tenure_core::copy`].
//!
//! It only translates. Which rows there are, and where they go, is the store's; that leases end is
//! [`tenure_core::copy::Releasing`]'s.

mod schedules;

pub use schedules::schedule;

use super::drain::{
    EndedRow, KeyRow, LimitRow, MetaRow, PoolRow, QueueRow, ResourceRow, TurnRow, moment, span,
};
use super::gauges::rows::{GaugeRow, SettingRow};
use super::rows::{JobChange, JobContent, JobEnd, Kind, RowKey, Rows};
use super::state::{JobKey, NO_JOB, Seq};
use super::stored::{StoredJob, StoredLease, StoredLife, StoredShape};
use tenure_core::copy::{
    CopiedJob, CopiedKey, CopiedLease, CopiedLimit, CopiedPool, CopiedQueue, CopiedResource,
    CopiedRest, CopiedSetting, CopiedTurn, Head, Holds, Item,
};
use tenure_core::job::{EndedJob, JobState};
use tenure_core::names::{JobId, LimitName, Namespace, PoolName, QueueName, UniqueKey};
use tenure_core::secret::Json;
use tenure_core::time::Moment;

/// What a row says of a unique key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyHeld {
    /// The row number of the job that took it.
    pub seq: Seq,
    /// Its id.
    pub job: JobId,
    /// How it is held.
    pub holds: Holds,
    /// What is known of the job, if it is finished.
    pub ended: Option<EndedJob>,
}

/// The numbers in a namespace's own row; `None` if the row is not of this format. `jobs` and `now` are
/// the store's to fill in.
pub fn head(value: &str) -> Option<Head> {
    let row: MetaRow = serde_json::from_str(value).ok()?;
    let (fence, arrival, used) = (row.fence, row.arrival, row.used);
    Some(Head { fence, arrival, used, ..Head::default() })
}

/// A row of these kinds as a thing: queue, turn, setting, limit, pool, synced set. `Some(None)`: it is not copied.
/// `None`: the row is not of this format.
pub fn item(kind: Kind, key: &str, value: &str) -> Option<Option<Item>> {
    Some(Some(match kind {
        Kind::Queue => {
            let row: QueueRow = serde_json::from_str(value).ok()?;
            Item::Queue(CopiedQueue {
                name: QueueName::parse(key).ok()?,
                settings: row.settings,
                paused_until: row.paused_until.map(moment),
                since: moment(row.since),
                skipped: row.skipped,
            })
        }
        Kind::Turn => {
            let TurnRow { queue, rank, group, own, v } = serde_json::from_str(value).ok()?;
            if own <= v {
                // It starts again at V in any case.
                return Some(None);
            }
            Item::Turn(CopiedTurn { queue, priority: (-rank) as i8, group, own, v })
        }
        Kind::LimitSetting => {
            let SettingRow { settings, gauge } = serde_json::from_str(value).ok()?;
            Item::Setting(CopiedSetting { name: LimitName::parse(key).ok()?, settings, gauge })
        }
        Kind::Limit => {
            let row: LimitRow = serde_json::from_str(value).ok()?;
            Item::Limit(CopiedLimit {
                name: LimitName::parse(key).ok()?,
                tat: moment(row.tat),
                paused_until: row.paused_until.map(moment),
                resting: row.resting.iter().map(|(at, _, w)| (moment(*at), *w)).collect(),
                unshown: row.gauge.map(GaugeRow::unshown).unwrap_or_default(),
                external: row.external,
                external_until: row.external_until.map(moment),
            })
        }
        Kind::Pool => {
            let PoolRow { settings, version, generation } = serde_json::from_str(value).ok()?;
            Item::Pool(CopiedPool {
                name: PoolName::parse(key).ok()?,
                settings,
                version,
                generation,
            })
        }
        Kind::SyncedSet => schedules::set(key, value)?,
        _ => return Some(None),
    }))
}

/// A resource's row, and its data, as a thing.
pub fn resource(value: &str, data: Json) -> Option<Item> {
    let row: ResourceRow = serde_json::from_str(value).ok()?;
    Some(Item::Resource(Box::new(CopiedResource {
        pool: row.pool,
        id: row.id,
        data,
        tags: row.tags,
        slots: row.slots,
        state: row.state,
        until: moment(row.until),
        rest: span(row.rest),
        reason: row.reason,
        uses: row.uses,
        used: row.used,
        last_used_at: row.last_used_at.map(moment),
        tat: moment(row.tat),
        retiring: row.retiring,
        generation: row.generation,
    })))
}

/// What a row says of a unique key.
pub fn key_held(value: &str) -> Option<KeyHeld> {
    let row: KeyRow = serde_json::from_str(value).ok()?;
    let holds = Holds { by_job: row.by_job, until: row.until.map(moment) };
    let ended = row.ended.map(EndedRow::read);
    Some(KeyHeld { seq: row.seq, job: row.id, holds, ended })
}

/// The row of a lease without a job as a thing; leases were fresh when the source was frozen.
pub fn lease(value: &str, frozen_at: Moment) -> Option<Item> {
    Some(lease_of(StoredLease::of_row(value)?, false, frozen_at))
}

/// The lease in the row of a running job as a thing; `Some(None)` if it does not run.
pub fn lease_of_job(life: &[u8], frozen_at: Moment) -> Option<Option<Item>> {
    let lease = StoredLife::decode(life)?.lease;
    Some(lease.map(|lease| lease_of(lease, true, frozen_at)))
}

fn lease_of(lease: StoredLease, has_job: bool, frozen_at: Moment) -> Item {
    Item::Lease(CopiedLease {
        has_job,
        granted_at: lease.granted_at,
        expires_at: frozen_at.plus(lease.ttl),
        limits: lease.limits.into_iter().map(|(name, weight, _)| (name, weight)).collect(),
        resources: lease.resources,
    })
}

/// The unique key that a job's row says it has.
pub fn key_of(stored: &StoredJob) -> Option<UniqueKey> {
    Some(StoredLife::decode(&stored.life)?.unique?.unique.key)
}

/// A job's row as a thing. `kept`: until when it is kept and what it takes, if it is finished.
pub fn job(stored: StoredJob, kept: Option<(Moment, u32)>, holds: Option<Holds>) -> Option<Item> {
    let shape = StoredShape::decode(&stored.shape)?;
    let life = StoredLife::decode(&stored.life)?;
    Some(Item::Job(Box::new(CopiedJob {
        id: stored.id,
        kind: stored.kind,
        payload: stored.payload.unwrap_or_default(),
        labels: stored.labels,
        queue: shape.queue,
        priority: shape.priority,
        group: shape.group,
        needs: shape.needs,
        retry: shape.retry,
        timeout: shape.timeout,
        retain: shape.retain,
        state: stored.state,
        arrival: life.arrival,
        created_at: life.created_at,
        run_at: life.run_at,
        started_at: life.started_at,
        finished_at: life.finished_at,
        kept_until: kept.map(|kept| kept.0),
        expires_at: life.expires_at,
        wait: life.wait,
        ended: life.ended,
        lost: life.lost,
        released: life.released,
        undelivered: life.undelivered,
        ended_unsettled: life.ended_unsettled,
        cancel_requested: life.cancel_requested,
        keeps_place: life.keeps_place,
        wait_began: life.unique.as_ref().and_then(|key| key.began),
        unique: life.unique.map(|key| key.unique),
        holds,
        bytes: kept.map_or(life.bytes, |kept| kept.1),
        result: stored.result,
        progress: stored.progress,
        error: stored.error,
        errors: stored.errors,
        origin: life.origin.map(|origin| schedules::origin_of(*origin)),
    })))
}

/// Where things go: rows of one namespace.
pub struct CopiedRows<'a> {
    namespace: &'a Namespace,
    last_seq: Seq,
    /// The rows so far.
    pub rows: Rows,
}

impl<'a> CopiedRows<'a> {
    /// Rows of a namespace; jobs are numbered from behind `last_seq`.
    pub fn new(namespace: &'a Namespace, last_seq: Seq) -> Self {
        CopiedRows { namespace, last_seq, rows: Rows::default() }
    }

    /// The number of the last job.
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }

    fn put(&mut self, kind: Kind, key: impl Into<String>, row: &impl serde::Serialize) {
        let key = RowKey { namespace: self.namespace.clone(), kind, key: key.into() };
        // These rows are plain numbers and texts, for which writing JSON cannot fail.
        self.rows.other.insert(key, serde_json::to_string(row).ok());
    }

    /// The namespace's own row. Its clock begins anew, by that of its new store.
    pub fn head(&mut self, head: &Head) {
        let Head { fence, arrival, used, .. } = *head;
        self.put(Kind::Meta, "", &MetaRow { fence, arrival, used, last: 0 });
    }

    /// A thing. `limit` is the row of a limit as it is, which only rests are added to; `false` if that
    /// is not of this format.
    pub fn add(&mut self, item: Item, limit: impl FnOnce(&LimitName) -> Option<String>) -> bool {
        match item {
            Item::Queue(CopiedQueue { name, settings, paused_until, since, skipped }) => {
                let paused_until = paused_until.map(Moment::us);
                let row =
                    QueueRow { settings, paused_until, since: since.us(), used_at: 0, skipped };
                self.put(Kind::Queue, name.as_str(), &row);
            }
            Item::Setting(setting) => {
                let CopiedSetting { name, settings, gauge } = setting;
                self.put(Kind::LimitSetting, name.as_str(), &SettingRow { settings, gauge });
            }
            Item::Limit(limit) => self.limit(&limit),
            // Leases end on their way.
            Item::Lease(_) => {}
            Item::Rest(rest) => return self.rest(&rest, limit),
            Item::Turn(CopiedTurn { queue, priority, group, own, v }) => {
                let rank = super::order::rank_of(priority);
                let key = match &group {
                    Some(group) => format!("{queue}/{rank}/{group}"),
                    None => format!("{queue}/{rank}"),
                };
                self.put(Kind::Turn, key, &TurnRow { queue, rank, group, own, v });
            }
            Item::Pool(CopiedPool { name, settings, version, generation }) => {
                self.put(Kind::Pool, name.as_str(), &PoolRow { settings, version, generation });
            }
            Item::Resource(resource) => self.resource(*resource),
            Item::Job(job) => self.job(*job),
            Item::Schedule(schedule) => self.schedule(*schedule),
            Item::Set(set) => self.set(&set),
            Item::Key(CopiedKey { key, job, until, ended }) => {
                let holds = Holds { by_job: false, until: Some(until) };
                self.key(&key, NO_JOB, job, holds, ended.as_ref());
            }
        }
        true
    }

    fn limit(&mut self, limit: &CopiedLimit) {
        let numbered = limit.resting.iter().enumerate();
        let row = LimitRow {
            tat: limit.tat.us(),
            paused_until: limit.paused_until.map(Moment::us),
            resting: numbered.map(|(n, (at, weight))| (at.us(), n as u64, *weight)).collect(),
            external: limit.external,
            external_until: limit.external_until.map(Moment::us),
            touched_at: 0,
            gauge: GaugeRow::copied(&limit.unshown),
        };
        self.put(Kind::Limit, limit.name.as_str(), &row);
    }

    fn rest(
        &mut self,
        rest: &CopiedRest,
        limit: impl FnOnce(&LimitName) -> Option<String>,
    ) -> bool {
        let key = RowKey {
            namespace: self.namespace.clone(),
            kind: Kind::Limit,
            key: rest.limit.as_str().to_owned(),
        };
        let there = self.rows.other.get(&key).cloned().flatten().or_else(|| limit(&rest.limit));
        let mut row = match there.as_deref().map(serde_json::from_str::<LimitRow>) {
            Some(Ok(row)) => row,
            Some(Err(_)) => return false,
            None => LimitRow {
                tat: 0,
                paused_until: None,
                resting: Vec::new(),
                external: 0,
                external_until: None,
                touched_at: 0,
                gauge: None,
            },
        };
        match &rest.unshown {
            // It has its gap with it.
            Some(unshown) => {
                row.gauge.get_or_insert_default().rest(unshown);
            }
            None => {
                let n = row.resting.iter().map(|(_, n, _)| n + 1).max().unwrap_or(0);
                row.resting.push((rest.until.us(), n, rest.weight));
            }
        }
        self.put(Kind::Limit, rest.limit.as_str(), &row);
        true
    }

    fn resource(&mut self, resource: CopiedResource) {
        let data = (self.namespace.clone(), resource.pool.clone(), resource.id.clone());
        self.rows.data.insert(data, Some(resource.data));
        let key = format!("{}/{}", resource.pool, resource.id);
        let row = ResourceRow {
            pool: resource.pool,
            id: resource.id,
            tags: resource.tags,
            slots: resource.slots,
            state: resource.state,
            until: resource.until.us(),
            rest: resource.rest.us(),
            reason: resource.reason,
            uses: resource.uses,
            used: resource.used,
            last_used_at: resource.last_used_at.map(Moment::us),
            tat: resource.tat.us(),
            retiring: resource.retiring,
            generation: resource.generation,
        };
        self.put(Kind::Resource, key, &row);
    }

    fn key(
        &mut self,
        key: &UniqueKey,
        seq: Seq,
        id: JobId,
        holds: Holds,
        ended: Option<&EndedJob>,
    ) {
        let (until, ended) = (holds.until.map(Moment::us), ended.map(EndedRow::of));
        self.put(Kind::Key, key.as_str(), &KeyRow { seq, id, until, by_job: holds.by_job, ended });
    }

    fn job(&mut self, job: CopiedJob) {
        let seq = self.last_seq.next();
        self.last_seq = seq;
        if let (Some(unique), Some(holds)) = (&job.unique, job.holds) {
            self.key(&unique.key, seq, job.id.clone(), holds, job.ended_job().as_ref());
        }
        let shape = StoredShape {
            queue: job.queue.clone(),
            priority: job.priority,
            group: job.group,
            needs: job.needs,
            retry: job.retry,
            timeout: job.timeout,
            retain: job.retain,
        };
        let life = StoredLife {
            kin: None,
            arrival: job.arrival,
            created_at: job.created_at,
            run_at: job.run_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            expires_at: job.expires_at,
            wait: job.wait,
            ended: job.ended,
            lost: job.lost,
            released: job.released,
            undelivered: job.undelivered,
            ended_unsettled: job.ended_unsettled,
            cancel_requested: job.cancel_requested,
            keeps_place: job.keeps_place,
            unique: job.unique.map(|unique| JobKey { unique, began: job.wait_began }),
            edits: 0,
            // A lease is named by a row number too: nobody asks for these again.
            settles: Vec::new(),
            bytes: job.bytes,
            lease: None,
            origin: job.origin.map(schedules::origin),
        };
        let shape: std::sync::Arc<[u8]> = shape.encode().into();
        let end = job.kept_until.filter(|_| job.state.is_finished()).map(|until| JobEnd {
            namespace: self.namespace.clone(),
            id: job.id.clone(),
            shape: shape.clone(),
            until,
            bytes: job.bytes,
            result: job.result,
        });
        let content = JobContent { kind: job.kind, payload: job.payload, labels: job.labels };
        self.rows.errors.extend(job.errors.into_iter().map(|error| (seq, error)));
        let state = if job.state == JobState::Blocked { JobState::Ready } else { job.state };
        let change = JobChange {
            new: Some(Box::new((self.namespace.clone(), job.id, content))),
            queue: Some(job.queue),
            state: Some(state),
            shape: Some(shape),
            life: Some(life.encode()),
            end,
            error: job.error.map(Some),
            progress: job.progress.map(Some),
            ..JobChange::default()
        };
        self.rows.jobs.insert(seq, change);
    }
}
