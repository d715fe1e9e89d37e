//! Push: stores jobs, all or none, each once by its id and by its unique key.

use std::sync::Arc;

use crate::answer::{Context, acts};
use crate::jobs::replacing::may_replace;
use crate::ops::after::{Fate, Heir, Way};
use crate::ops::push_plan::{Goes, JobsAndKinship, PushPlan, PushedOne};
use crate::rows::stored::{StoredLife, StoredShape};
use crate::rows::{Archive, Archived, ContentPatch, JobContent};
use crate::state::{
    Job, JobKey, LiveJobId, Origin, ParentKey, QueueId, Seq, Space, Stand, is_recent,
};
use tenure_core::events::EventType;
use tenure_core::flow::Kinship;
use tenure_core::job::{JobState, JobView, NewJob, OnConflict};
use tenure_core::names::{JobId, QueueName};
use tenure_core::refusal::Refusal;
use tenure_core::requests::Push;
use tenure_core::sentences::{JobRefusal, QueueRefusal};
use tenure_core::time::{Moment, Span};

/// The wait of a push whose key is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyWait {
    /// The wait of the waiting job.
    GoesOn,
    /// A new wait: the holder was finished.
    Begins,
}

/// A new job with its fate.
pub(crate) struct Arriving {
    pub job: NewJob,
    pub seq: Seq,
    /// May be in the past.
    pub run_at: Moment,
    pub origin: Option<Origin>,
    pub fate: Fate,
}

/// The number of jobs that a call adds to each of its queues.
#[derive(Default)]
struct QueueRoom<'j>(Vec<(&'j QueueName, u64)>);

impl<'j> QueueRoom<'j> {
    /// Counts one more. Returns the number for its queue.
    fn take(&mut self, queue: &'j QueueName) -> u64 {
        let at = match self.0.iter().position(|(name, _)| *name == queue) {
            Some(at) => at,
            None => {
                self.0.push((queue, 0));
                self.0.len() - 1
            }
        };
        self.0[at].1 += 1;
        self.0[at].1
    }
}

/// The origin of pushed jobs, except for a caller's push.
#[derive(Clone, Copy, Default)]
pub(crate) struct PushedBy<'a> {
    /// The schedule whose occurrence makes the job.
    pub origin: Option<&'a Origin>,
    /// A settled job of this flow.
    pub heir: Option<&'a Heir>,
    /// Jobs that the same settle stored before: for unique keys they are earlier items of one array.
    pub brought: &'a [PushedOne],
}

/// The contributions of earlier jobs of a call.
#[derive(Default)]
struct Brought<'a> {
    ids: hashbrown::HashMap<JobId, usize>,
    keys: hashbrown::HashMap<tenure_core::names::UniqueKey, usize>,
    /// Jobs that are already stored.
    stored: &'a [PushedOne],
    /// Jobs from before the call that it names by their ids: it repeats an earlier call.
    repeated: hashbrown::HashSet<Seq>,
}

impl Brought<'_> {
    fn has_stored(&self, seq: Seq) -> bool {
        self.stored.iter().any(|one| one.seq == seq && (one.replaced || !one.duplicate))
    }

    /// True if a job belongs to this call, or to the one that it repeats.
    fn has(&self, seq: Seq) -> bool {
        self.has_stored(seq) || self.repeated.contains(&seq)
    }
}

impl Space {
    /// Stores jobs. The engine has filled in the ids.
    pub(crate) fn push(
        &mut self,
        jobs: Vec<NewJob>,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<PushedOne>, Refusal> {
        // The dependencies come from the call alone: nothing is looked up before.
        let kinship = Kinship::of(&jobs)?;
        self.push_from((jobs, kinship), PushedBy::default(), next_seq, archive, now)
    }

    /// The same for jobs of a schedule or a settle.
    pub(crate) fn push_from(
        &mut self,
        (jobs, kinship): JobsAndKinship,
        by: PushedBy<'_>,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<PushedOne>, Refusal> {
        let planned = self.plan_push((&jobs, kinship), None, by, *next_seq, archive, now)?;
        Ok(self.store_push(jobs, planned, by.origin, next_seq, archive, now))
    }

    /// Checks a push without a change. `goes`: a job that is gone by the time when jobs with its id are stored.
    pub(crate) fn check_push(
        &self,
        pushed: (&[NewJob], Kinship),
        goes: Option<&Goes>,
        heir: Option<&Heir>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(), Refusal> {
        // Row numbers of jobs that are not stored yet only need to differ here.
        let by = PushedBy { heir, ..PushedBy::default() };
        self.plan_push(pushed, goes, by, Seq::new(1 << 62), archive, now).map(drop)
    }

    fn plan_push(
        &self,
        (jobs, kinship): (&[NewJob], Kinship),
        goes: Option<&Goes>,
        PushedBy { heir, brought, .. }: PushedBy<'_>,
        next_seq: Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<(PushPlan, Fate)>, Refusal> {
        let has_kin =
            |job: &NewJob| !job.after.is_empty() || job.flow.is_some() || job.reference.is_some();
        if heir.is_none() && !jobs.iter().any(has_kin) {
            let mut room = QueueRoom::default();
            let plans = self.plan_all((jobs, brought), goes, Some(&mut room), archive, now)?;
            return Ok(plans.into_iter().map(|plan| (plan, Fate::default())).collect());
        }
        // A job that is cancelled at its push takes no room, so fates come first.
        let plans = self.plan_all((jobs, brought), goes, None, archive, now)?;
        let fates = self.fates((jobs, kinship), &plans, heir, next_seq, archive, now)?;
        let mut room = QueueRoom::default();
        for (index, (job, plan)) in jobs.iter().zip(&plans).enumerate() {
            if matches!(plan, PushPlan::Store(_)) && !fates[index].is_cancelled() {
                let waiting = room.take(&job.queue);
                self.check_room(&job.queue, waiting).map_err(|no| no.item(index))?;
            }
        }
        Ok(plans.into_iter().zip(fates).collect())
    }

    fn plan_all<'j>(
        &self,
        (jobs, stored): (&'j [NewJob], &[PushedOne]),
        goes: Option<&Goes>,
        mut room: Option<&mut QueueRoom<'j>>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Vec<PushPlan>, Refusal> {
        let mut plans = Vec::with_capacity(jobs.len());
        let mut brought = Brought { stored, ..Brought::default() };
        let many = jobs.len() > 1;
        for (index, job) in jobs.iter().enumerate() {
            let goes = goes.filter(|goes| job.id.as_ref() == Some(&goes.id));
            let plan =
                self.plan_one(job, goes, &brought, archive, now).map_err(|no| no.item(index))?;
            if let (Some(room), PushPlan::Store(_)) = (&mut room, &plan) {
                let waiting = room.take(&job.queue);
                self.check_room(&job.queue, waiting).map_err(|no| no.item(index))?;
            }
            if many && !matches!(plan, PushPlan::Duplicate(..) | PushPlan::Again(_)) {
                // A replacing push is recognised by its id, like one that stores a job.
                if let Some(id) = &job.id
                    && (!matches!(plan, PushPlan::Earlier(_)) || may_replace(job))
                {
                    brought.ids.insert(id.clone(), index);
                }
                if let Some(unique) = &job.unique {
                    brought.keys.entry(unique.key.clone()).or_insert(index);
                }
            }
            if many
                && let PushPlan::Duplicate(seq, id) = &plan
                && job.id.as_ref() == Some(id)
            {
                brought.repeated.insert(*seq);
            }
            plans.push(plan);
        }
        Ok(plans)
    }

    fn plan_one(
        &self,
        job: &NewJob,
        goes: Option<&Goes>,
        brought: &Brought<'_>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<PushPlan, Refusal> {
        let mut over = None;
        if let Some(id) = &job.id {
            if goes.is_none()
                && let Some(slot) = self.jobs.by_id(id.as_str())
            {
                return Ok(PushPlan::Duplicate(self.jobs[slot].seq, id.clone()));
            }
            if let Some(index) = brought.ids.get(id) {
                return Ok(PushPlan::Again(*index));
            }
            if let Some(there) = self.ended(id, archive).filter(|_| goes.is_none()) {
                if there.until > now {
                    return Ok(PushPlan::Duplicate(there.seq, id.clone()));
                }
                // No tick has purged it yet, and a later read finds it gone.
                over = Some(Box::new(there));
            }
            if let Some(past) = self.replaced_before(job, now) {
                return Ok(PushPlan::Duplicate(past.seq, past.id.clone()));
            }
        }
        self.check_needs_exist(job.needs.as_deref(), &job.queue, &job.payload)?;
        let Some(unique) = &job.unique else { return Ok(PushPlan::Store(over)) };
        if let Some(index) = brought.keys.get(&unique.key) {
            return Ok(PushPlan::Earlier(*index));
        }
        let gone = |seq: Seq| goes.is_some_and(|goes| goes.seq == seq);
        let holder = self.jobs.keys.get(&unique.key);
        let holder =
            holder.filter(|h| h.by_job && !gone(h.seq) || h.until.is_some_and(|at| at > now));
        let Some(holder) = holder else { return Ok(PushPlan::Store(over)) };
        let conflict = || {
            let (key, holder) = (unique.key.clone(), holder.id.clone());
            Refusal::from(JobRefusal::KeyTaken { key, holder }).at("/unique/key")
        };
        let duplicate = PushPlan::Duplicate(holder.seq, holder.id.clone());
        let is_brought = brought.has_stored(holder.seq);
        let live = self.jobs.by_seq(holder.seq).filter(|_| !gone(holder.seq));
        match (unique.on_conflict, live) {
            (OnConflict::Keep, _) => Ok(duplicate),
            (OnConflict::Reject, _) if brought.has(holder.seq) => Ok(duplicate),
            (OnConflict::Reject, _) => Err(conflict()),
            (OnConflict::Replace, Some(slot)) => {
                let there = self.jobs.shape_of(slot);
                if self.lines[there.queue].name.as_ref() != Some(&job.queue) {
                    if is_brought { Ok(duplicate) } else { Err(conflict()) }
                } else if matches!(self.jobs[slot].stand, Stand::Running(_)) {
                    Ok(duplicate)
                } else {
                    Ok(PushPlan::Replace(slot))
                }
            }
            (OnConflict::Replace, None) => {
                let Some(there) = self.ended_or_kept(holder.seq, archive) else {
                    return Ok(PushPlan::Store(over));
                };
                let queue = StoredShape::decode(&there.shape).map(|shape| shape.queue);
                if queue.as_ref() == Some(&job.queue) {
                    Ok(PushPlan::Revive(there.seq))
                } else {
                    Err(conflict())
                }
            }
        }
    }

    /// The finished job with this id, from the archive or from an earlier item of the same call.
    pub(crate) fn ended(&self, id: &JobId, archive: &dyn Archive) -> Option<Archived> {
        match self.outbox.ended(id) {
            Some(seq) => self.ended_now(seq),
            None => self.as_changed(archive.by_id(&self.name, id)?),
        }
    }

    /// A finished job of the archive, with the changes of this step: if its last dependent ended in it, its own time
    /// applies again.
    pub(crate) fn as_changed(&self, mut there: Archived) -> Option<Archived> {
        let Some(change) = self.outbox.change_of(there.seq) else { return Some(there) };
        if let Some(kept) = &change.kept {
            (there.until, there.bytes) = (kept.until, kept.bytes);
        }
        (!change.deleted).then_some(there)
    }

    /// Drops a job that is kept beyond its time: it is deleted with the job that takes its id.
    pub(crate) fn forget_over(&mut self, over: &Archived) {
        self.outbox.forget_ended(&over.id);
        self.forget_archived(over);
    }

    /// A job that ended in this very step.
    pub(crate) fn ended_now(&self, seq: Seq) -> Option<Archived> {
        let change = self.outbox.change_of(seq).filter(|change| !change.deleted)?;
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

    /// The present view of an existing job.
    pub(crate) fn known_job(
        &self,
        seq: Seq,
        id: &JobId,
        archive: &dyn Archive,
    ) -> Option<Box<JobView>> {
        if let Some(slot) = self.jobs.by_seq(seq) {
            let job = &self.jobs[slot];
            let queue = self.lines[self.jobs.shape(job.shape).queue].name.clone()?;
            let view = JobView::bare(id.clone(), queue, self.state_of(slot), job.created_at);
            return Some(Box::new(JobView { run_at: job.run_at, ..view }));
        }
        let there = self.ended_or_kept(seq, archive)?;
        let queue = StoredShape::decode(&there.shape)?.queue;
        let life = StoredLife::decode(&there.life)?;
        let view = JobView::bare(id.clone(), queue, there.state, life.created_at);
        Some(Box::new(JobView { finished_at: life.finished_at, ..view }))
    }

    pub(crate) fn check_room(&self, queue: &QueueName, more: u64) -> Result<(), Refusal> {
        let Some(queue_slot) = self.lines.queue_by_name().get(queue) else { return Ok(()) };
        let q = &self.lines[*queue_slot];
        let Some(most) = q.settings.max_waiting else { return Ok(()) };
        let waiting = q.counts.waiting + q.counts.scheduled + q.counts.dependent;
        if waiting + more <= u64::from(most) {
            return Ok(());
        }
        Err(QueueRefusal::Full { queue: queue.clone(), most, waiting }.into())
    }

    fn store_push(
        &mut self,
        jobs: Vec<NewJob>,
        planned: Vec<(PushPlan, Fate)>,
        origin: Option<&Origin>,
        next_seq: &mut Seq,
        archive: &dyn Archive,
        now: Moment,
    ) -> Vec<PushedOne> {
        let mut done: Vec<PushedOne> = Vec::with_capacity(jobs.len());
        for (job, (plan, fate)) in jobs.into_iter().zip(planned) {
            let pushed_id = job.id.clone();
            let queue = self.queue_for(&job.queue, now);
            let mut known = None;
            let (seq, id, duplicate, replaced) = match plan {
                PushPlan::Store(over) => {
                    if let Some(over) = over {
                        self.forget_over(&over);
                    }
                    let seq = *next_seq;
                    *next_seq = seq.next();
                    let run_at = job.when.moment(now);
                    let origin = origin.cloned();
                    let arriving = Arriving { job, seq, run_at, origin, fate };
                    let id = self.store_job(arriving, archive, now);
                    (seq, id, false, false)
                }
                PushPlan::Duplicate(seq, id) => {
                    let holder =
                        job.unique.as_ref().and_then(|unique| self.jobs.keys.get(&unique.key));
                    let ended = holder.filter(|h| h.seq == seq).and_then(|h| h.ended.as_ref());
                    known = match ended {
                        Some(ended) => Some(Box::new(ended.view(id.clone()))),
                        None => self.known_job(seq, &id, archive),
                    };
                    known = known.or_else(|| {
                        self.replaced_before(&job, now).map(|past| Box::new(past.view()))
                    });
                    (seq, id, true, false)
                }
                PushPlan::Earlier(index) => {
                    let seq = done[index].seq;
                    let id = done[index].id.clone();
                    // A job that the same call just stored may be replaced like any other, but never by a job of
                    // another queue.
                    let replace = may_replace(&job);
                    let there = self.jobs.by_seq(seq).filter(|slot| {
                        let queue = self.jobs.queue_of(*slot);
                        replace && self.lines[queue].name.as_ref() == Some(&job.queue)
                    });
                    match there {
                        Some(slot) => {
                            self.replace_job(slot, job, KeyWait::GoesOn, now);
                            self.remember_replacing(pushed_id, slot, now);
                            (seq, id, true, true)
                        }
                        None => (seq, id, true, false),
                    }
                }
                PushPlan::Again(index) => (done[index].seq, done[index].id.clone(), true, false),
                PushPlan::Replace(slot) => {
                    let seq = self.jobs[slot].seq;
                    let id = self.jobs[slot].id.clone();
                    self.replace_job(slot, job, KeyWait::GoesOn, now);
                    self.remember_replacing(pushed_id, slot, now);
                    (seq, id, true, true)
                }
                PushPlan::Revive(seq) => match self.ended_or_kept(seq, archive) {
                    Some(there) => {
                        let id = there.id.clone();
                        let Some(slot) = self.revive(&there, now) else { continue };
                        self.replace_job(slot, job, KeyWait::Begins, now);
                        self.remember_replacing(pushed_id, slot, now);
                        (seq, id, true, true)
                    }
                    None => continue,
                },
            };
            let unasked = self.is_unasked(queue, now);
            if duplicate && known.is_none() {
                known = self.known_job(seq, &id, archive);
            }
            done.push(PushedOne { seq, id, duplicate, replaced, unasked, known });
        }
        done
    }

    /// True if no worker asked for a queue within the last minute.
    pub(crate) fn is_unasked(&self, queue: QueueId, now: Moment) -> bool {
        let asked = self.lines[queue].asked_at;
        asked.is_none_or(|at| !is_recent(at, now))
    }

    /// Stores a job. With a past `run_at` it is ready; `run_at` may be older than the job.
    pub(crate) fn store_job(
        &mut self,
        arriving: Arriving,
        archive: &dyn Archive,
        now: Moment,
    ) -> JobId {
        let Arriving { job, seq, run_at, origin, fate } = arriving;
        let shape = self.shape_of(&job).encode();
        let bytes = 160
            + shape.len()
            + job.payload.text().len()
            + job.labels.iter().map(|(k, v)| k.len() + v.len() + 6).sum::<usize>();
        let Some(shape) = self.shape_for(&shape, now) else {
            panic!("an encoded shape cannot be read again");
        };
        let Some(id) = job.id else { panic!("the engine gives every job an id") };
        if let Some(origin) = &origin {
            self.schedules.job_lives(origin, &id);
        }
        let flow = fate.flow().cloned();
        let slot = self.jobs.insert(Job {
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
            snoozed: 0,
            ended_unsettled: false,
            cancel_requested: false,
            keeps_place: false,
            unique: job.unique.map(|unique| Box::new(JobKey::of(unique))),
            origin: origin.map(Box::new),
            kin: fate.kin,
            edits: 0,
            settles: Vec::new(),
            next_at: None,
            bytes: bytes as u32,
            dirty: false,
        });
        let content = JobContent {
            kind: job.kind,
            payload: job.payload,
            labels: job.labels,
            traceparent: job.traceparent,
        };
        let namespace = self.name.clone();
        let change = self.outbox.job(seq);
        change.new = Some(Arc::new((namespace, id.clone(), content)));
        change.queue = Some(job.queue);
        change.flow = flow.clone();
        change.shape = Some(self.jobs.shape(shape).bytes.clone());
        if let Some(flow) = flow {
            self.flows.gets(&flow, seq, now);
        }
        self.job_happens(slot, EventType::JobPushed, now);
        match fate.way {
            Way::Cancelled(error) => {
                self.wait_for_parents(slot, &[], archive);
                let error = error.map(|note| note.to_string());
                self.cancelled_at_rest(slot, error, now);
            }
            way => {
                self.take_key(slot, now);
                self.jobs.watch_expiry(slot);
                let open = match way {
                    Way::Waits(open) => open,
                    _ => Vec::new(),
                };
                self.wait_for_parents(slot, &open, archive);
                if open.is_empty() {
                    self.go_from(slot, now);
                }
            }
        }
        id
    }

    /// The existing job gets the new content, and its attempts start again; its id stays.
    fn replace_job(&mut self, slot: LiveJobId, job: NewJob, wait: KeyWait, now: Moment) {
        let mut shape = self.shape_of(&job);
        let old = self.jobs.shape_of(slot);
        // `replace` keeps the fields that it does not name: retry, timeout and retain of the existing job.
        (shape.retry, shape.timeout, shape.retain) = (old.retry.clone(), old.timeout, old.retain);
        self.stop_waiting(slot, now);
        self.reshape(slot, &shape, now);
        self.jobs.expire_at(slot, job.expires_at);
        let there = &mut self.jobs[slot];
        let seq = there.seq;
        there.ended = 0;
        there.lost = 0;
        there.released = 0;
        there.undelivered = 0;
        there.snoozed = 0;
        there.keeps_place = false;
        there.started_at = None;
        there.wait = Span::ZERO;
        there.run_at = job.when.moment(now);
        if let Some(unique) = job.unique {
            // The wait began with the first push of the key that is not over yet. That push keeps its own delay.
            let began = match wait {
                KeyWait::Begins => Some(now),
                KeyWait::GoesOn => there.unique.as_ref().and_then(|key| key.began),
            };
            if wait == KeyWait::GoesOn {
                let from = began.unwrap_or(there.created_at);
                there.run_at = unique.bounded(there.run_at, from, now);
            }
            there.unique = Some(Box::new(JobKey { unique, began }));
        }
        self.take_key(slot, now);
        let NewJob { kind, payload, labels, traceparent, .. } = job;
        let change = self.outbox.job(seq);
        match &mut change.new {
            // A row that this very step makes gets the new content.
            Some(new) => {
                Arc::make_mut(new).2 = JobContent { kind, payload, labels, traceparent };
            }
            None => {
                change.patch = Some(Box::new(ContentPatch {
                    kind: Some(kind),
                    payload: Some(payload),
                    labels: Some(labels),
                    traceparent: Some(traceparent),
                }));
            }
        }
        (change.error, change.progress) = (Some(None), Some(None));
        self.jobs.edited(slot);
        self.job_happens(slot, EventType::JobReplaced, now);
        self.go_from(slot, now);
    }

    /// Gives another shape to a job that waits nowhere.
    pub(crate) fn reshape(&mut self, slot: LiveJobId, shape: &StoredShape, now: Moment) {
        let bytes = shape.encode();
        let Some(new) = self.shape_for(&bytes, now) else {
            panic!("an encoded shape cannot be read again");
        };
        let job = &mut self.jobs[slot];
        let old = std::mem::replace(&mut job.shape, new);
        let seq = job.seq;
        self.release_shape(old);
        let bytes = self.jobs.shape(new).bytes.clone();
        self.outbox.job(seq).shape = Some(bytes);
        self.jobs.mark(slot);
    }

    /// A finished job lives again: out of the archive, into the index, waiting nowhere yet. Its attempts start again;
    /// its errors stay.
    pub(crate) fn revive(
        &mut self,
        there: &crate::rows::Archived,
        now: Moment,
    ) -> Option<LiveJobId> {
        let shape = self.shape_for(&there.shape, now)?;
        let life = StoredLife::decode(&there.life)?;
        let queue = self.jobs.shape(shape).queue;
        let counts = &mut self.lines[queue].counts;
        match there.state {
            JobState::Succeeded => counts.succeeded = counts.succeeded.saturating_sub(1),
            JobState::Failed => counts.failed = counts.failed.saturating_sub(1),
            _ => counts.cancelled = counts.cancelled.saturating_sub(1),
        }
        let slot = self.jobs.insert(Job {
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
            snoozed: 0,
            // The run of a holder that died before may still go on.
            ended_unsettled: life.ended_unsettled,
            cancel_requested: false,
            keeps_place: false,
            unique: life.unique.map(Box::new),
            origin: life.origin,
            kin: life.kin,
            settles: life.settles,
            next_at: None,
            edits: life.edits,
            bytes: life.bytes,
            dirty: false,
        });
        if let Some(origin) = self.jobs[slot].origin.clone() {
            self.schedules.job_lives(&origin, &there.id);
        }
        self.finish_leaving(there.seq);
        if let Some(kin) = &mut self.jobs[slot].kin {
            kin.follows = false;
        }
        self.dependencies.stop_telling(&ParentKey::Job(there.seq));
        if self.dependencies.live_again(there.seq) {
            self.followed_row(there.seq);
        }
        if let Some(flow) = self.jobs[slot].flow() {
            self.flows.member_lives(flow, there.seq, there.state, now);
        }
        self.outbox.forget_ended(&there.id);
        let change = self.outbox.job(there.seq);
        // A job that ended in this very step has no row with its end.
        change.revived = change.end.take().is_none();
        change.kept = None;
        change.error = Some(None);
        self.jobs[slot].edits = self.jobs[slot].edits.wrapping_add(1);
        self.outbox.purged.push((there.state, u64::from(there.bytes)));
        self.jobs.mark(slot);
        Some(slot)
    }
}

acts! {
    Push => Vec<PushedOne>, |ask, Context { space, now, next_seq, rest }| space.push(ask.jobs, next_seq, rest, now);
}
