//! Live jobs: their indexes, shapes and timers, and the records of their keys. Finished jobs are never here; only rows
//! have them.

mod job;

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashMap;

use super::index::Index;
use super::remembered::Remembered;
use super::slots::{Slots, indexed};
use super::sparse::trim_map;
use super::{LaneId, LiveJobId, QueueId, Seq, ShapeId};
use crate::audit::findings::Findings;
use tenure_core::job::Until;
use tenure_core::names::{JobId, UniqueKey};
use tenure_core::time::{Moment, Span};

pub(crate) use job::{Job, JobKey, KeyHolder, Origin, PastSettle, Replacing, Report, Shape, Stand};

/// A job in a list by time; its row number sorts jobs of one time in the order of their pushes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due {
    at: Moment,
    seq: Seq,
    job: LiveJobId,
}

/// All live jobs of a namespace.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    live: Slots<Job>,
    by_id: Index<LiveJobId>,
    by_seq: Index<LiveJobId>,
    shapes: Slots<Shape>,
    shape_by_bytes: HashMap<Arc<[u8]>, ShapeId>,
    /// Scheduled jobs, by their `run_at`.
    due: BTreeSet<Due>,
    /// Jobs with an expiry that do not run.
    expiring: BTreeSet<Due>,
    /// Jobs whose rows the next drain writes.
    changed: Vec<LiveJobId>,
    pub(crate) keys: Remembered<UniqueKey, KeyHolder>,
    /// Pushes that replaced the content of a job, by their ids.
    pub(crate) replacing: Remembered<JobId, Replacing>,
    /// Jobs with a published progress report in the last second.
    pub(crate) reports: Remembered<Seq, Report>,
}

indexed!(Jobs { live: Job });

/// Spreads row numbers over a hash table.
fn hash_seq(seq: Seq) -> u64 {
    seq.get().wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

impl Jobs {
    // ---- Index ----

    /// Job ids come from outside, so their hash must not be predictable: it is that of the keys.
    fn hash_id(&self, id: &str) -> u64 {
        self.keys.hasher().hash_one(id)
    }

    /// The live job with this id.
    pub fn by_id(&self, id: &str) -> Option<LiveJobId> {
        self.by_id.find(self.hash_id(id), |slot| self.live[*slot].id.as_str() == id).copied()
    }

    /// The live job of a row number.
    pub fn by_seq(&self, seq: Seq) -> Option<LiveJobId> {
        self.by_seq.find(hash_seq(seq), |slot| self.live[*slot].seq == seq).copied()
    }

    pub fn get(&self, slot: LiveJobId) -> Option<&Job> {
        self.live.get(slot)
    }

    pub fn iter(&self) -> impl Iterator<Item = (LiveJobId, &Job)> {
        self.live.iter()
    }

    /// Adds a job whose id is free; it counts in its shape already.
    pub fn insert(&mut self, job: Job) -> LiveJobId {
        let (by_id, by_seq) = (self.hash_id(job.id.as_str()), hash_seq(job.seq));
        let slot = self.live.insert(job);
        let (hasher, live) = (self.keys.hasher(), &self.live);
        self.by_id.insert_unique(by_id, slot, |slot| hasher.hash_one(live[*slot].id.as_str()));
        self.by_seq.insert_unique(by_seq, slot, |slot| hash_seq(live[*slot].seq));
        slot
    }

    /// Removes an ended job. It still counts in its shape.
    pub fn remove(&mut self, slot: LiveJobId) -> Job {
        self.unwatch_expiry(slot);
        let Some(job) = self.live.remove(slot) else { panic!("a job ended twice") };
        self.by_id.remove(self.hash_id(job.id.as_str()), |other| *other == slot);
        self.by_seq.remove(hash_seq(job.seq), |other| *other == slot);
        job
    }

    // ---- Rows ----

    /// Marks the job's row for a write.
    pub fn mark(&mut self, slot: LiveJobId) {
        let job = &mut self.live[slot];
        if !job.dirty {
            job.dirty = true;
            self.changed.push(slot);
        }
    }

    /// Marks a change of data that only its row has: kind, labels, last error.
    pub fn edited(&mut self, slot: LiveJobId) {
        let job = &mut self.live[slot];
        job.edits = job.edits.wrapping_add(1);
        self.mark(slot);
    }

    /// Takes the live jobs that are marked.
    pub fn take_changed(&mut self) -> Vec<LiveJobId> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.retain(|slot| {
            self.live.get_mut(*slot).is_some_and(|job| std::mem::take(&mut job.dirty))
        });
        changed
    }

    // ---- Shapes ----

    pub fn shape(&self, shape: ShapeId) -> &Shape {
        &self.shapes[shape]
    }

    pub fn shape_of(&self, slot: LiveJobId) -> &Shape {
        &self.shapes[self.live[slot].shape]
    }

    pub fn queue_of(&self, slot: LiveJobId) -> QueueId {
        self.shape_of(slot).queue
    }

    /// The shape of a row's bytes, if it is there; counts one more job with it.
    pub fn use_shape(&mut self, bytes: &[u8]) -> Option<ShapeId> {
        let shape = self.shape_by_bytes.get(bytes).copied()?;
        self.shapes[shape].jobs += 1;
        Some(shape)
    }

    pub fn add_shape(&mut self, shape: Shape) -> ShapeId {
        let bytes = shape.bytes.clone();
        let slot = self.shapes.insert(shape);
        self.shape_by_bytes.insert(bytes, slot);
        slot
    }

    /// Counts one job less with a shape. Returns it if it went with the last.
    pub fn release_shape(&mut self, shape: ShapeId) -> Option<Shape> {
        let s = &mut self.shapes[shape];
        s.jobs -= 1;
        if s.jobs > 0 {
            return None;
        }
        let s = self.shapes.remove(shape)?;
        self.shape_by_bytes.remove(&s.bytes);
        Some(s)
    }

    /// The jobs of a shape stand in this lane.
    pub fn set_lane(&mut self, shape: ShapeId, lane: LaneId) {
        self.shapes[shape].lane = Some(lane);
    }

    // ---- Time ----

    /// The job waits for its `run_at`.
    pub fn schedule(&mut self, slot: LiveJobId) {
        let job = &mut self.live[slot];
        job.stand = Stand::Scheduled;
        self.due.insert(Due { at: job.run_at, seq: job.seq, job: slot });
    }

    /// The job waits for no time any more. Returns false if it did not.
    pub fn unschedule(&mut self, slot: LiveJobId) -> bool {
        let job = &self.live[slot];
        self.due.remove(&Due { at: job.run_at, seq: job.seq, job: slot })
    }

    /// Watches the expiry of an unfinished job that is not running.
    pub fn watch_expiry(&mut self, slot: LiveJobId) {
        let job = &self.live[slot];
        if let Some(at) = job.expires_at {
            self.expiring.insert(Due { at, seq: job.seq, job: slot });
        }
    }

    /// The job runs, so that it does not expire.
    pub fn unwatch_expiry(&mut self, slot: LiveJobId) {
        let Some(job) = self.live.get(slot) else { return };
        if let Some(at) = job.expires_at {
            self.expiring.remove(&Due { at, seq: job.seq, job: slot });
        }
    }

    /// Sets the expiry of a job that is not running.
    pub fn expire_at(&mut self, slot: LiveJobId, at: Option<Moment>) {
        self.unwatch_expiry(slot);
        self.live[slot].expires_at = at;
        self.watch_expiry(slot);
    }

    /// The earliest time at which a job is due or expires.
    pub fn next_change(&self) -> Option<Moment> {
        [self.due.first(), self.expiring.first()].into_iter().flatten().map(|due| due.at).min()
    }

    /// The scheduled job that is due first.
    pub fn first_due(&self, now: Moment) -> Option<LiveJobId> {
        self.due.first().filter(|due| due.at <= now).map(|due| due.job)
    }

    /// The job that expired first.
    pub fn first_expired(&self, now: Moment) -> Option<LiveJobId> {
        self.expiring.first().filter(|due| due.at <= now).map(|due| due.job)
    }

    /// The clock was set back: cuts waits that the engine chose and that are longer than they were.
    pub fn set_back(&mut self, clock: Moment) {
        for due in self.due.clone() {
            let job = &mut self.live[due.job];
            if job.wait > Span::ZERO && due.at > clock.plus(job.wait) {
                self.due.remove(&due);
                job.run_at = clock.plus(job.wait);
                self.due.insert(Due { at: job.run_at, ..due });
                self.mark(due.job);
            }
        }
    }

    // ---- Upkeep ----

    /// True if a job with this kind of uniqueness now holds its key by its life.
    pub fn holds_key(&self, slot: LiveJobId) -> bool {
        let job = &self.live[slot];
        job.unique
            .as_ref()
            .is_some_and(|unique| unique.until == Until::End || job.started_at.is_none())
    }

    pub fn none_lives(&self) -> bool {
        self.by_id.is_empty()
    }

    /// True if there is neither a job nor a record.
    pub fn hold_nothing(&self) -> bool {
        self.none_lives() && self.keys.is_empty() && self.replacing.is_empty()
    }

    /// Bytes of the tables, or a number that is zero with them.
    pub fn capacity(&self) -> usize {
        self.by_id.capacity() + self.by_seq.capacity() + self.shape_by_bytes.capacity()
    }

    pub fn trim(&mut self) {
        let (hasher, live) = (self.keys.hasher(), &self.live);
        self.by_id.trim(|slot| hasher.hash_one(live[*slot].id.as_str()));
        self.by_seq.trim(|slot| hash_seq(live[*slot].seq));
        trim_map(&mut self.shape_by_bytes);
        self.keys.trim();
        self.replacing.trim();
        self.reports.trim();
    }

    /// Drops the tables; no job lives.
    pub fn drop_tables(&mut self) {
        self.by_id = Index::default();
        self.by_seq = Index::default();
        self.shape_by_bytes.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.replacing.shrink_to_fit();
        self.reports.shrink_to_fit();
    }

    /// Compares the indexes, the counts of shapes and the timers with the jobs.
    pub fn audit(&self, found: &mut Findings) {
        let mut of_shape: HashMap<ShapeId, u32> = HashMap::new();
        let (mut jobs, mut scheduled, mut watched) = (0, 0, 0);
        for (slot, job) in self.live.iter() {
            jobs += 1;
            *of_shape.entry(job.shape).or_default() += 1;
            found.check(self.by_id(job.id.as_str()) == Some(slot), || {
                format!("job \"{}\" is not found by its id", job.id)
            });
            found.check(self.by_seq(job.seq) == Some(slot), || {
                format!("job \"{}\" is not found by its number", job.id)
            });
            let at = |at| Due { at, seq: job.seq, job: slot };
            if job.stand == Stand::Scheduled {
                scheduled += 1;
                found.check(self.due.contains(&at(job.run_at)), || {
                    format!("job \"{}\" is scheduled and in no timer", job.id)
                });
            }
            let runs = matches!(job.stand, Stand::Running(_));
            if let Some(expiry) = job.expires_at.filter(|_| !runs) {
                watched += 1;
                found.check(self.expiring.contains(&at(expiry)), || {
                    format!("job \"{}\" expires and is in no timer", job.id)
                });
            }
            if let Some(unique) = &job.unique
                && self.holds_key(slot)
            {
                let holder = self.keys.get(&unique.key);
                found.check(holder.is_some_and(|h| h.seq == job.seq && h.by_job), || {
                    format!("job \"{}\" does not hold its unique key", job.id)
                });
            }
        }
        let timers = (self.due.len(), self.expiring.len());
        found.check(timers == (scheduled, watched), || {
            format!("{scheduled} jobs are scheduled, {watched} may expire, {timers:?} have timers")
        });
        found.check((self.by_id.len(), self.by_seq.len()) == (jobs, jobs), || {
            "jobs and their indexes differ in number".to_owned()
        });
        for (slot, shape) in self.shapes.iter() {
            let counted = of_shape.get(&slot).copied().unwrap_or_default();
            let there = self.shape_by_bytes.get(&shape.bytes) == Some(&slot);
            found.check(shape.jobs == counted && there, || {
                format!("the shape {slot} counts {} jobs, and {counted} have it", shape.jobs)
            });
        }
        found.check(self.shape_by_bytes.len() == self.shapes.len(), || {
            "shapes and their index differ in number".to_owned()
        });
        self.keys.audit(found, "the unique key");
        self.replacing.audit(found, "the push that replaced a job");
        self.reports.audit(found, "the report of the job");
    }
}
