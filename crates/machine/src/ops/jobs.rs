//! What only shows jobs, and what goes through many of them: only rows find these, so the engine does it.

use crate::answer::{Act, Context, Elsewhere, ExplainedAt, JobAt};
use crate::ops::cancel::Named;
use crate::state::{Seq, Space};
use tenure_core::job::JobState;
use tenure_core::names::JobRef;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{CancelJobs, ExplainJob, GetJob, ListJobs, RetryJobs};

impl Space {
    /// A job that lives, as it is shown.
    pub(crate) fn job_at(&self, job: JobRef, seq: Seq) -> JobAt {
        let state = self.job_by_seq(seq).map(|slot| self.state_of(slot));
        JobAt { job, seq, state: state.unwrap_or(JobState::Ready) }
    }

    /// What a path names, as it is shown.
    fn named_at(&self, job: JobRef, named: &Named) -> JobAt {
        let (seq, state) = match named {
            Named::Live(slot) => (self.jobs[*slot].seq, self.state_of(*slot)),
            Named::Finished(job) => (job.seq, job.state),
        };
        JobAt { job, seq, state }
    }
}

impl Act for GetJob {
    type Known = JobAt;
    fn act(self, context: Context<'_>) -> Result<JobAt, Refusal> {
        let named = context.space.named(&self.job, context.rest)?;
        Ok(context.space.named_at(self.job, &named))
    }
}

impl Act for ExplainJob {
    type Known = ExplainedAt;
    fn act(self, context: Context<'_>) -> Result<ExplainedAt, Refusal> {
        let named = context.space.named(&self.job, context.rest)?;
        let at = context.space.named_at(self.job, &named);
        let explained = match named {
            Named::Live(slot) => context.space.explain_job(slot, context.now),
            Named::Finished(job) => Space::explain_finished(job.id, job.state),
        };
        Ok(ExplainedAt(explained, at))
    }
}

impl Act for ListJobs {
    type Known = Elsewhere;
    fn act(self, _: Context<'_>) -> Result<Elsewhere, Refusal> {
        Ok(Elsewhere)
    }
}

impl Act for CancelJobs {
    type Known = Elsewhere;
    fn act(self, _: Context<'_>) -> Result<Elsewhere, Refusal> {
        Ok(Elsewhere)
    }
}

impl Act for RetryJobs {
    type Known = Elsewhere;
    fn act(self, _: Context<'_>) -> Result<Elsewhere, Refusal> {
        Ok(Elsewhere)
    }
}
