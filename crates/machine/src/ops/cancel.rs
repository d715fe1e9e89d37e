//! Cancel and delete: a job that is not running ends at once; a running one learns it by its next
//! extend.

use crate::answer::{JobAt, acts};
use crate::rows::{Archive, Archived};
use crate::state::{Awaited, LiveJobId, Seq, Space, Stand};
use tenure_core::events::{About, EventType};
use tenure_core::job::JobState;
use tenure_core::names::JobRef;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{CancelJob, DeleteJob};
use tenure_core::sentences::JobRefusal;
use tenure_core::time::Moment;

/// The job that a path names.
pub(crate) enum Named {
    Live(LiveJobId),
    Finished(Archived),
}

pub(crate) fn job_not_found(job: &JobRef) -> Refusal {
    JobRefusal::not_found(job).into()
}

impl Space {
    pub(crate) fn named(&self, job: &JobRef, archive: &dyn Archive) -> Result<Named, Refusal> {
        match self.resolve(job) {
            Some(Ok(slot)) => Ok(Named::Live(slot)),
            Some(Err(id)) => archive
                .by_id(&self.name, &id)
                .map(Named::Finished)
                .ok_or_else(|| job_not_found(job)),
            None => Err(job_not_found(job)),
        }
    }

    fn cancel_job(
        &mut self,
        job: &JobRef,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Seq, Refusal> {
        match self.named(job, archive)? {
            Named::Live(slot) => {
                let seq = self.jobs[slot].seq;
                self.cancel_live(slot, now);
                Ok(seq)
            }
            Named::Finished(job) if job.state == JobState::Cancelled => Ok(job.seq),
            Named::Finished(Archived { id, state, .. }) => {
                Err(JobRefusal::NotCancellable { job: id, state }.into())
            }
        }
    }

    pub(crate) fn cancel_live(&mut self, slot: LiveJobId, now: Moment) {
        match self.jobs[slot].stand {
            Stand::Running(fence) => {
                if !std::mem::replace(&mut self.jobs[slot].cancel_requested, true) {
                    self.jobs.mark(slot);
                    let lease = Some(self.lease_of(slot, fence));
                    let about = About { lease, ..self.about_job(slot) };
                    self.happens(EventType::JobCancelRequested, about, now);
                }
            }
            _ => self.call_off(slot, None, now),
        }
    }

    /// Cancels a job, and deletes it.
    fn delete_job(
        &mut self,
        job: &JobRef,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(), Refusal> {
        match self.named(job, archive)? {
            Named::Live(slot) => {
                if let Stand::Running(_) = self.jobs[slot].stand {
                    let (job, state) = (self.jobs[slot].id.clone(), JobState::Running);
                    return Err(JobRefusal::NotDeletable { job, state }.into());
                }
                let (seq, id) = (self.jobs[slot].seq, self.jobs[slot].id.clone());
                self.check_unfollowed(seq, &id)?;
                self.delete_live(slot, now);
            }
            Named::Finished(job) => {
                self.check_unfollowed(job.seq, &job.id)?;
                self.delete_finished(&job, now);
            }
        }
        Ok(())
    }

    /// Cancels a job that does not run, and deletes it.
    pub(crate) fn delete_live(&mut self, slot: LiveJobId, now: Moment) {
        self.job_happens(slot, EventType::JobDeleted, now);
        self.stop_waiting(slot, now);
        let unique = self.jobs[slot].unique.clone();
        let job = self.forget_job(slot);
        if let Some(unique) = unique {
            self.forget_key(&unique.key, job.seq);
        }
        self.outbox.job(job.seq).deleted = true;
        if let Some(origin) = &job.origin {
            self.schedules.job_ended(origin, &job.id, None, now);
        }
        self.notify_awaiting(&Awaited::Job(job.seq));
        if let Some(kin) = &job.kin {
            self.children_rows_go(job.seq, kin);
            self.forget_cancelled_children(job.seq);
        }
        self.kin_ended(job.seq, job.kin.as_deref(), None, now);
    }

    /// Deletes a finished job before its time.
    pub(crate) fn delete_finished(&mut self, job: &Archived, now: Moment) {
        self.happens(EventType::JobDeleted, about_archived(job), now);
        self.forget_archived(job);
        let Some(life) = crate::rows::stored::StoredLife::decode(&job.life) else { return };
        if let Some(unique) = life.unique {
            self.forget_key(&unique.key, job.seq);
        }
        if let Some(flow) = life.kin.and_then(|kin| kin.flow) {
            self.flows.uncounts(&flow, job.state);
        }
    }

    /// A deleted job holds no key, even within the key's time.
    fn forget_key(&mut self, key: &tenure_core::names::UniqueKey, seq: Seq) {
        if self.jobs.keys.get(key).is_some_and(|holder| holder.seq == seq) {
            self.jobs.keys.remove(key);
            self.key_row(key);
        }
    }
}

/// The common fields of an event of a finished job.
fn about_archived(job: &Archived) -> About {
    let life = crate::rows::stored::StoredLife::decode(&job.life);
    let (kin, origin) = life.map_or((None, None), |life| (life.kin, life.origin));
    About {
        job: Some(job.id.clone()),
        queue: crate::rows::stored::StoredShape::decode(&job.shape).map(|shape| shape.queue),
        flow: kin.and_then(|kin| kin.flow),
        schedule: origin.map(|origin| origin.by.id),
        ..About::default()
    }
}

acts! {
    CancelJob => JobAt, |ask, at| {
        let seq = at.space.cancel_job(&ask.job, at.rest, at.now)?;
        Ok(at.space.job_at(ask.job, seq))
    };
    DeleteJob => (), |ask, at| at.space.delete_job(&ask.job, at.rest, at.now);
}
