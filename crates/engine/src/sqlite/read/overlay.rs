//! Finished jobs and data of resources for the machine: the content of the disk, overlaid with the
//! batches on their way to it.
//!
//! The overlay holds the jobs and data that batches ended, removed or changed while their commit is
//! not confirmed. For these keys the overlay is right and the disk is not read; it is dropped batch by
//! batch, after their commits.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::job::JobState;
use tenure_core::names::{JobId, Namespace};
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tenure_machine::rows::{Archive, Archived, Class, DataKey, Rows};
use tenure_machine::{Rest, Seq};

use crate::seal::{ContentPlace, Seal};
use crate::sqlite::read::finished::FinishedIds;
use crate::sqlite::rows::{
    self, ARCHIVED, Data, JOBS, WITHOUT_END, archived, is_damage, moment_number,
};
use crate::sqlite::scan::damage::{Damage, job_name};
use crate::sqlite::write::writer::class_number;

/// A finished job on its way to the disk.
struct EndedOnWay {
    batch: u64,
    namespace: Namespace,
    job: Archived,
}

/// The keys that one batch put over the disk.
#[derive(Default)]
struct Layer {
    batch: u64,
    ended: Vec<Seq>,
    gone: Vec<Seq>,
    data: Vec<DataKey>,
}

pub(crate) struct Overlay {
    conn: Connection,
    seal: Seal,
    ids: FinishedIds,
    namespaces: BTreeSet<Namespace>,
    ended: HashMap<Seq, EndedOnWay>,
    /// Jobs that were deleted or revived, with their batch.
    gone: HashMap<Seq, u64>,
    data: HashMap<DataKey, (u64, Option<Json>)>,
    layers: VecDeque<Layer>,
    /// Jobs that were handed out in this step: the step can remove only these.
    handed: RefCell<HashMap<Seq, (Namespace, JobId)>>,
    failure: RefCell<Option<String>>,
    damage: Arc<Damage>,
    /// Rows that were found damaged: they stay where they are, and are not read again.
    unreadable: RefCell<HashSet<Seq>>,
    /// The removal order of finished jobs is unreadable: no job is removed before the next start.
    no_order: Cell<bool>,
}

impl Overlay {
    pub(crate) fn new(conn: Connection, seal: Seal, damage: Arc<Damage>) -> Self {
        Overlay {
            conn,
            seal,
            damage,
            unreadable: RefCell::default(),
            no_order: Cell::new(false),
            ids: FinishedIds::default(),
            namespaces: BTreeSet::new(),
            ended: HashMap::new(),
            gone: HashMap::new(),
            data: HashMap::new(),
            layers: VecDeque::new(),
            handed: RefCell::default(),
            failure: RefCell::default(),
        }
    }

    /// Takes over a finished job from the disk, at a start.
    pub(crate) fn restore(&mut self, namespace: &Namespace, id: &str, seq: Seq) {
        self.ids.insert(namespace.as_str(), id, seq);
        if !self.namespaces.contains(namespace) {
            self.namespaces.insert(namespace.clone());
        }
    }

    /// The last failure to read the disk, taken out; the step that asked must not be kept.
    pub(crate) fn failure(&mut self) -> Option<String> {
        self.failure.get_mut().take()
    }

    /// Puts the rows of a step over the disk, until `batch` is committed.
    pub(crate) fn lay(&mut self, rows: &Rows, batch: u64) {
        let handed = std::mem::take(self.handed.get_mut());
        for (seq, change) in &rows.jobs {
            let seq = *seq;
            if change.deleted || change.revived {
                if let Some((namespace, id)) = handed.get(&seq) {
                    self.ids.remove(namespace, id, seq);
                    self.ended.remove(&seq);
                    self.gone.insert(seq, batch);
                    self.layer(batch).gone.push(seq);
                }
                continue;
            }
            if let Some(kept) = &change.kept {
                if let Some(job) = self.find(&kept.namespace, seq) {
                    let job = Archived { until: kept.until, bytes: kept.bytes, ..job };
                    let namespace = kept.namespace.clone();
                    self.ended.insert(seq, EndedOnWay { batch, namespace, job });
                    self.layer(batch).ended.push(seq);
                }
                continue;
            }
            let (Some(end), Some(life)) = (&change.end, &change.life) else { continue };
            let job = Archived {
                seq,
                id: end.id.clone(),
                state: change.state.unwrap_or(JobState::Cancelled),
                shape: end.shape.to_vec(),
                life: life.clone(),
                until: end.until,
                bytes: end.bytes,
            };
            let namespace = end.namespace.clone();
            self.restore(&namespace, end.id.as_str(), seq);
            self.ended.insert(seq, EndedOnWay { batch, namespace, job });
            self.layer(batch).ended.push(seq);
        }
        for (key, data) in &rows.data {
            self.data.insert(key.clone(), (batch, data.clone()));
            self.layer(batch).data.push(key.clone());
        }
    }

    fn layer(&mut self, batch: u64) -> &mut Layer {
        if self.layers.back().is_none_or(|layer| layer.batch != batch) {
            self.layers.push_back(Layer { batch, ..Layer::default() });
        }
        match self.layers.back_mut() {
            Some(layer) => layer,
            None => panic!("a layer that was just made is not there"),
        }
    }

    /// Drops the layers that are on disk by now.
    pub(crate) fn committed(&mut self, batch: u64) {
        while self.layers.front().is_some_and(|layer| layer.batch <= batch) {
            let Some(layer) = self.layers.pop_front() else { return };
            let of = layer.batch;
            for seq in layer.ended {
                if self.ended.get(&seq).is_some_and(|ended| ended.batch == of) {
                    self.ended.remove(&seq);
                }
            }
            for seq in layer.gone {
                if self.gone.get(&seq) == Some(&of) {
                    self.gone.remove(&seq);
                }
            }
            for key in layer.data {
                if self.data.get(&key).is_some_and(|(batch, _)| *batch == of) {
                    self.data.remove(&key);
                }
            }
        }
    }

    fn noted<T>(&self, read: rusqlite::Result<T>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(why) if is_damage(&why) => {
                self.no_order.set(true);
                tracing::error!("the order of finished jobs cannot be read: {why}");
                None
            }
            Err(why) => {
                *self.failure.borrow_mut() = Some(why.to_string());
                None
            }
        }
    }

    fn hand(&self, namespace: &Namespace, job: &Archived) {
        self.handed.borrow_mut().insert(job.seq, (namespace.clone(), job.id.clone()));
    }

    /// True if the overlay is newer than the disk, or the disk has nothing.
    fn is_laid_over(&self, seq: Seq) -> bool {
        self.gone.contains_key(&seq)
            || self.ended.contains_key(&seq)
            || self.unreadable.borrow().contains(&seq)
    }

    /// Notes a finished job whose rows are not as written.
    fn leave(&self, namespace: &Namespace, seq: Seq) {
        if self.unreadable.borrow_mut().insert(seq) {
            let sentence = format!(
                "{} is unreadable: its rows were changed on the disk after they were written",
                job_name(seq, None)
            );
            self.damage.note(Some(namespace), seq, sentence);
        }
    }

    fn find(&self, namespace: &Namespace, seq: Seq) -> Option<Archived> {
        if let Some(ended) = self.ended.get(&seq) {
            return (ended.namespace == *namespace).then(|| ended.job.clone());
        }
        if self.gone.contains_key(&seq) {
            return None;
        }
        let read = || {
            let sql = format!(
                "SELECT {ARCHIVED} FROM {JOBS}
                 WHERE life.seq = ?1 AND ns = ?2 AND until IS NOT NULL"
            );
            let mut one = self.conn.prepare_cached(&sql)?;
            one.query_row(params![rows::number_of(seq), namespace.as_str()], archived).optional()
        };
        match read() {
            Ok(Some(None)) => {
                self.leave(namespace, seq);
                None
            }
            Err(why) if is_damage(&why) => {
                self.leave(namespace, seq);
                None
            }
            read => self.noted(read).flatten().flatten(),
        }
    }

    /// Finished jobs on disk of a namespace and class that are due for removal by `now`, soonest first.
    fn read_soonest(
        &self,
        namespace: &Namespace,
        class: Class,
        now: Moment,
        max: usize,
    ) -> rusqlite::Result<Vec<Archived>> {
        let sql = format!(
            "SELECT {ARCHIVED} FROM {JOBS}
             WHERE ns = ?1 AND class = ?2 AND until <= ?3 AND until < {WITHOUT_END}
                 AND until IS NOT NULL
             ORDER BY until"
        );
        let mut all = self.conn.prepare_cached(&sql)?;
        let (class, now) = (class_number(class), moment_number(now));
        let mut rows = all.query(params![namespace.as_str(), class, now])?;
        let mut jobs = Vec::new();
        while jobs.len() < max {
            let Some(row) = rows.next()? else { break };
            let seq = rows::seq(row, 0)?;
            if self.is_laid_over(seq) {
                continue;
            }
            match archived(row)? {
                Some(job) => jobs.push(job),
                None => self.leave(namespace, seq),
            }
        }
        Ok(jobs)
    }

    fn soonest_of(
        &self,
        namespace: &Namespace,
        class: Class,
        now: Moment,
        max: usize,
    ) -> Vec<Archived> {
        let mut jobs = Vec::new();
        if !self.no_order.get() {
            let on_disk = self.noted(self.read_soonest(namespace, class, now, max));
            jobs = on_disk.unwrap_or_default();
        }
        let wanted = |ended: &&EndedOnWay| {
            ended.namespace == *namespace
                && ended.job.until <= now
                && ended.job.until < Moment::MAX
                && Class::of(ended.job.state) == class
        };
        jobs.extend(self.ended.values().filter(wanted).map(|ended| ended.job.clone()));
        jobs.sort_by_key(|job| (job.until, job.seq));
        jobs.truncate(max);
        jobs
    }

    fn first_until(&self, namespace: &Namespace, class: Class) -> rusqlite::Result<Option<Moment>> {
        if self.no_order.get() {
            return Ok(None);
        }
        // Jobs that are kept for others are removed when those have ended, and not by time.
        let mut all = self.conn.prepare_cached(&format!(
            "SELECT until, seq FROM life
             WHERE ns = ?1 AND class = ?2 AND until IS NOT NULL AND until < {WITHOUT_END}
             ORDER BY until"
        ))?;
        let mut rows = all.query(params![namespace.as_str(), class_number(class)])?;
        while let Some(row) = rows.next()? {
            let seq = rows::seq(row, 1)?;
            // Jobs that were just handed out for good are still on disk.
            if !self.is_laid_over(seq) && !self.handed.borrow().contains_key(&seq) {
                return Ok(Some(Moment::from_us(row.get::<_, i64>(0)? as u64)));
            }
        }
        Ok(None)
    }
}

impl Archive for Overlay {
    fn by_id(&self, namespace: &Namespace, id: &JobId) -> Option<Archived> {
        let mut found = self.ids.candidates(namespace, id);
        let job = found.find_map(|seq| {
            let job = self.find(namespace, seq);
            if job.is_none() && !self.is_laid_over(seq) {
                // A job whose rows were deleted is no longer a candidate.
                self.leave(namespace, seq);
            }
            job.filter(|job| job.id == *id)
        })?;
        self.hand(namespace, &job);
        Some(job)
    }

    fn by_seq(&self, namespace: &Namespace, seq: Seq) -> Option<Archived> {
        let job = self.find(namespace, seq)?;
        self.hand(namespace, &job);
        Some(job)
    }

    fn over(&self, namespace: &Namespace, now: Moment, max: usize) -> Vec<Archived> {
        let mut jobs = self.soonest_of(namespace, Class::Failed, now, max);
        jobs.extend(self.soonest_of(namespace, Class::Ended, now, max));
        jobs.sort_by_key(|job| (job.until, job.seq));
        jobs.truncate(max);
        jobs.iter().for_each(|job| self.hand(namespace, job));
        jobs
    }

    fn next_over(&self, namespace: &Namespace) -> Option<Moment> {
        let on_disk = [Class::Failed, Class::Ended]
            .into_iter()
            .filter_map(|class| self.noted(self.first_until(namespace, class)).flatten());
        let handed = self.handed.borrow();
        let coming = self
            .ended
            .values()
            .filter(|ended| ended.namespace == *namespace && !handed.contains_key(&ended.job.seq));
        let coming = coming.map(|ended| ended.job.until).filter(|until| *until < Moment::MAX);
        on_disk.chain(coming).min()
    }

    fn soonest(&self, class: Class, max: usize) -> Vec<(Namespace, Archived)> {
        let mut jobs = Vec::new();
        for namespace in &self.namespaces {
            let of = self.soonest_of(namespace, class, Moment::MAX, max);
            jobs.extend(of.into_iter().map(|job| (namespace.clone(), job)));
        }
        jobs.sort_by_key(|(_, job)| (job.until, job.seq));
        jobs.truncate(max);
        jobs.iter().for_each(|(namespace, job)| self.hand(namespace, job));
        jobs
    }
}

impl Rest for Overlay {
    fn has_data(&self, key: &DataKey, data: &Json) -> bool {
        let is_it = |stored: Json| {
            self.seal.open_json(&ContentPlace::Data(key), stored).as_ref() == Ok(data)
        };
        if let Some((_, coming)) = self.data.get(key) {
            return coming.clone().is_some_and(is_it);
        }
        let read = self.noted(rows::data(&self.conn, &self.seal, key));
        match read {
            Some(Data::Known(known)) => known == *data,
            Some(Data::Gone | Data::Unreadable) | None => false,
        }
    }
}
