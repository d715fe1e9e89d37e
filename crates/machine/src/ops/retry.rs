//! retry and run-now: a finished job is ready again; a scheduled one does not wait for its moment.

use crate::ops::cancel::{Named, wrong_state};
use crate::rows::{Archive, Archived};
use crate::state::{Seq, Space, Stand};
use crate::stored::StoredLife;
use tenure_core::job::JobState;
use tenure_core::names::JobRef;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::time::Moment;

impl Space {
    pub(crate) fn retry(
        &mut self,
        job: &JobRef,
        finished_at: Option<Moment>,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Seq, Refusal> {
        match self.named(job, archive)? {
            Named::Live(slot) => {
                let (id, state) = (self.jobs[slot].id.clone(), self.state_of(slot));
                Err(wrong_state(&id, state, "only a failed or cancelled job can be retried"))
            }
            Named::Finished(job) => {
                let life = StoredLife::decode(&job.life);
                let ended_at = life.as_ref().and_then(|life| life.finished_at);
                if finished_at.is_some() && finished_at != ended_at {
                    return Err(wrong_state(
                        &job.id,
                        job.state,
                        "it ended at another moment than \"finished_at\": look at it again",
                    ));
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
            return Err(wrong_state(
                &job.id,
                job.state,
                "push it again under another id to run it again",
            ));
        }
        let unique = life.and_then(|life| life.unique.as_ref());
        let other = unique.and_then(|unique| {
            let holder = self.keys.get(&unique.key)?;
            let holds = holder.by_job || holder.until.is_some_and(|at| at > now);
            (holds && holder.seq != job.seq).then_some((unique, holder))
        });
        if let Some((unique, holder)) = other {
            let mut no = Refusal::new(
                Code::UniqueConflict,
                format!(
                    "job {:?} holds the unique key {:?} by now",
                    holder.id.as_str(),
                    unique.key.as_str()
                ),
                "wait until that job is finished, or cancel it",
            );
            no.job = Some(holder.id.as_str().to_owned());
            return Err(no);
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

    pub(crate) fn run_now(
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
                Err(wrong_state(&job.id, job.state, "retry it to run it again"))
            }
        }
    }
}
