//! Between the rows of a store and what a copy carries: see [`tenure_core::copy`].
//!
//! It only translates. Which rows there are, and where they go, is the store's; that leases end is
//! [`tenure_core::copy::Releasing`]'s.

mod flows;
mod jobs;
mod schedules;

pub use flows::{KeptForOthers, kept_for_others, kin};
pub use jobs::{job, key_of};
pub use schedules::schedule;

use super::drain::{
    EndedRow, KeyRow, LimitRow, MetaRow, PoolRow, QueueRow, ResourceRow, TurnRow, moment, span,
};
use super::gauges::rows::{GaugeRow, SettingRow};
use super::rows::{Kind, RowKey, Rows};
use super::state::{NO_JOB, Seq};
use super::stored::{StoredLease, StoredLife};
use tenure_core::copy::{
    CopiedKey, CopiedLease, CopiedLimit, CopiedPool, CopiedQueue, CopiedResource, CopiedRest,
    CopiedSetting, CopiedTurn, Head, Holds, Item,
};
use tenure_core::job::{EndedJob, JobState};
use tenure_core::names::{FlowName, JobId, LimitName, Namespace, PoolName, QueueName, UniqueKey};
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

/// What a row says of a job that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LifeThere {
    /// Where it stands.
    pub state: JobState,
    /// Its life.
    pub life: Vec<u8>,
    /// Until when it is kept and what it takes, if it is finished.
    pub kept: Option<(Moment, u32)>,
}

/// A namespace of a store, as far as a copy asks for rows beside the one that it is at. Of a target it is what the pages
/// before this one left.
pub trait RowsThere {
    /// Why it cannot be read.
    type Error;
    /// A row that is not a job.
    fn row(&self, kind: Kind, key: &str) -> Result<Option<String>, Self::Error>;
    /// The row number of a job; asked for of a target alone.
    fn seq_of(&self, id: &JobId) -> Result<Option<Seq>, Self::Error>;
    /// The id of the job with this row number.
    fn id_of(&self, seq: Seq) -> Result<Option<JobId>, Self::Error>;
    /// The life of the job with this row number.
    fn life(&self, seq: Seq) -> Result<Option<LifeThere>, Self::Error>;
}

/// An empty namespace.
#[cfg(test)]
pub(crate) struct NothingThere;

#[cfg(test)]
impl RowsThere for NothingThere {
    type Error = std::convert::Infallible;
    fn row(&self, _: Kind, _: &str) -> Result<Option<String>, Self::Error> {
        Ok(None)
    }
    fn seq_of(&self, _: &JobId) -> Result<Option<Seq>, Self::Error> {
        Ok(None)
    }
    fn id_of(&self, _: Seq) -> Result<Option<JobId>, Self::Error> {
        Ok(None)
    }
    fn life(&self, _: Seq) -> Result<Option<LifeThere>, Self::Error> {
        Ok(None)
    }
}

/// The numbers in a namespace's own row; `None` if the row is not of this format. `jobs` and `now` are
/// the store's to fill in.
pub fn head(value: &str) -> Option<Head> {
    let row: MetaRow = serde_json::from_str(value).ok()?;
    let (fence, arrival, used) = (row.fence, row.arrival, row.used);
    Some(Head { fence, arrival, used, ..Head::default() })
}

/// A row of these kinds as a thing: queue, turn, setting, limit, pool, flow, synced set. `Some(None)`: it is not copied.
/// `None`: the row is not of this format.
pub fn item(kind: Kind, key: &str, value: &str) -> Option<Option<Item>> {
    Some(Some(match kind {
        Kind::Queue => {
            let row: QueueRow = serde_json::from_str(value).ok()?;
            Item::Queue(CopiedQueue {
                name: QueueName::known(key).ok()?,
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
            Item::Setting(CopiedSetting { name: LimitName::known(key).ok()?, settings, gauge })
        }
        Kind::Limit => {
            let row: LimitRow = serde_json::from_str(value).ok()?;
            Item::Limit(CopiedLimit {
                name: LimitName::known(key).ok()?,
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
                name: PoolName::known(key).ok()?,
                settings,
                version,
                generation,
            })
        }
        Kind::SyncedSet => schedules::set(key, value)?,
        Kind::Flow => flows::flow(key, value)?,
        _ => return Some(None),
    }))
}

/// A resource's row, and its data, as a thing. `Some(None)`: a sync dropped it, and a copy does not remember that.
pub fn resource(value: &str, data: Json) -> Option<Option<Item>> {
    let row: ResourceRow = serde_json::from_str(value).ok()?;
    if row.dropped_at.is_some() {
        return Some(None);
    }
    Some(Some(Item::Resource(Box::new(CopiedResource {
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
    }))))
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
    Some(lease_of(StoredLease::of_row(value)?, false, frozen_at, None))
}

/// The lease in the row of a running job as a thing; `Some(None)` if it does not run.
pub fn lease_of_job(life: &[u8], frozen_at: Moment) -> Option<Option<Item>> {
    let StoredLife { lease, kin, cancel_requested, .. } = StoredLife::decode(life)?;
    let called_off_in = kin.and_then(|kin| kin.flow).filter(|_| cancel_requested);
    Some(lease.map(|lease| lease_of(lease, true, frozen_at, called_off_in)))
}

fn lease_of(
    lease: StoredLease,
    has_job: bool,
    frozen_at: Moment,
    called_off_in: Option<FlowName>,
) -> Item {
    Item::Lease(CopiedLease {
        has_job,
        granted_at: lease.granted_at,
        expires_at: frozen_at.plus(lease.ttl),
        limits: lease.limits.into_iter().map(|(name, weight, _)| (name, weight)).collect(),
        resources: lease.resources,
        called_off_in,
    })
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
        let key = self.row_key(kind, key);
        // These rows are plain numbers and texts, for which writing JSON cannot fail.
        self.rows.other.insert(key, serde_json::to_string(row).ok());
    }

    fn put_text(&mut self, kind: Kind, key: &str, row: String) {
        let key = self.row_key(kind, key);
        self.rows.other.insert(key, Some(row));
    }

    /// The namespace's own row. Its clock begins anew, by that of its new store.
    pub fn head(&mut self, head: &Head) {
        let Head { fence, arrival, used, .. } = *head;
        self.put(Kind::Meta, "", &MetaRow { fence, arrival, used, last: 0 });
    }

    /// A thing; `false` if a row that it is added to is not there, or is not of this format.
    ///
    /// # Errors
    /// What is there cannot be read.
    pub fn add<T: RowsThere>(&mut self, item: Item, there: &T) -> Result<bool, T::Error> {
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
            Item::Rest(rest) => return self.rest(&rest, there),
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
            Item::Kin(kin) => return self.kin(*kin, there),
            Item::Flow(flow) => self.flow(&flow),
            Item::Key(CopiedKey { key, job, until, ended }) => {
                let holds = Holds { by_job: false, until: Some(until) };
                self.key(&key, NO_JOB, job, holds, ended.as_ref());
            }
        }
        Ok(true)
    }

    /// The key of a row that is not a job.
    fn row_key(&self, kind: Kind, key: impl Into<String>) -> RowKey {
        RowKey { namespace: self.namespace.clone(), kind, key: key.into() }
    }

    /// A row that is not a job, as this page or those before it left it.
    fn row_there<T: RowsThere>(
        &self,
        kind: Kind,
        key: &str,
        there: &T,
    ) -> Result<Option<String>, T::Error> {
        match self.rows.other.get(&self.row_key(kind, key)) {
            Some(row) => Ok(row.clone()),
            None => there.row(kind, key),
        }
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

    fn rest<T: RowsThere>(&mut self, rest: &CopiedRest, there: &T) -> Result<bool, T::Error> {
        let there = self.row_there(Kind::Limit, rest.limit.as_str(), there)?;
        let mut row = match there.as_deref().map(serde_json::from_str::<LimitRow>) {
            Some(Ok(row)) => row,
            Some(Err(_)) => return Ok(false),
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
        Ok(true)
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
            dropped: false,
            dropped_at: None,
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
}
