//! Retry and run-now: a finished job is ready again; a scheduled one does not wait for its time.

use crate::answer::{Context, JobAt, acts};
use crate::ops::cancel::Named;
use crate::rows::stored::StoredLife;
use crate::rows::{Archive, Archived};
use crate::state::{ParentKey, Seq, Space, Stand};
use tenure_core::events::EventType;
use tenure_core::job::JobState;
use tenure_core::names::JobRef;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{RetryJob, RunJobNow};
use tenure_core::sentences::{FlowRefusal, JobRefusal};
use tenure_core::time::Moment;

/// The parents that a retried job waits for.
#[derive(Default)]
struct Waits {
    open: Vec<ParentKey>,
    /// True if it waits for a flow, or an unfinished parent does.
    above: bool,
}

/// A job that was retried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetriedAt {
    /// The job, as callers see it.
    pub at: JobAt,
    /// The number of children that its failure had cancelled.
    pub cancelled_children: u64,
}

impl Space {
    fn retry_job(
        &mut self,
        job: &JobRef,
        finished_at: Option<Moment>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<(Seq, u64), Refusal> {
        match self.named(job, archive)? {
            Named::Live(slot) => {
                let (job, state) = (self.jobs[slot].id.clone(), self.state_of(slot));
                Err(JobRefusal::NotRetryable { job, state }.into())
            }
            Named::Finished(job) => {
                let life = StoredLife::decode(&job.life);
                let ended_at = life.as_ref().and_then(|life| life.finished_at);
                if finished_at.is_some() && finished_at != ended_at {
                    let (job, state) = (job.id, job.state);
                    return Err(JobRefusal::EndedOtherwise { job, state }.into());
                }
                let waits = self.check_retry(&job, life.as_ref(), archive, now)?;
                Ok((job.seq, self.retry_archived(&job, waits, archive, now)))
            }
        }
    }

    fn check_retry(
        &self,
        job: &Archived,
        life: Option<&StoredLife>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Waits, Refusal> {
        if job.state == JobState::Succeeded {
            let (job, state) = (job.id.clone(), job.state);
            return Err(JobRefusal::Succeeded { job, state }.into());
        }
        let unique = life.and_then(|life| life.unique.as_ref());
        let other = unique.and_then(|unique| {
            let holder = self.jobs.keys.get(&unique.key)?;
            let holds = holder.by_job || holder.until.is_some_and(|at| at > now);
            (holds && holder.seq != job.seq).then_some((unique, holder))
        });
        if let Some((unique, holder)) = other {
            let (key, holder) = (unique.key.clone(), holder.id.clone());
            return Err(JobRefusal::KeyTakenMeanwhile { key, holder }.into());
        }
        if self.dependencies.is_telling(job.seq) {
            return Err(FlowRefusal::StillTelling { job: job.id.clone() }.into());
        }
        match life.and_then(|life| life.kin.as_deref()) {
            Some(kin) => {
                let (open, above) = self.parents_of_retry(job, kin, archive, now)?;
                Ok(Waits { open, above })
            }
            None => Ok(Waits::default()),
        }
    }

    /// Retries a finished job. Returns the number of children that its failure had cancelled.
    fn retry_archived(
        &mut self,
        job: &Archived,
        waits: Waits,
        archive: &dyn Archive,
        now: Moment,
    ) -> u64 {
        let cancelled = self.forget_cancelled_children(job.seq);
        let Some(slot) = self.revive(job, now) else { return cancelled };
        self.take_key(slot, now);
        self.jobs.watch_expiry(slot);
        if let Some(kin) = &mut self.jobs[slot].kin {
            kin.turn = kin.turn.wrapping_add(1);
            kin.above = waits.above;
        }
        self.wait_for_parents(slot, &waits.open, archive);
        if waits.open.is_empty() {
            self.make_ready(slot, now);
            self.job_is_ready(slot, "retry", now);
        } else {
            self.job_happens(slot, EventType::JobChanged, now);
        }
        cancelled
    }

    /// Retries a finished job if that is allowed. Returns false otherwise.
    pub(crate) fn retry_one(&mut self, job: &Archived, archive: &dyn Archive, now: Moment) -> bool {
        let life = StoredLife::decode(&job.life);
        match self.check_retry(job, life.as_ref(), archive, now) {
            Ok(waits) => {
                self.retry_archived(job, waits, archive, now);
                true
            }
            Err(_) => false,
        }
    }

    pub(crate) fn run_job_now(
        &mut self,
        job: &JobRef,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Seq, Refusal> {
        match self.named(job, archive)? {
            Named::Live(slot) => {
                let seq = self.jobs[slot].seq;
                if self.jobs[slot].stand == Stand::Dependent {
                    let job = self.jobs[slot].id.clone();
                    return Err(FlowRefusal::StillWaiting { job }.into());
                }
                if let Stand::Scheduled = self.jobs[slot].stand {
                    self.stop_waiting(slot, now);
                    self.jobs[slot].run_at = now;
                    self.make_ready(slot, now);
                    self.job_is_ready(slot, "run_now", now);
                }
                Ok(seq)
            }
            Named::Finished(job) => {
                Err(JobRefusal::NotRunnable { job: job.id, state: job.state }.into())
            }
        }
    }
}

acts! {
    RetryJob => RetriedAt, |ask, Context { space, now, rest, .. }| {
        let (seq, cancelled_children) = space.retry_job(&ask.job, ask.finished_at, rest, now)?;
        Ok(RetriedAt { at: space.job_at(ask.job, seq), cancelled_children })
    };
    RunJobNow => JobAt, |ask, at| {
        let seq = at.space.run_job_now(&ask.job, at.rest, at.now)?;
        Ok(at.space.job_at(ask.job, seq))
    };
}
