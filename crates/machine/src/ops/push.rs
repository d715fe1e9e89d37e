//! push: stores jobs, all or none, each once by its id and by its unique key.

use crate::answer::{Act, Context};
use crate::rows::{Archive, Archived, ContentPatch, JobContent};
use crate::state::{Due, Job, LiveJobId, Seq, Space, Stand};
use crate::stored::{StoredLife, StoredShape};
use tenure_core::bounds::WORKER_US;
use tenure_core::job::{JobState, JobView, NewJob, OnConflict};
use tenure_core::names::{JobId, QueueName};
use tenure_core::refusal::Refusal;
use tenure_core::requests::Push;
use tenure_core::sentences::{JobRefusal, QueueRefusal};
use tenure_core::time::{Moment, Span};

/// What became of one pushed job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushedOne {
    /// Row number of the job that is there now.
    pub seq: Seq,
    /// Its id.
    pub id: JobId,
    /// It was there already.
    pub duplicate: bool,
    /// It was there already, and got the new content.
    pub replaced: bool,
    /// Nobody asked for its queue within the last minute.
    pub unasked: bool,
    /// Of a job that was there already: what is shown if its row is gone when it is read. It may end,
    /// or be deleted, between this step and the read.
    pub known: Option<Box<JobView>>,
}

/// What a push would do with one job, decided before anything is changed.
enum Plan {
    /// A new job. With it goes a finished job of the same id whose time is over.
    Store(Option<Box<Archived>>),
    /// A job with this id, or the holder of the key.
    Duplicate(Seq, JobId),
    /// An earlier job of the same call.
    Earlier(usize),
    Replace(LiveJobId),
    /// The holder of the key is finished, but holds it for a time yet.
    Revive(Seq),
}

/// A job that is finished in this step and not kept: its id is free for what is stored after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Goes {
    pub seq: Seq,
    pub id: JobId,
}

impl Space {
    /// Stores jobs. The ids were filled in by the engine.
    pub(crate) fn push(
        &mut self,
        jobs: Vec<NewJob>,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<PushedOne>, Refusal> {
        let plans = self.plan_push(&jobs, archive, now)?;
        Ok(self.store_push(jobs, plans, next_seq, archive, now))
    }

    /// Checks a push without changing anything. `goes`: a job that is gone by the time when jobs under
    /// its id are stored.
    pub(crate) fn check_push<'a>(
        &self,
        jobs: impl IntoIterator<Item = &'a NewJob>,
        goes: Option<&Goes>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(), Refusal> {
        self.plan_all(jobs.into_iter(), goes, archive, now).map(|_| ())
    }

    fn plan_push(
        &self,
        jobs: &[NewJob],
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<Plan>, Refusal> {
        self.plan_all(jobs.iter(), None, archive, now)
    }

    fn plan_all<'a>(
        &self,
        jobs: impl Iterator<Item = &'a NewJob>,
        goes: Option<&Goes>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<Plan>, Refusal> {
        let mut plans = Vec::with_capacity(jobs.size_hint().0);
        let mut waiting: Vec<(&QueueName, u64)> = Vec::new();
        // Ids and keys that earlier jobs of this call bring.
        let mut ids = hashbrown::HashMap::new();
        let mut keys = hashbrown::HashMap::new();
        let many = jobs.size_hint().0 > 1;
        for (index, job) in jobs.enumerate() {
            let goes = goes.filter(|goes| job.id.as_ref() == Some(&goes.id));
            let plan =
                self.plan_one(job, goes, &ids, &keys, archive, now).map_err(|no| no.item(index))?;
            if let Plan::Store(_) = plan {
                let queue = &job.queue;
                let at = match waiting.iter().position(|(name, _)| *name == queue) {
                    Some(at) => at,
                    None => {
                        waiting.push((queue, 0));
                        waiting.len() - 1
                    }
                };
                waiting[at].1 += 1;
                self.check_room(queue, waiting[at].1).map_err(|no| no.item(index))?;
            }
            if many && !matches!(plan, Plan::Duplicate(..) | Plan::Earlier(_)) {
                if let Some(id) = &job.id
                    && let Plan::Store(_) = plan
                {
                    ids.insert(id.clone(), index);
                }
                if let Some(unique) = &job.unique {
                    keys.insert(unique.key.clone(), index);
                }
            }
            plans.push(plan);
        }
        Ok(plans)
    }

    fn plan_one(
        &self,
        job: &NewJob,
        goes: Option<&Goes>,
        ids: &hashbrown::HashMap<JobId, usize>,
        keys: &hashbrown::HashMap<tenure_core::names::UniqueKey, usize>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Plan, Refusal> {
        let mut over = None;
        if let Some(id) = &job.id {
            if goes.is_none()
                && let Some(slot) = self.job_by_id(id.as_str())
            {
                return Ok(Plan::Duplicate(self.jobs[slot].seq, id.clone()));
            }
            if let Some(index) = ids.get(id) {
                return Ok(Plan::Earlier(*index));
            }
            if let Some(there) = self.ended(id, archive).filter(|_| goes.is_none()) {
                if there.until > now {
                    return Ok(Plan::Duplicate(there.seq, id.clone()));
                }
                // No tick has forgotten it yet, and whoever reads it later finds it gone.
                over = Some(Box::new(there));
            }
        }
        self.check_needs_exist(job.needs.as_deref(), &job.queue)?;
        let Some(unique) = &job.unique else { return Ok(Plan::Store(over)) };
        if let Some(index) = keys.get(&unique.key) {
            return Ok(Plan::Earlier(*index));
        }
        let gone = |seq: Seq| goes.is_some_and(|goes| goes.seq == seq);
        let holder = self.keys.get(&unique.key);
        let holder =
            holder.filter(|h| h.by_job && !gone(h.seq) || h.until.is_some_and(|at| at > now));
        let Some(holder) = holder else { return Ok(Plan::Store(over)) };
        let conflict = || {
            let (key, holder) = (unique.key.clone(), holder.id.clone());
            Refusal::from(JobRefusal::KeyTaken { key, holder }).at("/unique/key")
        };
        let duplicate = Plan::Duplicate(holder.seq, holder.id.clone());
        let live = self.job_by_seq(holder.seq).filter(|_| !gone(holder.seq));
        match (unique.on_conflict, live) {
            (OnConflict::Keep, _) => Ok(duplicate),
            (OnConflict::Reject, _) => Err(conflict()),
            (OnConflict::Replace, Some(slot)) => {
                let there = &self.shapes[self.jobs[slot].shape];
                if self.queues[there.queue].name.as_ref() != Some(&job.queue) {
                    Err(conflict())
                } else if matches!(self.jobs[slot].stand, Stand::Running(_)) {
                    Ok(duplicate)
                } else {
                    Ok(Plan::Replace(slot))
                }
            }
            (OnConflict::Replace, None) => {
                let Some(there) = archive.by_seq(&self.name, holder.seq) else {
                    return Ok(Plan::Store(over));
                };
                let queue = StoredShape::decode(&there.shape).map(|shape| shape.queue);
                if queue.as_ref() == Some(&job.queue) {
                    Ok(Plan::Revive(there.seq))
                } else {
                    Err(conflict())
                }
            }
        }
    }

    /// The finished job with this id: of the archive, or of an earlier item of the same call.
    pub(crate) fn ended(&self, id: &JobId, archive: &dyn Archive) -> Option<Archived> {
        match self.out.ended.get(id) {
            Some(seq) => self.ended_now(*seq),
            None => archive.by_id(&self.name, id),
        }
    }

    /// A job that ended in this very step.
    fn ended_now(&self, seq: Seq) -> Option<Archived> {
        let change = self.out.rows.jobs.get(&seq).filter(|change| !change.deleted)?;
        let end = change.end.as_ref()?;
        Some(Archived {
            seq,
            id: end.id.clone(),
            state: change.state?,
            shape: end.shape.to_vec(),
            life: change.life.clone()?,
            until: end.until,
            bytes: end.bytes,
        })
    }

    /// What is known now of a job that was there already.
    pub(crate) fn known_job(
        &self,
        seq: Seq,
        id: &JobId,
        archive: &dyn Archive,
    ) -> Option<Box<JobView>> {
        if let Some(slot) = self.job_by_seq(seq) {
            let job = &self.jobs[slot];
            let queue = self.queues[self.shapes[job.shape].queue].name.clone()?;
            let view = JobView::bare(id.clone(), queue, self.state_of(slot), job.created_at);
            return Some(Box::new(JobView { run_at: job.run_at, ..view }));
        }
        let there = self.ended_now(seq).or_else(|| archive.by_seq(&self.name, seq))?;
        let queue = StoredShape::decode(&there.shape)?.queue;
        let life = StoredLife::decode(&there.life)?;
        let view = JobView::bare(id.clone(), queue, there.state, life.created_at);
        Some(Box::new(JobView { finished_at: life.finished_at, ..view }))
    }

    fn check_room(&self, queue: &QueueName, more: u64) -> Result<(), Refusal> {
        let Some(queue_slot) = self.queue_by_name.get(queue) else { return Ok(()) };
        let q = &self.queues[*queue_slot];
        let Some(most) = q.settings.max_waiting else { return Ok(()) };
        let waiting = q.counts.waiting + q.counts.scheduled;
        if waiting + more <= u64::from(most) {
            return Ok(());
        }
        Err(QueueRefusal::Full { queue: queue.clone(), most, waiting }.into())
    }

    fn store_push(
        &mut self,
        jobs: Vec<NewJob>,
        plans: Vec<Plan>,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Vec<PushedOne> {
        let mut done: Vec<PushedOne> = Vec::with_capacity(jobs.len());
        for (job, plan) in jobs.into_iter().zip(plans) {
            let queue = self.queue_for(&job.queue, now);
            let mut known = None;
            let (seq, id, duplicate, replaced) = match plan {
                Plan::Store(over) => {
                    if let Some(over) = over {
                        self.out.ended.remove(&over.id);
                        self.forget_archived(&over);
                    }
                    let seq = *next_seq;
                    *next_seq = seq.next();
                    let id = self.store_job(job, seq, now);
                    (seq, id, false, false)
                }
                Plan::Duplicate(seq, id) => {
                    let holder = job.unique.as_ref().and_then(|unique| self.keys.get(&unique.key));
                    let ended = holder.filter(|h| h.seq == seq).and_then(|h| h.ended.as_ref());
                    known = match ended {
                        Some(ended) => Some(Box::new(ended.view(id.clone()))),
                        None => self.known_job(seq, &id, archive),
                    };
                    (seq, id, true, false)
                }
                Plan::Earlier(index) => {
                    let seq = done[index].seq;
                    let id = done[index].id.clone();
                    // What the same call stored a moment ago may be replaced as any other, and as
                    // any other never by a job of another queue.
                    let replace =
                        job.unique.as_ref().is_some_and(|u| u.on_conflict == OnConflict::Replace)
                            && job.id.as_ref() != Some(&id);
                    let there = self.job_by_seq(seq).filter(|slot| {
                        let queue = self.shapes[self.jobs[*slot].shape].queue;
                        replace && self.queues[queue].name.as_ref() == Some(&job.queue)
                    });
                    match there {
                        Some(slot) => {
                            self.replace_job(slot, job, now);
                            (seq, id, true, true)
                        }
                        None => (seq, id, true, false),
                    }
                }
                Plan::Replace(slot) => {
                    let seq = self.jobs[slot].seq;
                    let id = self.jobs[slot].id.clone();
                    self.replace_job(slot, job, now);
                    (seq, id, true, true)
                }
                Plan::Revive(seq) => match archive.by_seq(&self.name, seq) {
                    Some(there) => {
                        let id = there.id.clone();
                        let Some(slot) = self.revive(&there, now) else { continue };
                        self.replace_job(slot, job, now);
                        (seq, id, true, true)
                    }
                    None => continue,
                },
            };
            let asked = self.queues[queue].asked_at;
            let unasked = asked.is_none_or(|at| at.plus(Span::from_us(WORKER_US)) <= now);
            if duplicate && known.is_none() {
                known = self.known_job(seq, &id, archive);
            }
            done.push(PushedOne { seq, id, duplicate, replaced, unasked, known });
        }
        done
    }

    fn store_job(&mut self, job: NewJob, seq: Seq, now: Moment) -> JobId {
        let shape = self.shape_of(&job).encode();
        let bytes = 160
            + shape.len()
            + job.payload.text().len()
            + job.labels.iter().map(|(k, v)| k.len() + v.len() + 6).sum::<usize>();
        let Some(shape) = self.shape_for(&shape, now) else {
            panic!("an encoded shape cannot be read again");
        };
        let Some(id) = job.id else { panic!("the engine gives every job an id") };
        let run_at = job.when.moment(now);
        let slot = self.index_job(Job {
            seq,
            id: id.clone(),
            shape,
            stand: Stand::Scheduled,
            arrival: 0,
            created_at: now,
            run_at,
            started_at: None,
            expires_at: job.expires_at,
            wait: Span::ZERO,
            ended: 0,
            lost: 0,
            released: 0,
            undelivered: 0,
            cancel_requested: false,
            keeps_place: false,
            unique: job.unique.map(Box::new),
            settles: Vec::new(),
            bytes: bytes as u32,
            dirty: false,
        });
        let content = JobContent { kind: job.kind, payload: job.payload, labels: job.labels };
        let namespace = self.name.clone();
        let change = self.out.rows.job(seq);
        change.new = Some(Box::new((namespace, id.clone(), content)));
        change.queue = Some(job.queue);
        change.shape = Some(self.shapes[shape].bytes.clone());
        self.take_key(slot, now);
        self.watch_expiry(slot);
        if run_at > now {
            self.schedule(slot)
        } else {
            self.make_ready(slot, now)
        }
        id
    }

    /// The job that is there gets the new content, and its attempts start again; its id stays.
    fn replace_job(&mut self, slot: LiveJobId, job: NewJob, now: Moment) {
        let mut shape = self.shape_of(&job);
        let old = &self.shapes[self.jobs[slot].shape];
        // What `replace` does not name stays: retry, timeout and retain of the job that is there.
        (shape.retry, shape.timeout, shape.retain) = (old.retry.clone(), old.timeout, old.retain);
        self.stop_waiting(slot, now);
        self.reshape(slot, &shape, now);
        let there = &mut self.jobs[slot];
        let seq = there.seq;
        let old_expiry = std::mem::replace(&mut there.expires_at, job.expires_at);
        if let Some(at) = old_expiry {
            self.expiring.remove(&Due { at, seq, job: slot });
        }
        self.watch_expiry(slot);
        let there = &mut self.jobs[slot];
        there.ended = 0;
        there.lost = 0;
        there.released = 0;
        there.undelivered = 0;
        there.keeps_place = false;
        there.started_at = None;
        there.wait = Span::ZERO;
        there.run_at = job.when.moment(now);
        if let Some(unique) = job.unique {
            there.unique = Some(Box::new(unique));
        }
        self.take_key(slot, now);
        let NewJob { kind, payload, labels, .. } = job;
        let change = self.out.rows.job(seq);
        match &mut change.new {
            // A row that this very step makes is made with the new content.
            Some(new) => new.2 = JobContent { kind, payload, labels },
            None => {
                let (kind, payload, labels) = (Some(kind), Some(payload), Some(labels));
                change.patch = Some(Box::new(ContentPatch { kind, payload, labels }));
            }
        }
        change.error = Some(None);
        if self.jobs[slot].run_at > now { self.schedule(slot) } else { self.make_ready(slot, now) }
    }

    /// Gives a job that waits nowhere another shape.
    pub(crate) fn reshape(&mut self, slot: LiveJobId, shape: &StoredShape, now: Moment) {
        let bytes = shape.encode();
        let Some(new) = self.shape_for(&bytes, now) else {
            panic!("an encoded shape cannot be read again");
        };
        let job = &mut self.jobs[slot];
        let old = std::mem::replace(&mut job.shape, new);
        let seq = job.seq;
        self.release_shape(old);
        let bytes = self.shapes[new].bytes.clone();
        self.out.rows.job(seq).shape = Some(bytes);
        self.dirty_job(slot);
    }

    /// A finished job lives again: out of the archive, into the index, waiting nowhere yet. Its
    /// attempts start again, its errors are kept.
    pub(crate) fn revive(
        &mut self,
        there: &crate::rows::Archived,
        now: Moment,
    ) -> Option<LiveJobId> {
        let shape = self.shape_for(&there.shape, now)?;
        let life = StoredLife::decode(&there.life)?;
        let queue = self.shapes[shape].queue;
        let counts = &mut self.queues[queue].counts;
        match there.state {
            JobState::Succeeded => counts.succeeded = counts.succeeded.saturating_sub(1),
            JobState::Failed => counts.failed = counts.failed.saturating_sub(1),
            _ => counts.cancelled = counts.cancelled.saturating_sub(1),
        }
        let slot = self.index_job(Job {
            seq: there.seq,
            id: there.id.clone(),
            shape,
            stand: Stand::Scheduled,
            arrival: 0,
            created_at: life.created_at,
            run_at: now,
            started_at: None,
            expires_at: life.expires_at.filter(|at| *at > now),
            wait: Span::ZERO,
            ended: 0,
            lost: 0,
            released: 0,
            undelivered: 0,
            cancel_requested: false,
            keeps_place: false,
            unique: life.unique.map(Box::new),
            settles: life.settles,
            bytes: life.bytes,
            dirty: false,
        });
        let change = self.out.rows.job(there.seq);
        change.revived = true;
        change.error = Some(None);
        self.out.purged.push((there.state, u64::from(there.bytes)));
        self.dirty_job(slot);
        Some(slot)
    }
}

impl Act for Push {
    type Known = Vec<PushedOne>;
    fn act(self, context: Context<'_>) -> Result<Self::Known, Refusal> {
        let Context { space, now, next_seq, rest } = context;
        space.push(self.jobs, next_seq, rest, now)
    }
}
