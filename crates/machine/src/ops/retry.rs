//! retry and run-now: a finished job is ready again; a scheduled one does not wait for its moment.

use crate::answer::{Act, Context, JobAt};
use crate::ops::cancel::Named;
use crate::rows::{Archive, Archived};
use crate::state::{Seq, Space, Stand};
use crate::stored::StoredLife;
use tenure_core::job::JobState;
use tenure_core::names::JobRef;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{RetryJob, RunJobNow};
use tenure_core::sentences::JobRefusal;
use tenure_core::time::Moment;

impl Space {
    fn retry_job(
        &mut self,
        job: &JobRef,
        finished_at: Option<Moment>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Seq, Refusal> {
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
                self.check_retry(&job, life.as_ref(), now)?;
                self.retry_archived(&job, now);
                Ok(job.seq)
            }
        }
    }

    fn check_retry(
        &self,
        job: &Archived,
        life: Option<&StoredLife>,
        now: Moment,
    ) -> Result<(), Refusal> {
        if job.state == JobState::Succeeded {
            let (job, state) = (job.id.clone(), job.state);
            return Err(JobRefusal::Succeeded { job, state }.into());
        }
        let unique = life.and_then(|life| life.unique.as_ref());
        let other = unique.and_then(|unique| {
            let holder = self.keys.get(&unique.key)?;
            let holds = holder.by_job || holder.until.is_some_and(|at| at > now);
            (holds && holder.seq != job.seq).then_some((unique, holder))
        });
        if let Some((unique, holder)) = other {
            let (key, holder) = (unique.key.clone(), holder.id.clone());
            return Err(JobRefusal::KeyTakenMeanwhile { key, holder }.into());
        }
        Ok(())
    }

    fn retry_archived(&mut self, job: &Archived, now: Moment) {
        let Some(slot) = self.revive(job, now) else { return };
        self.take_key(slot, now);
        self.watch_expiry(slot);
        self.make_ready(slot, now);
    }

    /// Retries those of these jobs that may be; how many.
    pub(crate) fn retry_many(&mut self, seqs: &[Seq], archive: &dyn Archive, now: Moment) -> u64 {
        let mut done = 0;
        for seq in seqs {
            if self.job_by_seq(*seq).is_some() {
                continue;
            }
            let Some(job) = archive.by_seq(&self.name, *seq) else { continue };
            let life = StoredLife::decode(&job.life);
            if self.check_retry(&job, life.as_ref(), now).is_ok() {
                self.retry_archived(&job, now);
                done += 1;
            }
        }
        done
    }

    fn run_job_now(
        &mut self,
        job: &JobRef,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Seq, Refusal> {
        match self.named(job, archive)? {
            Named::Live(slot) => {
                let seq = self.jobs[slot].seq;
                if let Stand::Scheduled = self.jobs[slot].stand {
                    self.stop_waiting(slot, now);
                    self.jobs[slot].run_at = now;
                    self.make_ready(slot, now);
                }
                Ok(seq)
            }
            Named::Finished(job) => {
                Err(JobRefusal::NotRunnable { job: job.id, state: job.state }.into())
            }
        }
    }
}

impl Act for RetryJob {
    type Known = JobAt;
    fn act(self, context: Context<'_>) -> Result<Self::Known, Refusal> {
        let seq =
            context.space.retry_job(&self.job, self.finished_at, context.rest, context.now)?;
        Ok(context.space.job_at(self.job, seq))
    }
}

impl Act for RunJobNow {
    type Known = JobAt;
    fn act(self, context: Context<'_>) -> Result<Self::Known, Refusal> {
        let seq = context.space.run_job_now(&self.job, context.rest, context.now)?;
        Ok(context.space.job_at(self.job, seq))
    }
}
